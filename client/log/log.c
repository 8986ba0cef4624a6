/* refd log and refd watch: past and future changes of refs. */
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/base/pager.h"
#include "client/commands.h"
#include "client/git/gitdir.h"
#include "client/log/lines.h"
#include "client/log/when.h"
#include "client/request/git_messages.h"
#include "client/request/patterns.h"
#include "client/request/question.h"
#include "client/request/rows.h"
#include "proto/lib/change_json.h"
#include "proto/lib/cli.h"
#include "proto/lib/clock.h"
#include "proto/lib/colour.h"
#include "proto/lib/print.h"
#include "proto/wire.h"

#define NAP_MS 500

struct log_run {
	const char *socket;
	const char *repo; /* of --repo, or NULL */
	struct refd_request req;
	struct gitdir gd;
	struct lines lines;
	bool as_json, oldest_first, no_pager, is_foreign, is_head;
	bool has_limit;
	uint64_t limit;   /* changes */
	const char *user; /* of --user, or NULL */
	bool has_account; /* of this machine: the user */
	bool has_found;   /* a change */
};

/* ---- options ---- */

/* A local user, or a name that the programs around git use. */
static const char *take_user(void *values, const char *s)
{
	struct log_run *a = values;
	struct refd_selection *select = &a->req.select;
	const struct passwd *pw;
	uint64_t uid;

	a->user = s;
	if (cli_number(s, UINT32_MAX, &uid)) {
		select->has_uid = true;
		select->uid = (uint32_t)uid;
		a->has_account = getpwuid(select->uid) != NULL;
		return NULL;
	}
	if (strlen(s) > REFD_IDENT_MAX)
		die("the name of a user is too long");
	select->user = s;
	pw = getpwnam(s);
	if (pw) {
		select->has_uid = a->has_account = true;
		select->uid = pw->pw_uid;
	}
	return NULL;
}

static const char *take_ref(void *values, const char *s)
{
	struct refd_selection *select = &((struct log_run *)values)->req.select;

	patterns_add(select->patterns, &select->nr_patterns, s);
	return NULL;
}

static const char *take_repo(void *values, const char *dir)
{
	struct log_run *a = values;
	struct text reason = { 0 };

	a->repo = dir;
	if (gitdir_locate(&a->gd, dir, &reason)) {
		a->req.git_dir = a->gd.path;
		a->req.common_dev = a->gd.dev;
		a->req.common_ino = a->gd.ino;
	} else if (dir[0] == '/') {
		/* History may know a repository that was removed. */
		a->req.git_dir = dir;
	} else {
		die("%s", reason.data);
	}
	text_done(&reason);
	return NULL;
}

static const char *take_position(void *values, const char *s)
{
	struct refd_selection *select = &((struct log_run *)values)->req.select;
	struct when_position p = { 0 };

	if (!when_position(s, &p))
		die("'%s' is no position: the number of a record, or what "
		    "--json says of one",
		    s);
	select->has_journal = p.has_journal;
	memcpy(select->journal, p.journal, sizeof(p.journal));
	select->has_after = true;
	select->after = p.at;
	return NULL;
}

static uint64_t parse(const char *s,
    bool (*as)(const char *s, uint64_t *ms, struct text *why))
{
	struct text why = { 0 };
	uint64_t ms;

	if (!as(s, &ms, &why))
		die("%s", why.data);
	return ms;
}

static const char *take_since(void *values, const char *s)
{
	((struct log_run *)values)->req.select.since_ms = parse(s, when_past);
	return NULL;
}

/* The whole second is included. */
static const char *take_until(void *values, const char *s)
{
	((struct log_run *)values)->req.select.until_ms =
	    parse(s, when_parse) + 999;
	return NULL;
}

static const char *take_txid(void *values, const char *s)
{
	if (refd_txid_parse(s, &((struct log_run *)values)->req.txid) < 0)
		die("'%s' is no transaction id: 32 hexadecimal digits", s);
	return NULL;
}

static const char *take_limit(void *values, const char *s)
{
	struct log_run *a = values;

	a->has_limit = cli_number(s, UINT64_MAX, &a->limit);
	return a->has_limit ? NULL : "a number";
}

#define SELECTION                                                              \
	{ OPTION_TAKE("repo", 0, "DIR", "only changes of the repository DIR",  \
	    take_repo) },                                                      \
	    { OPTION_TAKE("ref", 0, "PATTERN",                                 \
		  "only changes of refs that match PATTERN", take_ref),        \
		    .repeats = true },                                         \
	{                                                                      \
		OPTION_TAKE("user", 0, "NAME|UID",                             \
		    "only changes by this user", take_user)                    \
	}
#define OUTPUT                                                                 \
	{ OPTION_TAKE(NULL, 'n', "NUMBER", "print at most NUMBER changes",     \
	    take_limit) },                                                     \
	    { OPTION_FLAG("verbose", 'v',                                      \
		  "print all facts of a change, and how to undo the change",   \
		  struct log_run, lines.is_verbose),                           \
		    .excludes = 'f' },                                         \
	    COLOUR_OPTION,                                                     \
	    { OPTION_FLAG("json", 0, "print JSON, one object per line",        \
		  struct log_run, as_json),                                    \
		    .excludes = 'f' },                                         \
	{                                                                      \
		OPTION_STRING("socket", 0, "PATH",                             \
		    "the daemon's socket, if not the configured one",          \
		    struct log_run, socket)                                    \
	}

static const struct command_option log_options[] = { SELECTION,
	{ OPTION_TAKE("since", 0, "TIME",
	    "only changes since TIME, such as '2 hours ago'", take_since) },
	{ OPTION_TAKE("until", 0, "TIME", "only changes until TIME",
	    take_until) },
	{ OPTION_TAKE("txid", 0, "ID", "only changes of the transaction ID",
	    take_txid) },
	{ OPTION_FLAG("reverse", 0, "print the oldest change first",
	    struct log_run, oldest_first) },
	{ OPTION_FLAG("foreign", 0,
	    "only changes that 'refd look' found on disk", struct log_run,
	    is_foreign) },
	{ OPTION_FLAG("head", 0,
	      "print a line that fixes all records so far, for 'refd verify "
	      "--head'",
	      struct log_run, is_head),
	    .excludes = 'f' },
	{ OPTION_FLAG("no-pager", 0, "print to the terminal without a pager",
	    struct log_run, no_pager) },
	OUTPUT, { 0 } };

static const struct command_option watch_options[] = {
	{ OPTION_TAKE("since", 0, "POSITION",
	    "first print the changes after POSITION, the number of a record",
	    take_position) },
	SELECTION,
	{ OPTION_FLAG("all", 0, "also print rejected updates", struct log_run,
	    req.select.all) },
	OUTPUT, { 0 }
};

/* ---- asking ---- */

/* Has history a change for REQ, which selects by one thing? */
static bool has_change(struct refd *r, struct refd_request *req)
{
	struct refd_answer ans;
	bool more = true, found = false;
	int err;

	req->verb = REFD_VERB_LOG;
	req->select.limit = 1;
	req->select.reverse = true;
	while (more && !found) {
		err = refd_log(r, req, QUESTION_MS, &ans);
		if (err < 0)
			question_failed(r, err);
		question_refused(&ans);
		found = ans.nr_changes > 0;
		more = ans.more;
		refd_answer_done(&ans);
	}
	return found;
}

static struct refd_request of_repo(const struct log_run *a)
{
	return (struct refd_request){ .git_dir = a->req.git_dir,
		.common_dev = a->req.common_dev,
		.common_ino = a->req.common_ino };
}

/* A wrong path would give no answer, or wait for ever. The daemon decides about
 * a directory that this user may not read. */
static void require_repo(const struct log_run *a, struct refd *r)
{
	struct refd_request req = of_repo(a);

	if (req.git_dir && !a->gd.common &&
	    (!access(req.git_dir, R_OK | X_OK) || errno != EACCES) &&
	    !has_change(r, &req))
		die("there is no repository '%s', and history has none: "
		    "'refd log' prints the repositories of all changes",
		    req.git_dir);
}

/* Nothing was found. If one option alone finds nothing, without times and other
 * options, its value is probably wrong. */
static void require_matches(const struct log_run *a, struct refd *r)
{
	const struct refd_selection *select = &a->req.select;
	static const struct refd_txid any;
	char id[REFD_TXID_HEX + 1];
	struct refd_request req;
	size_t i;

	for (i = 0; i < select->nr_patterns; i++) {
		req = of_repo(a);
		req.select.patterns[0] = select->patterns[i];
		req.select.nr_patterns = 1;
		if (!has_change(r, &req))
			cli_die(EXIT_FAILED,
			    "history has no change of a ref that matches '%s': "
			    "'refd log' without --ref prints the refs",
			    select->patterns[i]);
	}
	req = (struct refd_request){ .select = { .user = select->user,
					 .has_uid = select->has_uid,
					 .uid = select->uid } };
	if (a->user && !a->has_account && !has_change(r, &req))
		cli_die(EXIT_FAILED,
		    "history has no change by '%s', which is no account of "
		    "this machine: 'refd log' without --user prints the users",
		    a->user);
	req = (struct refd_request){ .txid = a->req.txid };
	if (!refd_txid_eq(&req.txid, &any) && !has_change(r, &req))
		cli_die(EXIT_FAILED, "history has no transaction %s",
		    refd_txid_hex(&req.txid, id));
}

/* Sets the limit of the next answer. False if no more changes are wanted. */
static bool want_some(struct log_run *a)
{
	a->req.select.limit = 0;
	if (a->has_limit && a->limit < REFD_CHANGES_MAX && !a->is_foreign)
		a->req.select.limit = (uint32_t)a->limit;
	return !a->has_limit || a->limit > 0;
}

/* IS_LIVE: changes are printed as they happen, and their age would be wrong
 * soon. */
static void begin_output(struct log_run *a, bool is_live)
{
	bool on_terminal = !a->as_json && isatty(STDOUT_FILENO);

	a->lines.is_table = on_terminal;
	a->lines.is_relative = on_terminal && !is_live;
	a->lines.has_repo = !a->req.git_dir;
	if (on_terminal)
		a->lines.columns.width = columns_of_terminal();
	if (on_terminal && !is_live && !a->no_pager)
		pager_start();
}

static void print_gap(const struct log_run *a, const struct refd_answer *ans)
{
	if (a->as_json) {
		change_json_gap(stdout, ans);
		print_lines(stdout, "\n");
	}
	say_warning("what happened up to %" PRIu64
		    " is not known any more, and "
		    "some of it was asked for",
	    ans->gap);
}

static void print_json(const struct refd_answer *ans,
    const struct refd_change *c)
{
	struct text why = { 0 };

	if (c->text)
		git_messages_text(c->status, c->text, &why);
	change_json(stdout, ans, c, why.data);
	print_lines(stdout, "\n");
	text_done(&why);
}

static void print_all(struct log_run *a, const struct refd_answer *ans)
{
	struct text out = { .is_shown = true };
	size_t i;

	a->has_found |= ans->nr_changes > 0;
	if (ans->has_gap)
		print_gap(a, ans);
	for (i = 0; i < ans->nr_changes && a->as_json; i++)
		print_json(ans, &ans->changes[i]);
	if (!a->as_json) {
		lines_add(&a->lines, ans, clock_wall_ms(), &out);
		text_print(&out);
	}
	a->limit -= a->has_limit ? ans->nr_changes : 0;
	cli_flush();
}

/* Removes all changes by writers who told refd, and changes beyond the
 * limit. */
static void keep_foreign(const struct log_run *a, struct refd_answer *ans)
{
	size_t i, nr = 0;

	for (i = 0; i < ans->nr_changes; i++)
		if (ans->changes[i].record->origin == REFD_ORIGIN_SEEN &&
		    (!a->has_limit || nr < a->limit))
			ans->changes[nr++] = ans->changes[i];
	ans->nr_changes = nr;
}

/* Prints the next answer. False if this was the last answer. */
static bool log_some(struct log_run *a, struct refd *r)
{
	struct refd_answer ans;
	bool more;
	int err;

	err = refd_log(r, &a->req, QUESTION_MS, &ans);
	if (err < 0)
		question_failed(r, err);
	question_refused(&ans);
	if (a->is_foreign)
		keep_foreign(a, &ans);
	print_all(a, &ans);
	more = ans.more;
	refd_answer_done(&ans);
	return more;
}

static bool is_passing(const struct refd_answer *ans)
{
	return ans->kind == REFD_ANSWER_REFUSED &&
	    refd_status_may_retry(ans->status);
}

/* A position without a journal may be a typing error. A position after the
 * newest record would otherwise print the whole history. */
static void check_number(const struct refd_selection *asked,
    const struct refd_answer *ans)
{
	if (asked->has_journal || !ans->has_gap || asked->after.lsn < ans->gap)
		return;
	die("there is no record %" PRIu64
	    " yet: refd log -n 1 prints the newest one",
	    asked->after.lsn);
}

/* Runs until the limit, or for ever. If the daemon goes away, waits for it. */
static void watch_all(struct log_run *a, struct refd *r)
{
	struct refd_selection asked;
	struct refd_answer ans;
	int err;

	while (want_some(a)) {
		asked = a->req.select;
		err = refd_watch(r, &a->req, -1, &ans);
		if (err < 0)
			question_failed(r, err);
		if (is_passing(&ans)) {
			clock_nap(NAP_MS, CLOCK_FOREVER);
		} else {
			question_refused(&ans);
			check_number(&asked, &ans);
			print_all(a, &ans);
		}
		refd_answer_done(&ans);
	}
}

/* The daemon has the line in its state, because the line is of the whole
 * journal, and tells nothing of a repository. */
static int print_head(const struct log_run *a)
{
	struct refd_answer ans;
	const char *head;

	question_ask(a->socket, REFD_VERB_STATUS, QUESTION_MS, &ans);
	head = rows_value(&ans, "head");
	if (!*head)
		cli_die(EXIT_AWAY,
		    "the daemon has no line yet: it has no records, or still "
		    "reads them");
	print_line(stdout, "%s", head);
	refd_answer_done(&ans);
	return EXIT_DONE;
}

static int run_log(const struct command *c, int argc, char **argv)
{
	struct log_run a = { .req.verb = REFD_VERB_LOG };
	bool wants_some;
	struct refd *r;

	cli_parse(c, &a, argc, &argv);
	if (a.is_head &&
	    (a.req.git_dir || a.user || a.req.select.nr_patterns ||
		a.req.select.since_ms || a.req.select.until_ms || a.has_limit ||
		a.oldest_first || !refd_txid_is_null(&a.req.txid)))
		cli_usage(c, "--head is about all records of the journal");
	if (a.is_head)
		return print_head(&a);
	a.req.select.reverse = !a.oldest_first;
	a.req.select.origin = true;
	r = question_connect_of(a.socket, a.repo, 0);
	require_repo(&a, r);
	wants_some = want_some(&a);
	begin_output(&a, false);
	while (want_some(&a) && log_some(&a, r))
		;
	if (wants_some && !a.has_found)
		require_matches(&a, r);
	refd_free(r);
	gitdir_done(&a.gd);
	return EXIT_DONE;
}

const struct command log_command = {
	.name = "log",
	.summary = "list past changes of refs",
	.purpose =
	    "Lists past changes of refs with their record, time, user, old "
	    "and new value. The newest change comes first.",
	.example = "refd log -v --repo /srv/git/a.git --ref refs/heads/topic",
	.outcome = "Lists all changes of the branch, and below each the "
		   "command that undoes the change.",
	.manual = "refd-log(1)",
	.options = log_options,
	.run = run_log,
};

static int run_watch(const struct command *c, int argc, char **argv)
{
	struct log_run a = { .req.verb = REFD_VERB_WATCH };
	struct refd *r;

	cli_parse(c, &a, argc, &argv);
	a.req.select.origin = true;
	r = question_connect_of(a.socket, a.repo, 0);
	require_repo(&a, r);
	begin_output(&a, true);
	watch_all(&a, r);
	refd_free(r);
	gitdir_done(&a.gd);
	return EXIT_DONE;
}

const struct command watch_command = {
	.name = "watch",
	.summary = "print changes of refs as they happen",
	.purpose =
	    "Prints changes of refs as they happen, until the command is "
	    "interrupted. A position lets a program continue after its "
	    "last change.",
	.example = "refd watch --ref 'refs/heads/*'",
	.outcome = "Prints the new changes of all branches.",
	.manual = "refd-watch(1)",
	.options = watch_options,
	.run = run_watch,
};
