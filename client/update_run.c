#include "client/update.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/context.h"
#include "client/librefd/conn.h"
#include "client/output.h"
#include "client/words.h"

/* The daemon answers by the deadline; this much later it is not waited for
 * any more. */
#define GRACE_MS 5000

/* ---- git in our place ---- */

static void __attribute__((noreturn)) exec_git(const struct update_options *opt)
{
	const char **argv = xcalloc((size_t)opt->nr_args + 16, sizeof(*argv));
	int n = 0, i;

	argv[n++] = "git";
	if (opt->git_dir)
		argv[n++] = xasprintf("--git-dir=%s", opt->git_dir);
	argv[n++] = "update-ref";
	if (opt->message) {
		argv[n++] = "-m";
		argv[n++] = opt->message;
	}
	if (opt->no_deref)
		argv[n++] = "--no-deref";
	if (opt->create_reflog)
		argv[n++] = "--create-reflog";
	if (opt->form == FORM_STDIN)
		argv[n++] = "--stdin";
	if (opt->end_null)
		argv[n++] = "-z";
	if (opt->batch)
		argv[n++] = "--batch-updates";
	if (opt->form == FORM_DELETE)
		argv[n++] = "-d";
	if (opt->nr_args)
		argv[n++] = "--";
	for (i = 0; i < opt->nr_args; i++)
		argv[n++] = opt->args[i];
	argv[n] = NULL;
	execvp("git", (char *const *)argv);
	die("cannot run git: %s", strerror(errno));
}

/* The daemon is away, nothing was submitted, standard input is untouched. */
static void __attribute__((noreturn))
leave_to_git(const struct updater *up, const char *why)
{
	const struct update_options *opt = up->opt;

	if (opt->output != OUTPUT_GIT || opt->txid)
		die_with(EXIT_AWAY,
		    "%s; git has no --porcelain, --json or "
		    "--txid",
		    why);
	if (opt->verbose)
		say("%s; git does it", why);
	exec_git(opt);
}

/* ---- opening ---- */

static void find_repository(struct updater *up)
{
	const char *dir = up->opt->git_dir;
	struct text why = { 0 };

	if (!dir)
		dir = getenv("GIT_DIR");
	if (!gitdir_find(&up->gd, dir, &why))
		die("%s", why.data);
	if (getenv("GIT_QUARANTINE_PATH"))
		exit(update_failed(up->opt,
		    up->opt->nr_args ? up->opt->args[0] : "",
		    "ref updates forbidden inside quarantine environment"));
}

void updater_open(struct updater *up, const struct update_options *opt)
{
	struct text why = { 0 };

	memset(up, 0, sizeof(*up));
	up->opt = opt;
	up->deadline = refd_deadline_ms(opt->timeout_ms);
	up->revs.gd = &up->gd;
	find_repository(up);
	context_config(&up->config, &up->gd);
	up->committer = context_committer(&up->config, &up->gd);
	up->socket = reach_socket(opt->socket, &up->config);
	up->daemon = refd_new(up->socket);
	if (!up->daemon)
		die("out of memory");
	switch (reach_daemon(up->daemon, up->socket,
	    reach_fallback(&up->config, FALLBACK_REFUSE), &up->gd, up->deadline,
	    &why)) {
	case REACHED:
		break;
	case REACHED_NOBODY:
		leave_to_git(up, why.data);
	case REACHED_NOTHING:
		die_with(EXIT_AWAY, "%s", why.data);
	case REACHED_DENIED:
		die("%s", why.data);
	}
	text_done(&why);
}

void updater_close(struct updater *up)
{
	refd_free(up->daemon);
	revisions_done(&up->revs);
	gitconfig_done(&up->config);
	gitdir_done(&up->gd);
	free(up->socket);
	free(up->committer);
}

/* ---- results ---- */

static int failed_unknown(const struct refd_answer *ans)
{
	char id[REFD_TXID_HEX + 1];

	refd_txid_hex(&ans->txid, id);
	fprintf(stderr,
	    "fatal: outcome unknown (transaction %s): ask with "
	    "\"refd query %s\"\n",
	    id, id);
	return EXIT_FATAL;
}

/* The first ref with a reason of its own stands for all. */
static size_t find_culprit(const struct refd_answer *ans)
{
	size_t i, first = ans->nr_results;

	for (i = 0; i < ans->nr_results; i++) {
		if (ans->results[i].status == REFD_OK)
			continue;
		if (ans->results[i].status != REFD_ABORTED)
			return i;
		if (first == ans->nr_results)
			first = i;
	}
	return first;
}

static int failed_whole(const struct updater *up, const struct changes *changes,
    const struct refd_answer *ans)
{
	size_t i = find_culprit(ans);
	struct text t = { 0 };
	int rc;

	if (i == ans->nr_results)
		die("the daemon rejects the transaction and names no ref");
	words_detail(&changes->updates[i], &ans->results[i], &up->gd, &t);
	if (words_is_busy(ans->results[i].status)) {
		say_error("%s", t.data);
		rc = EXIT_AWAY;
	} else {
		rc = update_failed(up->opt, changes->updates[i].name, t.data);
	}
	text_done(&t);
	return rc;
}

static int report_batch(const struct updater *up, const struct changes *changes,
    const struct refd_answer *ans)
{
	size_t i, nr_busy = 0;
	struct text t = { 0 };

	for (i = 0; i < ans->nr_results; i++) {
		const struct refd_result *res = &ans->results[i];

		nr_busy += words_is_busy(res->status);
		if (res->status == REFD_OK || res->status == REFD_UNKNOWN)
			continue;
		if (up->opt->output == OUTPUT_GIT)
			output_rejected(&changes->updates[i], res);
		text_clear(&t);
		words_detail(&changes->updates[i], res, &up->gd, &t);
		say_error("%s", t.data);
	}
	text_done(&t);
	return nr_busy && nr_busy == ans->nr_results ? EXIT_AWAY : EXIT_DONE;
}

static int report_results(const struct updater *up,
    const struct changes *changes, const struct refd_answer *ans)
{
	int rc = 0;

	switch (up->opt->output) {
	case OUTPUT_GIT:
		break;
	case OUTPUT_PORCELAIN:
		output_porcelain(ans);
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
		rc = failed_unknown(ans);
	return rc;
}

/* A refusal of the whole, spelled out for each ref. */
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
		output_porcelain(&all);
	if (up->opt->output == OUTPUT_JSON)
		output_json(&all);
	free(results);
	if (ans->status == REFD_UNKNOWN)
		return failed_unknown(ans);
	busy = words_is_busy(ans->status);
	fprintf(stderr, "%s: refd: %s: %s\n", busy ? "error" : "fatal",
	    refd_status_name(ans->status),
	    ans->text && *ans->text ? ans->text :
				      refd_status_text(ans->status));
	return busy ? EXIT_AWAY : EXIT_FATAL;
}

/* ---- a transaction ---- */

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

static void say_done(const struct refd_answer *ans, uint64_t begun_ms)
{
	char id[REFD_TXID_HEX + 1];

	say("transaction %s: %s, %zu refs, lsn %" PRIu64 ", %" PRIu64 " ms",
	    refd_txid_hex(&ans->txid, id),
	    ans->kind == REFD_ANSWER_RESULTS ? refd_outcome_name(ans->outcome) :
					       "refused",
	    ans->nr_results, ans->lsn, refd_now_ms() - begun_ms);
}

/* In a batch too: one of them would undo the other. */
static void refuse_duplicates(const struct changes *changes)
{
	const char **names = xcalloc(changes->nr, sizeof(*names));
	const char *found;
	size_t i;

	for (i = 0; i < changes->nr; i++)
		names[i] = changes->updates[i].name;
	found = find_duplicate(names, changes->nr);
	if (found)
		die("multiple updates for ref '%s' not allowed", found);
	free(names);
}

/* ---- names that the protocol can't carry ---- */

static bool fits(const char *name)
{
	return !name || strlen(name) <= REFD_REFNAME_MAX;
}

static bool is_carried(const struct refd_update *u)
{
	return fits(u->name) && fits(u->target) && fits(u->old_target);
}

/* What the daemon is asked for: all but those, which it would refuse the
 * whole request for. Of what is all or nothing, nothing then. The strings are
 * borrowed. */
static void carry(const struct update_options *opt, const struct changes *all,
    struct refd_request *req)
{
	struct refd_update *carried = xcalloc(all->nr, sizeof(*carried));
	size_t i, nr = 0;

	for (i = 0; i < all->nr; i++)
		if (is_carried(&all->updates[i]))
			carried[nr++] = all->updates[i];
	if (nr < all->nr && !opt->batch)
		nr = 0;
	req->updates = carried;
	req->nr_updates = nr;
}

/* The answer as if all had been sent; it borrows from ANS. */
static void answer_all(const struct update_options *opt,
    const struct changes *all, const struct refd_answer *ans,
    struct refd_answer *whole)
{
	struct refd_result *results = xcalloc(all->nr, sizeof(*results));
	size_t i, at = 0, ok = 0, unknown = 0;

	for (i = 0; i < all->nr; i++) {
		const struct refd_update *u = &all->updates[i];

		results[i].name = u->name;
		if (!is_carried(u)) {
			results[i].status = REFD_BADNAME;
			results[i].text = "refname is too long";
		} else if (!opt->batch) {
			results[i].status = REFD_ABORTED;
		} else {
			results[i] = ans->results[at++];
		}
		ok += results[i].status == REFD_OK;
		unknown += results[i].status == REFD_UNKNOWN;
	}
	*whole = *ans;
	whole->results = results;
	whole->nr_results = whole->nr_updates = all->nr;
	whole->outcome = refd_outcome_of(all->nr, ok, unknown);
}

static int report_carried(const struct updater *up,
    const struct changes *changes, const struct refd_request *req,
    const struct refd_answer *ans)
{
	struct refd_answer whole;
	int rc;

	if (ans->nr_results != req->nr_updates)
		die("the daemon's answer is not that to this transaction");
	if (req->nr_updates == changes->nr)
		return report_results(up, changes, ans);
	answer_all(up->opt, changes, ans, &whole);
	rc = report_results(up, changes, &whole);
	free(whole.results);
	return rc;
}

/* ---- the whole of it ---- */

/* Nothing to do is done already; the daemon needn't hear of it. */
static void answer_nothing(const struct refd_request *req,
    struct refd_answer *ans)
{
	memset(ans, 0, sizeof(*ans));
	ans->kind = REFD_ANSWER_RESULTS;
	ans->txid = req->txid;
	ans->outcome = REFD_COMMITTED;
}

int updater_commit(struct updater *up, const struct changes *changes)
{
	uint64_t begun = refd_now_ms();
	struct refd_request req;
	struct refd_answer ans;
	int rc = EXIT_FATAL;

	refuse_duplicates(changes);
	context_request(&req, &up->gd, &up->config);
	req.atomic = !up->opt->batch;
	req.create_reflog = up->opt->create_reflog;
	req.message = up->opt->message;
	req.committer = up->committer;
	carry(up->opt, changes, &req);
	set_txid(up, &req);
	if (req.nr_updates)
		reach_call(up->daemon, &req,
		    refd_deadline_ms(up->opt->timeout_ms), GRACE_MS, &ans);
	else
		answer_nothing(&req, &ans);
	if (up->opt->verbose)
		say_done(&ans, begun);
	if (ans.kind == REFD_ANSWER_RESULTS)
		rc = report_carried(up, changes, &req, &ans);
	else if (ans.kind == REFD_ANSWER_REFUSED)
		rc = report_refused(up, changes, &ans);
	else
		say_error("%s: not an answer to a transaction", up->socket);
	refd_answer_done(&ans);
	free(req.updates);
	return rc;
}
