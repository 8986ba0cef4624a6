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

#include "daemon/admin/admin.h"
#include "daemon/store/store.h"

#define ROOTS_MAX 64

struct options {
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

static int parse(int argc, char **argv, struct options *opt)
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
	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
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

struct tally {
	bool json, begun;
	uint64_t counts[STORE_FAILED + 1];
};

static void print_json_string(const char *text)
{
	putchar('"');
	for (; *text != '\0'; text++) {
		if (*text == '"' || *text == '\\')
			printf("\\%c", *text);
		else if ((unsigned char)*text < 0x20)
			printf("\\u%04x", (unsigned)*text);
		else
			putchar(*text);
	}
	putchar('"');
}

static void found(void *arg, enum store_finding finding, const char *repo,
    const char *ref, const char *text)
{
	struct tally *tally = arg;

	tally->counts[finding]++;
	if (!tally->json) {
		printf("%-18s %s%s%s: %s\n", store_finding_name(finding), repo,
		    ref[0] != '\0' ? " " : "", ref, text);
		return;
	}
	printf("%s\n  {\"finding\": ", tally->begun ? "," : "");
	print_json_string(store_finding_name(finding));
	printf(", \"repository\": ");
	print_json_string(repo);
	printf(", \"ref\": ");
	print_json_string(ref);
	printf(", \"text\": ");
	print_json_string(text);
	putchar('}');
	tally->begun = true;
}

static void progress(void *arg, uint64_t done, uint64_t total)
{
	(void)arg;
	if (isatty(2))
		fprintf(stderr, "\r%llu of %llu repositories%s",
		    (unsigned long long)done, (unsigned long long)total,
		    done == total ? "\n" : "");
}

static int sum_up(const struct tally *tally, uint64_t parked, int r)
{
	uint64_t redone, left;

	redone =
	    tally->counts[STORE_REDONE] + tally->counts[STORE_ROLLED_FORWARD];
	left = tally->counts[STORE_LEFT] + tally->counts[STORE_OBJECT_MISSING];
	if (tally->json)
		printf("\n ], \"redone\": %llu, \"left\": %llu, "
		       "\"parked\": %llu, \"ok\": %s}\n",
		    (unsigned long long)redone, (unsigned long long)left,
		    (unsigned long long)parked, r == 0 ? "true" : "false");
	else
		printf("%llu refs redone, %llu left as another wrote them, "
		       "%llu parked\n",
		    (unsigned long long)redone, (unsigned long long)left,
		    (unsigned long long)parked);
	if (r == 0)
		return parked > 0 || left > 0 ? 1 : 0;
	fprintf(stderr,
	    "refd: recovery failed: %s; nothing was forgotten, "
	    "run it again once the cause is gone\n",
	    strerror(-r));
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
		r = SYS(&sys_kernel, renameat, AT_FDCWD, from, AT_FDCWD, to);
	if (r == 0)
		printf("moved aside: %s\n", to);
	free(from);
	free(to);
	return r;
}

static int discard(const struct options *opt)
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

/* What it held is lost to that repository, should it come back after all. */
static int forget(struct store *store, const char *repo)
{
	uint64_t nr = 0;
	int r = store_forget(store, repo, &nr);

	if (r == 0) {
		fprintf(stderr, "refd: dropped %llu records of '%s'\n",
		    (unsigned long long)nr, repo);
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
	struct options opt;
	struct tally tally = { .json = false };
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
	cfg.state_dir = opt.state;
	cfg.roots = opt.roots;
	cfg.nr_roots = opt.nr_roots;
	cfg.adopt = opt.adopt;
	tally.json = opt.json;
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
	if (opt.json)
		printf("{\"findings\": [");
	r = store_recover(store, &report, &parked);
	err = r;
	r = sum_up(&tally, parked, r);
	if (err == 0 && opt.forget != NULL)
		r = forget(store, opt.forget);
	store_stop(store);
	store_free(store);
	return opt.discard ? discard(&opt) : r;
}
