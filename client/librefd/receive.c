#include "client/librefd/refd_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A refusal of the connection, not of a request. Reading continues to the end,
 * because requests in flight are still answered. */
static void take_refusal(struct refd *r, struct refd_answer *ans)
{
	r->refusal = ans->status;
	refd_fail(r, 0,
	    ans->status == REFD_IO ? "the daemon at %s cannot start: %s" :
				     "%s turned us away: %s",
	    r->path,
	    ans->text && *ans->text ? ans->text :
				      refd_status_text(ans->status));
	refd_answer_done(ans);
}

int refd_refusal_error(const struct refd *r)
{
	if (r->refusal == REFD_OK)
		return 0;
	if (r->refusal == REFD_DENIED)
		return -EPERM;
	if (r->refusal == REFD_IO)
		return -EHOSTDOWN;
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

static int add_session(struct refd *r, const struct refd_txid *id)
{
	struct known_session *grown;

	/* A second answer may cross a commit, so the state stays. */
	if (refd_find_session(r, id))
		return 0;
	if (r->nr_sessions == r->sessions_size) {
		grown = realloc(r->sessions,
		    (r->sessions_size + 8) * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		r->sessions = grown;
		r->sessions_size += 8;
	}
	r->sessions[r->nr_sessions++] =
	    (struct known_session){ .id = *id, .state = SESSION_HELD };
	return 0;
}

/* A refused end did nothing, so the daemon still holds the session, and takes
 * another end. After results of whatever request, a later end has to ask. */
static void note_end(struct refd *r, const struct flight *f)
{
	struct known_session *s = refd_find_session(r, &f->req->txid);

	if (!s)
		return;
	if (refd_flight_has_ended_session(f))
		*s = r->sessions[--r->nr_sessions];
	else if (refd_flight_is_refused_commit(f))
		s->state = SESSION_HELD;
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
		err = refd_fail(r, -EPROTO,
		    "%s answered what was not asked%s%s", r->path,
		    ans->text ? ": " : "", ans->text ? ans->text : "");
		refd_answer_done(ans);
		return err;
	}
	err = refd_flight_answered(f, ans, &r->conn);
	if (err == 0 && refd_flight_is_prepared(f))
		err = add_session(r, &f->req->txid);
	if (err == 0)
		note_end(r, f);
	if (err == -EPROTO)
		return refd_fail(r, err,
		    "%s: an answer does not fit its request", r->path);
	if (err < 0)
		return refd_fail(r, err, "%s", strerror(-err));
	r->nap_ms = NAP_MIN_MS;
	r->nr_misfits = 0;
	return 0;
}

/* Otherwise a broken or hostile server would fill the memory. */
static bool is_too_long(const struct refd *r)
{
	uint32_t id;
	size_t bytes = refd_answer_decoder_bytes(r->dec, &id);
	const struct flight *f;

	if (bytes <= REFD_ANSWER_BYTES)
		return false;
	f = find_id(r, id);
	return !f || bytes > refd_flight_answer_max(f);
}

int refd_take_packets(struct refd *r)
{
	struct refd_answer ans;
	const char *why;
	struct pkt pkt;
	int got, err;

	while ((got = refd_conn_packet(&r->conn, &pkt)) > 0) {
		switch (refd_answer_decode(r->dec, &pkt, &ans, &why)) {
		case REFD_DECODE_MORE:
			if (is_too_long(r))
				return refd_fail(r, -EPROTO,
				    "%s: an answer is longer than every answer "
				    "to its request",
				    r->path);
			break;
		case REFD_DECODE_DONE:
			err = take_answer(r, &ans);
			if (err < 0)
				return err;
			break;
		case REFD_DECODE_REFUSED:
		case REFD_DECODE_FATAL:
			return refd_fail(r, -EPROTO, "%s: not an answer: %s",
			    r->path, why);
		}
	}
	if (got < 0)
		return refd_fail(r, got, "%s: not a packet", r->path);
	return 0;
}
