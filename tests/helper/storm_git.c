/*
 * The same load as storm's, put on git itself, to compare with:
 *
 *	storm_git --repo DIR --oid A [--clients N] [--txns M] [--kept-alive]
 *
 * Each client makes one new ref after another, refs/heads/storm/<client>/<n>:
 * by a `git update-ref` of its own for each, or through one `git update-ref
 * --stdin` that it keeps alive, with a transaction for each. At the end one
 * line of JSON, as storm's.
 */
#include <err.h>
#include <getopt.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

struct plan {
	const char *repo, *oid;
	unsigned clients, txns;
	bool kept_alive;
};

/* A `git update-ref --stdin` and the two ends we hold of it. */
struct git {
	FILE *to, *from;
};

static uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

static bool update_once(const struct plan *plan, const char *ref)
{
	char *argv[] = { "git", "-C", (char *)(uintptr_t)plan->repo,
		"update-ref", (char *)(uintptr_t)ref,
		(char *)(uintptr_t)plan->oid, NULL };
	int status = 0;
	pid_t pid;

	if (posix_spawnp(&pid, "git", NULL, NULL, argv, environ) != 0)
		errx(2, "cannot run git");
	return waitpid(pid, &status, 0) == pid && status == 0;
}

static void start_git(const struct plan *plan, struct git *git)
{
	int in[2], out[2];
	pid_t pid;

	if (pipe(in) < 0 || pipe(out) < 0 || (pid = fork()) < 0)
		err(2, "cannot start git");
	if (pid == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		close(in[1]);
		close(out[0]);
		execlp("git", "git", "-C", plan->repo, "update-ref", "--stdin",
		    (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	git->to = fdopen(in[1], "w");
	git->from = fdopen(out[0], "r");
	if (!git->to || !git->from)
		errx(2, "out of memory");
}

static bool update_kept_alive(const struct plan *plan, struct git *git,
    const char *ref)
{
	char line[128];

	fprintf(git->to, "start\ncreate %s %s\ncommit\n", ref, plan->oid);
	fflush(git->to);
	while (fgets(line, sizeof(line), git->from))
		if (!strcmp(line, "commit: ok\n"))
			return true;
	return false;
}

/* The parent closes the gate once every client stands ready. */
static void run_client(const struct plan *plan, unsigned id, int ready,
    int gate, uint32_t *times)
{
	struct git git = { NULL, NULL };
	char ref[64], byte = 'r';
	uint64_t begun;
	unsigned i;
	bool ok;

	if (plan->kept_alive)
		start_git(plan, &git);
	if (write(ready, &byte, 1) != 1 || read(gate, &byte, 1) != 0)
		errx(2, "the gate is broken");
	for (i = 0; i < plan->txns; i++) {
		snprintf(ref, sizeof(ref), "refs/heads/storm/%u/%u", id, i);
		begun = now_us();
		ok = plan->kept_alive ? update_kept_alive(plan, &git, ref) :
					update_once(plan, ref);
		times[i] = ok ? (uint32_t)(now_us() - begun) : UINT32_MAX;
	}
	_exit(0);
}

static int compare_times(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Those that failed are sorted behind the others. */
static void report(const struct plan *plan, uint32_t *times, double seconds)
{
	size_t nr = (size_t)plan->clients * plan->txns, ok;

	qsort(times, nr, sizeof(*times), compare_times);
	for (ok = nr; ok > 0 && times[ok - 1] == UINT32_MAX; ok--)
		;
	printf("{\"clients\":%u,\"ok\":%zu,\"failed\":%zu,\"seconds\":%.3f,"
	       "\"txns_per_second\":%.0f,\"p50_us\":%u,\"p99_us\":%u}\n",
	    plan->clients, ok, nr - ok, seconds, (double)ok / seconds,
	    ok ? times[ok / 2] : 0, ok ? times[ok * 99 / 100] : 0);
}

static int storm(const struct plan *plan)
{
	size_t nr = (size_t)plan->clients * plan->txns;
	uint32_t *times = mmap(NULL, nr * sizeof(*times),
	    PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int ready[2], gate[2], status;
	unsigned i;
	uint64_t begun;
	char byte;
	pid_t pid;

	if (times == MAP_FAILED || pipe(ready) < 0 || pipe(gate) < 0)
		err(2, "cannot begin");
	for (i = 0; i < plan->clients; i++) {
		pid = fork();
		if (pid < 0)
			err(2, "fork");
		if (pid > 0)
			continue;
		close(gate[1]);
		run_client(plan, i, ready[1], gate[0],
		    times + (size_t)i * plan->txns);
	}
	for (i = 0; i < plan->clients; i++)
		if (read(ready[0], &byte, 1) != 1)
			errx(2, "a client is gone");
	begun = now_us();
	close(gate[1]);
	while (wait(&status) > 0)
		;
	report(plan, times, (double)(now_us() - begun) / 1e6);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "repo", required_argument, NULL, 'r' },
		{ "oid", required_argument, NULL, 'o' },
		{ "clients", required_argument, NULL, 'c' },
		{ "txns", required_argument, NULL, 't' },
		{ "kept-alive", no_argument, NULL, 'k' },
		{ NULL, 0, NULL, 0 },
	};
	struct plan plan = { .clients = 8, .txns = 100 };
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (c == 'r')
			plan.repo = optarg;
		else if (c == 'o')
			plan.oid = optarg;
		else if (c == 'c')
			plan.clients = (unsigned)atoi(optarg);
		else if (c == 't')
			plan.txns = (unsigned)atoi(optarg);
		else if (c == 'k')
			plan.kept_alive = true;
		else
			return 2;
	}
	if (optind < argc || !plan.repo || !plan.oid || !plan.clients ||
	    !plan.txns)
		errx(2, "--repo and --oid are needed, and no arguments");
	return storm(&plan);
}
