#include "client/refd.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/librefd/conn.h"
#include "client/librefd/flight.h"
#include "client/librefd/sessions.h"

struct refd {
	char *path;
	struct refd_conn conn;
	struct refd_answer_decoder *dec;
	struct refd_hello hello;
	bool has_hello;
	enum refd_status refusal; /* of the last connection; REFD_OK: none */
	struct sessions sessions; /* prepared on this connection */
	struct flight *flights[REFD_REQUESTS_MAX];
	size_t nr_flights;
	uint32_t last_id;
	unsigned nap_ms;     /* before the next attempt to connect */
	unsigned nr_misfits; /* answers not understood, in a row */
	char error[512];
};

#define NAP_MIN_MS  5
#define NAP_MAX_MS  250
#define MISFITS_MAX 3

static int __attribute__((format(printf, 3, 4)))
fail(struct refd *r, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->error, sizeof(r->error), fmt, ap);
	va_end(ap);
	return err;
}

struct refd *refd_new(const char *socket_path)
{
	struct refd *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	refd_conn_init(&r->conn);
	r->path = strdup(socket_path);
	if (!r->path) {
		free(r);
		return NULL;
	}
	r->nap_ms = NAP_MIN_MS;
	return r;
}

void refd_free(struct refd *r)
{
	size_t i;

	if (!r)
		return;
	for (i = 0; i < r->nr_flights; i++)
		refd_flight_free(r->flights[i]);
	refd_conn_done(&r->conn);
	refd_answer_decoder_free(r->dec);
	refd_sessions_done(&r->sessions);
	free(r->path);
	free(r);
}

const char *refd_error(const struct refd *r)
{
	return r->error;
}

const struct refd_hello *refd_hello(const struct refd *r)
{
	return r->has_hello ? &r->hello : NULL;
}

/* ---- what the daemon says ---- */

/* About the connection, not about a request. It is read to its end all the
 * same: what is in flight is still answered. */
static void take_refusal(struct refd *r, struct refd_answer *ans)
{
	r->refusal = ans->status;
	fail(r, 0, "%s turned us away: %s", r->path,
	    ans->text && *ans->text ? ans->text :
				      refd_status_text(ans->status));
	refd_answer_done(ans);
}

/* 0 if there was none; its text is told already. */
static int refusal_error(const struct refd *r)
{
	if (r->refusal == REFD_OK)
		return 0;
	if (r->refusal == REFD_DENIED)
		return -EPERM;
	return refd_status_may_retry(r->refusal) ? -EBUSY : -EPROTO;
}

static struct flight *find_id(const struct refd *r, uint32_t id)
{
	size_t i;

	for (i = 0; i < r->nr_flights; i++)
		if (refd_flight_awaits(r->flights[i], id))
			return r->flights[i];
	return NULL;
}

static int take_answer(struct refd *r, struct refd_answer *ans)
{
	struct flight *f = find_id(r, ans->request_id);
	int err;

	if (ans->request_id == 0 && ans->kind == REFD_ANSWER_REFUSED) {
		take_refusal(r, ans);
		return 0;
	}
	if (!f) {
		err = fail(r, -EPROTO, "%s answered what was not asked%s%s",
		    r->path, ans->text ? ": " : "", ans->text ? ans->text : "");
		refd_answer_done(ans);
		return err;
	}
	err = refd_flight_answered(f, ans, &r->conn);
	if (err == 0 && refd_flight_is_prepared(f))
		err = refd_sessions_add(&r->sessions, &f->req->txid);
	if (err == -EPROTO)
		return fail(r, err, "%s: an answer does not fit its request",
		    r->path);
	if (err < 0)
		return fail(r, err, "%s", strerror(-err));
	r->nap_ms = NAP_MIN_MS;
	r->nr_misfits = 0;
	return 0;
}

/* All packets that are there. */
static int take_packets(struct refd *r)
{
	struct refd_answer ans;
	const char *why;
	struct pkt pkt;
	int got, err;

	while ((got = refd_conn_packet(&r->conn, &pkt)) > 0) {
		switch (refd_answer_decode(r->dec, &pkt, &ans, &why)) {
		case REFD_DECODE_MORE:
			break;
		case REFD_DECODE_DONE:
			err = take_answer(r, &ans);
			if (err < 0)
				return err;
			break;
		case REFD_DECODE_REFUSED:
		case REFD_DECODE_FATAL:
			return fail(r, -EPROTO, "%s: not an answer: %s",
			    r->path, why);
		}
	}
	if (got < 0)
		return fail(r, got, "%s: not a packet", r->path);
	return 0;
}

/* ---- connecting ---- */

static void hang_up(struct refd *r)
{
	uint64_t written = refd_conn_written(&r->conn);
	size_t i;

	/* It is said before a byte is read, or never. */
	if (r->refusal == REFD_DENIED)
		written = 0;
	for (i = 0; i < r->nr_flights; i++)
		refd_flight_lost(r->flights[i], written);
	refd_conn_close(&r->conn);
	refd_sessions_clear(&r->sessions);
	refd_answer_decoder_free(r->dec);
	r->dec = NULL;
}

static int read_hello(struct refd *r, uint64_t deadline)
{
	struct refd_hello_decoder dec = { 0 };
	enum refd_decoded state = REFD_DECODE_MORE;
	const char *why = "it ends too early";
	struct pkt pkt;
	int got;

	while (state == REFD_DECODE_MORE) {
		got = refd_conn_packet(&r->conn, &pkt);
		if (got < 0)
			return fail(r, -EPROTO, "%s: not a refd", r->path);
		if (got > 0) {
			state = refd_hello_decode(&dec, &pkt, &r->hello, &why);
			continue;
		}
		got = refd_conn_pump(&r->conn, deadline);
		if (got < 0)
			return fail(r, got, "%s: no greeting: %s", r->path,
			    strerror(-got));
	}
	if (state != REFD_DECODE_DONE)
		return fail(r, -EPROTO, "%s: its greeting is not refd's: %s",
		    r->path, why);
	if (r->hello.version > REFD_PROTOCOL_VERSION + 1)
		return fail(r, -EPROTO,
		    "%s speaks version %u of the protocol, "
		    "this program %u",
		    r->path, r->hello.version, REFD_PROTOCOL_VERSION);
	r->has_hello = true;
	return 0;
}

static int connect_once(struct refd *r, uint64_t deadline)
{
	int err;

	r->refusal = REFD_OK;
	err = refd_conn_open(&r->conn, r->path, deadline);
	if (err < 0)
		return fail(r, err, "cannot connect to %s: %s", r->path,
		    strerror(-err));
	r->dec = refd_answer_decoder_new();
	if (!r->dec)
		err = fail(r, -ENOMEM, "out of memory");
	else
		err = read_hello(r, deadline);
	/* Who is turned away finds that right behind the greeting. */
	if (err == 0)
		err = take_packets(r);
	if (err == 0)
		err = refusal_error(r);
	if (err < 0)
		hang_up(r);
	return err;
}

static bool is_serving(const struct refd *r)
{
	return refd_conn_is_open(&r->conn) && r->has_hello &&
	    r->hello.state == REFD_SERVING;
}

static int send_flights(struct refd *r)
{
	size_t i;
	int err = 0;

	for (i = 0; i < r->nr_flights && err == 0; i++)
		err = refd_flight_send(r->flights[i], &r->conn);
	if (err < 0)
		return fail(r, err, "out of memory");
	refd_conn_flush(&r->conn);
	return 0;
}

int refd_connect(struct refd *r, int timeout_ms)
{
	int err;

	if (is_serving(r))
		return 0;
	hang_up(r);
	err = connect_once(r, refd_deadline_ms(timeout_ms));
	return err < 0 ? err : send_flights(r);
}

/* Errors that time can heal: a daemon that restarts, and has not set the mode
 * of its socket yet; one that has too much to do. */
static bool is_passing(int err)
{
	return err == -ENOENT || err == -ECONNREFUSED || err == -ECONNRESET ||
	    err == -EPIPE || err == -ETIMEDOUT || err == -EACCES ||
	    err == -EBUSY;
}

static void back_off(struct refd *r, uint64_t deadline)
{
	refd_nap(r->nap_ms, deadline);
	if (r->nap_ms < NAP_MAX_MS)
		r->nap_ms *= 2;
}

/* Once lost: until the daemon serves again, or the time is up. -EPERM where
 * it does not want us, -ECONNRESET whatever else the reason, which is in the
 * error's text. */
static int reconnect(struct refd *r, uint64_t deadline)
{
	int err;

	for (;;) {
		err = connect_once(r, deadline);
		if (err == -EPERM)
			return err;
		if (err < 0 && !is_passing(err))
			return -ECONNRESET;
		if (err == 0 && is_serving(r))
			return send_flights(r);
		if (err == 0) {
			fail(r, 0, "%s: the daemon is %s", r->path,
			    refd_server_state_name(r->hello.state));
			hang_up(r);
		}
		/* Not once more when the time is up: the reason would only
		 * be that there was no time. */
		back_off(r, deadline);
		if (refd_now_ms() >= deadline)
			return -ECONNRESET;
	}
}

/* ---- requests and answers ---- */

static size_t find_request(const struct refd *r, const struct refd_request *req)
{
	size_t i;

	for (i = 0; i < r->nr_flights; i++)
		if (r->flights[i]->req == req)
			break;
	return i;
}

static void remove_flight(struct refd *r, size_t i)
{
	refd_flight_free(r->flights[i]);
	r->flights[i] = r->flights[--r->nr_flights];
}

static bool needs_txid(const struct refd_request *req)
{
	static const struct refd_txid none;

	return (req->verb == REFD_VERB_TRANSACTION ||
		   req->verb == REFD_VERB_SESSION) &&
	    refd_txid_eq(&req->txid, &none);
}

static bool ends_session(const struct refd_request *req)
{
	return req->verb == REFD_VERB_COMMIT || req->verb == REFD_VERB_ABORT;
}

int refd_submit(struct refd *r, struct refd_request *req)
{
	struct flight *f;
	int err;

	if (r->nr_flights == REFD_REQUESTS_MAX)
		return fail(r, -EBUSY, "%d requests are in flight already",
		    REFD_REQUESTS_MAX);
	if (needs_txid(req) && (err = refd_txid_make(&req->txid)) < 0)
		return fail(r, err, "cannot make a transaction id: %s",
		    strerror(-err));
	if (++r->last_id == 0) /* means "none" on the wire */
		r->last_id = 1;
	req->request_id = r->last_id;
	f = refd_flight_new(req);
	if (!f)
		return fail(r, -ENOMEM, "out of memory");
	if (ends_session(req) && !refd_sessions_take(&r->sessions, &req->txid))
		f->state = FLIGHT_OVER;
	if (refd_conn_is_open(&r->conn)) {
		err = refd_flight_send(f, &r->conn);
		if (err < 0) {
			refd_flight_free(f);
			return fail(r, err, "%s",
			    err == -EINVAL ? "a name or value is too long" :
					     strerror(-err));
		}
		refd_conn_flush(&r->conn);
	}
	r->flights[r->nr_flights++] = f;
	return 0;
}

/* Questions about what is pending, when it is time to ask again. */
static int ask_again(struct refd *r, uint64_t *until)
{
	size_t i;
	int err;

	for (i = 0; i < r->nr_flights; i++) {
		err = refd_flight_ask_again(r->flights[i], &r->conn, until);
		if (err < 0)
			return fail(r, err, "%s", strerror(-err));
	}
	return 0;
}

/* 0: another connection may do better. */
static int connection_broke(struct refd *r, int err, uint64_t deadline)
{
	if (r->refusal == REFD_OK)
		fail(r, err, "%s: %s", r->path, strerror(-err));
	hang_up(r);
	err = refusal_error(r);
	if (err == -EPERM)
		return err;
	if (err == -EPROTO && ++r->nr_misfits >= MISFITS_MAX)
		return err;
	back_off(r, deadline);
	return 0;
}

/*
 * One round: connect if need be, write, read, sort what came. 0 also when
 * only time has passed. A connection that breaks is no error here: the next
 * round connects again.
 */
static int turn(struct refd *r, uint64_t deadline)
{
	uint64_t until = deadline;
	int err;

	if (!refd_conn_is_open(&r->conn)) {
		err = reconnect(r, deadline);
		if (err < 0)
			return err;
	}
	err = ask_again(r, &until);
	if (err < 0)
		return err;
	err = refd_conn_pump(&r->conn, until);
	if (err == -ETIMEDOUT)
		return 0;
	if (err < 0)
		return connection_broke(r, err, deadline);
	err = take_packets(r);
	if (err < 0)
		hang_up(r);
	/* An answer that can't be understood says nothing, for or against:
	 * it is asked for again on another connection. */
	return err == -EPROTO && ++r->nr_misfits < MISFITS_MAX ? 0 : err;
}

/* The daemon is lost, or denies itself, and no more can be learnt. */
static int give_up(struct refd *r, size_t i, int err, struct refd_answer *ans)
{
	struct flight *f = r->flights[i];
	int taken;

	hang_up(r);
	taken = refd_flight_take(f, ans);
	if (taken == 0)
		err = refd_flight_abandon(f, err, r->error, ans);
	else
		err = taken > 0 ? 0 : taken;
	remove_flight(r, i);
	return err;
}

int refd_wait(struct refd *r, struct refd_request *req, int timeout_ms,
    struct refd_answer *ans)
{
	uint64_t deadline = refd_deadline_ms(timeout_ms);
	size_t i = find_request(r, req);
	int err;

	if (i == r->nr_flights)
		return fail(r, -EINVAL, "the request is not in flight");
	for (;;) {
		err = refd_flight_take(r->flights[i], ans);
		if (err != 0) {
			remove_flight(r, i);
			return err > 0 ? 0 : fail(r, err, "out of memory");
		}
		err = turn(r, deadline);
		if (err < 0)
			return give_up(r, i, err, ans);
		if (refd_now_ms() < deadline ||
		    refd_flight_is_settled(r->flights[i]))
			continue;
		if (!refd_conn_is_open(&r->conn))
			return give_up(r, i, -ECONNRESET, ans);
		return fail(r, -ETIMEDOUT, "%s: no answer in time", r->path);
	}
}

int refd_call(struct refd *r, struct refd_request *req, int timeout_ms,
    struct refd_answer *ans)
{
	int err = refd_submit(r, req);

	return err < 0 ? err : refd_wait(r, req, timeout_ms, ans);
}
