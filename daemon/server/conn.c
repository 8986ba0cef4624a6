#include "daemon/server/conn.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/base/busy_cause.h"
#include "daemon/server/peer.h"

#define READ_BYTES 65536
/* What was kept of a packet, and what is read behind it. */
#define SCRATCH_BYTES (REFD_PACKET_MAX + READ_BYTES)

int conn_host_init(struct conn_host *host)
{
	TAILQ_INIT(&host->touched_conns);
	host->decoding_bytes = host->out_bytes = 0;
	host->scratch = malloc(SCRATCH_BYTES);
	return host->scratch != NULL ? 0 : -ENOMEM;
}

void conn_host_done(struct conn_host *host)
{
	free(host->scratch);
	host->scratch = NULL;
}

static void touch(struct conn *c)
{
	if (c->is_touched)
		return;
	c->is_touched = true;
	TAILQ_INSERT_TAIL(&c->host->touched_conns, c, touched_entry);
	c->host->touched(c->host->arg);
}

/* Counts the memory that the input of C takes. An even share of each
 * connection is not counted, so that small requests get through always. */
static void count_input(struct conn *c)
{
	size_t even = DECODING_MAX / c->host->connections_max;
	size_t bytes = c->in_len + refd_request_decoder_bytes(c->decoder);
	size_t shared = bytes > even ? bytes - even : 0;

	c->host->decoding_bytes += shared - c->shared_bytes;
	if (c->user != NULL)
		c->user->decoding_bytes += shared - c->shared_bytes;
	c->shared_bytes = shared;
}

static void request_over(struct conn *c)
{
	refd_request_decoder_free(c->decoder);
	c->decoder = NULL;
}

static void forget_input(struct conn *c)
{
	request_over(c);
	free(c->in);
	c->in = NULL;
	c->in_len = 0;
	c->held = false;
	count_input(c);
}

static void move(struct conn *c, enum conn_state state)
{
	static const bool allowed[3][3] = {
		[CONN_OPEN] = { [CONN_FINISHING] = true, [CONN_GONE] = true },
		[CONN_FINISHING] = { [CONN_GONE] = true },
		[CONN_GONE] = { [CONN_GONE] = true },
	};

	assert(allowed[c->state][state]);
	c->state = state;
	forget_input(c);
	touch(c);
	if (state == CONN_FINISHING)
		c->host->said_all(c->host->arg, c);
}

/* ---- output ---- */

size_t conn_unsent(const struct conn *conn)
{
	return conn->out.len - conn->sent;
}

/* That are not sent, and those behind them. */
static size_t waiting_bytes(const struct conn *c)
{
	return conn_unsent(c) + c->behind.len;
}

static void count_output(struct conn *c, size_t bytes)
{
	c->host->out_bytes += bytes - c->counted;
	if (c->user != NULL)
		c->user->out_bytes += bytes - c->counted;
	c->counted = bytes;
}

/* Do so many answers wait that this client, which takes none, or whose user has
 * half of them, gets no more? It is hung up on, as where there is no memory. */
static bool has_too_much(const struct conn *c)
{
	size_t nr = c->host->out_bytes;

	if (nr <= CONN_OUT_MAX - CONN_OUT_MAX / 8)
		return false;
	if (c->user != NULL && c->user->out_bytes > CONN_OUT_MAX / 2)
		return true;
	return nr > CONN_OUT_MAX && waiting_bytes(c) >= CONN_OUT_HIGH;
}

/* Room is made at the front, so that what was sent is not kept. */
static void begin_output(struct conn *c)
{
	if (conn_unsent(c) == 0)
		c->taken_ns = SYS(c->host->sys, now_mono);
	if (c->sent > c->out.len / 2) {
		memmove(c->out.data, c->out.data + c->sent, conn_unsent(c));
		c->out.len -= c->sent;
		c->sent = 0;
	}
}

/* An answer that there is no memory for can't be given: the client is hung
 * up on, and asks again by its transaction's id. */
static void end_output(struct conn *c)
{
	if (pkt_buf_failed(&c->out) || pkt_buf_failed(&c->behind))
		move(c, CONN_GONE);
	else
		touch(c);
	count_output(c, waiting_bytes(c));
}

static void queue(struct conn *c, const struct refd_answer *ans)
{
	if (c->state == CONN_GONE)
		return;
	if (has_too_much(c)) {
		move(c, CONN_GONE);
		return;
	}
	begin_output(c);
	/* One that is told at once may come in parts too. */
	if (c->is_in_answer &&
	    (!ans->is_continued || ans->request_id != c->in_answer_to)) {
		refd_answer_encode(ans, &c->behind);
	} else {
		refd_answer_encode(ans, &c->out);
		c->is_in_answer = ans->goes_on;
		c->in_answer_to = ans->request_id;
		if (!ans->goes_on)
			pkt_buf_move(&c->out, &c->behind);
	}
	end_output(c);
}

void conn_answer(struct conn *conn, const struct refd_answer *ans)
{
	assert(conn->in_flight > 0);
	if (!ans->goes_on)
		conn->in_flight--;
	queue(conn, ans);
}

/* Refuses the connection itself, and reads no more. */
static void refuse(struct conn *conn, enum refd_status status, const char *why)
{
	struct refd_answer ans = { .kind = REFD_ANSWER_REFUSED,
		.status = status,
		.text = why };

	queue(conn, &ans);
	if (conn->state == CONN_OPEN)
		move(conn, CONN_FINISHING);
}

static void send_output(struct conn *c)
{
	ssize_t n;

	while (c->state != CONN_GONE && conn_unsent(c) > 0) {
		n = send(c->fd, c->out.data + c->sent, conn_unsent(c),
		    MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n >= 0) {
			c->sent += (size_t)n;
			c->host->bytes_out += (size_t)n;
			c->taken_ns = SYS(c->host->sys, now_mono);
		} else if (errno == EAGAIN) {
			if (event_add(&c->writable, NULL) < 0)
				move(c, CONN_GONE);
			count_output(c, waiting_bytes(c));
			return;
		} else if (errno != EINTR) {
			move(c, CONN_GONE);
		}
	}
	/* An idle connection holds no buffer. */
	pkt_buf_done(&c->out);
	c->sent = 0;
	count_output(c, waiting_bytes(c));
}

/* ---- input ---- */

static bool may_decode(struct conn *c)
{
	size_t waits = waiting_bytes(c);

	if (waits >= CONN_OUT_HIGH)
		c->choked = true;
	else if (waits <= CONN_OUT_LOW)
		c->choked = false;
	return c->state == CONN_OPEN && !c->choked &&
	    c->in_flight < REFD_REQUESTS_MAX;
}

static void take_packet(struct conn *c, const struct pkt *pkt)
{
	struct refd_answer refused = { .kind = REFD_ANSWER_REFUSED };
	struct refd_request req;

	if (c->decoder == NULL)
		c->decoder = refd_request_decoder_new();
	if (c->decoder == NULL) {
		move(c, CONN_GONE);
		return;
	}
	switch (refd_request_decode(c->decoder, pkt, &req, &refused.status,
	    &refused.text)) {
	case REFD_DECODE_MORE:
		break;
	case REFD_DECODE_DONE:
		request_over(c);
		c->in_flight++;
		c->nr_requests++;
		c->host->request(c->host->arg, c, &req);
		break;
	case REFD_DECODE_REFUSED:
		request_over(c);
		c->nr_requests++;
		if (refused.status == REFD_BUSY)
			busy_cause_count(BUSY_MEMORY);
		refused.request_id = req.request_id;
		refused.txid = req.txid;
		queue(c, &refused);
		break;
	case REFD_DECODE_FATAL:
		refuse(c, REFD_BADREQUEST, refused.text);
		break;
	}
}

/* Returns how many of the LEN bytes at DATA are done with. */
static size_t decode(struct conn *c, const char *data, size_t len)
{
	uint64_t enough = c->nr_requests + CONN_TURN_REQUESTS;
	struct pkt pkt;
	size_t used = 0;
	long n;

	c->held = false;
	while (c->state == CONN_OPEN && used < len) {
		if (!may_decode(c)) {
			c->held = true;
			break;
		}
		if (c->nr_requests == enough) {
			c->held = true;
			touch(c);
			break;
		}
		n = pkt_parse(data + used, len - used, &pkt);
		if (n == 0)
			break;
		if (n < 0) {
			refuse(c, REFD_BADREQUEST, "not a pkt-line");
			break;
		}
		used += (size_t)n;
		take_packet(c, &pkt);
	}
	return used;
}

/* Does the input of all connections take too much memory, and that of C more
 * than before? A user who has half leaves the last eighth to other users. */
static bool lacks_room(struct conn *c)
{
	size_t before = c->shared_bytes, max = DECODING_MAX;

	count_input(c);
	if (c->user != NULL && c->user->decoding_bytes > DECODING_MAX / 2)
		max -= DECODING_MAX / 8;
	return c->shared_bytes > before && c->host->decoding_bytes > max;
}

/* The input is the bytes that were kept, and MORE bytes behind these in the
 * scratch. Room is looked for only after decoding, when the size is known: the
 * input of one read passes the limit at most. */
static void take_input(struct conn *c, size_t more)
{
	char *scratch = c->host->scratch, *kept = NULL;
	size_t len = c->in_len + more, used;

	if (c->in_len > 0)
		memcpy(scratch, c->in, c->in_len);
	used = decode(c, scratch, len);
	if (c->state != CONN_OPEN)
		return;
	if (used < len) {
		kept = malloc(len - used);
		if (kept == NULL) {
			move(c, CONN_GONE);
			return;
		}
		memcpy(kept, scratch + used, len - used);
	}
	free(c->in);
	c->in = kept;
	c->in_len = len - used;
	if (lacks_room(c))
		refuse(c, BUSY(HALF_SENT));
}

/* Did the client close its end altogether, and not only its half? Then nobody
 * reads an answer, and a watch need not be waited for. */
static bool is_closed(const struct conn *c)
{
	struct pollfd end = { .fd = c->fd };

	return poll(&end, 1, 0) > 0 && (end.revents & POLLHUP) != 0;
}

static void conn_readable(evutil_socket_t fd, short what, void *arg)
{
	struct conn *c = arg;
	ssize_t n;

	(void)what;
	/* The list of touched ones may have stopped it in this very turn. */
	if (!may_decode(c) || c->held)
		return;
	assert(c->in_len < REFD_PACKET_MAX);
	n = recv(fd, c->host->scratch + c->in_len, READ_BYTES, MSG_DONTWAIT);
	if (n > 0) {
		c->heard_ns = SYS(c->host->sys, now_mono);
		c->host->bytes_in += (size_t)n;
		take_input(c, (size_t)n);
		touch(c);
	} else if (n == 0) {
		move(c, is_closed(c) ? CONN_GONE : CONN_FINISHING);
	} else if (errno != EAGAIN && errno != EINTR) {
		move(c, CONN_GONE);
	}
}

static void conn_writable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	touch(arg);
}

static void adjust_reading(struct conn *c)
{
	bool wanted = may_decode(c) && !c->held;

	if (wanted == c->reads)
		return;
	if ((wanted ? event_add(&c->readable, NULL) : event_del(&c->readable)) <
	    0)
		move(c, CONN_GONE);
	else
		c->reads = wanted;
}

/* ---- life ---- */

struct conn *conn_new(struct conn_host *host, int fd, struct txn_peer *peer,
    const struct refd_hello *hello)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	refd_hello_encode(hello, &c->out);
	if (pkt_buf_failed(&c->out) ||
	    event_assign(&c->readable, host->base, fd, EV_READ | EV_PERSIST,
		conn_readable, c) < 0 ||
	    event_assign(&c->writable, host->base, fd, EV_WRITE, conn_writable,
		c) < 0) {
		pkt_buf_done(&c->out);
		free(c);
		return NULL;
	}
	c->host = host;
	c->fd = fd;
	c->peer = *peer;
	memset(peer, 0, sizeof(*peer));
	c->taken_ns = SYS(host->sys, now_mono);
	touch(c);
	return c;
}

void conn_free(struct conn *conn)
{
	if (conn == NULL)
		return;
	if (conn->is_touched)
		TAILQ_REMOVE(&conn->host->touched_conns, conn, touched_entry);
	event_del(&conn->readable);
	event_del(&conn->writable);
	forget_input(conn);
	count_output(conn, 0);
	pkt_buf_done(&conn->out);
	pkt_buf_done(&conn->behind);
	peer_done(&conn->peer);
	close(conn->fd);
	free(conn);
}

bool conn_service(struct conn *conn)
{
	if (conn->is_touched) {
		TAILQ_REMOVE(&conn->host->touched_conns, conn, touched_entry);
		conn->is_touched = false;
	}
	send_output(conn);
	if (conn->held && may_decode(conn))
		take_input(conn, 0);
	adjust_reading(conn);
	if (conn->state == CONN_FINISHING)
		return conn->in_flight > 0 || conn_unsent(conn) > 0;
	return conn->state == CONN_OPEN;
}

void conn_check(struct conn *conn, int64_t now_ns)
{
	int64_t moved_ns = conn->taken_ns;

	if (conn->state == CONN_FINISHING && is_closed(conn)) {
		move(conn, CONN_GONE);
		return;
	}
	if (conn_unsent(conn) > 0) {
		if (now_ns - moved_ns > CONN_STALL_NS)
			move(conn, CONN_GONE);
		return;
	}
	/* While it was full of answers it was not listened to. */
	if (moved_ns < conn->heard_ns)
		moved_ns = conn->heard_ns;
	if (conn->state == CONN_OPEN && conn->in_flight == 0 &&
	    (conn->decoder != NULL || conn->in_len > 0) &&
	    now_ns - moved_ns > CONN_STALL_NS)
		refuse(conn, REFD_DEADLINE,
		    "half a request, and then nothing for a minute");
}
