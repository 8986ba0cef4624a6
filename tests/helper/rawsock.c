/*
 * A client without checks, for scenarios. Sends standard input to the daemon's
 * socket verbatim, and prints each packet of the answer as a line (NUL as "|"),
 * "." for a flush, and at the end "(closed)" if the daemon hung up, or
 * "(open)".
 *
 *	rawsock SOCKET [--answers N] [--wait MS] [--half-close] [--unread]
 *
 * Exits when the daemon hangs up, after N answers (0: after the greeting), or
 * if nothing came for MS milliseconds (120000) after the end of input.
 * --half-close shuts down the sending side at the end of input; --unread never
 * reads, and stays until it is killed.
 */
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "proto/limits.h"
#include "proto/pktline.h"

struct rawsock {
	int fd, wait_ms;
	long answers_left; /* hello counts */
	bool half_close, unread;

	bool input_ended;
	char out[65536];
	size_t out_len, out_sent;
	char in[2 * REFD_PACKET_MAX];
	size_t in_len;
};

static int dial(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (strlen(path) >= sizeof(addr.sun_path))
		errx(1, "%s: too long", path);
	strcpy(addr.sun_path, path);
	if (fd < 0 ||
	    connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0)
		err(1, "%s", path);
	return fd;
}

static void end(const struct rawsock *rs, const char *how)
{
	if (rs->in_len > 0)
		printf("(%zu bytes of a packet)\n", rs->in_len);
	printf("%s\n", how);
	exit(0);
}

static void print_packet(struct rawsock *rs, const struct pkt *pkt)
{
	size_t i;

	if (pkt->kind == PKT_DATA) {
		for (i = 0; i < pkt->len; i++)
			putchar(pkt->data[i] != '\0' ? pkt->data[i] : '|');
		putchar('\n');
		return;
	}
	printf(".\n");
	fflush(stdout);
	if (--rs->answers_left == 0)
		end(rs, "(open)");
}

static void read_packets(struct rawsock *rs)
{
	ssize_t n =
	    recv(rs->fd, rs->in + rs->in_len, sizeof(rs->in) - rs->in_len, 0);
	struct pkt pkt;
	long used;

	if (n == 0 || (n < 0 && errno == ECONNRESET))
		end(rs, "(closed)");
	if (n < 0)
		err(1, "recv");
	rs->in_len += (size_t)n;
	while ((used = pkt_parse(rs->in, rs->in_len, &pkt)) > 0) {
		rs->in_len -= (size_t)used;
		print_packet(rs, &pkt);
		memmove(rs->in, rs->in + used, rs->in_len);
	}
	if (used < 0)
		errx(1, "the daemon does not speak pkt-line");
}

static void read_input(struct rawsock *rs)
{
	ssize_t n = read(STDIN_FILENO, rs->out, sizeof(rs->out));

	if (n < 0)
		err(1, "standard input");
	rs->out_len = (size_t)n;
	rs->out_sent = 0;
	if (n > 0)
		return;
	rs->input_ended = true;
	if (rs->half_close)
		shutdown(rs->fd, SHUT_WR);
}

/* A daemon that has hung up may have sent the reason before. */
static void send_output(struct rawsock *rs)
{
	ssize_t n = send(rs->fd, rs->out + rs->out_sent,
	    rs->out_len - rs->out_sent, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n > 0)
		rs->out_sent += (size_t)n;
	else if (errno == EPIPE || errno == ECONNRESET)
		rs->input_ended = true, rs->out_sent = rs->out_len;
	else if (errno != EAGAIN)
		err(1, "send");
}

static void talk(struct rawsock *rs)
{
	bool unsent = rs->out_sent < rs->out_len;
	struct pollfd fds[2] = {
		{ .fd = rs->fd,
		    .events = (short)((rs->unread ? 0 : POLLIN) |
			(unsent ? POLLOUT : 0)) },
		{ .fd = unsent || rs->input_ended ? -1 : STDIN_FILENO,
		    .events = POLLIN },
	};
	bool patient = rs->unread || !rs->input_ended;
	int n = poll(fds, 2, patient ? -1 : rs->wait_ms);

	if (n < 0)
		err(1, "poll");
	if (n == 0)
		end(rs, "(open)");
	if (fds[1].revents != 0)
		read_input(rs);
	if (unsent && (fds[0].revents & (POLLOUT | POLLHUP | POLLERR)) != 0)
		send_output(rs);
	if (rs->unread && (fds[0].revents & (POLLHUP | POLLERR)) != 0)
		end(rs, "(closed)");
	if ((fds[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0 && !rs->unread)
		read_packets(rs);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "answers", required_argument, NULL, 'a' },
		{ "wait", required_argument, NULL, 'w' },
		{ "half-close", no_argument, NULL, 'h' },
		{ "unread", no_argument, NULL, 'u' },
		{ NULL, 0, NULL, 0 },
	};
	static struct rawsock rs = { .wait_ms = 120000 };
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'a')
			rs.answers_left = 1 + strtol(optarg, NULL, 10);
		else if (option == 'w')
			rs.wait_ms = (int)strtol(optarg, NULL, 10);
		else if (option == 'h')
			rs.half_close = true;
		else if (option == 'u')
			rs.unread = true;
		else
			errx(129, "see the head of rawsock.c");
	}
	if (optind != argc - 1)
		errx(129, "see the head of rawsock.c");
	rs.fd = dial(argv[optind]);
	for (;;)
		talk(&rs);
}
