#include "daemon/service/activation.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define FIRST_FD 3
#define FDS_MAX  64

static bool taken[FDS_MAX];

/* Number of passed sockets. 0 if LISTEN_PID names another process, such as a
 * parent of this process. */
static int nr_passed(void)
{
	const char *pid = getenv("LISTEN_PID"), *nr = getenv("LISTEN_FDS");
	long fds;

	if (pid == NULL || nr == NULL || strtol(pid, NULL, 10) != getpid())
		return 0;
	fds = strtol(nr, NULL, 10);
	return fds < 0 ? 0 : fds > FDS_MAX ? FDS_MAX : (int)fds;
}

/* LISTEN_FDNAMES is "name:name:name". */
static bool is_called(int at, const char *name)
{
	const char *names = getenv("LISTEN_FDNAMES");
	size_t len;

	while (names != NULL && at-- > 0) {
		names = strchr(names, ':');
		if (names != NULL)
			names++;
	}
	if (names == NULL)
		return false;
	len = strcspn(names, ":");
	return len == strlen(name) && strncmp(names, name, len) == 0;
}

static int take_at(int at)
{
	int fd = FIRST_FD + at;

	taken[at] = true;
	if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 ||
	    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0)
		return -1;
	return fd;
}

int activation_take(const char *name, bool first)
{
	int i, nr = nr_passed();

	for (i = 0; i < nr; i++)
		if (!taken[i] && is_called(i, name))
			return take_at(i);
	return first && nr == 1 && !taken[0] ? take_at(0) : -1;
}

static char *refuse_socket(char **why, const char *what)
{
	if (asprintf(why,
		"the socket that the service manager passed is %s: it has to "
		"be a Unix socket with a path (ListenStream=/run/...)",
		what) < 0)
		*why = NULL;
	return NULL;
}

char *activation_path(int fd, char **why)
{
	struct sockaddr_un addr;
	socklen_t size = sizeof(addr);
	int type = 0, listens = 0;
	socklen_t int_size = sizeof(int);
	char *path;

	if (getsockname(fd, (struct sockaddr *)&addr, &size) < 0)
		return refuse_socket(why, strerror(errno));
	if (addr.sun_family != AF_UNIX ||
	    size <= offsetof(struct sockaddr_un, sun_path) ||
	    addr.sun_path[0] != '/')
		return refuse_socket(why, "of another kind");
	getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &int_size);
	int_size = sizeof(int);
	getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &int_size);
	if (type != SOCK_STREAM || !listens)
		return refuse_socket(why, "no stream socket that listens");
	*why = NULL;
	path = strndup(addr.sun_path,
	    size - offsetof(struct sockaddr_un, sun_path));
	return path;
}
