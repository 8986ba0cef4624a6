#include "client/group/fetch_git.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client/base/child.h"
#include "client/librefd/conn.h"

#define SAID_MAX 4096

extern char **environ;

int fetch_git_above(int fd)
{
	int above;

	if (fd < 0)
		return fd;
	above = fcntl(fd, F_DUPFD_CLOEXEC, FETCH_FD_LAST + 1);
	if (above < 0)
		die("cannot open more files: %s", strerror(errno));
	close(fd);
	return above;
}

int fetch_git_file(const struct text *text)
{
	int fd = memfd_create("refd-group", MFD_CLOEXEC);
	size_t done = 0;
	ssize_t n;

	if (fd < 0)
		die("cannot make a file in memory: %s", strerror(errno));
	while (done < text->len) {
		n = pwrite(fd, text->data + done, text->len - done,
		    (off_t)done);
		if (n < 0)
			die("cannot write a file in memory: %s",
			    strerror(errno));
		done += (size_t)n;
	}
	return fetch_git_above(fd);
}

/* ---- the environment ---- */

/* GIT_DIR comes last. */
static const char *const settings[] = {
	"GIT_TERMINAL_PROMPT=0",
	"GIT_ASKPASS=",
	/* A source that loses its power says nothing. */
	"GIT_SSH_COMMAND=ssh -oBatchMode=yes -oConnectTimeout=10"
	" -oServerAliveInterval=5 -oServerAliveCountMax=2",
	"GIT_CONFIG_NOSYSTEM=1",
	"GIT_CONFIG_GLOBAL=/dev/null",
};
#define NR_SETTINGS (sizeof(settings) / sizeof(settings[0]))

/* GIT_DIR is an owned string, or NULL: git may read the configuration of the
 * account. The array is owned. */
static char **make_environment(char *git_dir)
{
	size_t i, nr = 0, size = NR_SETTINGS + 2;
	char **env;

	for (i = 0; environ[i]; i++)
		size++;
	env = xcalloc(size, sizeof(*env));
	for (i = 0; environ[i]; i++)
		if (!has_prefix(environ[i], "GIT_"))
			env[nr++] = environ[i];
	for (i = 0; git_dir && i < NR_SETTINGS; i++)
		env[nr++] = (char *)settings[i];
	env[nr] = git_dir;
	return env;
}

/* ---- running ---- */

struct run {
	const char *const *argv;
	char **env;
	int in, out, err;
	int dir; /* current directory; -1: of this process */
};

/* The order counts: a number up to FETCH_FD_LAST can be a source of the first
 * calls, and not of the last ones. */
static int add_actions(posix_spawn_file_actions_t *fa, const struct run *run,
    const struct fetch_git *g)
{
	const int fds[][2] = { { run->err, 2 }, { run->in, 0 }, { run->out, 1 },
		{ g->objects, FETCH_FD_OBJECTS }, { g->pack, FETCH_FD_PACK },
		{ g->refs, FETCH_FD_REFS }, { g->tables, FETCH_FD_TABLES } };
	size_t i;
	int err = 0;

	if (run->dir >= 0)
		err = posix_spawn_file_actions_addfchdir_np(fa, run->dir);
	if (!err && run->in < 0)
		err = posix_spawn_file_actions_addopen(fa, 0, "/dev/null",
		    O_RDONLY, 0);
	if (!err && run->out < 0)
		err = posix_spawn_file_actions_addopen(fa, 1, "/dev/null",
		    O_WRONLY, 0);
	for (i = 0; !err && i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i][0] >= 0)
			err = posix_spawn_file_actions_adddup2(fa, fds[i][0],
			    fds[i][1]);
	return err;
}

/* Starts git in a process group, so that the children of git can be killed. 0
 * or an errno. */
static int spawn(pid_t *pid, const struct run *run, const struct fetch_git *g)
{
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t attr;
	sigset_t set;
	int err;

	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	if (posix_spawn_file_actions_init(&fa) || posix_spawnattr_init(&attr) ||
	    posix_spawnattr_setsigdefault(&attr, &set) ||
	    posix_spawnattr_setflags(&attr,
		POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP))
		die("out of memory");
	err = add_actions(&fa, run, g);
	if (!err)
		err = posix_spawnp(pid, run->argv[0], &fa, &attr,
		    (char *const *)run->argv, run->env);
	posix_spawn_file_actions_destroy(&fa);
	posix_spawnattr_destroy(&attr);
	return err;
}

/* Keeps the first bytes. False: the end, or nothing is there now. */
static bool take_said(int from, struct text *said)
{
	char buf[4096];
	ssize_t n = read(from, buf, sizeof(buf));
	size_t room = SAID_MAX - said->len;

	if (n > 0)
		text_add(said, buf, (size_t)n < room ? (size_t)n : room);
	return n > 0;
}

/* A child of git can keep FROM open for longer than git runs, so PROCESS, a
 * descriptor of git, tells the end. True: git has ended. */
static bool await_end(const struct fetch_git *g, int process, int from,
    struct text *said)
{
	struct pollfd fds[] = { { .fd = process, .events = POLLIN },
		{ .fd = from, .events = POLLIN },
		{ .fd = g->wish->cancel, .events = POLLIN } };
	uint64_t now;

	while (!fds[0].revents && !fds[2].revents &&
	    (now = refd_now_ms()) < g->until_ms) {
		poll(fds, 3, (int)(g->until_ms - now));
		if (fds[1].revents && !take_said(from, said))
			fds[1].fd = -1;
	}
	while (take_said(from, said))
		continue;
	return fds[0].revents != 0;
}

static void print_said(const struct fetch_git *g, struct text *said)
{
	char *line, *next = said->data;

	while ((line = strsep(&next, "\n")))
		if (*line)
			say_warning("%s: git: %s", g->wish->path, line);
}

static int finish(const struct fetch_git *g, pid_t pid, int from)
{
	int process = (int)syscall(SYS_pidfd_open, pid, 0), status;
	struct text said = { 0 };
	bool has_ended;

	if (process < 0)
		die("cannot watch git: %s", strerror(errno));
	has_ended = await_end(g, process, from, &said);
	if (!has_ended)
		kill(-pid, SIGKILL);
	status = child_wait(pid);
	close(process);
	if (has_ended && status != 0)
		print_said(g, &said);
	text_done(&said);
	return has_ended ? status : -1;
}

static int run_git(const struct fetch_git *g, struct run *run)
{
	int ends[2], err, status = -1;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0 ||
	    fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0)
		die("cannot make a pipe: %s", strerror(errno));
	run->err = ends[1];
	err = spawn(&pid, run, g);
	close(ends[1]);
	if (err)
		say_warning("cannot run %s: %s", run->argv[0], strerror(err));
	else
		status = finish(g, pid, ends[0]);
	close(ends[0]);
	free(run->env);
	return status;
}

int fetch_git_run(const struct fetch_git *g, const char *const argv[], int in,
    int out)
{
	char *git_dir = xasprintf("GIT_DIR=%s/%s%s", g->site->dir,
	    refd_object_format_name(g->wish->format),
	    g->tables >= 0 ? "-tables" : "");
	struct run run = { .argv = argv,
		.env = make_environment(git_dir),
		.in = in,
		.out = out,
		.dir = -1 };
	int status = run_git(g, &run);

	free(git_dir);
	return status;
}

int fetch_git_init(const struct fetch_git *g, int dir)
{
	char *format = xasprintf("--object-format=%s",
	    refd_object_format_name(g->wish->format));
	const char *const argv[] = { "git", "init", "--quiet", "--bare",
		"--template=", format, ".", NULL };
	struct run run = { .argv = argv,
		.env = make_environment(NULL),
		.in = -1,
		.out = -1,
		.dir = dir };
	int status = run_git(g, &run);

	free(format);
	return status;
}
