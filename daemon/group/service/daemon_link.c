#include "daemon/group/service/daemon_link.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "proto/lib/clock.h"

#define READ_BYTES 65536
/* Bytes that are read ahead, except for the rest of a frame. */
#define KEPT_MOST  (2 * GROUP_FRAME_MAX)
#define SILENCE_MS 3000

void daemon_link_open(struct daemon_link *link, const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };

	memset(link, 0, sizeof(*link));
	if (strlen(path) >= sizeof(to.sun_path))
		die("the path of the socket is too long: '%s'", path);
	strcpy(to.sun_path, path);
	pthread_mutex_init(&link->lock, NULL);
	pthread_mutex_init(&link->sending, NULL);
	link->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (link->fd < 0 ||
	    connect(link->fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		cli_die(EXIT_AWAY,
		    "cannot connect to the daemon at '%s': %s; is a group "
		    "configured, and does the daemon run?",
		    path, strerror(errno));
	atomic_store(&link->heard_ms, clock_now_ms());
}

void daemon_link_close(struct daemon_link *link)
{
	close(link->fd);
	text_done(&link->in);
	pthread_mutex_destroy(&link->lock);
	pthread_mutex_destroy(&link->sending);
}

/* The thread of lease_keeper.h ends the lease, and then the program. */
static void __attribute__((noreturn)) await_end(void)
{
	for (;;)
		pause();
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

/* The length of the whole frame at the byte AT, or 0. */
static size_t look(const struct daemon_link *link, size_t at)
{
	long len = 0;

	if (link->in.len > at)
		len = group_frame_parse((const uint8_t *)link->in.data + at,
		    link->in.len - at, GROUP_FROM_DAEMON);
	if (len < 0)
		die("the daemon has sent a wrong frame");
	return (size_t)len;
}

/* The first whole frame of the bytes that are there, or NULL. */
static struct daemon_frame *take(struct daemon_link *link)
{
	struct daemon_frame *frame = NULL;
	size_t len;

	pthread_mutex_lock(&link->lock);
	len = look(link, link->at);
	if (len > 0)
		frame = decode((const uint8_t *)link->in.data + link->at, len);
	link->at += len;
	pthread_mutex_unlock(&link->lock);
	return frame;
}

/* Removes the frames that were taken, once the taken bytes are as many as the
 * rest, so that each byte is moved about once. */
static void tidy(struct daemon_link *link)
{
	if (link->at < link->in.len - link->at)
		return;
	link->in.len -= link->at;
	memmove(link->in.data, link->in.data + link->at, link->in.len);
	link->at = 0;
}

/* Another thread may have read the bytes for which the caller has waited, so
 * recv() does not wait. */
static void fill(struct daemon_link *link)
{
	char buf[READ_BYTES];
	ssize_t n;

	pthread_mutex_lock(&link->lock);
	if (link->at > 0)
		tidy(link);
	do
		n = recv(link->fd, buf, sizeof(buf), MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n == 0 || (n < 0 && errno != EAGAIN))
		await_end();
	if (n > 0) {
		text_add(&link->in, buf, (size_t)n);
		atomic_store(&link->heard_ms, clock_now_ms());
	}
	pthread_mutex_unlock(&link->lock);
}

bool daemon_link_is_silent(struct daemon_link *link)
{
	uint64_t heard_ms = atomic_load(&link->heard_ms), now = clock_now_ms();
	int unread = 0;

	if (ioctl(link->fd, FIONREAD, &unread) == 0 && unread > 0)
		return false;
	return now > heard_ms + SILENCE_MS;
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

/* Waits for EVENTS, and reads what the daemon sends meanwhile, up to
 * KEPT_MOST. */
static void wait_for(struct daemon_link *link, short events, int wait_ms)
{
	struct pollfd fd = { .fd = link->fd, .events = events };

	pthread_mutex_lock(&link->lock);
	if (link->in.len - link->at < KEPT_MOST)
		fd.events |= POLLIN;
	pthread_mutex_unlock(&link->lock);
	if (poll(&fd, 1, wait_ms) > 0 && (fd.revents & POLLIN))
		fill(link);
}

static bool has_stop(struct daemon_link *link)
{
	bool has = false;
	size_t at, len;

	pthread_mutex_lock(&link->lock);
	for (at = link->at; !has && (len = look(link, at)) > 0; at += len)
		has = link->in.data[at + GROUP_FRAME_HEAD - 1] == GROUP_STOP;
	pthread_mutex_unlock(&link->lock);
	return has;
}

bool daemon_link_await_stop(struct daemon_link *link, int wait_ms)
{
	uint64_t until = clock_deadline_ms(wait_ms), now;
	bool stops;

	while (!(stops = has_stop(link)) && (now = clock_now_ms()) < until)
		wait_for(link, 0, (int)(until - now));
	return stops;
}

/* ---- writing ---- */

/* Waits until the daemon reads. The daemon may wait for this program, too, so
 * some of its bytes are read meanwhile: otherwise both would wait for ever. */
static void wait_to_write(struct daemon_link *link)
{
	wait_for(link, POLLOUT, -1);
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
			await_end();
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
	pthread_mutex_lock(&link->sending);
	write_all(link, bytes, len);
	pthread_mutex_unlock(&link->sending);
	free(bytes);
}
