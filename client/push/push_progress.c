#include "client/push/push_progress.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define FIRST_S 2
#define NEXT_S  10

static const char of_group[] =
    "refd: no answer yet: other nodes of the group fetch the objects first, or "
    "are away, or this node does not lead\n";
static const char of_daemon[] =
    "refd: no answer yet: the daemon is paused or busy, or waits for a disk; "
    "'refd status' on the server says which\n";

static const char *volatile line;
static volatile sig_atomic_t has_told;

/* Only calls that a handler of a signal may make. */
static void tell(int sig)
{
	const int saved = errno;

	(void)sig;
	if (write(STDERR_FILENO, line, strlen(line)) > 0)
		has_told = 1;
	alarm(NEXT_S);
	errno = saved;
}

void push_progress_begin(bool is_in_group)
{
	struct sigaction action = { .sa_handler = tell };

	line = is_in_group ? of_group : of_daemon;
	has_told = 0;
	sigemptyset(&action.sa_mask);
	sigaction(SIGALRM, &action, NULL);
	alarm(FIRST_S);
}

bool push_progress_end(void)
{
	alarm(0);
	return has_told;
}
