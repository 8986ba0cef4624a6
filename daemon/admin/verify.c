/*
 * "refd verify".
 *
 * Exit: 0 no error and no warning is left; 1 at least one is left; 128 a
 * repository could not be checked.
 */
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/admin/account.h"
#include "daemon/admin/admin.h"
#include "daemon/admin/verify.h"

#define PATIENCE_NS INT64_C(500000000)
/* Some 50 MB. */
#define LEDGER_MAX 200000

/* Findings in memory: some 30 MB. */
#define FINDINGS_MAX 100000

static void usage(FILE *to)
{
	fprintf(to,
	    "usage: refd verify [-v] [--state DIR] [--repair] [--json] "
	    "<repository>...\n");
}

static int parse(int argc, char **argv, struct verify_options *opt,
    int *restored_fd)
{
	static const struct option longs[] = {
		{ "state", required_argument, NULL, 's' },
		{ "repair", no_argument, NULL, 'r' },
		{ "json", no_argument, NULL, 'j' },
		{ "restored-fd", required_argument, NULL, 'f' },
		{ "verbose", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	opt->state = getenv("REFD_STATE");
	if (opt->state == NULL)
		opt->state = "/var/lib/refd";
	while ((c = getopt_long(argc, argv, "hv", longs, NULL)) != -1) {
		if (c == 's')
			opt->state = optarg;
		else if (c == 'r')
			opt->repair = true;
		else if (c == 'j')
			opt->findings->as_json = true;
		else if (c == 'v')
			opt->findings->verbose = true;
		else if (c == 'f')
			*restored_fd = atoi(optarg);
		else
			return c == 'h' ? 1 : -1;
	}
	return optind < argc ? 0 : -1;
}

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
	if (verify_repo(opt, path, &why) == 0) {
		findings_checked(f, true, path);
		return true;
	}
	progress_clear(&f->progress);
	fflush(stdout);
	fprintf(stderr, "refd: %s\n", why != NULL ? why : "out of memory");
	free(why);
	return false;
}

int admin_verify(int argc, char **argv)
{
	struct findings findings = { 0 };
	int restored_fd = -1;
	struct verify_options opt = { .sys = &sys_kernel,
		.patience_ns = PATIENCE_NS,
		.ledger_max = LEDGER_MAX,
		.findings = &findings,
		.restored = restored,
		.arg = &restored_fd };
	size_t checked = 0;
	bool is_left;
	int i, r;

	r = parse(argc, argv, &opt, &restored_fd);
	if (r != 0) {
		usage(r < 0 ? stderr : stdout);
		return r < 0 ? 129 : 0;
	}
	if (!account_become_owner_of(argv[optind]))
		return 128;
	umask(0);
	findings.total = (size_t)(argc - optind);
	findings.max = findings.as_json || findings.verbose ? 1 : FINDINGS_MAX;
	for (i = optind; i < argc; i++)
		checked += check_repo(&opt, argv[i]);
	is_left = findings_end(&findings, checked);
	findings_done(&findings);
	if (checked < (size_t)(argc - optind))
		return 128;
	return is_left ? 1 : 0;
}
