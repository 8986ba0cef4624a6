#include "client/group/daemon_link.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define READ_BYTES 65536

void daemon_link_open(struct daemon_link *link, const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };

	memset(link, 0, sizeof(*link));
	if (strlen(path) >= sizeof(to.sun_path))
		die("the path of the socket is too long: '%s'", path);
	strcpy(to.sun_path, path);
	link->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (link->fd < 0 ||
	    connect(link->fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		die_with(EXIT_AWAY,
		    "cannot connect to the daemon at '%s': %s; is a group "
		    "configured, and does the daemon run?",
		    path, strerror(errno));
}

void daemon_link_close(struct daemon_link *link)
{
	close(link->fd);
	text_done(&link->in);
}

/* ---- reading ---- */

static struct daemon_frame *decode(const uint8_t *data, size_t len)
{
	struct daemon_frame *frame = xcalloc(1, sizeof(*frame));
	const char *why;

	frame->arena = refd_arena_new();
	if (!frame->arena)
		die("out of memory");
	frame->bytes = xrealloc(NULL, len);
	frame->len = len;
	memcpy(frame->bytes, data, len);
	why =
	    group_frame_decode(frame->bytes, len, frame->arena, &frame->frame);
	if (why)
		die("the daemon has sent a wrong frame: %s", why);
	return frame;
}

void daemon_frame_free(struct daemon_frame *frame)
{
	if (!frame)
		return;
	refd_arena_free(frame->arena);
	free(frame->bytes);
	free(frame);
}

/* The first whole frame of the bytes that are there, or NULL. */
static struct daemon_frame *take(struct daemon_link *link)
{
	const uint8_t *data = (const uint8_t *)link->in.data;
	long len = group_frame_parse(data, link->in.len, GROUP_FROM_DAEMON);
	struct daemon_frame *frame;

	if (len < 0)
		die("the daemon has sent a wrong frame");
	if (len == 0)
		return NULL;
	frame = decode(data, (size_t)len);
	link->in.len -= (size_t)len;
	memmove(link->in.data, link->in.data + len, link->in.len);
	return frame;
}

static void fill(struct daemon_link *link)
{
	char buf[READ_BYTES];
	ssize_t n;

	do
		n = read(link->fd, buf, sizeof(buf));
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		die_with(EXIT_AWAY, "the daemon has closed the socket");
	text_add(&link->in, buf, (size_t)n);
}

struct daemon_frame *daemon_link_next(struct daemon_link *link, int wait_ms)
{
	struct pollfd fd = { .fd = link->fd, .events = POLLIN };
	struct daemon_frame *frame = take(link);

	while (!frame && poll(&fd, 1, wait_ms) > 0) {
		fill(link);
		frame = take(link);
	}
	return frame;
}

/* ---- writing ---- */

/* Waits until the daemon reads. The daemon may wait for this program, too, so
 * its bytes are read meanwhile. */
static void wait_to_write(struct daemon_link *link)
{
	struct pollfd fd = { .fd = link->fd, .events = POLLIN | POLLOUT };

	if (poll(&fd, 1, -1) > 0 && (fd.revents & POLLIN))
		fill(link);
}

static void write_all(struct daemon_link *link, const uint8_t *bytes,
    size_t len)
{
	size_t done = 0;
	ssize_t n;

	while (done < len) {
		n = send(link->fd, bytes + done, len - done,
		    MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n >= 0)
			done += (size_t)n;
		else if (errno == EAGAIN)
			wait_to_write(link);
		else if (errno != EINTR)
			die_with(EXIT_AWAY, "the daemon has closed the socket");
	}
}

void daemon_link_send(struct daemon_link *link, const struct group_frame *f)
{
	size_t len = group_frame_bytes(f);
	uint8_t *bytes;

	if (len == 0)
		die("a frame of type %d is out of bounds", (int)f->type);
	bytes = xrealloc(NULL, len);
	group_frame_encode(f, bytes);
	write_all(link, bytes, len);
	free(bytes);
}
