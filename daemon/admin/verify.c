/*
 * "refd verify".
 *
 * Exit: 0 no error and no warning is left; 1 at least one is left; 128 a
 * repository could not be checked; 130 interrupted, after the findings so far.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/admin/account.h"
#include "daemon/admin/admin.h"
#include "daemon/admin/verify.h"
#include "proto/lib/colour.h"
#include "proto/lib/interrupt.h"
#include "proto/lib/progress.h"

#define PATIENCE_NS INT64_C(500000000)
/* Some 50 MB. */
#define LEDGER_MAX 200000

/* Findings in memory: some 30 MB. */
#define FINDINGS_MAX 100000

struct verify_values {
	struct verify_options opt;
	struct findings findings;
	int restored_fd; /* -1: none */
};

static const struct command_option options[] = {
	{ OPTION_STRING("state", 0, "DIR",
	    "the state directory of the daemon, with the journal",
	    struct verify_values, opt.state) },
	{ OPTION_FLAG("repair", 0, "repair the findings that refd can repair",
	    struct verify_values, opt.repair) },
	{ OPTION_FLAG("json", 0, "print JSON, for programs",
	    struct verify_values, findings.as_json) },
	{ OPTION_FLAG("verbose", 'v',
	    "print each finding and each checked repository",
	    struct verify_values, findings.verbose) },
	COLOUR_OPTION,
	/* From refd, which confirms each restored value. */
	{ OPTION_NUMBER("restored-fd", 0, "FD", NULL, struct verify_values,
	    restored_fd, 0, 65535) },
	{ 0 },
};

static const struct command command = {
	.name = "verify",
	.arguments = "<repository>...",
	.purpose =
	    "Compares the refs of a repository with the journal and with "
	    "git's rules, and repairs them with --repair.",
	.example = "refd verify /srv/git/project.git",
	.manual = "refd-verify(8)",
	.least = 1,
	.most = COMMAND_ARGUMENTS_ANY,
	.options = options,
};

/* ---- the repositories ---- */

/* To the descriptor ARG, for the program that started this one. */
static void restored(void *arg, const char *repo, const char *ref,
    const char *value, const char *from)
{
	int *fd = arg;

	if (*fd >= 0)
		dprintf(*fd, "%s%c%s%c%s%c%s%c", repo, 0, ref, 0, value, 0,
		    from, 0);
}

static bool check_repo(const struct verify_options *opt, const char *path)
{
	struct findings *f = opt->findings;
	char *why;

	f->done++;
	findings_progress(f, path, "");
	if (verify_repo(opt, path, &why) == 0 && !interrupt_came()) {
		findings_checked(f, true, path);
		return true;
	}
	if (interrupt_came()) {
		free(why);
		return false;
	}
	progress_clear();
	admin_say("%s", why != NULL ? why : "out of memory");
	free(why);
	return false;
}

int admin_verify(int argc, char **argv)
{
	struct verify_values values = { .opt = { .sys = &sys_kernel,
					    .state = admin_state(),
					    .patience_ns = PATIENCE_NS,
					    .ledger_max = LEDGER_MAX,
					    .restored = restored },
		.restored_fd = -1 };
	struct findings *f = &values.findings;
	size_t checked = 0;
	bool is_left;
	int i, status;

	if (!admin_parse(&command, &values, &argc, &argv, &status))
		return status;
	if (!account_become_owner_of(argv[0]))
		return 128;
	umask(0);
	values.opt.findings = f;
	values.opt.arg = &values.restored_fd;
	f->title = "Verifying repositories";
	f->total = (size_t)argc;
	f->max = f->as_json || f->verbose ? 1 : FINDINGS_MAX;
	interrupt_catch();
	for (i = 0; i < argc && !interrupt_came(); i++)
		checked += check_repo(&values.opt, argv[i]);
	is_left = findings_end(f, checked);
	findings_done(f);
	if (interrupt_came())
		return INTERRUPT_STATUS;
	if (checked < (size_t)argc)
		return 128;
	return is_left ? 1 : 0;
}
