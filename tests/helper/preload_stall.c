/*
 * Measures how long a loop blocks, loaded by LD_PRELOAD. A turn is the time
 * from the end of an epoll_wait(2) to the next call. At the end, writes a line
 * of JSON to the file REFD_STALL_LOG, for all threads together: the longest
 * turn in processor time, which does not depend on the load of the machine, and
 * in real time, in microseconds; and the number of turns with more than a
 * millisecond of processor time.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

static long longest_cpu_us, longest_us, over_1ms, turns;
static __thread long began_cpu_us, began_us;

static long now_us(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static void end_turn(void)
{
	long cpu_us = now_us(CLOCK_THREAD_CPUTIME_ID) - began_cpu_us;
	long us = now_us(CLOCK_MONOTONIC) - began_us;

	if (began_us == 0)
		return;
	turns++;
	over_1ms += cpu_us > 1000;
	if (cpu_us > longest_cpu_us)
		longest_cpu_us = cpu_us;
	if (us > longest_us)
		longest_us = us;
}

int epoll_wait(int fd, struct epoll_event *events, int nr, int timeout)
{
	static int (*next)(int, struct epoll_event *, int, int);
	int r;

	if (next == NULL)
		*(void **)&next = dlsym(RTLD_NEXT, "epoll_wait");
	if (next == NULL)
		abort();
	end_turn();
	r = next(fd, events, nr, timeout);
	began_us = now_us(CLOCK_MONOTONIC);
	began_cpu_us = now_us(CLOCK_THREAD_CPUTIME_ID);
	return r;
}

__attribute__((destructor)) static void tell(void)
{
	const char *path = getenv("REFD_STALL_LOG");
	char line[200];
	int fd, len;

	if (path == NULL || turns == 0)
		return;
	len = snprintf(line, sizeof(line),
	    "{\"turns\":%ld,\"longest_cpu_us\":%ld,\"longest_us\":%ld,"
	    "\"over_1ms\":%ld}\n",
	    turns, longest_cpu_us, longest_us, over_1ms);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (fd < 0 || write(fd, line, (size_t)len) != len)
		fprintf(stderr, "preload_stall: %s can't be written\n", path);
	if (fd >= 0)
		close(fd);
}
