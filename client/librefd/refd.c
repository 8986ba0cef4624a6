#include "client/librefd/refd_internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proto/lib/clock.h"
#include "proto/verb.h"

#define MISFITS_MAX  3
#define INDEX_NAP_NS 20000000

int refd_fail(struct refd *r, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->error, sizeof(r->error), fmt, ap);
	va_end(ap);
	return err;
}

/* ERR is of a request that could not be encoded or queued. */
static int cannot_send(struct refd *r, int err)
{
	return refd_fail(r, err, "%s",
	    err == -EINVAL ?
		"a name or value is too long, or an old target is empty" :
		strerror(-err));
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
	free(r->sessions);
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

void refd_accept_only(struct refd *r, uint32_t owner)
{
	r->is_guarded = true;
	r->owner = owner;
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

	return refd_verb_has_updates(req->verb) &&
	    refd_txid_eq(&req->txid, &none);
}

struct known_session *refd_find_session(const struct refd *r,
    const struct refd_txid *id)
{
	size_t i;

	for (i = 0; i < r->nr_sessions; i++)
		if (refd_txid_eq(&r->sessions[i].id, id))
			return &r->sessions[i];
	return NULL;
}

/* The state in which a request begins. The daemon may have the transaction
 * already, or a commit of the session, so the library usually asks for the
 * outcome. An end is sent without a question only if the session is prepared on
 * this connection, and the daemon has refused each earlier commit of the
 * session. */
static enum flight_state first_state(const struct refd_request *req,
    const struct known_session *s)
{
	const bool is_held = s && s->state == SESSION_HELD;

	switch (refd_verbs[req->verb].class) {
	case REFD_CLASS_UPDATES:
		return req->maybe_sent && !is_held ? FLIGHT_LOST :
						     FLIGHT_UNSENT;
	case REFD_CLASS_END:
		return is_held ? FLIGHT_UNSENT : FLIGHT_LOST;
	case REFD_CLASS_TXID:
	case REFD_CLASS_REPO:
	case REFD_CLASS_LOG:
	case REFD_CLASS_WATCH:
	case REFD_CLASS_PLAIN:
		break;
	}
	return FLIGHT_UNSENT;
}

/* Sets a new id for a new transaction, which no daemon has. */
static int make_txid(struct refd_request *req)
{
	req->maybe_sent = false;
	return refd_txid_make(&req->txid);
}

int refd_submit(struct refd *r, struct refd_request *req)
{
	struct known_session *s;
	struct flight *f;
	int err;

	if (r->nr_flights == REFD_REQUESTS_MAX)
		return refd_fail(r, -EBUSY, "%d requests are in flight already",
		    REFD_REQUESTS_MAX);
	if (needs_txid(req) && (err = make_txid(req)) < 0)
		return refd_fail(r, err, "cannot make a transaction id: %s",
		    strerror(-err));
	if (++r->last_id == 0) /* 0 has another meaning on the wire */
		r->last_id = 1;
	req->request_id = r->last_id;
	s = refd_find_session(r, &req->txid);
	f = refd_flight_new(req, first_state(req, s), s != NULL);
	if (!f)
		return refd_fail(r, -ENOMEM, "out of memory");
	if (refd_conn_is_open(&r->conn)) {
		err = refd_flight_send(f, &r->conn);
		if (err < 0) {
			refd_flight_free(f);
			return cannot_send(r, err);
		}
		refd_conn_flush(&r->conn);
	}
	if (s && s->state == SESSION_HELD && req->verb == REFD_VERB_COMMIT)
		s->state = SESSION_COMMITTING;
	r->flights[r->nr_flights++] = f;
	return 0;
}

/* Sends queries and requests whose time has come. False: a request cannot be
 * sent. As on a new connection, it ends alone, when the caller waits for it. */
static bool ask_again(struct refd *r, uint64_t *until)
{
	bool all = true;
	size_t i;

	for (i = 0; i < r->nr_flights; i++)
		if (refd_flight_ask_again(r->flights[i], &r->conn, until) < 0)
			all = false;
	return all;
}

/* Returns 0 if a new connection may help. */
static int connection_broke(struct refd *r, int err, uint64_t deadline)
{
	if (r->refusal == REFD_OK)
		refd_fail(r, err, "%s: %s", r->path, strerror(-err));
	refd_hang_up(r);
	err = refd_refusal_error(r);
	if (err == -EPERM)
		return err;
	if (err == -EPROTO && ++r->nr_misfits >= MISFITS_MAX)
		return err;
	refd_back_off(r, deadline);
	return 0;
}

/*
 * One step: connects, or writes, reads, and assigns answers. After a step, a
 * request may have failed because it cannot be sent. Also returns 0 if only
 * time has passed, or if the connection broke, because the next step connects
 * again.
 */
static int turn(struct refd *r, uint64_t deadline)
{
	uint64_t until = deadline;
	int err;

	if (!refd_conn_is_open(&r->conn))
		return refd_reconnect(r, deadline);
	if (!ask_again(r, &until))
		return 0; /* the caller may wait for this request */
	err = refd_conn_pump(&r->conn, until);
	if (err == -ETIMEDOUT)
		return 0;
	if (err < 0)
		return connection_broke(r, err, deadline);
	err = refd_take_packets(r);
	if (err < 0)
		refd_hang_up(r);
	/* An answer that can't be understood shows neither success nor failure.
	 * The next step asks again on a new connection. */
	if (err != -EPROTO || ++r->nr_misfits >= MISFITS_MAX)
		return err;
	refd_back_off(r, deadline);
	return 0;
}

/* The daemon is lost or denies this peer, so nothing more can be learnt. */
static int give_up(struct refd *r, size_t i, int err, struct refd_answer *ans)
{
	struct flight *f = r->flights[i];
	int taken;

	refd_hang_up(r);
	taken = refd_flight_take(f, ans);
	if (taken == 0)
		err = refd_flight_abandon(f, err, r->error, ans);
	else
		err = taken > 0 ? 0 : cannot_send(r, taken);
	remove_flight(r, i);
	return err;
}

int refd_wait(struct refd *r, struct refd_request *req, int timeout_ms,
    struct refd_answer *ans)
{
	uint64_t deadline = clock_deadline_ms(timeout_ms);
	size_t i = find_request(r, req);
	int err;

	if (i == r->nr_flights)
		return refd_fail(r, -EINVAL, "the request is not in flight");
	for (;;) {
		err = refd_flight_take(r->flights[i], ans);
		if (err != 0) {
			remove_flight(r, i);
			return err > 0 ? 0 : cannot_send(r, err);
		}
		err = turn(r, deadline);
		if (err < 0)
			return give_up(r, i, err, ans);
		if (clock_now_ms() < deadline ||
		    refd_flight_is_settled(r->flights[i]))
			continue;
		if (!refd_conn_is_open(&r->conn))
			return give_up(r, i, -ECONNRESET, ans);
		return refd_fail(r, -ETIMEDOUT, "%s: no answer in time",
		    r->path);
	}
}

/* Nobody waits for REQ any more. If REQ is in flight, a late answer would match
 * nothing, and a session would keep its locks, so the connection ends, too. */
static void drop(struct refd *r, const struct refd_request *req)
{
	size_t i = find_request(r, req);

	if (i == r->nr_flights)
		return;
	refd_hang_up(r); /* first: notes what this request leaves open */
	remove_flight(r, i);
}

int refd_call(struct refd *r, struct refd_request *req, int timeout_ms,
    struct refd_answer *ans)
{
	int err = refd_submit(r, req);

	if (err < 0)
		return err;
	err = refd_wait(r, req, timeout_ms, ans);
	if (err < 0)
		drop(r, req);
	return err;
}

/* ---- history ---- */

/* Requests for history continue behind the last answer. */
static void move_on(struct refd_selection *select,
    const struct refd_answer *ans)
{
	memcpy(select->journal, ans->journal, sizeof(select->journal));
	select->has_journal = true;
	if (select->reverse) {
		select->has_before = true;
		select->before = ans->next;
	} else {
		select->has_after = true;
		select->after = ans->next;
	}
}

/* The daemon is still making its index of these records, and each question
 * takes a turn of this work. */
static void nap_for_index(const struct refd_selection *select,
    const struct refd_answer *ans)
{
	const struct timespec ts = { .tv_nsec = INDEX_NAP_NS };
	const struct refd_position *asked =
	    select->reverse ? &select->before : &select->after;

	if (ans->more && ans->nr_changes == 0 && asked->lsn == ans->next.lsn &&
	    asked->nr == ans->next.nr)
		nanosleep(&ts, NULL);
}

static int ask_history(struct refd *r, struct refd_request *req,
    enum refd_verb verb, int timeout_ms, struct refd_answer *ans)
{
	int err;

	req->verb = verb;
	err = refd_call(r, req, timeout_ms, ans);
	if (err == 0 && ans->kind == REFD_ANSWER_RECORDS) {
		nap_for_index(&req->select, ans);
		move_on(&req->select, ans);
	}
	return err;
}

int refd_log(struct refd *r, struct refd_request *req, int timeout_ms,
    struct refd_answer *ans)
{
	return ask_history(r, req, REFD_VERB_LOG, timeout_ms, ans);
}

int refd_watch(struct refd *r, struct refd_request *req, int timeout_ms,
    struct refd_answer *ans)
{
	const uint32_t deadline_ms = req->deadline_ms;
	int err;

	/* Changes from now on: if the connection is lost, the same request
	 * would mean a later moment. */
	if (!req->select.has_after)
		req->deadline_ms = 1;
	err = ask_history(r, req, REFD_VERB_WATCH, timeout_ms, ans);
	req->deadline_ms = deadline_ms;
	return err;
}
