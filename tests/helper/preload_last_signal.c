/*
 * A SIGTERM and a SIGINT that come as late as they can: loaded into a program
 * by LD_PRELOAD, it sends them when main() has returned.
 */
#include <signal.h>
#include <unistd.h>

__attribute__((destructor)) static void signal_late(void)
{
	kill(getpid(), SIGTERM);
	kill(getpid(), SIGINT);
}
