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

#include "daemon/admin/admin.h"
#include "daemon/admin/verify.h"
#include "proto/lib/colour.h"
#include "proto/lib/interrupt.h"
#include "proto/lib/progress.h"
#include "proto/lib/worker.h"

#define PATIENCE_NS INT64_C(500000000)
/* A large repository takes hours. An owner can hold the work up, for example by
 * a file system of their own, and the repositories of all others would wait. */
#define VERIFY_SECONDS (4 * 3600)
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

/* ---- one repository, as its owner ---- */

struct check {
	struct verify_values *values;
	const char *path;
};

/* The first byte; the findings tell with others. */
#define TOLD_RESTORED 'r'

static void restored(void *arg, const char *repo, const char *ref,
    const char *value, const char *from)
{
	char row[4 * 4096];
	int len = snprintf(row, sizeof(row), "%c%s%c%s%c%s%c%s", TOLD_RESTORED,
	    repo, 0, ref, 0, value, 0, from);

	(void)arg;
	if (len > 0 && len < (int)sizeof(row))
		worker_tell(row, (size_t)len + 1);
}

static int check_repo(void *arg)
{
	const struct check *c = arg;
	struct verify_options opt = c->values->opt;
	struct findings f = c->values->findings;
	char *why;

	interrupt_catch();
	f.tell = worker_tell;
	opt.findings = &f;
	if (verify_repo(&opt, c->path, &why) == 0) {
		if (interrupt_came())
			return 128;
		findings_checked(&f, true, c->path);
		return 0;
	}
	if (!interrupt_came()) {
		progress_clear();
		admin_say("%s", why != NULL ? why : "out of memory");
	}
	free(why);
	return 128;
}

/* A restored ref goes to the descriptor of the program that started this one.
 */
static int hear(void *arg, const char *data, size_t len)
{
	const struct check *c = arg;
	const int fd = c->values->restored_fd;

	if (len == 0 || data[0] != TOLD_RESTORED)
		findings_hear(&c->values->findings, NULL, data, len);
	else if (fd >= 0 && data[len - 1] == '\0')
		SYS(&sys_kernel, write_all, fd, data + 1, len - 1);
	return 0;
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
	int i;

	admin_parse(&command, &values, &argc, &argv);
	umask(0);
	f->title = "Verifying repositories";
	f->total = (size_t)argc;
	f->max = f->as_json || f->verbose ? 1 : FINDINGS_MAX;
	interrupt_catch();
	for (i = 0; i < argc && !interrupt_came(); i++) {
		f->done++;
		findings_progress(f, argv[i], "");
		checked += admin_as_owner(argv[i], 128,
			       (struct work){ .run = check_repo,
				   .hear = hear,
				   .arg = &(struct check){ &values, argv[i] },
				   .seconds = VERIFY_SECONDS }) == 0;
	}
	is_left = findings_end(f, checked);
	findings_done(f);
	if (interrupt_came())
		return INTERRUPT_STATUS;
	if (checked < (size_t)argc)
		return 128;
	return is_left ? 1 : 0;
}
