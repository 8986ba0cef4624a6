/*
 * exchange SECONDS A B [A B ...]: exchanges the names of all pairs in turn, by
 * renameat2(RENAME_EXCHANGE), as often as possible. At the end every pair is in
 * the original order. Prints the number of exchanges.
 *
 * For tests in which a directory becomes a symbolic link at every moment of the
 * daemon's work.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* If the daemon has pruned a directory, makes the directory again. */
static int exchange(const char *a, const char *b)
{
	while (renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE) < 0) {
		if (errno != ENOENT)
			return -1;
		if (mkdir(a, 0775) < 0 && errno != EEXIST)
			return -1;
	}
	return 0;
}

/* A varying pause prevents the daemon's steps from staying in phase with the
 * exchanges. */
static void pause_for(unsigned us)
{
	struct timespec ts = { .tv_nsec = (long)us * 1000 };

	nanosleep(&ts, NULL);
}

int main(int argc, char **argv)
{
	unsigned long nr = 0, seed = 1;
	double until;
	int i, turn;

	if (argc < 4 || argc % 2 != 0)
		return 129;
	umask(0);
	until = now() + atof(argv[1]);
	while (now() < until) {
		for (turn = 0; turn < 2; turn++) {
			for (i = 2; i < argc; i += 2, nr++)
				if (exchange(argv[i], argv[i + 1]) < 0) {
					perror(argv[i]);
					return 1;
				}
			seed = seed * 1103515245 + 12345;
			pause_for((seed >> 16) % 200);
		}
	}
	printf("%lu\n", nr);
	return 0;
}
