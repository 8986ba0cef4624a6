/*
 * The latest possible SIGTERM and SIGINT, loaded by LD_PRELOAD: sends both
 * signals after main() has returned.
 */
#include <signal.h>
#include <unistd.h>

__attribute__((destructor)) static void signal_late(void)
{
	kill(getpid(), SIGTERM);
	kill(getpid(), SIGINT);
}
