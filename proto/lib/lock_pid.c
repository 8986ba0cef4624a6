#include "proto/lib/lock_pid.h"

#include <limits.h>
#include <stdint.h>
#include <string.h>

bool lock_pid_is(const char *file)
{
	const size_t len = strlen(file), suffix = sizeof(LOCK_PID_SUFFIX) - 1;

	return len > suffix &&
	    strcmp(file + len - suffix, LOCK_PID_SUFFIX) == 0;
}

long lock_pid_parse(const char *data, size_t len)
{
	static const char word[] = "pid ";
	size_t at = sizeof(word) - 1;
	uint64_t pid = 0;

	if (len <= at || len > LOCK_PID_BYTES || memcmp(data, word, at) != 0)
		return 0;
	for (; at < len && data[at] >= '0' && data[at] <= '9'; at++) {
		pid = 10 * pid + (uint64_t)(data[at] - '0');
		if (pid > INT_MAX)
			return 0;
	}
	return at + 1 == len && data[at] == '\n' ? (long)pid : 0;
}
