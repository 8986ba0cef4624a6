#include "client/librefd/conn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "proto/lib/clock.h"
#include "proto/limits.h"

/* Room for at least one whole packet behind the bytes read. */
#define READ_BYTES (2 * REFD_PACKET_MAX)

void refd_conn_init(struct refd_conn *conn)
{
	memset(conn, 0, sizeof(*conn));
	conn->fd = -1;
}

void refd_conn_done(struct refd_conn *conn)
{
	refd_conn_close(conn);
	pkt_buf_done(&conn->out);
	free(conn->in);
	refd_conn_init(conn);
}

bool refd_conn_is_open(const struct refd_conn *conn)
{
	return conn->fd >= 0;
}

void refd_conn_close(struct refd_conn *conn)
{
	if (conn->fd >= 0)
		close(conn->fd);
	conn->fd = -1;
	conn->is_deaf = false;
	conn->out.len = 0;
	conn->sent = 0;
	conn->out_base = 0;
	conn->in_start = conn->in_end = 0;
}

/*
 * Blocking, with a timeout on the socket: a non-blocking connect(2) on a Unix
 * socket with a full backlog fails with EAGAIN, and poll(2) can't wait for it.
 * SO_SNDTIMEO also limits connect(2) (socket(7)).
 */
static int connect_by(int fd, const struct sockaddr_un *addr, uint64_t deadline)
{
	int left = clock_left_ms(deadline);
	struct timeval tv = { 0 };

	if (left == 0)
		left = 1;
	if (left > 0) {
		tv.tv_sec = left / 1000;
		tv.tv_usec = left % 1000 * 1000;
	}
	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)) < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	return 0;
}

int refd_conn_open(struct refd_conn *conn, const char *path, uint64_t deadline)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	size_t len = strlen(path);
	int fd, err;

	refd_conn_close(conn);
	if (len >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	memcpy(addr.sun_path, path, len);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	err = connect_by(fd, &addr, deadline);
	if (err < 0) {
		close(fd);
		return err;
	}
	conn->fd = fd;
	return 0;
}

int refd_conn_queue(struct refd_conn *conn, struct pkt_buf *packets,
    uint64_t *begin)
{
	struct pkt_buf *out = &conn->out;
	const size_t len = packets->len;

	*begin = conn->out_base + out->len;
	if (out->len == 0) {
		pkt_buf_done(out);
		*out = *packets;
		memset(packets, 0, sizeof(*packets));
		return 0;
	}

	if (len > out->size - out->len) {
		size_t size = out->len + len;
		char *grown;

		if (size < 2 * out->size)
			size = 2 * out->size;
		grown = realloc(out->data, size);
		if (!grown)
			return -ENOMEM;
		out->data = grown;
		out->size = size;
	}
	memcpy(out->data + out->len, packets->data, len);
	out->len += len;
	return 0;
}

uint64_t refd_conn_written(const struct refd_conn *conn)
{
	return conn->out_base + conn->sent;
}

/* A server that has closed its end may have sent the reason before. The reason
 * can still be read, and the connection ends after it. */
static int write_some(struct refd_conn *conn)
{
	ssize_t n;

	while (conn->sent < conn->out.len && !conn->is_deaf) {
		n = send(conn->fd, conn->out.data + conn->sent,
		    conn->out.len - conn->sent, MSG_NOSIGNAL);
		if (n >= 0)
			conn->sent += (size_t)n;
		else if (errno == EPIPE || errno == ECONNRESET)
			conn->is_deaf = true;
		else if (errno != EINTR)
			return errno == EAGAIN ? 0 : -errno;
	}
	if (conn->is_deaf)
		return 0;
	conn->out_base += conn->out.len;
	conn->out.len = conn->sent = 0;
	return 0;
}

static int make_room(struct refd_conn *conn)
{
	size_t held = conn->in_end - conn->in_start;
	char *grown;

	if (conn->in_start) {
		memmove(conn->in, conn->in + conn->in_start, held);
		conn->in_start = 0;
		conn->in_end = held;
	}
	/* No packet is longer than half of the buffer, so the buffer never
	 * grows. */
	if (conn->in_size)
		return 0;
	grown = malloc(READ_BYTES);
	if (!grown)
		return -ENOMEM;
	conn->in = grown;
	conn->in_size = READ_BYTES;
	return 0;
}

/* Nothing is read into a full buffer, so the caller must take waiting packets
 * first. */
static int read_some(struct refd_conn *conn)
{
	ssize_t n;
	int err;

	err = make_room(conn);
	if (err < 0)
		return err;
	do
		n = recv(conn->fd, conn->in + conn->in_end,
		    conn->in_size - conn->in_end, 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	if (n == 0)
		return -ECONNRESET;
	conn->in_end += (size_t)n;
	return 0;
}

int refd_conn_pump(struct refd_conn *conn, uint64_t deadline)
{
	struct pollfd pfd = { .fd = conn->fd, .events = POLLIN };
	int n, err = 0;

	if (conn->sent < conn->out.len && !conn->is_deaf)
		pfd.events |= POLLOUT;
	do
		n = poll(&pfd, 1, clock_left_ms(deadline));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (n == 0)
		return -ETIMEDOUT;
	/* Reads first, because a server sends the reason before it hangs up. */
	if (pfd.revents & (POLLIN | POLLHUP | POLLERR))
		err = read_some(conn);
	if (err == 0 && (pfd.revents & POLLOUT))
		err = write_some(conn);
	return err;
}

void refd_conn_flush(struct refd_conn *conn)
{
	(void)write_some(conn);
}

int refd_conn_packet(struct refd_conn *conn, struct pkt *pkt)
{
	long taken;

	if (conn->in_start == conn->in_end)
		return 0;
	taken = pkt_parse(conn->in + conn->in_start,
	    conn->in_end - conn->in_start, pkt);
	if (taken < 0)
		return -EPROTO;
	if (taken == 0)
		return 0;
	conn->in_start += (size_t)taken;
	return 1;
}
