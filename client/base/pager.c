#include "client/base/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/lib/cli.h"
#include "proto/lib/colour.h"
#include "proto/lib/launch.h"

static struct launched pager;

/* The pager ends after its input, or when the user quits. */
static void wait_for_pager(void)
{
	fflush(stdout);
	close(STDOUT_FILENO);
	close(STDERR_FILENO);
	launch_wait(&pager);
}

static const char *pager_command(void)
{
	const char *command = getenv("GIT_PAGER");

	if (!command)
		command = getenv("PAGER");
	return command ? command : "less";
}

/* As git: only a command with special characters needs a shell, so a missing
 * program is noticed here. 0 or negative errno. */
static int start(const char *command, int *to)
{
	const char *const words[] = { command, NULL };
	const char *const shell[] = { "/bin/sh", "-c", command, NULL };
	bool is_word = !strpbrk(command, "|&;<>()$`\\\"' \t\n*?[#~=%");
	int ends[2], err;

	/* less ends at once if the output fits the screen, and shows colour. */
	setenv("LESS", "FRX", 0);
	setenv("LV", "-c", 0);
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	err = launch_start(&pager,
	    &(struct launch){ .argv = is_word ? words : shell,
		.kind = LAUNCH_TERMINAL,
		.in = ends[0],
		.out = STDOUT_FILENO,
		.err = STDERR_FILENO });
	close(ends[0]);
	if (err)
		close(ends[1]);
	else
		*to = ends[1];
	return err;
}

void pager_start(void)
{
	const char *command = pager_command();
	int to = -1, err;

	if (!*command || !strcmp(command, "cat"))
		return;
	err = start(command, &to);
	if (err && (getenv("GIT_PAGER") || getenv("PAGER")))
		say_warning("cannot run the pager '%s': %s", command,
		    strerror(-err));
	if (err)
		return;
	/* The pager decides about Ctrl-C. */
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	colour_take(NULL, colour_is_on() ? "always" : "never");
	dup2(to, STDOUT_FILENO);
	if (isatty(STDERR_FILENO))
		dup2(to, STDERR_FILENO);
	close(to);
	atexit(wait_for_pager);
}
