#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/git/symref.h"
#include "client/request/changes.h"
#include "client/request/context.h"
#include "client/request/git_messages.h"
#include "client/request/output.h"
#include "client/request/unserved.h"
#include "client/update/exec_git.h"
#include "client/update/update.h"
#include "proto/detail.h"
#include "proto/lib/clock.h"
#include "proto/lib/progress.h"
#include "proto/lib/query_command.h"

/* ---- the report ---- */

/*
 * Reports the outcome of a transaction in the form of refd update's options.
 * Functions return the exit status: 0, or the status with which the program
 * ends.
 */

static int failed_unknown(const struct updater *up,
    const struct refd_answer *ans)
{
	char id[REFD_TXID_HEX + 1];
	char *command = query_command(up->socket.path, &ans->txid);

	if (!command)
		die("out of memory");
	print_lines(stderr,
	    "fatal: outcome unknown (transaction %s): ask with \"%s\"\n",
	    refd_txid_hex(&ans->txid, id), command);
	free(command);
	return EXIT_FATAL;
}

/* ---- the order of failures ---- */

/* The time at which git reports a failure. Refs behind a symbolic ref come
 * after all named refs. */
enum when { AT_ONCE, UNDER_LOCK, BEHIND_SYMREF, AT_LAST, NEVER };

static bool is_locked(const struct refd_result *res, const char *name)
{
	struct refd_detail detail;
	struct refd_detail_arg *path = &detail.args[1];
	char *end;
	size_t len;
	bool is;

	if (!refd_detail_read(res->text, &detail) ||
	    detail.kind != REFD_DETAIL_LOCKED)
		return false;
	end = xasprintf("/%s.lock", name);
	len = strlen(end);
	is =
	    path->len >= len && !memcmp(path->data + path->len - len, end, len);
	free(end);
	return is;
}

static bool is_duplicate(const struct refd_result *res)
{
	struct refd_detail detail;

	return refd_detail_read(res->text, &detail) &&
	    (detail.kind == REFD_DETAIL_DUPLICATE ||
		detail.kind == REFD_DETAIL_DUPLICATE_HEAD ||
		detail.kind == REFD_DETAIL_DUPLICATE_SYMREF);
}

/* The daemon names the final ref if it does not exist. NULL: it exists, or is
 * unknown. */
static char *absent_name(const struct refd_result *res)
{
	struct refd_detail detail;
	const struct refd_detail_arg *final = &detail.args[1];

	if (!refd_detail_read(res->text, &detail) ||
	    detail.kind != REFD_DETAIL_UNRESOLVED)
		return NULL;
	return xasprintf("%.*s", (int) final->len, final->data);
}

/* git names the failed ref: a locked ref on the way of the symbolic refs,
 * otherwise the last ref. */
static char *rejected_name(const struct updater *up,
    const struct refd_update *u, const struct refd_result *res)
{
	char *name = absent_name(res), *next;
	unsigned links;

	if (name)
		return name;
	name = xstrdup(u->name);
	if (u->no_deref || git_messages_is_bad_value(res->status) ||
	    is_duplicate(res))
		return name;
	for (links = 0; links < SYMREF_LINKS_MAX; links++) {
		next =
		    is_locked(res, name) ? NULL : symref_target(&up->gd, name);
		if (!next)
			break;
		free(name);
		name = next;
	}
	return name;
}

/* git 2.39 has no batches, and reports failures in the order of the input. */
static bool is_in_order(const struct update_options *opt)
{
	return opt->messages == GIT_2_39 && !opt->batch;
}

static enum when when_said(const struct updater *up,
    const struct refd_update *u, const struct refd_result *res,
    const char *name)
{
	if (res->status == REFD_OK || res->status == REFD_UNKNOWN)
		return NEVER;
	if (git_messages_is_bad_value(res->status) && !is_in_order(up->opt))
		return AT_ONCE;
	if (git_messages_is_said_last(res) && !is_in_order(up->opt))
		return AT_LAST;
	return strcmp(name, u->name) ? BEHIND_SYMREF : UNDER_LOCK;
}

/* The first ref with a reason of its own is reported. */
static size_t find_culprit(const struct updater *up,
    const struct changes *changes, const struct refd_answer *ans)
{
	size_t i, aborted = ans->nr_results, culprit = ans->nr_results;
	enum when when, first = NEVER;
	char *name;

	for (i = 0; i < ans->nr_results; i++) {
		if (ans->results[i].status == REFD_ABORTED &&
		    aborted == ans->nr_results)
			aborted = i;
		if (ans->results[i].status == REFD_ABORTED ||
		    ans->results[i].status == REFD_OK)
			continue;
		name =
		    rejected_name(up, &changes->updates[i], &ans->results[i]);
		when =
		    when_said(up, &changes->updates[i], &ans->results[i], name);
		free(name);
		if (when < first) {
			first = when;
			culprit = i;
		}
	}
	return culprit < ans->nr_results ? culprit : aborted;
}

/* ---- one for all ---- */

/* As update_failed(). git 2.55 reports a bad value while reading, so its
 * message does not name the later command. */
static int failed_ref(const struct updater *up, const struct refd_update *u,
    const struct refd_result *res, const char *detail)
{
	if (up->opt->form == FORM_STDIN && up->opt->messages == GIT_2_55 &&
	    git_messages_is_bad_value(res->status)) {
		say_fatal("%s", detail);
		return EXIT_FATAL;
	}
	return update_failed(up, u->name, detail);
}

/* The daemon does not know the spelling of the path that git prints, so the
 * path is replaced. */
static void add_detail(const struct updater *up, const struct refd_update *u,
    const struct refd_result *res, struct text *t)
{
	struct git_messages_place place = { .from = up->gd.common };
	bool is_other = place_spells(&up->hook.place, &up->gd, &place.to);

	git_messages_detail(u, res, up->opt->messages, is_other ? &place : NULL,
	    t);
}

static int failed_whole(const struct updater *up, const struct changes *changes,
    const struct refd_answer *ans)
{
	size_t i = find_culprit(up, changes, ans);
	struct text t = { 0 };
	int rc;

	if (i == ans->nr_results)
		die("the daemon rejects the transaction and names no ref");
	add_detail(up, &changes->updates[i], &ans->results[i], &t);
	if (git_messages_is_busy(ans->results[i].status)) {
		say_error("%s", t.data);
		rc = EXIT_AWAY;
	} else {
		rc = failed_ref(up, &changes->updates[i], &ans->results[i],
		    t.data);
	}
	text_done(&t);
	return rc;
}

/* ---- each for itself ---- */

struct rejection {
	const struct refd_update *u;
	const struct refd_result *res;
	char *name;
	enum when when;
};

static size_t find_rejections(const struct updater *up,
    const struct changes *changes, const struct refd_answer *ans,
    struct rejection **list)
{
	struct rejection *r = xcalloc(ans->nr_results, sizeof(*r));
	size_t i, nr = 0;

	*list = r;
	for (i = 0; i < ans->nr_results; i++) {
		r[nr].u = &changes->updates[i];
		r[nr].res = &ans->results[i];
		if (r[nr].res->status == REFD_OK)
			continue;
		r[nr].name = rejected_name(up, r[nr].u, r[nr].res);
		r[nr].when = when_said(up, r[nr].u, r[nr].res, r[nr].name);
		nr++;
	}
	return nr;
}

static void say_why(const struct updater *up, const struct rejection *r)
{
	struct text t = { 0 };

	add_detail(up, r->u, r->res, &t);
	say_error("%s", t.data);
	text_done(&t);
}

/* git flushes standard output only at the end, so standard error comes first
 * here, too. */
static void report_rejected(const struct updater *up,
    const struct changes *changes, const struct refd_answer *ans,
    enum when first, enum when end)
{
	struct rejection *list;
	size_t i, nr = find_rejections(up, changes, ans, &list);
	enum when when;

	for (when = first; when < end; when++)
		for (i = 0; i < nr; i++)
			if (list[i].when == when)
				say_why(up, &list[i]);
	for (when = first; when < end && up->opt->output == OUTPUT_GIT; when++)
		for (i = 0; i < nr; i++)
			if (list[i].when == when)
				output_rejected(list[i].u, list[i].name,
				    list[i].res, up->revs.object_format);
	for (i = 0; i < nr; i++)
		free(list[i].name);
	free(list);
}

/* Reports the updates of a batch with bad values, which git rejects first. For
 * a prepared batch, report_results() does not repeat them. */
static void report_bad_values(const struct updater *up,
    const struct changes *changes, const struct refd_answer *ans)
{
	report_rejected(up, changes, ans, AT_ONCE, UNDER_LOCK);
}

static int report_batch(const struct updater *up, const struct changes *changes,
    const struct refd_answer *ans)
{
	bool bad_values_told = up->held.is_prepared;
	size_t i, nr_busy = 0;

	report_rejected(up, changes, ans,
	    bad_values_told ? UNDER_LOCK : AT_ONCE, NEVER);
	for (i = 0; i < ans->nr_results; i++)
		nr_busy += git_messages_is_busy(ans->results[i].status);
	return nr_busy && nr_busy == ans->nr_results ? EXIT_AWAY : EXIT_DONE;
}

/* ANS is RESULTS, with a result for each of CHANGES. */
static int report_results(const struct updater *up,
    const struct changes *changes, const struct refd_answer *ans)
{
	int rc = 0;

	progress_clear();
	switch (up->opt->output) {
	case OUTPUT_GIT:
		break;
	case OUTPUT_PORCELAIN:
		output_results(ans, false);
		break;
	case OUTPUT_JSON:
		output_json(ans);
		break;
	}
	if (up->opt->batch)
		rc = report_batch(up, changes, ans);
	else if (ans->outcome != REFD_COMMITTED &&
	    ans->outcome != REFD_OUTCOME_UNKNOWN)
		rc = failed_whole(up, changes, ans);
	if (ans->outcome == REFD_OUTCOME_UNKNOWN)
		rc = failed_unknown(up, ans);
	return rc;
}

/* ANS is REFUSED, so the refusal is reported for each ref. */
static int report_refused(const struct updater *up,
    const struct changes *changes, const struct refd_answer *ans)
{
	struct refd_result *results = xcalloc(changes->nr, sizeof(*results));
	struct refd_answer all = { .kind = REFD_ANSWER_RESULTS,
		.txid = ans->txid,
		.results = results,
		.nr_results = changes->nr,
		.nr_updates = changes->nr };
	bool busy;
	size_t i;

	for (i = 0; i < changes->nr; i++) {
		results[i].name = changes->updates[i].name;
		results[i].status = ans->status;
		results[i].text = ans->text;
	}
	all.outcome = refd_outcome_of(changes->nr, 0,
	    ans->status == REFD_UNKNOWN ? changes->nr : 0);
	if (up->opt->output == OUTPUT_PORCELAIN)
		output_results(&all, false);
	if (up->opt->output == OUTPUT_JSON)
		output_json(&all);
	free(results);
	if (ans->status == REFD_UNKNOWN)
		return failed_unknown(up, ans);
	busy = git_messages_is_busy(ans->status) || ans->status == REFD_ABORTED;
	cli_say(busy ? CLI_ERROR : CLI_FATAL, "refd: %s: %s",
	    refd_status_name(ans->status),
	    ans->text && *ans->text ? ans->text :
				      refd_status_text(ans->status));
	return busy ? EXIT_AWAY : EXIT_FATAL;
}

/* With --verbose. */
static void report_timing(const struct refd_answer *ans, uint64_t begun_ms)
{
	char id[REFD_TXID_HEX + 1], token[REFD_TOKEN_MAX + 1];

	say("transaction %s: %s, %zu refs, %s%s%" PRIu64 " ms",
	    refd_txid_hex(&ans->txid, id),
	    ans->kind == REFD_ANSWER_RESULTS ? refd_outcome_name(ans->outcome) :
					       "refused",
	    ans->nr_results,
	    ans->lsn ? refd_token_text(ans->journal, ans->lsn, token) : "",
	    ans->lsn ? ", " : "", clock_now_ms() - begun_ms);
}

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
	found = cli_duplicate(names, changes->nr);
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

/* The daemon finds duplicates too, but not before a hook has run, so with a
 * hook this looks for them first. */
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

/* A request without updates is done, so the daemon does not get it. */
static void answer_nothing(const struct refd_request *req,
    struct refd_answer *ans)
{
	memset(ans, 0, sizeof(*ans));
	ans->kind = req->verb == REFD_VERB_SESSION ? REFD_ANSWER_PREPARED :
						     REFD_ANSWER_RESULTS;
	ans->txid = req->txid;
	ans->outcome = REFD_COMMITTED;
}

/* Could the daemon give this answer before it looked for the id? Results with a
 * token are recorded, so they are the outcome of the id. */
static bool may_hide_outcome(const struct refd_answer *ans)
{
	size_t i;

	if (ans->kind == REFD_ANSWER_REFUSED)
		return ans->status != REFD_UNKNOWN &&
		    ans->status != REFD_BADREQUEST;
	if (ans->kind != REFD_ANSWER_RESULTS || ans->outcome != REFD_REJECTED ||
	    ans->lsn != 0)
		return false;
	for (i = 0; i < ans->nr_results; i++)
		if (git_messages_is_busy(ans->results[i].status))
			return true;
	return false;
}

/* May an earlier call with the id of --txid have been done? Only the answer
 * "never-seen" denies this. All other answers may concern other updates: a
 * query has nothing but the id, and root's query finds the ids of all users. So
 * no answer here is an outcome. */
static bool may_be_done(const struct updater *up, const struct refd_txid *id)
{
	struct refd_request query = { .verb = REFD_VERB_QUERY, .txid = *id };
	struct refd_answer ans;
	bool may_be;

	if (refd_call(up->daemon, &query, GRACE_MS, &ans) < 0)
		return true;
	may_be = ans.kind != REFD_ANSWER_NEVER_SEEN;
	refd_answer_done(&ans);
	return may_be;
}

/* Another call may have used the id of --txid, and *ANS says nothing of it, so
 * the outcome may be unknown. */
static void doubt(const struct updater *up, const struct refd_request *req,
    struct refd_answer *ans)
{
	if (!up->opt->txid || !may_be_done(up, &req->txid))
		return;
	refd_answer_done(ans);
	if (refd_answer_unknown(req, ans) < 0)
		die("out of memory");
}

static void call(struct updater *up, struct refd_request *req,
    struct refd_answer *ans)
{
	const char *why;

	if (req->nr_updates) {
		connect_call(up->daemon, req,
		    clock_deadline_ms(up->opt->timeout_ms), GRACE_MS, ans);
		/* After a look for the id, the daemon compares the updates and
		 * gives the first outcome. */
		if (may_hide_outcome(ans))
			doubt(up, req, ans);
	} else {
		answer_nothing(req, ans);
	}
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
	uint64_t begun = clock_now_ms();
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

/* Has the answer prepared the transaction? A batch may have no ref to hold, and
 * is prepared all the same, because its rejections are reported at the commit.
 * All other results belong to an earlier call with the same id, because an
 * update cannot be done without a lock. */
static bool is_prepared(const struct updater *up, const struct held *h)
{
	switch (h->ans.kind) {
	case REFD_ANSWER_PREPARED:
		return true;
	case REFD_ANSWER_RESULTS:
		return up->opt->batch && h->ans.outcome == REFD_REJECTED;
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
		h->is_done = rc == 0;
	}
	return rc;
}

/* Whatever its reason, a refusal shows only that this COMMIT or ABORT did
 * nothing, so the outcome stays in doubt. */
static void end_session(struct updater *up, enum refd_verb verb,
    struct refd_answer *ans)
{
	connect_end_session(up->daemon, &up->held.req, verb,
	    clock_deadline_ms(up->opt->timeout_ms), GRACE_MS, ans);
	if (ans->kind == REFD_ANSWER_REFUSED || may_hide_outcome(ans))
		doubt(up, &up->held.req, ans);
}

/* False: another call with the id of --txid may have committed, before this one
 * or beside it. The user has been told, and nobody must hear of an abort. */
static bool let_go(struct updater *up)
{
	enum refd_outcome outcome =
	    up->held.is_done ? REFD_COMMITTED : REFD_REJECTED;
	struct refd_answer ans;

	if (up->held.by_daemon) {
		end_session(up, REFD_VERB_ABORT, &ans);
		if (ans.kind == REFD_ANSWER_RESULTS)
			outcome = ans.outcome;
		refd_answer_done(&ans);
	}
	up->held.by_daemon = false;
	if (outcome == REFD_COMMITTED || outcome == REFD_PARTIAL)
		say_fatal("another call with this id has done it, so it cannot "
			  "be aborted");
	else if (outcome == REFD_OUTCOME_UNKNOWN && up->opt->txid)
		failed_unknown(up, &up->held.ans);
	else
		return true;
	return false;
}

static void __attribute__((noreturn)) declined_by_hook(const struct updater *up)
{
	struct text why = { 0 };

	reftx_why(&up->hook, &why);
	die("%s", why.data);
}

/* The hook declines before the daemon is asked for a lock. Normally the program
 * ends. But an earlier call with the id of --txid may have done what the hook
 * declines. Then the function reports an unknown outcome, and returns the exit
 * status. */
static int declined_early(struct updater *up, const struct changes *changes)
{
	struct refd_request req;
	struct refd_answer ans;
	int rc;

	if (!up->opt->txid || !changes->nr)
		declined_by_hook(up);
	make_request(up, REFD_VERB_SESSION, changes, &req);
	if (!may_be_done(up, &req.txid))
		declined_by_hook(up);
	/* The request is not sent, and an answer needs the id of a request. */
	req.request_id = 1;
	if (refd_answer_unknown(&req, &ans) < 0)
		die("out of memory");
	rc = report(up, changes, &ans);
	refd_answer_done(&ans);
	return rc;
}

int updater_prepare(struct updater *up, const struct changes *changes)
{
	int rc;

	check(up, changes);
	if (!reftx_preparing(&up->hook, changes))
		return declined_early(up, changes);
	rc = hold(up, changes);
	if (up->held.is_done)
		return rc;
	if (rc == 0 && !reftx_prepared(&up->hook, changes, &up->held.ans)) {
		if (let_go(up))
			reftx_aborted(&up->hook);
		declined_by_hook(up);
	}
	if (rc == 0 && up->opt->batch)
		report_bad_values(up, changes, &up->held.ans);
	return rc;
}

void updater_drop(struct updater *up)
{
	(void)let_go(up);
	held_done(&up->held);
}

void updater_abort(struct updater *up, const struct changes *changes)
{
	reftx_warn(&up->hook);
	if (!let_go(up))
		exit(EXIT_FATAL);
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
	uint64_t begun = clock_now_ms();
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
	const bool is_begun = up->held.is_prepared || up->held.is_done;
	int rc = 0;

	if (!is_begun && !reftx_exists(&up->hook))
		return commit_whole(up, changes);
	if (!is_begun)
		rc = updater_prepare(up, changes);
	if (rc)
		return rc;
	if (!up->held.is_done)
		return commit_held(up, changes);
	held_done(&up->held); /* reported before */
	return 0;
}
