#include "client/log/pager.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/base/child.h"
#include "client/base/colour.h"

static pid_t pager;

/* The pager ends after its input, or when the user quits. */
static void wait_for_pager(void)
{
	fflush(stdout);
	close(STDOUT_FILENO);
	close(STDERR_FILENO);
	child_wait(pager);
}

static const char *pager_command(void)
{
	const char *command = getenv("GIT_PAGER");

	if (!command)
		command = getenv("PAGER");
	return command ? command : "less";
}

/* As git: only a command with special characters needs a shell. So a missing
 * program is noticed here. */
static int start(const char *command, int *to)
{
	const char *const words[] = { command, NULL };
	const char *const shell[] = { "/bin/sh", "-c", command, NULL };
	bool is_word = !strpbrk(command, "|&;<>()$`\\\"' \t\n*?[#~=%");

	/* less ends at once if the output fits the screen, and shows colour. */
	setenv("LESS", "FRX", 0);
	setenv("LV", "-c", 0);
	return child_feed(is_word ? words : shell, &pager, to);
}

void pager_start(void)
{
	const char *command = pager_command();
	int to, err;

	if (!*command || !strcmp(command, "cat"))
		return;
	err = start(command, &to);
	if (err && (getenv("GIT_PAGER") || getenv("PAGER")))
		say_warning("cannot run the pager '%s': %s", command,
		    strerror(err));
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
