#include "client/update/update.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/commands.h"
#include "proto/refname.h"

/* The usage of git, which differs between its versions. */
static const char usage_2_55[] =
    "usage: refd update [<options>] -d <refname> [<old-oid>]\n"
    "   or: refd update [<options>]    <refname> <new-oid> [<old-oid>]\n"
    "   or: refd update [<options>] --stdin [-z] [--batch-updates]\n";
static const char usage_2_39[] =
    "usage: refd update [<options>] -d <refname> [<old-val>]\n"
    "   or: refd update [<options>]    <refname> <new-val> [<old-val>]\n"
    "   or: refd update [<options>] --stdin [-z]\n";

static void print_usage(const struct update_options *opt, FILE *to)
{
	char help[COMMAND_HELP_MAX];

	command_help(&update_command,
	    opt->messages == GIT_2_39 ? usage_2_39 : usage_2_55, help,
	    sizeof(help));
	print_lines(to, "%s\n", help);
}

/* git looks for the repository before it checks arguments, so a wrong usage
 * outside of a repository has git's error. */
static void require_repository(const struct update_options *opt)
{
	struct gitdir gd = { 0 };

	gitdir_require(&gd, opt->git_dir ? opt->git_dir : getenv("GIT_DIR"));
	gitdir_done(&gd);
}

static void __attribute__((noreturn)) usage(const struct update_options *opt)
{
	require_repository(opt);
	print_usage(opt, stderr);
	exit(EXIT_USAGE);
}

static const char *take_dir(void *values, const char *dir)
{
	(void)values;
	if (chdir(dir) < 0)
		die("cannot change to '%s': %s", dir, strerror(errno));
	return NULL;
}

static const char *take_txid(void *values, const char *s)
{
	struct update_options *opt = values;
	struct refd_txid id;

	opt->txid = s;
	return refd_txid_parse(s, &id) < 0 ? "32 hexadecimal digits" : NULL;
}

static const char *take_version(void *values, const char *version)
{
	struct update_options *opt = values;

	return git_messages_parse(version, &opt->messages) ? NULL :
							     "2.39 or 2.55";
}

static const struct command_option options[] = {
	{ OPTION_STRING(NULL, 'm', "<reason>", "the reason, for the reflog",
	    struct update_options, message) },
	{ OPTION_FLAG(NULL, 'd', "delete the ref", struct update_options,
	    delete) },
	{ .name = "deref",
	    .help = "update the target of a symbolic ref, or the ref itself",
	    .kind = COMMAND_FLAG,
	    .offset = offsetof(struct update_options, no_deref),
	    .value = false,
	    .negatable = true },
	{ .name = "no-no-deref",
	    .kind = COMMAND_FLAG,
	    .offset = offsetof(struct update_options, no_deref),
	    .value = false },
	{ OPTION_SET("stdin", 0, "read the updates from standard input",
	      struct update_options, form, FORM_STDIN),
	    .negatable = true },
	{ OPTION_FLAG(NULL, 'z', "with --stdin: the fields end with NUL",
	    struct update_options, end_null) },
	{ OPTION_FLAG("batch-updates", '0',
	      "with --stdin: an update may fail without the others",
	      struct update_options, batch),
	    .negatable = true },
	{ OPTION_FLAG("atomic", 0, "all updates or none (the default)",
	    struct update_options, atomic) },
	{ OPTION_FLAG("create-reflog", 0, "create a reflog if there is none",
	      struct update_options, create_reflog),
	    .negatable = true },
	{ OPTION_TAKE(NULL, 'C', "<dir>", "change to <dir> first", take_dir) },
	{ OPTION_STRING("git-dir", 0, "<dir>",
	    "the repository, instead of the current one", struct update_options,
	    git_dir) },
	{ OPTION_STRING("socket", 0, "<path>",
	    "the daemon's socket, if not the configured one",
	    struct update_options, socket) },
	{ OPTION_TAKE("txid", 0, "<id>",
	    "the id of the transaction: 32 hexadecimal digits", take_txid) },
	{ OPTION_NUMBER("timeout", 0, "<ms>",
	    "give up after <ms> milliseconds (30000)", struct update_options,
	    timeout_ms, 1, REFD_DEADLINE_MAX_MS) },
	{ OPTION_SET("porcelain", 0,
	    "print the result of each ref, for programs", struct update_options,
	    output, OUTPUT_PORCELAIN) },
	{ OPTION_SET("json", 0, "print the result of each ref as JSON",
	    struct update_options, output, OUTPUT_JSON) },
	{ OPTION_TAKE("compat", 0, "<version>",
	    "print the messages of git 2.39, or of 2.55", take_version) },
	{ OPTION_FLAG("verbose", 'v',
	    "print the outcome and the time of the transaction",
	    struct update_options, verbose) },
	{ .name = "help-all", .kind = COMMAND_HELP },
	{ .name = "end-of-options", .kind = COMMAND_END },
	{ 0 },
};

/* The checks and their order are git's. */
static void check(const struct update_options *opt)
{
	int least = opt->form == FORM_STDIN ? 0 : opt->delete ? 1 : 2;
	int most = opt->form == FORM_STDIN ? 0 : opt->delete ? 2 : 3;

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
	if (opt->form == FORM_STDIN ? opt->delete : opt->end_null)
		usage(opt);
	if (opt->atomic && opt->batch) {
		say_error("--atomic and --batch-updates exclude each other");
		usage(opt);
	}
}

static void parse_options(struct update_options *opt, const struct command *c,
    int argc, char **argv)
{
	const char *compat = getenv("REFD_COMPAT");
	enum command_result result;
	char why[COMMAND_WHY_MAX];

	if (compat && *compat && take_version(opt, compat)) {
		say_error("REFD_COMPAT takes 2.39 or 2.55, not '%s'", compat);
		usage(opt);
	}
	result = command_parse(c, opt, &argc, &argv, why);
	if (result == COMMAND_HELPS) {
		print_usage(opt, stdout);
		exit(EXIT_DONE);
	}
	if (result != COMMAND_OK) {
		require_repository(opt);
		say_error("%s", why);
		if (result == COMMAND_WRONG)
			usage(opt);
		exit(EXIT_USAGE);
	}
	opt->args = argv;
	opt->nr_args = argc;
	check(opt);
	if (opt->delete)
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
	if (*old && !update_resolve(&up->revs, old, &u->old_oid))
		die("%s: not a valid old SHA1", old);
	/* "-d <ref> 0000..." does not check the old value. */
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
		if (!update_resolve(&up->revs, args[1], &u.new_oid))
			die("%s: not a valid SHA1", args[1]);
		resolve_old(up, args[2], &u);
		/* A ref that must not exist is not deleted: see stdin.c. */
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

static int run_update(const struct command *c, int argc, char **argv)
{
	struct update_options opt = { .timeout_ms = REFD_UPDATE_DEADLINE_MS };
	struct updater up;
	int rc;

	parse_options(&opt, c, argc, argv);
	updater_open(&up, &opt);
	rc = opt.form == FORM_STDIN ? update_stdin(&up) : update_one(&up);
	updater_close(&up);
	cli_flush();
	return rc;
}

const struct command update_command = {
	.name = "update",
	.summary = "update refs, as git update-ref does",
	.usage = usage_2_55,
	.purpose =
	    "Changes refs as git update-ref does, through the daemon. The "
	    "command ends when the new values are durable.",
	.example = "refd update refs/heads/main topic",
	.outcome = "Sets main to the commit of topic.",
	.manual = "refd-update(1)",
	.is_like_git = true,
	.most = COMMAND_ARGUMENTS_ANY,
	.options = options,
	.run = run_update,
};
