#include "client/git/lockpid.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/lib/cli.h"
#include "proto/lib/lock_pid.h"

/* The content of PATH, and the file's owner. */
static long read_pid(const char *path, uid_t *owner)
{
	int fd = open(path,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct text t = { 0 };
	struct stat st;
	long pid = 0;

	if (fd < 0)
		return 0;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    text_read(&t, fd, LOCK_PID_BYTES) == 0)
		pid = lock_pid_parse(t.data, t.len);
	*owner = st.st_uid;
	text_done(&t);
	close(fd);
	return pid;
}

/* In a /proc with the option hidepid, the owner of a process may be unknown, so
 * kill(2) tells whether the process has ended. */
static bool has_ended(long pid)
{
	return kill((pid_t)pid, 0) < 0 && errno == ESRCH;
}

long lockpid_read(const char *lock, bool *runs)
{
	static const char suffix[] = ".lock";
	size_t len = strlen(lock), tail = strlen(suffix);
	struct stat proc;
	uid_t owner = 0;
	char *path;
	long pid;

	*runs = false;
	if (len <= tail || strcmp(lock + len - tail, suffix))
		return 0;
	path = xasprintf("%.*s%s", (int)(len - tail), lock, LOCK_PID_SUFFIX);
	pid = read_pid(path, &owner);
	free(path);
	if (!pid || has_ended(pid))
		return pid;
	path = xasprintf("/proc/%ld", pid);
	*runs = stat(path, &proc) == 0 && proc.st_uid == owner;
	free(path);
	return *runs ? pid : 0;
}
