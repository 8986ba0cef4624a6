/*
 * The happy path: refd-group connects, and gets HELLO. The reading thread
 * handles outcomes at once, and queues ROW and ROLE for the thread that
 * follows. The thread that makes a frame sends the frame itself, because each
 * update would otherwise wait for one more wake. The writing thread sends what
 * the socket does not take, and says each second what is applied.
 *
 * Failures: after a wrong frame or a lost connection, the connection is closed.
 * If a batch has no outcome, the daemon ends, because only the log has the
 * outcome. If no batch lacks an outcome, the next connection begins anew. The
 * next connection waits until the thread that follows has done its present row,
 * because HELLO must have the last row.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/base/time.h"
#include "daemon/group/group_internal.h"

#define READ_BYTES (256 * 1024)
/* Rows that may wait for the thread that follows. */
#define INPUT_BYTES (4 * GROUP_FRAME_MAX)
#define POLL_MS     200

/* ---- output ---- */

/* Sends as much of OUT as the socket takes. A lost connection takes nothing. */
static void send_some(int fd, struct group_output *out, int flags)
{
	ssize_t n;

	while (out->sent < out->len) {
		n = send(fd, out->bytes + out->sent, out->len - out->sent,
		    MSG_NOSIGNAL | flags);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		out->sent += (size_t)n;
	}
}

int group_send(struct group *g, const struct group_frame *f)
{
	size_t len = group_frame_bytes(f);
	struct group_output *out;

	if (len == 0)
		return -EFBIG;
	if (g->fd < 0)
		return -ENOTCONN;
	out = malloc(sizeof(*out) + len);
	if (out == NULL)
		return -ENOMEM;
	*out = (struct group_output){ .len = len };
	group_frame_encode(f, out->bytes);
	if (g->output == NULL && !g->is_sending)
		send_some(g->fd, out, MSG_DONTWAIT);
	if (out->sent == len) {
		free(out);
		return 0;
	}
	*g->output_end = out;
	g->output_end = &out->next;
	pthread_cond_signal(&g->has_output);
	return 0;
}

void group_drop_output(struct group *g)
{
	struct group_output *out;

	while ((out = g->output) != NULL) {
		g->output = out->next;
		free(out);
	}
	g->output_end = &g->output;
}

/* Waits for a frame that the socket has not taken. Batches do not tell
 * refd-group which rows are applied. So this thread sends APPLIED when it is
 * due, even if there is always a frame to send. */
static void await_output(struct group *g)
{
	int r = 0;

	while (g->output == NULL && !g->has_ended && r != ETIMEDOUT)
		r = mutex_wait_until(&g->has_output, &g->mutex, &g->tell_at);
	if (!g->has_ended &&
	    time_ns(g->tell_at) <= time_now_ns(CLOCK_MONOTONIC))
		group_tell_applied(g);
}

/* The reading thread closes the descriptor, and never while a frame is being
 * sent (IS_SENDING). Otherwise the frame could go to a later descriptor with
 * this number. */
void *group_send_main(void *group)
{
	struct group *g = group;
	struct group_output *out;
	bool is_sent;

	mutex_lock(&g->mutex);
	for (;;) {
		await_output(g);
		out = g->output;
		if (out == NULL && g->has_ended)
			break;
		if (out == NULL)
			continue;
		g->output = out->next;
		if (g->output == NULL)
			g->output_end = &g->output;
		g->is_sending = true;
		mutex_unlock(&g->mutex);
		send_some(g->fd, out, 0);
		is_sent = out->sent == out->len;
		free(out);
		mutex_lock(&g->mutex);
		g->is_sending = false;
		if (!is_sent) {
			shutdown(g->fd, SHUT_RDWR);
			group_drop_output(g);
		}
		pthread_cond_broadcast(&g->changed);
	}
	mutex_unlock(&g->mutex);
	return NULL;
}

/* ---- input ---- */

void group_input_free(struct group_input *in)
{
	struct group_input *next;

	for (; in != NULL; in = next) {
		next = in->next;
		refd_arena_free(in->arena);
		free(in->bytes);
		free(in);
	}
}

void group_drop_input(struct group *g)
{
	group_input_free(g->input);
	g->input = NULL;
	g->input_end = &g->input;
	g->input_bytes = 0;
}

/* Queues IN for the thread that follows. Waits for room, so that a slow
 * follower does not fill the memory with rows. */
static void queue_input(struct group *g, struct group_input *in, size_t len)
{
	while (g->input_bytes > INPUT_BYTES && !g->is_stopping && !g->is_dead)
		mutex_wait(&g->changed, &g->mutex);
	in->len = len;
	g->input_bytes += len;
	*g->input_end = in;
	g->input_end = &in->next;
	pthread_cond_signal(&g->has_input);
}

/* A follower writes nothing of its own. The daemon says so at once by FOLLOWS,
 * because another node may wait for this frame before it leads. */
static void step_down(struct group *g, const struct group_frame *f)
{
	const struct group_frame follows = { .type = GROUP_FOLLOWS,
		.follows.epoch = f->role.epoch };

	if (f->type == GROUP_ROLE)
		g->may_lead = f->role.is_leader;
	if (f->type != GROUP_ROLE || f->role.is_leader)
		return;
	g->epoch = 0;
	group_end_lease(g);
	group_begin_known(g, 0);
	group_refuse_holds(g, "this node does not lead its group any more");
	group_tell_applied(g);
	if (group_send(g, &follows) != 0)
		shutdown(g->fd, SHUT_RDWR);
}

/* Under MUTEX. True: IN was queued. */
static bool handle(struct group *g, struct group_input *in, size_t len)
{
	const struct group_frame *f = &in->frame;

	switch (f->type) {
	case GROUP_COMMITTED:
		group_batch_committed(g, f->committed.number, f->committed.lsn);
		return false;
	case GROUP_REFUSED:
		group_batch_refused(g, f->refused.number);
		return false;
	case GROUP_HELD:
		group_held(g, f->held.number, NULL);
		return false;
	case GROUP_NOT_HELD:
		group_held(g, f->not_held.number, f->not_held.reason);
		return false;
	case GROUP_CURRENT:
		group_set_current(g, f->current.ms);
		return false;
	case GROUP_NEAR:
		group_take_near(g, f->near.lsn);
		return false;
	case GROUP_ROW:
	case GROUP_ROLE:
		step_down(g, f);
		queue_input(g, in, len);
		return true;
	default:
		/* DOUBTFUL: the outcome follows, or the daemon ends. */
		return false;
	}
}

/* Takes the frame at the front of BYTES. False: a wrong frame, or no memory. */
static bool take_frame(struct group *g, const uint8_t *bytes, size_t len)
{
	struct group_input *in = calloc(1, sizeof(*in));
	bool is_right = false, is_queued = false;

	if (in != NULL) {
		in->arena = refd_arena_new();
		in->bytes = malloc(len);
	}
	if (in != NULL && in->arena != NULL && in->bytes != NULL) {
		memcpy(in->bytes, bytes, len);
		is_right = group_frame_decode(in->bytes, len, in->arena,
			       &in->frame) == NULL;
	}
	if (is_right) {
		mutex_lock(&g->mutex);
		is_queued = handle(g, in, len);
		mutex_unlock(&g->mutex);
	}
	if (!is_queued)
		group_input_free(in);
	return is_right;
}

/* Takes all whole frames of BUF, and keeps the rest. False: a wrong frame. */
static bool take_frames(struct group *g, uint8_t *buf, size_t *len)
{
	size_t at = 0;
	long nr;

	while ((nr = group_frame_parse(buf + at, *len - at, GROUP_FROM_GROUP)) >
	    0) {
		if (!take_frame(g, buf + at, (size_t)nr))
			return false;
		at += (size_t)nr;
	}
	*len -= at;
	memmove(buf, buf + at, *len);
	return nr == 0;
}

/* Until the connection is lost. */
static void read_frames(struct group *g, int fd)
{
	size_t len = 0, size = 0, more;
	uint8_t *buf = NULL, *grown;
	ssize_t n;

	for (;;) {
		if (size - len < READ_BYTES) {
			more = len + READ_BYTES > 2 * size ? len + READ_BYTES :
							     2 * size;
			grown = realloc(buf, more);
			if (grown == NULL)
				break;
			buf = grown;
			size = more;
		}
		n = recv(fd, buf + len, size - len, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		len += (size_t)n;
		if (!take_frames(g, buf, &len))
			break;
	}
	free(buf);
}

/* ---- connections ---- */

static bool is_own_account(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
	    peer.uid == geteuid();
}

/* Waits for a connection of refd-group. This connection may never come, so the
 * loop looks now and then whether the daemon stops. -1: the daemon stops. */
static int accept_one(struct group *g)
{
	struct pollfd listening = { .fd = g->listen_fd, .events = POLLIN };
	int fd;

	while (!group_is_stopping(g)) {
		if (poll(&listening, 1, POLL_MS) <= 0)
			continue;
		fd = accept4(g->listen_fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0 && is_own_account(fd))
			return fd;
		if (fd >= 0)
			SYS(g->base.host->sys, close, fd);
	}
	return -1;
}

/* Begins the connection FD with HELLO. HELLO has the last row, so the call
 * first waits until no new row is being applied, appended or flushed. False:
 * the daemon stops. */
static bool begin(struct group *g, int fd)
{
	struct group_frame f = { .type = GROUP_HELLO };
	bool stops;

	mutex_lock(&g->mutex);
	while ((g->is_following || g->nr_appending > 0 ||
		   g->done_lsn + 1 != g->next_lsn) &&
	    !g->is_stopping && !g->is_dead)
		mutex_wait(&g->changed, &g->mutex);
	stops = g->is_stopping || g->is_dead;
	if (stops) {
		mutex_unlock(&g->mutex);
		SYS(g->base.host->sys, close, fd);
		return false;
	}
	g->fd = fd;
	f.hello.version = GROUP_FRAME_VERSION;
	journal_shared_uuid(g->journal, f.hello.group);
	strcpy(f.hello.node, g->node);
	f.hello.applied = group_applied_lsn(g);
	f.hello.last = g->done_lsn;
	group_send(g, &f);
	mutex_unlock(&g->mutex);
	return true;
}

static void end(struct group *g)
{
	mutex_lock(&g->mutex);
	if (!LIST_EMPTY(&g->batches))
		group_die(g,
		    "the connection to refd-group is lost, and a "
		    "batch has no outcome: the next start learns it");
	g->epoch = 0;
	group_end_lease(g);
	group_begin_known(g, 0);
	shutdown(g->fd, SHUT_RDWR);
	while (g->is_sending)
		mutex_wait(&g->changed, &g->mutex);
	group_drop_output(g);
	SYS(g->base.host->sys, close, g->fd);
	g->fd = -1;
	group_drop_input(g);
	group_refuse_holds(g, "the connection to refd-group is lost");
	group_tell(g, STORE_NODE_LOST, "");
	pthread_cond_broadcast(&g->changed);
	mutex_unlock(&g->mutex);
}

void *group_link_main(void *group)
{
	struct group *g = group;
	int fd;

	while ((fd = accept_one(g)) >= 0 && begin(g, fd)) {
		read_frames(g, fd);
		end(g);
	}
	return NULL;
}
