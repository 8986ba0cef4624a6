#include <stdlib.h>
#include <string.h>

#include "client/git/symref.h"
#include "client/librefd/conn.h"
#include "client/request/context.h"
#include "client/request/unserved.h"
#include "client/update/exec_git.h"
#include "client/update/update.h"
#include "client/update/update_report.h"

/* The time to wait for the daemon's answer after the deadline. */
#define GRACE_MS 5000

/* ---- what git says before it does anything ---- */

/* Reports DETAIL for the first ref and ends the program. */
static void __attribute__((noreturn)) refuse(const struct updater *up,
    const struct changes *changes, const char *detail)
{
	const char *ref = changes->nr ? changes->updates[0].name : "";

	exit(update_failed(up, ref, detail));
}

/* In a batch, a duplicate would undo the other update. */
static void refuse_duplicates(const struct updater *up,
    const struct changes *changes)
{
	const char **names = xcalloc(changes->nr, sizeof(*names));
	struct text detail = { 0 };
	const char *found;
	size_t i;

	for (i = 0; i < changes->nr; i++)
		names[i] = changes->updates[i].name;
	found = find_duplicate(names, changes->nr);
	free(names);
	if (!found)
		return;
	text_addf(&detail, "multiple updates for ref '%s' not allowed", found);
	refuse(up, changes, detail.data);
}

/* refd serves the repository, so its history will lack an update that git does.
 * The user is told even without --verbose. */
static void leave_long_names(struct updater *up, const struct changes *changes)
{
	struct update_options told = *up->opt;
	const char *why = NULL;
	size_t i;

	for (i = 0; i < changes->nr && !why; i++)
		why = unserved_update(&changes->updates[i]);
	if (!why)
		return;
	told.verbose = true;
	up->opt = &told;
	updater_leave_to_git(up, why, EXIT_FATAL, up->input);
}

/* The daemon finds duplicates too, but not before a hook has run. */
static void check(struct updater *up, const struct changes *changes)
{
	leave_long_names(up, changes);
	if (getenv("GIT_QUARANTINE_PATH"))
		refuse(up, changes,
		    "ref updates forbidden inside quarantine environment");
	if (up->opt->batch || reftx_exists(&up->hook))
		refuse_duplicates(up, changes);
	reftx_warn(&up->hook);
}

/* ---- asking ---- */

static void set_txid(struct updater *up, struct refd_request *req)
{
	int err;

	if (up->opt->txid && up->txid_used)
		die("--txid names one transaction, and this is another");
	if (up->opt->txid)
		refd_txid_parse(up->opt->txid, &req->txid);
	else if ((err = refd_txid_make(&req->txid)) < 0)
		die("cannot make a transaction id: %s", strerror(-err));
	up->txid_used = true;
}

static void make_request(struct updater *up, enum refd_verb verb,
    const struct changes *changes, struct refd_request *req)
{
	context_request(req, &up->gd, &up->config);
	req->object_format = up->revs.object_format;
	req->verb = verb;
	req->atomic = !up->opt->batch;
	req->create_reflog = up->opt->create_reflog;
	req->message = up->opt->message;
	req->committer = up->committer;
	req->updates = changes->updates;
	req->nr_updates = changes->nr;
	set_txid(up, req);
}

/* A request without updates is done; the daemon does not get it. */
static void answer_nothing(const struct refd_request *req,
    struct refd_answer *ans)
{
	memset(ans, 0, sizeof(*ans));
	ans->kind = req->verb == REFD_VERB_SESSION ? REFD_ANSWER_PREPARED :
						     REFD_ANSWER_RESULTS;
	ans->txid = req->txid;
	ans->outcome = REFD_COMMITTED;
}

static void call(struct updater *up, struct refd_request *req,
    struct refd_answer *ans)
{
	const char *why;

	if (req->nr_updates)
		connect_call(up->daemon, req,
		    refd_deadline_ms(up->opt->timeout_ms), GRACE_MS, ans);
	else
		answer_nothing(req, ans);
	symref_forget();
	why = unserved_answer(ans);
	if (why)
		updater_leave_to_git(up, why, EXIT_FATAL, up->input);
}

static void require_results(const struct changes *changes,
    const struct refd_answer *ans)
{
	if (ans->nr_results != changes->nr)
		die("the daemon's answer is not that to this transaction");
}

static int report(const struct updater *up, const struct changes *changes,
    const struct refd_answer *ans)
{
	switch (ans->kind) {
	case REFD_ANSWER_RESULTS:
		require_results(changes, ans);
		return report_results(up, changes, ans);
	case REFD_ANSWER_REFUSED:
		return report_refused(up, changes, ans);
	case REFD_ANSWER_PREPARED:
	case REFD_ANSWER_PENDING:
	case REFD_ANSWER_NEVER_SEEN:
	case REFD_ANSWER_EXPIRED:
	case REFD_ANSWER_PONG:
	case REFD_ANSWER_PAIRS:
	case REFD_ANSWER_RECORDS:
		break;
	}
	die("%s: not an answer to a transaction", up->socket.path);
}

/* ---- in one go ---- */

static int commit_whole(struct updater *up, const struct changes *changes)
{
	uint64_t begun = refd_now_ms();
	struct refd_request req;
	struct refd_answer ans;
	int rc;

	check(up, changes);
	make_request(up, REFD_VERB_TRANSACTION, changes, &req);
	call(up, &req, &ans);
	if (up->opt->verbose)
		report_timing(&ans, begun);
	rc = report(up, changes, &ans);
	refd_answer_done(&ans);
	return rc;
}

/* ---- in a session ---- */

static void held_done(struct held *h)
{
	refd_answer_done(&h->ans);
	memset(h, 0, sizeof(*h));
}

/* A batch may have no ref to hold. Its rejections are reported at the commit.
 */
static bool is_prepared(const struct updater *up, const struct held *h)
{
	switch (h->ans.kind) {
	case REFD_ANSWER_PREPARED:
		return true;
	case REFD_ANSWER_RESULTS:
		return up->opt->batch;
	case REFD_ANSWER_PENDING:
	case REFD_ANSWER_NEVER_SEEN:
	case REFD_ANSWER_EXPIRED:
	case REFD_ANSWER_REFUSED:
	case REFD_ANSWER_PONG:
	case REFD_ANSWER_PAIRS:
	case REFD_ANSWER_RECORDS:
		break;
	}
	return false;
}

/* Asks the daemon to lock the refs. */
static int hold(struct updater *up, const struct changes *changes)
{
	struct held *h = &up->held;
	int rc = 0;

	make_request(up, REFD_VERB_SESSION, changes, &h->req);
	call(up, &h->req, &h->ans);
	h->by_daemon =
	    h->ans.kind == REFD_ANSWER_PREPARED && h->req.nr_updates > 0;
	if (h->ans.kind == REFD_ANSWER_PREPARED ||
	    h->ans.kind == REFD_ANSWER_RESULTS)
		require_results(changes, &h->ans);
	h->is_prepared = is_prepared(up, h);
	if (!h->is_prepared) {
		rc = report(up, changes, &h->ans);
		held_done(h);
	}
	return rc;
}

static void end_session(struct updater *up, enum refd_verb verb,
    struct refd_answer *ans)
{
	connect_end_session(up->daemon, &up->held.req, verb,
	    up->opt->timeout_ms + GRACE_MS, ans);
}

static void let_go(struct updater *up)
{
	struct refd_answer ans;

	if (!up->held.by_daemon)
		return;
	end_session(up, REFD_VERB_ABORT, &ans);
	refd_answer_done(&ans);
	up->held.by_daemon = false;
}

static void __attribute__((noreturn)) declined_by_hook(const struct updater *up)
{
	struct text why = { 0 };

	reftx_why(&up->hook, &why);
	die("%s", why.data);
}

int updater_prepare(struct updater *up, const struct changes *changes)
{
	int rc;

	check(up, changes);
	if (!reftx_preparing(&up->hook, changes))
		declined_by_hook(up);
	rc = hold(up, changes);
	if (rc == 0 && !reftx_prepared(&up->hook, changes, &up->held.ans)) {
		let_go(up);
		reftx_aborted(&up->hook);
		declined_by_hook(up);
	}
	if (rc == 0 && up->opt->batch)
		report_bad_values(up, changes, &up->held.ans);
	return rc;
}

void updater_drop(struct updater *up)
{
	let_go(up);
	held_done(&up->held);
}

void updater_abort(struct updater *up, const struct changes *changes)
{
	reftx_warn(&up->hook);
	let_go(up);
	if (up->held.is_prepared)
		reftx_aborted(&up->hook);
	else
		reftx_given_up(&up->hook, changes);
	held_done(&up->held);
}

/* The answer for a batch without refs to hold: the results of the session. */
static void answer_held(struct held *h, struct refd_answer *ans)
{
	*ans = h->ans;
	ans->kind = REFD_ANSWER_RESULTS;
	memset(&h->ans, 0, sizeof(h->ans));
}

static int commit_held(struct updater *up, const struct changes *changes)
{
	uint64_t begun = refd_now_ms();
	struct refd_answer ans;
	int rc;

	if (up->held.by_daemon)
		end_session(up, REFD_VERB_COMMIT, &ans);
	else
		answer_held(&up->held, &ans);
	if (up->opt->verbose)
		report_timing(&ans, begun);
	reftx_ended(&up->hook, &ans, up->held.by_daemon);
	rc = report(up, changes, &ans);
	refd_answer_done(&ans);
	held_done(&up->held);
	return rc;
}

int updater_commit(struct updater *up, const struct changes *changes)
{
	int rc = 0;

	if (!up->held.is_prepared && !reftx_exists(&up->hook))
		return commit_whole(up, changes);
	if (!up->held.is_prepared)
		rc = updater_prepare(up, changes);
	return rc ? rc : commit_held(up, changes);
}
