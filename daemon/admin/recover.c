/*
 * refd recover: what the daemon does at its start, by hand: after a power
 * cut, before anything reads the repositories.
 *
 * Exit: 0 all is as the journal says; 1 something is parked, for a disk that
 * failed among others, or was left; 74 the journal failed, nothing was
 * forgotten; 75 a daemon runs on this state.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/admin/account.h"
#include "daemon/admin/admin.h"
#include "daemon/admin/report.h"

#define ROOTS_MAX 64

struct recover_options {
	const char *state;
	const char *roots[ROOTS_MAX];
	size_t nr_roots;
	bool json, discard, adopt;
	const char *forget; /* a repository; or NULL */
};

static void usage(FILE *to)
{
	fprintf(to,
	    "usage: refd recover [--state DIR] [--root DIR]... [--json] "
	    "[--adopt | --discard | --forget REPO]\n");
}

static int parse(int argc, char **argv, struct recover_options *opt)
{
	static const struct option longs[] = {
		{ "state", required_argument, NULL, 's' },
		{ "root", required_argument, NULL, 'r' },
		{ "json", no_argument, NULL, 'j' },
		{ "discard", no_argument, NULL, 'd' },
		{ "forget", required_argument, NULL, 'f' },
		{ "adopt", no_argument, NULL, 'a' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	memset(opt, 0, sizeof(*opt));
	opt->state = getenv("REFD_STATE");
	if (opt->state == NULL)
		opt->state = "/var/lib/refd";
	while ((c = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		if (c == 's')
			opt->state = optarg;
		else if (c == 'r' && opt->nr_roots < ROOTS_MAX)
			opt->roots[opt->nr_roots++] = optarg;
		else if (c == 'j')
			opt->json = true;
		else if (c == 'd')
			opt->discard = true;
		else if (c == 'f')
			opt->forget = optarg;
		else if (c == 'a')
			opt->adopt = true;
		else
			return c == 'h' ? 1 : -1;
	}
	/* Only repositories that the journal names are opened. */
	if (opt->nr_roots == 0)
		opt->roots[opt->nr_roots++] = "/";
	return optind == argc &&
		opt->adopt + opt->discard + (opt->forget != NULL) <= 1 ?
	    0 :
	    -1;
}

/* ---- the report ---- */

static void found(void *arg, const struct store_found *found)
{
	tally_add(arg, found);
}

static void progress(void *arg, uint64_t done, uint64_t total)
{
	static time_t told;
	time_t now = time(NULL);

	(void)arg;
	/* A line of a terminal that is written over, and ends with the end. */
	if (!isatty(STDERR_FILENO) || (now == told && done < total))
		return;
	told = now;
	fprintf(stderr, "\r%llu of %llu%s", (unsigned long long)done,
	    (unsigned long long)total, done >= total ? "\n" : "");
}

static int sum_up(struct store *store, const struct finding_tally *tally,
    uint64_t parked, bool json, int r)
{
	char *damage;

	if (json)
		report_json(tally, parked, -r);
	else
		report_text(tally, parked);
	if (r == 0)
		return parked + tally_left(tally->counts) +
			    tally_dropped(tally->counts) >
			0 ?
		    1 :
		    0;
	damage = store_damage(store);
	fprintf(stderr,
	    "refd: recovery failed: %s; nothing was forgotten, "
	    "run it again once the cause is gone\n",
	    damage != NULL ? damage : strerror(-r));
	free(damage);
	return 74;
}

/* ---- discarding ---- */

/* Renames STATE/NAME aside. 0 or negative errno. */
static int move_aside(const char *state, const char *name, long long now)
{
	char *from = NULL, *to = NULL;
	int r = -ENOMEM;

	if (asprintf(&from, "%s/%s", state, name) >= 0 &&
	    asprintf(&to, "%s.discarded-%lld", from, now) >= 0)
		r = SYS(&sys_kernel, renameat, SYS_TRUSTED, from, SYS_TRUSTED,
		    to);
	if (r == 0)
		printf("moved aside: %s\n", to);
	free(from);
	free(to);
	return r;
}

static int discard(const struct recover_options *opt)
{
	long long now = (long long)time(NULL);
	int r, wal;

	r = move_aside(opt->state, "journal.db", now);
	wal = move_aside(opt->state, "journal.db-wal", now);
	/* Either may be missing alone: that is what may be discarded. */
	if (r == -ENOENT && wal == 0)
		r = 0;
	if (r == 0 && wal < 0 && wal != -ENOENT)
		r = wal;
	if (r < 0) {
		fprintf(stderr,
		    "refd: can't move the journal in '%s' aside: %s\n",
		    opt->state, strerror(-r));
		return 1;
	}
	printf("What it held and the disks did not is lost to a recovery. "
	       "Repositories that belong to it are served again once "
	       "'refd disown' was run for each.\n");
	return 0;
}

static void no_wake(void *arg)
{
	(void)arg;
}

/* Drops the records of REPO. If the repository comes back, it lacks them. */
static int forget(struct store *store, const char *repo)
{
	uint64_t nr = 0;
	int r = store_forget(store, repo, &nr);

	if (r == 0) {
		fprintf(stderr, "refd: dropped %llu record%s of '%s'\n",
		    (unsigned long long)nr, nr == 1 ? "" : "s", repo);
		return 0;
	}
	fprintf(stderr, "refd: can't drop the records of '%s': %s\n", repo,
	    r == -ENOENT ?
		"the journal knows no repository by that path or id" :
		strerror(-r));
	return r == -ENOENT ? 1 : 74;
}

int admin_recover(int argc, char **argv)
{
	struct recover_options opt;
	struct finding_tally tally = { .nr = 0 };
	struct store_report report = { found, progress, &tally };
	struct store_config cfg = { .sys = &sys_kernel,
		.durability = REFD_DURABILITY_JOURNAL,
		.max_open_repos = 16,
		.wake = no_wake };
	struct store *store;
	uint64_t parked = 0;
	char *why;
	int r, err;

	r = parse(argc, argv, &opt);
	if (r != 0) {
		usage(r < 0 ? stderr : stdout);
		return r < 0 ? 129 : 0;
	}
	if (!account_become_owner_of(opt.state))
		return 74;
	cfg.state_dir = opt.state;
	cfg.roots = opt.roots;
	cfg.nr_roots = opt.nr_roots;
	cfg.adopt = opt.adopt;
	umask(0);
	r = store_open(&cfg, &store, &why);
	if (r < 0 && opt.discard && r != -EAGAIN) {
		free(why);
		return discard(&opt);
	}
	if (r < 0) {
		fprintf(stderr, "refd: %s\n", why != NULL ? why : strerror(-r));
		free(why);
		return r == -EAGAIN ? 75 : 74;
	}
	if (why != NULL)
		fprintf(stderr, "refd: warning: %s\n", why);
	free(why);
	r = store_recover(store, &report, &parked);
	err = r;
	r = sum_up(store, &tally, parked, opt.json, r);
	tally_done(&tally);
	if (err == 0 && opt.forget != NULL)
		r = forget(store, opt.forget);
	store_stop(store);
	store_free(store);
	return opt.discard ? discard(&opt) : r;
}
