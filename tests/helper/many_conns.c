/*
 * Many connections at once, for scenarios.
 *
 *	many_conns SOCKET N
 *
 * Opens N connections, reads the greetings, sends a ping on every connection,
 * and prints "N connected", "N greeted", "N answered" after these steps. A
 * closed connection is not counted further. All connections then stay open
 * until the end of standard input. There is no time limit.
 */
#include <err.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "proto/pktline.h"

static const char ping[] = "000aping 10000";

static void raise_limit(rlim_t wanted)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		err(1, "getrlimit");
	if (limit.rlim_max < wanted)
		errx(1, "only %llu descriptors may be had",
		    (unsigned long long)limit.rlim_max);
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		err(1, "setrlimit");
}

/* Reads up to and including a flush. Returns false if the connection is closed
 * or refused. */
static bool read_message(int fd)
{
	char buf[4096];
	size_t len = 0;
	struct pkt pkt;
	ssize_t n;
	long used;

	for (;;) {
		n = recv(fd, buf + len, sizeof(buf) - len, 0);
		if (n <= 0)
			return false;
		len += (size_t)n;
		while ((used = pkt_parse(buf, len, &pkt)) > 0) {
			len -= (size_t)used;
			if (pkt.kind == PKT_FLUSH)
				return len == 0;
			memmove(buf, buf + used, len);
		}
	}
}

static void say(size_t count, const char *what)
{
	printf("%zu %s\n", count, what);
	fflush(stdout);
}

/* Closes failed connections and sets their descriptors to -1. */
static void greet(int *fds, size_t nr)
{
	size_t i, greeted = 0;

	for (i = 0; i < nr; i++) {
		if (read_message(fds[i])) {
			greeted++;
			continue;
		}
		close(fds[i]);
		fds[i] = -1;
	}
	say(greeted, "greeted");
}

static void ask(const int *fds, size_t nr)
{
	size_t i, answered = 0;

	for (i = 0; i < nr; i++) {
		if (fds[i] >= 0)
			send(fds[i], ping, sizeof(ping) - 1, MSG_NOSIGNAL);
	}
	for (i = 0; i < nr; i++)
		answered += fds[i] >= 0 && read_message(fds[i]);
	say(answered, "answered");
}

int main(int argc, char **argv)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	size_t nr, i;
	int *fds;

	if (argc != 3 || strlen(argv[1]) >= sizeof(addr.sun_path))
		errx(129, "usage: many_conns SOCKET N");
	strcpy(addr.sun_path, argv[1]);
	nr = strtoul(argv[2], NULL, 10);
	raise_limit(nr + 16);
	fds = calloc(nr + 1, sizeof(*fds));
	if (fds == NULL)
		err(1, "calloc");
	for (i = 0; i < nr; i++) {
		fds[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fds[i] < 0 ||
		    connect(fds[i], (const struct sockaddr *)&addr,
			sizeof(addr)) < 0)
			err(1, "connection %zu", i + 1);
	}
	say(nr, "connected");
	greet(fds, nr);
	ask(fds, nr);
	while (getchar() != EOF)
		;
	free(fds);
	return 0;
}
