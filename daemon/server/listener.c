#include "daemon/server/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/base/log.h"

#define BACKLOG 4096
/* Connections accepted before the loop looks at other input. */
#define ACCEPT_MAX 64
#define PAUSE_US   100000
#define LOCK_TRIES 100
#define LOCK_NS    10000000

struct listener {
	const struct sys *sys;
	int fd;
	char *path;
	uint64_t dev, ino; /* of the bound socket; ino 0: none */
	struct event *acceptable, *pause;
	unsigned mode;
	bool outlives;     /* belongs to the service manager */
	bool short_of_fds; /* and the log has a line about it */
	void (*accepted)(void *arg, int fd);
	void *arg;
};

static int __attribute__((format(printf, 3, 4))) fail_with(char **why, int err,
    const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(why, fmt, ap) < 0)
		*why = NULL;
	va_end(ap);
	return err;
}

/* ---- a new socket ---- */

/*
 * Locks the directory of PATH. Without the lock, two daemons that find the same
 * dead socket could remove each other's new sockets. After a second without the
 * lock the daemon goes on. Returns a descriptor to close, or a negative errno.
 */
static int lock_directory_of(const struct sys *sys, const char *path)
{
	char *dir = strdup(path), *slash;
	int fd, tries;

	if (dir == NULL)
		return -ENOMEM;
	slash = strrchr(dir, '/');
	slash[slash == dir] = '\0';
	fd = SYS(sys, openat, SYS_TRUSTED, dir, O_RDONLY | O_DIRECTORY, 0);
	free(dir);
	for (tries = 0; fd >= 0 && tries < LOCK_TRIES; tries++) {
		if (SYS(sys, flock_try, fd) == 0)
			break;
		SYS(sys, sleep_ns, LOCK_NS);
	}
	return fd;
}

/* Removes the socket of a dead daemon. 0: nothing has the path now. */
static int remove_dead_socket(const struct sys *sys,
    const struct sockaddr_un *addr, char **why)
{
	struct sys_stat st;
	int fd, r;

	r = SYS(sys, lstatat, SYS_TRUSTED, addr->sun_path, &st);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return fail_with(why, r, "cannot look at the socket %s: %s",
		    addr->sun_path, strerror(-r));
	if (!S_ISSOCK(st.mode))
		return fail_with(why, -ENOTSOCK,
		    "%s is in the way: it is not a "
		    "socket",
		    addr->sun_path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return fail_with(why, -errno, "cannot make a socket: %s",
		    strerror(errno));
	r = connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) < 0 ?
	    -errno :
	    0;
	close(fd);
	/* EAGAIN: a daemon listens, but its queue is full. */
	if (r == 0 || r == -EAGAIN)
		return fail_with(why, -EADDRINUSE,
		    "another daemon listens on %s: "
		    "stop it, or name another socket "
		    "(--socket, metrics.socket)",
		    addr->sun_path);
	if (r != -ECONNREFUSED)
		return fail_with(why, r,
		    "cannot tell whether a daemon listens on "
		    "%s: %s",
		    addr->sun_path, strerror(-r));
	r = SYS(sys, unlinkat, SYS_TRUSTED, addr->sun_path);
	return r == 0 || r == -ENOENT ?
	    0 :
	    fail_with(why, r, "cannot remove the dead socket %s: %s",
		addr->sun_path, strerror(-r));
}

/* Since Linux 6.16; the value of its headers. */
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

/*
 * Makes the kernel refuse descriptors that a client sends (EPERM). Otherwise
 * the kernel would close such a descriptor on the loop's thread, which may
 * block as long as the client likes, for example for a TCP socket with
 * SO_LINGER. Connections inherit the option (unix_stream_connect). An older
 * kernel does not know the option.
 */
static void refuse_descriptors(int fd)
{
	setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &(int){ 0 }, sizeof(int));
}

/* No client can connect between bind and listen, so no client sees a mode that
 * is too wide. */
static int bind_and_listen(struct listener *l, const struct sockaddr_un *addr,
    char **why)
{
	struct sys_stat st;
	int r;

	l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0 ||
	    bind(l->fd, (const struct sockaddr *)addr, sizeof(*addr)) < 0)
		return fail_with(why, -errno,
		    "cannot bind the socket %s: %s: name a path in a directory "
		    "that this account may write, by --socket or daemon.socket",
		    l->path, strerror(errno));
	refuse_descriptors(l->fd);
	r = SYS(l->sys, lstatat, SYS_TRUSTED, l->path, &st);
	if (r == 0) {
		l->dev = st.dev;
		l->ino = st.ino;
		r = SYS(l->sys, chmod_trusted, l->path, l->mode);
	}
	if (r == 0 && listen(l->fd, BACKLOG) < 0)
		r = -errno;
	return r == 0 ? 0 :
			fail_with(why, r, "cannot listen on the socket %s: %s",
			    l->path, strerror(-r));
}

int listener_open(const struct sys *sys, const char *path, unsigned mode,
    struct listener **listener, char **why)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct listener *l;
	int r, lock_fd;

	*why = NULL;
	if (strlen(path) >= sizeof(addr.sun_path))
		return fail_with(why, -ENAMETOOLONG,
		    "the socket's path %s is longer than the %zu bytes that "
		    "the kernel takes: name a shorter one by --socket or "
		    "daemon.socket",
		    path, sizeof(addr.sun_path) - 1);
	strcpy(addr.sun_path, path);
	l = calloc(1, sizeof(*l));
	if (l == NULL)
		return -ENOMEM;
	l->sys = sys;
	l->mode = mode;
	l->fd = -1;
	l->path = strdup(path);
	/* If this fails, bind reports the missing directory. */
	sys_make_parents(sys, SYS_TRUSTED, path, 0755);
	lock_fd = lock_directory_of(sys, path);
	r = l->path == NULL ? -ENOMEM : remove_dead_socket(sys, &addr, why);
	if (r == 0)
		r = bind_and_listen(l, &addr, why);
	if (lock_fd >= 0)
		SYS(sys, close, lock_fd);
	if (r < 0)
		listener_close(l);
	else
		*listener = l;
	return r;
}

/* ---- mode ---- */

void listener_set_mode(struct listener *l, unsigned mode)
{
	int r;

	if (l->outlives || mode == l->mode)
		return;
	l->mode = mode;
	r = SYS(l->sys, chmod_trusted, l->path, mode);
	if (r < 0)
		log_event(LOG_LEVEL_WARNING, "socket-mode-failed",
		    LOG_STR("socket", l->path), LOG_STR("error", strerror(-r)),
		    LOG_TEXT(mode == 0666 ?
			    "it stays closed to those who are now allowed" :
			    "it stays open to those who are denied there"));
}

/* ---- a socket of the service manager ---- */

int listener_adopt(const struct sys *sys, int fd, const char *path,
    struct listener **listener)
{
	struct listener *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return -ENOMEM;
	l->sys = sys;
	l->fd = fd;
	refuse_descriptors(fd);
	l->outlives = true;
	l->path = strdup(path);
	if (l->path == NULL) {
		free(l);
		return -ENOMEM;
	}
	*listener = l;
	return 0;
}

int listener_share(const struct listener *l)
{
	int fd = fcntl(l->fd, F_DUPFD_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

void listener_leave(struct listener *l)
{
	if (!l->outlives)
		return;
	event_del(l->acceptable);
	event_del(l->pause);
}

/* ---- accepting ---- */

static void pause_accepting(struct listener *l)
{
	static const struct timeval pause = { 0, PAUSE_US };

	if (!l->short_of_fds)
		log_event(LOG_LEVEL_WARNING, "accept-failed",
		    LOG_STR("error", strerror(errno)),
		    LOG_TEXT("no new connection can be taken; it is tried "
			     "again every 100 ms"));
	l->short_of_fds = true;
	event_del(l->acceptable);
	event_add(l->pause, &pause);
}

static void listener_paused(evutil_socket_t fd, short what, void *arg)
{
	struct listener *l = arg;

	(void)fd;
	(void)what;
	event_add(l->acceptable, NULL);
}

static void listener_acceptable(evutil_socket_t fd, short what, void *arg)
{
	struct listener *l = arg;
	int client, i;

	(void)what;
	for (i = 0; i < ACCEPT_MAX; i++) {
		client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (client >= 0) {
			l->short_of_fds = false;
			l->accepted(l->arg, client);
		} else if (errno == EAGAIN) {
			return;
		} else if (errno != EINTR && errno != ECONNABORTED) {
			pause_accepting(l);
			return;
		}
	}
}

int listener_start(struct listener *listener, struct event_base *base,
    void (*accepted)(void *arg, int fd), void *arg)
{
	listener->accepted = accepted;
	listener->arg = arg;
	listener->acceptable = event_new(base, listener->fd,
	    EV_READ | EV_PERSIST, listener_acceptable, listener);
	listener->pause = evtimer_new(base, listener_paused, listener);
	if (listener->acceptable == NULL || listener->pause == NULL ||
	    event_add(listener->acceptable, NULL) < 0)
		return -ENOMEM;
	return 0;
}

void listener_close(struct listener *listener)
{
	struct sys_stat st;

	if (listener == NULL)
		return;
	if (listener->acceptable != NULL)
		event_free(listener->acceptable);
	if (listener->pause != NULL)
		event_free(listener->pause);
	if (listener->ino != 0 &&
	    SYS(listener->sys, lstatat, SYS_TRUSTED, listener->path, &st) ==
		0 &&
	    st.dev == listener->dev && st.ino == listener->ino)
		SYS(listener->sys, unlinkat, SYS_TRUSTED, listener->path);
	if (listener->fd >= 0)
		close(listener->fd);
	free(listener->path);
	free(listener);
}
