/*
 * Foreign code inside the daemon, loaded by LD_PRELOAD. When the daemon first
 * asks for its resource usage (for refd stats), the code tries to open all
 * paths of REFD_BREACH_PATHS (separated by colons) for reading and then for
 * writing, to make a process, to run a program, to make a socket, and to reach
 * the Unix socket REFD_BREACH_SOCKET by sockets from before. The code writes
 * the results into the file REFD_BREACH_LOG, opened at the start: "read PATH
 * 13", an errno, 0 for a success.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static int log_fd = -1, stream_fd, datagram_fd;

__attribute__((constructor)) static void open_log(void)
{
	const char *path = getenv("REFD_BREACH_LOG");

	/* The command that becomes the daemon loads this library, too. */
	if (path)
		log_fd =
		    open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	stream_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	datagram_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

static void try_open(const char *path, int how, const char *word)
{
	int fd = open(path, how | O_CLOEXEC);

	dprintf(log_fd, "%s %s %d\n", word, path, fd < 0 ? errno : 0);
	if (fd >= 0)
		close(fd);
}

static void try_fork(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	dprintf(log_fd, "fork %d\n", pid < 0 ? errno : 0);
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

/* A success would replace the daemon. */
static void try_exec(void)
{
	char *argv[] = { "true", NULL };

	execv("/bin/true", argv);
	dprintf(log_fd, "exec %d\n", errno);
}

static void try_socket(int domain, const char *word)
{
	int fd = socket(domain, SOCK_STREAM | SOCK_CLOEXEC, 0);

	dprintf(log_fd, "%s %d\n", word, fd < 0 ? errno : 0);
	if (fd >= 0)
		close(fd);
}

static void try_to_reach(const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	struct iovec data = { "x", 1 };
	struct msghdr m = { .msg_name = &to,
		.msg_namelen = sizeof(to),
		.msg_iov = &data,
		.msg_iovlen = 1 };
	long r;

	strncpy(to.sun_path, path, sizeof(to.sun_path) - 1);
	r = connect(stream_fd, (struct sockaddr *)&to, sizeof(to));
	dprintf(log_fd, "connect %d\n", r < 0 ? errno : 0);
	r = sendto(datagram_fd, "x", 1, 0, (struct sockaddr *)&to, sizeof(to));
	dprintf(log_fd, "sendto %d\n", r < 0 ? errno : 0);
	r = sendmsg(datagram_fd, &m, 0);
	dprintf(log_fd, "sendmsg %d\n", r < 0 ? errno : 0);
}

int getrusage(__rusage_who_t who, struct rusage *usage)
{
	int (*next)(__rusage_who_t, struct rusage *) = (int (*)(__rusage_who_t,
	    struct rusage *))dlsym(RTLD_NEXT, "getrusage");
	char *paths, *path, *rest;

	if (log_fd >= 0 && getenv("REFD_BREACH_PATHS")) {
		paths = strdup(getenv("REFD_BREACH_PATHS"));
		for (path = strtok_r(paths, ":", &rest); path;
		    path = strtok_r(NULL, ":", &rest)) {
			try_open(path, O_RDONLY, "read");
			try_open(path, O_WRONLY, "write");
		}
		free(paths);
		try_fork();
		try_exec();
		try_socket(AF_INET, "socket");
		try_socket(AF_UNIX, "unix");
		try_to_reach(getenv("REFD_BREACH_SOCKET"));
		close(log_fd);
		log_fd = -1;
	}
	return next(who, usage);
}
