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
/* Room for an incomplete packet and for the bytes of the next read. */
#define SCRATCH_BYTES (REFD_PACKET_MAX + READ_BYTES)
/* After this time the loop reads other input before it serves more. */
#define SERVE_NS 1000000LL

int conn_host_init(struct conn_host *host)
{
	TAILQ_INIT(&host->touched_conns);
	host->decoding_bytes = host->out_bytes = 0;
	host->turns = 0;
	host->scratch = malloc(SCRATCH_BYTES);
	return host->scratch != NULL ? 0 : -ENOMEM;
}

void conn_host_done(struct conn_host *host)
{
	free(host->scratch);
	host->scratch = NULL;
}

static void touch_conn(struct conn *c)
{
	if (c->is_touched)
		return;
	c->is_touched = true;
	TAILQ_INSERT_TAIL(&c->host->touched_conns, c, touched_entry);
	c->host->touched(c->host->loop);
}

/* Counts the memory of C's input. The bytes up to an even share of DECODING_MAX
 * do not count, so small requests always get through. */
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

static void free_decoder(struct conn *c)
{
	refd_request_decoder_free(c->decoder);
	c->decoder = NULL;
}

static void forget_input(struct conn *c)
{
	free_decoder(c);
	free(c->in);
	c->in = NULL;
	c->in_len = 0;
	c->held = false;
	count_input(c);
}

static void conn_move(struct conn *c, enum conn_state state)
{
	static const bool allowed[3][3] = {
		[CONN_OPEN] = { [CONN_FINISHING] = true, [CONN_GONE] = true },
		[CONN_FINISHING] = { [CONN_GONE] = true },
		[CONN_GONE] = { [CONN_GONE] = true },
	};

	assert(allowed[c->state][state]);
	c->state = state;
	forget_input(c);
	touch_conn(c);
	if (state == CONN_FINISHING)
		c->host->said_all(c->host->arg, c);
}

/* ---- output ---- */

size_t conn_unsent(const struct conn *conn)
{
	return conn->out.len - conn->sent;
}

/* All bytes that wait to be sent. */
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

/* Do all waiting answers exceed the limit, and is C a cause: because it takes
 * no answers, or because its user has half of the bytes? */
static bool has_too_much(const struct conn *c)
{
	size_t nr = c->host->out_bytes;

	if (nr <= CONN_OUT_MAX - CONN_OUT_MAX / 8)
		return false;
	if (c->user != NULL && c->user->out_bytes > CONN_OUT_MAX / 2)
		return true;
	return nr > CONN_OUT_MAX && waiting_bytes(c) >= CONN_OUT_HIGH;
}

/* Moves unsent bytes to the front, so that sent bytes take no memory. */
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

/* Without memory for an answer the connection is given up, because the client
 * then asks again with the id of its transaction. */
static void end_output(struct conn *c)
{
	if (pkt_buf_failed(&c->out) || pkt_buf_failed(&c->behind))
		conn_move(c, CONN_GONE);
	else
		touch_conn(c);
	count_output(c, waiting_bytes(c));
}

static void queue_answer(struct conn *c, const struct refd_answer *ans)
{
	if (c->state == CONN_GONE)
		return;
	if (has_too_much(c)) {
		conn_move(c, CONN_GONE);
		return;
	}
	begin_output(c);
	/* The first answer has parts still to come, so this answer waits,
	 * with all its own parts. */
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

void conn_answer(void *opaque, const struct refd_answer *ans)
{
	struct conn *conn = opaque;

	assert(conn->in_flight > 0);
	if (!ans->goes_on)
		conn->in_flight--;
	queue_answer(conn, ans);
}

void conn_answer_pairs(struct key_values *kv, struct conn *conn,
    uint32_t request_id)
{
	struct refd_answer ans = { .kind = REFD_ANSWER_PAIRS,
		.request_id = request_id,
		.pairs = kv->list,
		.nr_pairs = kv->nr };

	if (kv->failed)
		ans = (struct refd_answer){ .kind = REFD_ANSWER_REFUSED,
			.request_id = request_id,
			.status = busy_cause_count(BUSY_MEMORY),
			.text = busy_cause_text(BUSY_MEMORY) };
	conn_answer(conn, &ans);
	key_values_done(kv);
}

void conn_refuse(struct conn *conn, const struct refd_request *req,
    enum refd_status status, const char *why)
{
	struct refd_answer ans = { .kind = REFD_ANSWER_REFUSED,
		.request_id = req->request_id,
		.txid = req->txid,
		.status = status,
		.text = why };

	conn_answer(conn, &ans);
}

/* Sends a refusal of the connection itself, and reads no more. */
static void refuse_conn(struct conn *conn, enum refd_status status,
    const char *why)
{
	struct refd_answer ans = { .kind = REFD_ANSWER_REFUSED,
		.status = status,
		.text = why };

	queue_answer(conn, &ans);
	if (conn->state == CONN_OPEN)
		conn_move(conn, CONN_FINISHING);
}

static void send_output(struct conn *c)
{
	ssize_t n;

	while (c->state != CONN_GONE && conn_unsent(c) > 0) {
		n = send(c->fd, c->out.data + c->sent, conn_unsent(c),
		    MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n >= 0) {
			c->sent += (size_t)n;
			c->taken_ns = SYS(c->host->sys, now_mono);
		} else if (errno == EAGAIN) {
			if (event_add(&c->writable, NULL) < 0)
				conn_move(c, CONN_GONE);
			count_output(c, waiting_bytes(c));
			return;
		} else if (errno != EINTR) {
			conn_move(c, CONN_GONE);
		}
	}
	/* An idle connection holds no buffer, so many of them take little
	 * memory. */
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

/* Has C's user time left in this turn? */
static bool has_time(const struct conn *c)
{
	const struct conn_user *u = c->user;

	return u == NULL || u->turn != c->host->turns ||
	    u->used_ns < CONN_USER_NS;
}

/* Counts the time since *SINCE_NS, which becomes the present. */
static void use_time(struct conn *c, int64_t *since_ns)
{
	int64_t now_ns = SYS(c->host->sys, now_mono);
	struct conn_user *u = c->user;

	if (u != NULL && u->turn != c->host->turns) {
		u->turn = c->host->turns;
		u->used_ns = 0;
	}
	if (u != NULL)
		u->used_ns += now_ns - *since_ns;
	*since_ns = now_ns;
}

static void take_packet(struct conn *c, const struct pkt *pkt)
{
	struct refd_answer refused = { .kind = REFD_ANSWER_REFUSED };
	struct refd_request req;

	if (c->decoder == NULL)
		c->decoder = refd_request_decoder_new();
	if (c->decoder == NULL) {
		conn_move(c, CONN_GONE);
		return;
	}
	switch (refd_request_decode(c->decoder, pkt, &req, &refused.status,
	    &refused.text)) {
	case REFD_DECODE_MORE:
		break;
	case REFD_DECODE_DONE:
		free_decoder(c);
		c->in_flight++;
		c->nr_requests++;
		c->host->request(c->host->arg, c, &req);
		break;
	case REFD_DECODE_REFUSED:
		free_decoder(c);
		c->nr_requests++;
		if (refused.status == REFD_BUSY)
			busy_cause_count(BUSY_MEMORY);
		refused.request_id = req.request_id;
		refused.txid = req.txid;
		queue_answer(c, &refused);
		break;
	case REFD_DECODE_FATAL:
		refuse_conn(c, REFD_BADREQUEST, refused.text);
		break;
	}
}

/* Returns how many of the LEN bytes at DATA are decoded. */
static size_t decode_packets(struct conn *c, const char *data, size_t len)
{
	uint64_t enough = c->nr_requests + CONN_TURN_REQUESTS, before;
	int64_t since_ns = SYS(c->host->sys, now_mono);
	struct pkt pkt;
	size_t used = 0;
	long n;

	c->held = false;
	while (c->state == CONN_OPEN && used < len) {
		if (!may_decode(c)) {
			c->held = true;
			break;
		}
		if (c->nr_requests == enough || !has_time(c)) {
			c->held = true;
			touch_conn(c);
			break;
		}
		n = pkt_parse(data + used, len - used, &pkt);
		if (n == 0)
			break;
		if (n < 0) {
			refuse_conn(c, REFD_BADREQUEST, "not a pkt-line");
			break;
		}
		used += (size_t)n;
		before = c->nr_requests;
		take_packet(c, &pkt);
		if (c->nr_requests != before)
			use_time(c, &since_ns);
	}
	use_time(c, &since_ns);
	return used;
}

/* Does the input of all connections take too much memory, and has the input of
 * C grown? A user who has half cannot use the last eighth, so other users find
 * room. */
static bool lacks_room(struct conn *c)
{
	size_t before = c->shared_bytes, max = DECODING_MAX;

	count_input(c);
	if (c->user != NULL && c->user->decoding_bytes > DECODING_MAX / 2)
		max -= DECODING_MAX / 8;
	return c->shared_bytes > before && c->host->decoding_bytes > max;
}

/* Decodes the kept bytes, and MORE new bytes behind the kept bytes in the
 * scratch buffer. The size of the input is known only after decoding, so the
 * limit is checked then. So the memory exceeds the limit by one read at
 * most. */
static void take_input(struct conn *c, size_t more)
{
	char *scratch = c->host->scratch, *kept = NULL;
	size_t len = c->in_len + more, used;

	if (c->in_len > 0)
		memcpy(scratch, c->in, c->in_len);
	used = decode_packets(c, scratch, len);
	if (c->state != CONN_OPEN)
		return;
	if (used < len) {
		kept = malloc(len - used);
		if (kept == NULL) {
			conn_move(c, CONN_GONE);
			return;
		}
		memcpy(kept, scratch + used, len - used);
	}
	free(c->in);
	c->in = kept;
	c->in_len = len - used;
	if (lacks_room(c))
		refuse_conn(c, BUSY(HALF_SENT));
}

/* Has the client closed the connection, and not only its sending half? Then
 * nobody reads an answer, so even a watch can be dropped. */
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
	/* Reading may have been stopped earlier in this turn. */
	if (!may_decode(c) || c->held)
		return;
	/* The event comes again in the next turn, so nothing is read now. */
	if (!has_time(c)) {
		touch_conn(c);
		return;
	}
	assert(c->in_len < REFD_PACKET_MAX);
	n = recv(fd, c->host->scratch + c->in_len, READ_BYTES, MSG_DONTWAIT);
	if (n > 0) {
		c->heard_ns = SYS(c->host->sys, now_mono);
		take_input(c, (size_t)n);
		touch_conn(c);
	} else if (n == 0) {
		conn_move(c, is_closed(c) ? CONN_GONE : CONN_FINISHING);
	} else if (errno != EAGAIN && errno != EINTR) {
		conn_move(c, CONN_GONE);
	}
}

static void conn_writable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	touch_conn(arg);
}

static void adjust_reading(struct conn *c)
{
	bool wanted = may_decode(c) && !c->held;

	if (wanted == c->reads)
		return;
	if ((wanted ? event_add(&c->readable, NULL) : event_del(&c->readable)) <
	    0)
		conn_move(c, CONN_GONE);
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
	touch_conn(c);
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
	if (conn->held && may_decode(conn)) {
		if (has_time(conn))
			take_input(conn, 0);
		else
			touch_conn(conn);
	}
	adjust_reading(conn);
	if (conn->state == CONN_FINISHING)
		return conn->in_flight > 0 || conn_unsent(conn) > 0;
	return conn->state == CONN_OPEN;
}

bool conn_host_serve(struct conn_host *host)
{
	const struct conn *last = TAILQ_LAST(&host->touched_conns, conn_list);
	int64_t until_ns = SYS(host->sys, now_mono) + SERVE_NS;
	bool more = last != NULL;
	struct conn *conn;

	host->turns++;
	while (more) {
		conn = TAILQ_FIRST(&host->touched_conns);
		more = conn != last && SYS(host->sys, now_mono) < until_ns;
		if (!conn_service(conn))
			host->over(host->arg, conn);
	}
	return !TAILQ_EMPTY(&host->touched_conns);
}

void conn_check(struct conn *conn, int64_t now_ns)
{
	int64_t moved_ns = conn->taken_ns;

	if (conn->state == CONN_FINISHING && is_closed(conn)) {
		conn_move(conn, CONN_GONE);
		return;
	}
	if (conn_unsent(conn) > 0) {
		if (now_ns - moved_ns > CONN_STALL_NS)
			conn_move(conn, CONN_GONE);
		return;
	}
	/* While answers wait to be sent, refd does not read, so the client
	 * cannot be heard. So the minute begins at the later of two times: the
	 * last bytes came, or the client took the last answer. */
	if (moved_ns < conn->heard_ns)
		moved_ns = conn->heard_ns;
	if (conn->state == CONN_OPEN && conn->in_flight == 0 &&
	    (conn->decoder != NULL || conn->in_len > 0) &&
	    now_ns - moved_ns > CONN_STALL_NS)
		refuse_conn(conn, REFD_DEADLINE,
		    "half a request, and then nothing for a minute");
}
