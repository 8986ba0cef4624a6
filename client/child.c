#include "client/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* posix_spawn(3) wants to be allowed to write to them. FIRST, where there is
 * one, comes before the others. */
static char **copy_arguments(const char *const argv[], const char *first)
{
	size_t n = 0, at = 0;
	char **args;

	while (argv[n])
		n++;
	args = xcalloc(n + 2, sizeof(*args));
	if (first)
		args[at++] = (char *)first;
	memcpy(args + at, argv, n * sizeof(*args));
	return args;
}

/* SIGPIPE, ignored here, would be handed on. */
static void init_attributes(posix_spawnattr_t *attr)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	if (posix_spawnattr_init(attr) ||
	    posix_spawnattr_setsigdefault(attr, &set) ||
	    posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGDEF))
		die("out of memory");
}

/* IN, OUT and ERR_FD are made the child's 0, 1 and 2; negative: /dev/null for
 * the first, the others inherited. */
static pid_t start(const char *const argv[], int in, int out, int err_fd)
{
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t attr;
	char **args = copy_arguments(argv, NULL);
	pid_t pid;
	int err;

	init_attributes(&attr);
	if (posix_spawn_file_actions_init(&fa))
		die("out of memory");
	if (in < 0)
		err = posix_spawn_file_actions_addopen(&fa, 0, "/dev/null",
		    O_RDONLY, 0);
	else
		err = posix_spawn_file_actions_adddup2(&fa, in, 0);
	if (!err && out >= 0)
		err = posix_spawn_file_actions_adddup2(&fa, out, 1);
	if (!err && err_fd >= 0)
		err = posix_spawn_file_actions_adddup2(&fa, err_fd, 2);
	if (!err)
		err = posix_spawnp(&pid, args[0], &fa, &attr, args, environ);
	posix_spawn_file_actions_destroy(&fa);
	posix_spawnattr_destroy(&attr);
	free(args);
	if (err)
		die("cannot run %s: %s", argv[0], strerror(err));
	return pid;
}

static int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			die("cannot wait for a child: %s", strerror(errno));
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) :
				     WEXITSTATUS(status);
}

static void make_pipe(int ends[2])
{
	if (pipe2(ends, O_CLOEXEC) < 0)
		die("cannot make a pipe: %s", strerror(errno));
}

int child_run(const char *const argv[])
{
	fflush(stdout);
	return wait_for(start(argv, -1, -1, -1));
}

bool child_succeeds(const char *const argv[])
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC), status;

	if (null < 0)
		die("cannot open /dev/null: %s", strerror(errno));
	status = wait_for(start(argv, -1, null, null));
	close(null);
	return status == 0;
}

int child_capture(const char *const argv[], struct text *out)
{
	int ends[2], err;
	pid_t pid;

	make_pipe(ends);
	pid = start(argv, -1, ends[1], -1);
	close(ends[1]);
	err = text_read(out, ends[0]);
	close(ends[0]);
	if (err < 0)
		die("cannot read from %s: %s", argv[0], strerror(-err));
	return wait_for(pid);
}

static int spawn_hook(pid_t *pid, const char *const argv[], const char *dir,
    char *const env[], int in)
{
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t attr;
	char **args = copy_arguments(argv, NULL);
	int err;

	init_attributes(&attr);
	err = posix_spawn_file_actions_init(&fa);
	if (!err)
		err = posix_spawn_file_actions_adddup2(&fa, in, 0);
	if (!err)
		err = posix_spawn_file_actions_adddup2(&fa, 2, 1);
	if (!err)
		err = posix_spawn_file_actions_addchdir_np(&fa, dir);
	if (!err)
		err = posix_spawnp(pid, args[0], &fa, &attr, args, env);
	if (err == ENOEXEC) {
		free(args);
		args = copy_arguments(argv, "/bin/sh");
		err = posix_spawn(pid, args[0], &fa, &attr, args, env);
	}
	posix_spawn_file_actions_destroy(&fa);
	posix_spawnattr_destroy(&attr);
	free(args);
	return err;
}

int child_hook(const char *const argv[], const char *dir, char *const env[],
    const struct text *in)
{
	int ends[2], err;
	size_t at = 0;
	ssize_t n;
	pid_t pid;

	fflush(stdout);
	make_pipe(ends);
	err = spawn_hook(&pid, argv, dir, env, ends[0]);
	close(ends[0]);
	if (err) {
		close(ends[1]);
		say_error("cannot run %s: %s", argv[0], strerror(err));
		return -err;
	}
	while (at < in->len) {
		n = write(ends[1], in->data + at, in->len - at);
		if (n > 0)
			at += (size_t)n;
		else if (errno != EINTR)
			break;
	}
	close(ends[1]);
	return wait_for(pid);
}

void coprocess_start(struct coprocess *co, const char *const argv[])
{
	int to[2], from[2];

	make_pipe(to);
	make_pipe(from);
	co->pid = start(argv, to[0], from[1], -1);
	close(to[0]);
	close(from[1]);
	co->to = fdopen(to[1], "w");
	co->from = fdopen(from[0], "r");
	if (!co->to || !co->from)
		die("out of memory");
}

bool coprocess_ask(struct coprocess *co, const char *question,
    struct text *answer)
{
	char *line = NULL;
	size_t size = 0;
	ssize_t len;

	fprintf(co->to, "%s\n", question);
	if (fflush(co->to))
		return false;
	len = getline(&line, &size, co->from);
	if (len > 0 && line[len - 1] == '\n')
		text_add(answer, line, (size_t)len - 1);
	free(line);
	return len > 0;
}

void coprocess_stop(struct coprocess *co)
{
	if (!co->pid)
		return;
	fclose(co->to);
	fclose(co->from);
	wait_for(co->pid);
	memset(co, 0, sizeof(*co));
}
