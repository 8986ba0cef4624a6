#include "client/child.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* IN and OUT are made the child's 0 and 1; negative: /dev/null, inherited. */
static pid_t start(const char *const argv[], int in, int out)
{
	posix_spawn_file_actions_t fa;
	char **args;
	size_t n = 0;
	pid_t pid;
	int err;

	while (argv[n])
		n++;
	args = xcalloc(n + 1, sizeof(*args));
	memcpy(args, argv, n * sizeof(*args));
	if (posix_spawn_file_actions_init(&fa))
		die("out of memory");
	if (in < 0)
		err = posix_spawn_file_actions_addopen(&fa, 0, "/dev/null",
		    O_RDONLY, 0);
	else
		err = posix_spawn_file_actions_adddup2(&fa, in, 0);
	if (!err && out >= 0)
		err = posix_spawn_file_actions_adddup2(&fa, out, 1);
	if (!err)
		err = posix_spawnp(&pid, args[0], &fa, NULL, args, environ);
	posix_spawn_file_actions_destroy(&fa);
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
	return wait_for(start(argv, -1, -1));
}

int child_capture(const char *const argv[], struct text *out)
{
	int ends[2], err;
	pid_t pid;

	make_pipe(ends);
	pid = start(argv, -1, ends[1]);
	close(ends[1]);
	err = text_read(out, ends[0]);
	close(ends[0]);
	if (err < 0)
		die("cannot read from %s: %s", argv[0], strerror(-err));
	return wait_for(pid);
}

void coprocess_start(struct coprocess *co, const char *const argv[])
{
	int to[2], from[2];

	make_pipe(to);
	make_pipe(from);
	co->pid = start(argv, to[0], from[1]);
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
