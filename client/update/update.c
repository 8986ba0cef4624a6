#include "client/update/update.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/refname.h"

/* The first lines of it, as git has them. */
static const char *usage_head(enum git_messages_version version)
{
	switch (version) {
	case GIT_2_55:
		break;
	case GIT_2_39:
		return "usage: refd update [<options>] -d <refname> "
		       "[<old-val>]\n"
		       "   or: refd update [<options>]    <refname> <new-val> "
		       "[<old-val>]\n"
		       "   or: refd update [<options>] --stdin [-z]\n";
	}
	return "usage: refd update [<options>] -d <refname> [<old-oid>]\n"
	       "   or: refd update [<options>]    <refname> <new-oid> "
	       "[<old-oid>]\n"
	       "   or: refd update [<options>] --stdin [-z] "
	       "[--batch-updates]\n";
}

static const char usage_options[] =
    "    -m <reason>           reason of the update\n"
    "    -d                    delete the reference\n"
    "    --[no-]deref          update what <refname> points to, or itself\n"
    "    --[no-]stdin          read updates from stdin\n"
    "    -z                    stdin has NUL-terminated arguments\n"
    "    -0, --[no-]batch-updates\n"
    "                          one update may fail without the others\n"
    "    --atomic              all or none (without --batch-updates always)\n"
    "    --[no-]create-reflog  create a reflog\n"
    "\n"
    "    -C <dir>              as if started in <dir>\n"
    "    --git-dir <dir>       the repository\n"
    "    --socket <path>       the daemon's socket\n"
    "    --txid <id>           transaction id, 32 hex digits\n"
    "    --timeout <ms>        how long it may take (30000)\n"
    "    --porcelain, --json   results for programs\n"
    "    --compat <version>    words as in git 2.39, or 2.55\n"
    "    -v, --verbose         say what was done\n";

static void print_usage(FILE *out, enum git_messages_version version)
{
	fprintf(out, "%s\n%s\n", usage_head(version), usage_options);
}

/* git looks for its repository before it looks at its arguments. */
static void require_repository(const struct update_options *opt)
{
	struct gitdir gd = { 0 };
	struct text why = { 0 };

	if (!gitdir_find(&gd, opt->git_dir ? opt->git_dir : getenv("GIT_DIR"),
		&why))
		die("%s", why.data);
	gitdir_done(&gd);
	text_done(&why);
}

static void __attribute__((noreturn)) usage(const struct update_options *opt)
{
	require_repository(opt);
	print_usage(stderr, opt->messages);
	exit(EXIT_USAGE);
}

enum {
	OPT_GIT_DIR = 256,
	OPT_SOCKET,
	OPT_NO_DEREF,
	OPT_DEREF,
	OPT_CREATE_REFLOG,
	OPT_NO_CREATE_REFLOG,
	OPT_ATOMIC,
	OPT_NO_BATCH,
	OPT_STDIN,
	OPT_NO_STDIN,
	OPT_TXID,
	OPT_TIMEOUT,
	OPT_COMPAT,
	OPT_PORCELAIN,
	OPT_JSON,
	OPT_END_OF_OPTIONS
};

static const struct option long_options[] = {
	{ "git-dir", required_argument, NULL, OPT_GIT_DIR },
	{ "socket", required_argument, NULL, OPT_SOCKET },
	{ "no-deref", no_argument, NULL, OPT_NO_DEREF },
	{ "deref", no_argument, NULL, OPT_DEREF },
	{ "no-no-deref", no_argument, NULL, OPT_DEREF },
	{ "create-reflog", no_argument, NULL, OPT_CREATE_REFLOG },
	{ "no-create-reflog", no_argument, NULL, OPT_NO_CREATE_REFLOG },
	{ "atomic", no_argument, NULL, OPT_ATOMIC },
	{ "batch-updates", no_argument, NULL, '0' },
	{ "no-batch-updates", no_argument, NULL, OPT_NO_BATCH },
	{ "stdin", no_argument, NULL, OPT_STDIN },
	{ "no-stdin", no_argument, NULL, OPT_NO_STDIN },
	{ "txid", required_argument, NULL, OPT_TXID },
	{ "timeout", required_argument, NULL, OPT_TIMEOUT },
	{ "compat", required_argument, NULL, OPT_COMPAT },
	{ "porcelain", no_argument, NULL, OPT_PORCELAIN },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },
	{ "help-all", no_argument, NULL, 'h' },
	{ "end-of-options", no_argument, NULL, OPT_END_OF_OPTIONS },
	{ NULL, 0, NULL, 0 },
};

static int parse_timeout(const struct update_options *opt, const char *s)
{
	uint64_t ms;

	if (!parse_number(s, REFD_DEADLINE_MAX_MS, &ms) || ms == 0) {
		say_error("--timeout takes 1 to %d milliseconds",
		    REFD_DEADLINE_MAX_MS);
		usage(opt);
	}
	return (int)ms;
}

static const char *parse_txid(const struct update_options *opt, const char *s)
{
	struct refd_txid id;

	if (refd_txid_parse(s, &id) < 0) {
		say_error("--txid takes 32 hexadecimal digits");
		usage(opt);
	}
	return s;
}

static void parse_words(struct update_options *opt, const char *what,
    const char *version)
{
	if (git_messages_parse(version, &opt->messages))
		return;
	say_error("%s takes 2.39 or 2.55, not '%s'", what, version);
	usage(opt);
}

static void take_long(struct update_options *opt, int c)
{
	switch (c) {
	case OPT_GIT_DIR:
		opt->git_dir = optarg;
		break;
	case OPT_SOCKET:
		opt->socket = optarg;
		break;
	case OPT_NO_DEREF:
		opt->no_deref = true;
		break;
	case OPT_DEREF:
		opt->no_deref = false;
		break;
	case OPT_CREATE_REFLOG:
		opt->create_reflog = true;
		break;
	case OPT_NO_CREATE_REFLOG:
		opt->create_reflog = false;
		break;
	case OPT_ATOMIC:
		opt->atomic = true;
		break;
	case OPT_NO_BATCH:
		opt->batch = false;
		break;
	case OPT_STDIN:
		opt->form = FORM_STDIN;
		break;
	case OPT_NO_STDIN:
		opt->form = FORM_UPDATE;
		break;
	case OPT_TXID:
		opt->txid = parse_txid(opt, optarg);
		break;
	case OPT_TIMEOUT:
		opt->timeout_ms = parse_timeout(opt, optarg);
		break;
	case OPT_COMPAT:
		parse_words(opt, "--compat", optarg);
		break;
	case OPT_PORCELAIN:
		opt->output = OUTPUT_PORCELAIN;
		break;
	case OPT_JSON:
		opt->output = OUTPUT_JSON;
		break;
	default:
		usage(opt);
	}
}

/* In git's order; and which numbers of arguments a form takes. */
static void check(const struct update_options *opt, bool delete)
{
	int least = opt->form == FORM_STDIN ? 0 : delete ? 1 : 2;
	int most = opt->form == FORM_STDIN ? 0 : delete ? 2 : 3;

	if (opt->message && !*opt->message) {
		require_repository(opt);
		die("Refusing to perform update with empty message.");
	}
	if (opt->batch && opt->form != FORM_STDIN) {
		require_repository(opt);
		die("--batch-updates can only be used with --stdin");
	}
	if (opt->nr_args < least || opt->nr_args > most)
		usage(opt);
	if (opt->form == FORM_STDIN ? delete : opt->end_null)
		usage(opt);
	if (opt->atomic && opt->batch) {
		say_error("--atomic and --batch-updates exclude each other");
		usage(opt);
	}
}

/* Of an option that is not known, or whose value is missing or too much. */
static void __attribute__((noreturn)) complain(const struct update_options *opt,
    int c, char **argv)
{
	const char *arg = argv[optind - 1];
	bool is_long = has_prefix(arg, "--");

	require_repository(opt);
	if (c == '?' && !(is_long && optopt)) {
		if (is_long)
			say_error("unknown option `%s'", arg + 2);
		else
			say_error("unknown switch `%c'", optopt);
		usage(opt);
	}
	if (c == '?')
		say_error("option `%.*s' takes no value",
		    (int)strcspn(arg + 2, "="), arg + 2);
	else if (is_long)
		say_error("option `%s' requires a value", arg + 2);
	else
		say_error("switch `%c' requires a value", optopt);
	exit(EXIT_USAGE);
}

static void parse_options(struct update_options *opt, int argc, char **argv)
{
	static char dashes[] = "--";
	const char *compat = getenv("REFD_COMPAT");
	bool delete = false;
	int c;

	if (compat && *compat)
		parse_words(opt, "REFD_COMPAT", compat);
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":m:dz0C:vh", long_options,
		    NULL)) >= 0) {
		switch (c) {
		case 'm':
			opt->message = optarg;
			break;
		case 'd':
			delete = true;
			break;
		case 'z':
			opt->end_null = true;
			break;
		case '0':
			opt->batch = true;
			break;
		case 'C':
			if (chdir(optarg) < 0)
				die("cannot change to '%s': %s", optarg,
				    strerror(errno));
			break;
		case 'v':
			opt->verbose = true;
			break;
		case OPT_END_OF_OPTIONS:
			/* getopt_long reads the argument again, as "--". */
			argv[--optind] = dashes;
			break;
		case 'h':
			print_usage(stdout, opt->messages);
			exit(0);
		case '?':
		case ':':
			complain(opt, c, argv);
		default:
			take_long(opt, c);
		}
	}
	opt->args = argv + optind;
	opt->nr_args = argc - optind;
	check(opt, delete);
	if (delete)
		opt->form = FORM_DELETE;
}

int update_failed(const struct updater *up, const char *ref, const char *detail)
{
	switch (up->opt->form) {
	case FORM_DELETE:
		say_error("%s", detail);
		return EXIT_FAILED;
	case FORM_UPDATE:
		say_fatal("update_ref failed for ref '%s': %s", ref, detail);
		return EXIT_FATAL;
	case FORM_STDIN:
		say_fatal("%s%s%s", up->doing ? up->doing : "",
		    up->doing ? ": " : "", detail);
		return EXIT_FATAL;
	}
	return EXIT_FATAL;
}

/* ---- one ref, named on the command line ---- */

static void resolve_old(struct updater *up, const char *old,
    struct refd_update *u)
{
	if (!old)
		return;
	u->has_old = true;
	if (*old && !revision_resolve(&up->revs, old, &u->old_oid))
		die("%s: not a valid old SHA1", old);
	/* "-d <ref> 0000..." checks nothing. */
	if (u->action == REFD_DELETE && refd_oid_is_null(&u->old_oid))
		u->has_old = false;
}

static void check_name(const struct updater *up, const struct refd_update *u)
{
	struct text t = { 0 };

	if (!git_messages_take_name(u, &t))
		exit(update_failed(up, u->name, t.data));
}

static int update_one(struct updater *up)
{
	char **args = up->opt->args;
	struct refd_update u = { .name = args[0],
		.no_deref = up->opt->no_deref };
	struct changes changes = { 0 };
	int rc;

	u.action = REFD_DELETE;
	if (up->opt->form == FORM_UPDATE) {
		u.action = REFD_UPDATE;
		if (!revision_resolve(&up->revs, args[1], &u.new_oid))
			die("%s: not a valid SHA1", args[1]);
		resolve_old(up, args[2], &u);
		/* What must not exist is not deleted: see stdin.c. */
		if (refd_oid_is_null(&u.new_oid) &&
		    !(u.has_old && refd_oid_is_null(&u.old_oid)))
			u.action = REFD_DELETE;
	} else {
		resolve_old(up, args[1], &u);
	}
	check_name(up, &u);
	changes_add(&changes, &u);
	rc = updater_commit(up, &changes);
	changes_done(&changes);
	return rc;
}

int command_update(int argc, char **argv)
{
	struct update_options opt = { .form = FORM_UPDATE,
		.timeout_ms = REFD_UPDATE_DEADLINE_MS };
	struct updater up;
	int rc;

	parse_options(&opt, argc, argv);
	updater_open(&up, &opt);
	rc = opt.form == FORM_STDIN ? update_stdin(&up) : update_one(&up);
	updater_close(&up);
	flush_output();
	return rc;
}
