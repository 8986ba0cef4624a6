#include "proto/lib/interrupt.h"

#include <stddef.h>

static volatile sig_atomic_t came;

static void note(int sig)
{
	(void)sig;
	came = 1;
}

void interrupt_catch(void)
{
	struct sigaction was,
	    act = { .sa_handler = note,
		    .sa_flags = (int)SA_RESETHAND | SA_RESTART };

	if (sigaction(SIGINT, NULL, &was) == 0 && was.sa_handler != SIG_IGN)
		sigaction(SIGINT, &act, NULL);
}

bool interrupt_came(void)
{
	return came != 0;
}
