/*
 * git as a contestant: a process for each update, a process kept alive, or any
 * command. git exits in the middle of a transaction when a lock is taken. The
 * transaction then fails, and the next transaction gets a new process.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/lib/cli.h"
#include "tests/bench/peer.h"

#define ARGS_MAX 64

extern char **environ;

struct git {
	const struct peer *peer;
	unsigned client;
	char *repo;
	char *argv[ARGS_MAX];
	unsigned nr_args;
	/* Of the process kept alive. */
	pid_t pid;
	FILE *to, *from;
	struct refd_oid found;
};

static void add_arg(struct git *g, const char *arg)
{
	if (g->nr_args + 1 == ARGS_MAX)
		die("a command of more than %d words", ARGS_MAX - 1);
	g->argv[g->nr_args++] = xstrdup(arg);
	g->argv[g->nr_args] = NULL;
}

static struct git *new_git(const struct peer *p, unsigned client)
{
	struct git *g = xcalloc(1, sizeof(*g));
	char *const *word;

	g->peer = p;
	g->client = client;
	for (word = p->command; *word; word++)
		add_arg(g, *word);
	if (!p->job->repo)
		return g;
	g->repo = job_repo(p->job, client);
	add_arg(g, "-C");
	add_arg(g, g->repo);
	add_arg(g, "update-ref");
	return g;
}

/* A git that loses a race for a lock prints an error. The error is counted and
 * not shown. */
static enum load_outcome run(struct git *g, const char *input, bool is_quiet)
{
	posix_spawn_file_actions_t files;
	int status = 0;
	pid_t pid;

	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, 0, input, O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
	if (is_quiet)
		posix_spawn_file_actions_addopen(&files, 2, "/dev/null",
		    O_WRONLY, 0);
	if (posix_spawnp(&pid, g->argv[0], &files, NULL, g->argv, environ))
		die("cannot run %s", g->argv[0]);
	posix_spawn_file_actions_destroy(&files);
	if (waitpid(pid, &status, 0) != pid || status != 0)
		return LOAD_FAILED;
	return LOAD_DONE;
}

/* ---- any command ---- */

static void *command_open(void *arg, unsigned client)
{
	return new_git(arg, client);
}

static enum load_outcome command_transaction(void *opened, unsigned nr)
{
	struct git *g = opened;

	(void)nr;
	return run(g, g->peer->input ? g->peer->input : "/dev/null", false);
}

struct load_contestant peer_command(struct peer *p)
{
	return (struct load_contestant){ .arg = p,
		.open = command_open,
		.transaction = command_transaction };
}

/* ---- a process for each update ---- */

/* As in a script: reads the value, and updates from this value to the next. A
 * ref exists all the time, also during a rename. */
static void look(const struct git *g, const char *name,
    char old[REFD_OID_MAX_HEX + 1])
{
	char *path = xasprintf("%s/%s", g->repo, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, old, REFD_SHA1_HEX) != REFD_SHA1_HEX)
		memset(old, '0', REFD_SHA1_HEX);
	old[REFD_SHA1_HEX] = '\0';
	if (fd >= 0)
		close(fd);
	free(path);
}

static enum load_outcome git_transaction(void *opened, unsigned nr)
{
	struct git *g = opened;
	const struct job *job = g->peer->job;
	char name[JOB_NAME_MAX], new[REFD_OID_MAX_HEX + 1],
	    old[REFD_OID_MAX_HEX + 1];
	unsigned nr_args = g->nr_args;
	struct refd_oid found;
	enum load_outcome outcome;

	job_name(job, g->client, nr, 0, name);
	refd_oid_hex(job_value(job, nr), REFD_FORMAT_SHA1, new);
	if (job->action == JOB_DELETE)
		add_arg(g, "-d");
	add_arg(g, name);
	if (job->action == JOB_SWAP) {
		look(g, name, old);
		refd_oid_parse(old, REFD_FORMAT_SHA1, &found);
		refd_oid_hex(job_next(job, &found), REFD_FORMAT_SHA1, new);
	}
	if (job->action != JOB_DELETE)
		add_arg(g, new);
	if (job->action == JOB_SWAP)
		add_arg(g, old);
	outcome = run(g, "/dev/null", true);
	while (g->nr_args > nr_args)
		free(g->argv[--g->nr_args]);
	g->argv[g->nr_args] = NULL;
	return outcome;
}

struct load_contestant peer_git(struct peer *p)
{
	if (p->job->refs != 1)
		die("a git for each update: one ref each");
	return (struct load_contestant){ .arg = p,
		.open = command_open,
		.transaction = git_transaction };
}

/* ---- a process kept alive ---- */

static void start(struct git *g)
{
	int in[2], out[2];

	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0 ||
	    (g->pid = fork()) < 0)
		die("cannot start git: %s", strerror(errno));
	if (g->pid == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), 2);
		execvp(g->argv[0], g->argv);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	g->to = fdopen(in[1], "w");
	g->from = fdopen(out[0], "r");
	if (!g->to || !g->from)
		die("out of memory");
}

static void stop(struct git *g)
{
	fclose(g->to);
	fclose(g->from);
	waitpid(g->pid, NULL, 0);
}

static void *kept_open(void *arg, unsigned client)
{
	struct git *g = new_git(arg, client);

	add_arg(g, "--stdin");
	start(g);
	return g;
}

static void say_update(const struct git *g, unsigned nr, unsigned i)
{
	const struct job *job = g->peer->job;
	char name[JOB_NAME_MAX], hex[REFD_OID_MAX_HEX + 1];

	job_name(job, g->client, nr, i, name);
	refd_oid_hex(job_value(job, nr), REFD_FORMAT_SHA1, hex);
	switch (job->action) {
	case JOB_CREATE:
		fprintf(g->to, "create %s %s\n", name, hex);
		break;
	case JOB_DELETE:
		fprintf(g->to, "delete %s\n", name);
		break;
	case JOB_MOVE:
		fprintf(g->to, "update %s %s\n", name, hex);
		break;
	case JOB_SWAP:
		die("a git that is kept alive does not swap");
	}
}

static enum load_outcome kept_transaction(void *opened, unsigned nr)
{
	struct git *g = opened;
	char line[128];
	unsigned i;

	fputs("start\n", g->to);
	for (i = 0; i < g->peer->job->refs; i++)
		say_update(g, nr, i);
	fputs("commit\n", g->to);
	fflush(g->to);
	while (fgets(line, sizeof(line), g->from))
		if (!strcmp(line, "commit: ok\n"))
			return LOAD_DONE;
	stop(g);
	start(g);
	return LOAD_FAILED;
}

static void kept_close(void *opened)
{
	stop(opened);
}

struct load_contestant peer_kept(struct peer *p)
{
	return (struct load_contestant){ .arg = p,
		.open = kept_open,
		.transaction = kept_transaction,
		.close = kept_close };
}
