#include "client/verify.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/base/child.h"
#include "client/base/cli.h"
#include "client/program.h"

/* The fields that refd-admin writes for each restored ref. */
enum { REPO, REF, VALUE, FROM, FIELDS };

/* Returns the exit status of refd-admin. Control-C interrupts refd-admin alone,
 * which then prints the findings so far. */
static int run_admin(int argc, char **argv, FILE *restored)
{
	char **args = xcalloc((size_t)argc + 3, sizeof(*args));
	void (*at_interrupt)(int) = signal(SIGINT, SIG_IGN);
	int status;
	pid_t pid;

	args[0] = argv[0];
	args[1] = xasprintf("--restored-fd=%d", fileno(restored));
	memcpy(args + 2, argv + 1, (size_t)argc * sizeof(*args));
	pid = fork();
	if (pid < 0)
		die("fork: %s", strerror(errno));
	if (!pid) {
		signal(SIGINT, at_interrupt);
		_exit(program_admin(NULL, argc + 1, args));
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			die("waitpid: %s", strerror(errno));
	signal(SIGINT, at_interrupt);
	free(args[1]);
	free(args);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void confirm(char *const field[FIELDS])
{
	char *message = xasprintf("verify: restored from %s", field[FROM]);
	const char *argv[] = { "/proc/self/exe", "update", "--git-dir",
		field[REPO], "--no-deref", "-m", message, field[REF],
		field[VALUE], field[VALUE], NULL };

	if (child_run(argv))
		say_warning("%s: history does not have that it was restored",
		    field[REF]);
	free(message);
}

static void confirm_all(FILE *restored)
{
	char *field[FIELDS] = { NULL };
	size_t size[FIELDS] = { 0 };
	int i = 0;

	rewind(restored);
	while (getdelim(&field[i], &size[i], '\0', restored) > 0) {
		if (++i < FIELDS)
			continue;
		i = 0;
		confirm(field);
	}
	for (i = 0; i < FIELDS; i++)
		free(field[i]);
}

static int run_verify(const struct command *c, int argc, char **argv)
{
	FILE *restored;
	int rc;

	(void)c;
	restored = tmpfile();
	if (!restored)
		die("cannot make a temporary file: %s", strerror(errno));
	fflush(stdout);
	rc = run_admin(argc, argv, restored);
	confirm_all(restored);
	fclose(restored);
	return rc;
}

/* refd-admin parses the options. */
const struct command verify_command = {
	.name = "verify",
	.summary = "check the refs of a repository",
	.run = run_verify,
};
