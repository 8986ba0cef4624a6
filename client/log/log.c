#include "client/log/log.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/cli.h"
#include "client/git/gitdir.h"
#include "client/librefd/conn.h"
#include "client/log/print.h"
#include "client/log/when.h"
#include "client/request/question.h"

#define TAIL   10 /* changes that --follow begins with */
#define NAP_MS 500

struct asking {
	const char *usage;
	const char *socket;
	struct refd_request req;
	struct gitdir gd;
	enum print_form form;
	bool follow;
	bool has_limit;
	uint64_t limit; /* changes */
};

static const char log_usage[] =
    "refd log [--repo DIR] [--ref PATTERN]... [--since TIME] [--until TIME]\n"
    "                [--user NAME | --user UID] [--txid ID] [-n NUMBER]\n"
    "                [--reverse | --follow] [--json | -z] [--socket PATH]";
static const char watch_usage[] =
    "refd watch [--since POSITION] [--repo DIR] [--ref PATTERN]... [--all]\n"
    "                  [--user NAME | --user UID] [-n NUMBER] [--json | -z]\n"
    "                  [--socket PATH]";

static void __attribute__((noreturn)) usage(const struct asking *a, FILE *to,
    int rc)
{
	fprintf(to, "usage: %s\n", a->usage);
	exit(rc);
}

/* ---- options ---- */

/* A user of this machine, or somebody that its programs know by that name. */
static void parse_user(struct refd_selection *select, const char *s)
{
	const struct passwd *pw;
	uint64_t uid;

	if (parse_number(s, UINT32_MAX, &uid)) {
		select->has_uid = true;
		select->uid = (uint32_t)uid;
		return;
	}
	if (strlen(s) > REFD_IDENT_MAX)
		die("the name of a user is too long");
	select->user = s;
	pw = getpwnam(s);
	if (pw) {
		select->has_uid = true;
		select->uid = pw->pw_uid;
	}
}

static void parse_ref(struct refd_selection *select, const char *s)
{
	if (select->nr_patterns == REFD_PATTERNS_MAX)
		die("more than %d patterns", REFD_PATTERNS_MAX);
	if (strlen(s) > REFD_REFNAME_MAX)
		die("a pattern is too long");
	select->patterns[select->nr_patterns++] = s;
}

static void parse_repo(struct asking *a, const char *dir)
{
	struct text why = { 0 };

	if (gitdir_at(&a->gd, dir, &why)) {
		a->req.git_dir = a->gd.path;
		a->req.common_dev = a->gd.dev;
		a->req.common_ino = a->gd.ino;
	} else if (dir[0] == '/') {
		/* It may have been one. */
		a->req.git_dir = dir;
	} else {
		die("%s", why.data);
	}
	text_done(&why);
}

static void parse_position(struct refd_selection *select, const char *s)
{
	struct when_position p = { 0 };

	if (!when_position(s, &p))
		die("'%s' is no position: the number of a record, or what "
		    "--json says of one",
		    s);
	select->has_journal = p.has_journal;
	memcpy(select->journal, p.journal, sizeof(p.journal));
	select->has_after = true;
	select->after = p.at;
}

static void parse_limit(struct asking *a, const char *s)
{
	if (!parse_number(s, UINT64_MAX, &a->limit))
		usage(a, stderr, EXIT_USAGE);
	a->has_limit = true;
}

static void take(struct asking *a, int c, const char *value)
{
	struct refd_selection *select = &a->req.select;

	switch (c) {
	case 's':
		a->socket = value;
		break;
	case 'r':
		parse_repo(a, value);
		break;
	case 'f':
		parse_ref(select, value);
		break;
	case 'u':
		parse_user(select, value);
		break;
	case 'b':
		if (a->req.verb == REFD_VERB_WATCH)
			parse_position(select, value);
		else
			select->since_ms = when_time(value);
		break;
	case 'e':
		/* To the end of that second. */
		select->until_ms = when_time(value) + 999;
		break;
	case 't':
		if (refd_txid_parse(value, &a->req.txid) < 0)
			die("'%s' is no transaction id: 32 hexadecimal digits",
			    value);
		break;
	case 'R':
		select->reverse = false;
		break;
	case 'F':
		a->follow = true;
		break;
	case 'A':
		select->all = true;
		break;
	case 'j':
		a->form = PRINT_JSON;
		break;
	case 'z':
		a->form = PRINT_NUL;
		break;
	case 'n':
		parse_limit(a, value);
		break;
	case 'h':
		usage(a, stdout, EXIT_DONE);
	default:
		usage(a, stderr, EXIT_USAGE);
	}
}

/* NOT_HERE: options of the other command. */
static void parse(struct asking *a, int argc, char **argv, const char *not_here)
{
	static const struct option long_options[] = {
		{ "socket", required_argument, NULL, 's' },
		{ "repo", required_argument, NULL, 'r' },
		{ "ref", required_argument, NULL, 'f' },
		{ "user", required_argument, NULL, 'u' },
		{ "since", required_argument, NULL, 'b' },
		{ "until", required_argument, NULL, 'e' },
		{ "txid", required_argument, NULL, 't' },
		{ "reverse", no_argument, NULL, 'R' },
		{ "follow", no_argument, NULL, 'F' },
		{ "all", no_argument, NULL, 'A' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "hn:z", long_options, NULL)) >= 0) {
		if (strchr(not_here, c))
			usage(a, stderr, EXIT_USAGE);
		take(a, c, optarg);
	}
	if (optind < argc)
		usage(a, stderr, EXIT_USAGE);
}

/* ---- asking ---- */

/* How many changes the next answer may have; 0: no more are wanted. */
static bool want_some(struct asking *a)
{
	a->req.select.limit = 0;
	if (a->has_limit && a->limit < REFD_CHANGES_MAX)
		a->req.select.limit = (uint32_t)a->limit;
	return !a->has_limit || a->limit > 0;
}

static void print_all(struct asking *a, const struct refd_answer *ans)
{
	size_t i;

	if (ans->has_gap)
		print_gap(ans, a->form);
	for (i = 0; i < ans->nr_changes; i++)
		print_change(ans, &ans->changes[i], a->form);
	a->limit -= a->has_limit ? ans->nr_changes : 0;
	flush_output();
}

/* Some more of it; false: that was all. */
static bool log_some(struct asking *a, struct refd *r)
{
	struct refd_answer ans;
	bool more;
	int err;

	err = refd_log(r, &a->req, QUESTION_MS, &ans);
	if (err < 0)
		die_with(err == -EPERM ? EXIT_FATAL : EXIT_AWAY, "%s",
		    refd_error(r));
	question_refused(&ans);
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

/* A number without a journal is what a person typed. Without this check the
 * gap would begin with everything that is kept. */
static void check_number(const struct refd_selection *asked,
    const struct refd_answer *ans)
{
	if (asked->has_journal || !ans->has_gap || asked->after.lsn < ans->gap)
		return;
	die("there is no record %" PRIu64
	    " yet: refd log -n 1 prints the newest one",
	    asked->after.lsn);
}

/* For ever, or as many changes as were wanted. A daemon that goes is waited
 * for. */
static void watch_all(struct asking *a, struct refd *r)
{
	struct refd_selection asked;
	struct refd_answer ans;
	int err;

	while (want_some(a)) {
		asked = a->req.select;
		err = refd_watch(r, &a->req, -1, &ans);
		if (err < 0)
			die_with(err == -EPERM ? EXIT_FATAL : EXIT_AWAY, "%s",
			    refd_error(r));
		if (is_passing(&ans)) {
			refd_nap(NAP_MS, REFD_FOREVER);
		} else {
			question_refused(&ans);
			check_number(&asked, &ans);
			print_all(a, &ans);
		}
		refd_answer_done(&ans);
	}
}

/* ---- the last ones first, then what comes ---- */

/* Where the last -n of them begin. */
static void find_tail(struct asking *a, struct refd *r)
{
	struct refd_selection *select = &a->req.select;
	struct refd_answer ans;
	uint64_t left = a->has_limit ? a->limit : TAIL;
	bool more = true;
	int err;

	select->reverse = true;
	while (left > 0 && more) {
		select->limit = left < REFD_CHANGES_MAX ? (uint32_t)left : 0;
		err = refd_log(r, &a->req, QUESTION_MS, &ans);
		if (err < 0)
			die_with(EXIT_AWAY, "%s", refd_error(r));
		question_refused(&ans);
		left -= ans.nr_changes;
		more = ans.more;
		refd_answer_done(&ans);
	}
	/* In front of it is behind what comes before. */
	select->reverse = false;
	if (select->has_before) {
		select->after = select->before;
		if (select->after.nr > 1)
			select->after.nr--;
		else if (select->after.lsn > 0)
			select->after =
			    (struct refd_position){ select->after.lsn - 1, 0 };
		select->has_after = true;
		select->has_before = false;
	}
	a->has_limit = false;
}

static void follow(struct asking *a, struct refd *r)
{
	find_tail(a, r);
	a->req.select.limit = 0;
	while (log_some(a, r))
		;
	a->req.select.since_ms = 0;
	a->req.select.all = true;
	watch_all(a, r);
}

int command_log(int argc, char **argv)
{
	struct asking a = { .usage = log_usage };
	static const struct refd_txid any;
	struct refd *r;

	a.req.verb = REFD_VERB_LOG;
	a.req.select.reverse = true;
	parse(&a, argc, argv, "A");
	/* A transaction has an end, as a time has. */
	if (a.follow &&
	    (a.req.select.until_ms || !refd_txid_eq(&a.req.txid, &any)))
		usage(&a, stderr, EXIT_USAGE);
	r = question_connect(a.socket, 0);
	if (a.follow)
		follow(&a, r);
	while (!a.follow && want_some(&a) && log_some(&a, r))
		;
	refd_free(r);
	gitdir_done(&a.gd);
	return EXIT_DONE;
}

int command_watch(int argc, char **argv)
{
	struct asking a = { .usage = watch_usage };
	struct refd *r;

	a.req.verb = REFD_VERB_WATCH;
	parse(&a, argc, argv, "etRF");
	r = question_connect(a.socket, 0);
	watch_all(&a, r);
	refd_free(r);
	gitdir_done(&a.gd);
	return EXIT_DONE;
}
