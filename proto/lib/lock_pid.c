/*
 * The happy path: a process has the lock open. Otherwise git may have named the
 * process, and /proc tells whether the process runs.
 *
 * Failures: what cannot be read names nobody, because a wrong name could make
 * somebody end a process that holds no lock.
 */
#include "proto/lib/lock_pid.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_SUFFIX ".lock"
/* In stat, counted from the state, which follows the name. */
#define FIELDS_BEFORE_START 19

static bool has_suffix(const char *file, const char *suffix)
{
	const size_t len = strlen(file), nr = strlen(suffix);

	return len > nr && strcmp(file + len - nr, suffix) == 0;
}

/* ---- git's file ---- */

bool lock_pid_is(const char *file)
{
	return has_suffix(file, LOCK_PID_SUFFIX);
}

size_t lock_file_len(const char *name)
{
	return has_suffix(name, LOCK_SUFFIX) && !lock_pid_is(name) ?
	    strlen(name) - strlen(LOCK_SUFFIX) :
	    0;
}

static long parse(const char *data, size_t len)
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

int lock_pid_path(char path[REFD_PATH_MAX], const char *lock)
{
	int len, n;

	if (!has_suffix(lock, LOCK_SUFFIX))
		return -EINVAL;
	len = (int)(strlen(lock) - strlen(LOCK_SUFFIX));
	n = snprintf(path, REFD_PATH_MAX, "%.*s%s", len, lock, LOCK_PID_SUFFIX);
	return n < REFD_PATH_MAX ? 0 : -ENAMETOOLONG;
}

int lock_pid_open(const char *lock)
{
	char path[REFD_PATH_MAX];

	if (lock_pid_path(path, lock) < 0)
		return -1;
	return open(path,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/* In a /proc with the option hidepid, the owner of a process may be unknown, so
 * kill(2) tells whether the process has ended. */
static bool has_ended(long pid)
{
	return kill((pid_t)pid, 0) < 0 && errno == ESRCH;
}

static bool belongs_to(long pid, uid_t uid)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%ld", pid);
	return stat(path, &st) == 0 && st.st_uid == uid;
}

long lock_pid_read(int fd, uid_t *owner)
{
	char text[LOCK_PID_BYTES + 1];
	struct stat st;
	ssize_t len = -1;

	if (fd < 0)
		return 0;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		*owner = st.st_uid;
		len = read(fd, text, sizeof(text));
	}
	close(fd);
	return len > 0 ? parse(text, (size_t)len) : 0;
}

struct lock_holder lock_pid_named(int fd)
{
	uid_t owner = 0;
	struct lock_holder h = { .pid = lock_pid_read(fd, &owner) };

	if (h.pid != 0 && has_ended(h.pid))
		h.verdict = HOLDER_ENDED;
	else if (h.pid != 0 && belongs_to(h.pid, owner))
		h.verdict = HOLDER_RUNS;
	else
		h.pid = 0;
	return h;
}

/* ---- processes ---- */

/* The name is in parentheses and can contain anything, so the last parenthesis
 * counts. */
uint64_t lock_pid_started(const char *stat)
{
	const char *at = strrchr(stat, ')');
	int i;

	if (at == NULL || at[1] != ' ')
		return 0;
	at += 2;
	for (i = 0; i < FIELDS_BEFORE_START && at != NULL; i++) {
		at = strchr(at, ' ');
		at = at != NULL ? at + 1 : NULL;
	}
	return at != NULL ? strtoull(at, NULL, 10) : 0;
}

long lock_pid_search(bool (*is)(const char *proc, const void *arg),
    const void *arg)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	long pid, found = 0;
	char proc[32];

	while (dir != NULL && found == 0 && (entry = readdir(dir)) != NULL) {
		pid = strtol(entry->d_name, NULL, 10);
		snprintf(proc, sizeof(proc), "/proc/%ld", pid);
		if (pid > 0 && is(proc, arg))
			found = pid;
	}
	if (dir != NULL)
		closedir(dir);
	return found;
}

static bool has_open(const char *proc, const void *arg)
{
	const struct stat *lock = arg;
	struct dirent *entry;
	bool found = false;
	struct stat st;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "%s/fd", proc);
	dir = opendir(path);
	while (dir != NULL && !found && (entry = readdir(dir)) != NULL)
		found = fstatat(dirfd(dir), entry->d_name, &st, 0) == 0 &&
		    st.st_dev == lock->st_dev && st.st_ino == lock->st_ino;
	if (dir != NULL)
		closedir(dir);
	return found;
}

struct lock_holder lock_pid_find(uint64_t dev, uint64_t ino, int fd)
{
	const struct stat lock = { .st_dev = dev, .st_ino = ino };
	const struct lock_holder named = lock_pid_named(fd);
	const long pid = lock_pid_search(has_open, &lock);

	if (pid == 0)
		return named;
	return (struct lock_holder){ .verdict = HOLDER_HAS_OPEN, .pid = pid };
}

/* ---- the age ---- */

uint64_t lock_age_s(int64_t now_s, int64_t since_s)
{
	return now_s > since_s ? (uint64_t)now_s - (uint64_t)since_s : 0;
}
