#include "client/librefd/flight.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/librefd/answer.h"
#include "client/refd.h"
#include "proto/lib/clock.h"
#include "proto/verb.h"

#define ASK_MIN_MS 10
#define ASK_MAX_MS 250

/* May the daemon have the request, or do the request later because of a commit?
 * The answer is no only if an answer has settled the outcome. With is_again, a
 * session of this id is prepared already, and may be committed whatever becomes
 * of its second request. */
static bool is_open(const struct flight *f)
{
	switch (f->state) {
	case FLIGHT_SENT:
	case FLIGHT_LOST:
	case FLIGHT_ASKING:
	case FLIGHT_PENDING:
		return true;
	case FLIGHT_ANSWERED:
		return f->ans.kind == REFD_ANSWER_PREPARED ||
		    (f->ans.kind == REFD_ANSWER_RESULTS &&
			f->ans.outcome == REFD_OUTCOME_UNKNOWN) ||
		    (f->ans.kind == REFD_ANSWER_REFUSED &&
			(f->ans.status == REFD_UNKNOWN || f->is_again));
	case FLIGHT_UNSENT:
	case FLIGHT_LATER:
		return f->is_again;
	case FLIGHT_OVER:
		break;
	}
	return false;
}

/* The flight ends with its call, so the request keeps what a later call with
 * the same request must know. */
static void move(struct flight *f, enum flight_state state)
{
	f->state = state;
	f->err = 0;
	if (refd_verb_has_updates(f->req->verb))
		f->req->maybe_sent = is_open(f);
}

struct flight *refd_flight_new(struct refd_request *req,
    enum flight_state state, bool is_prepared)
{
	struct flight *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->req = req;
	f->born_ms = clock_now_ms();
	f->nap_ms = ASK_MIN_MS;
	f->is_again = is_prepared && refd_verb_has_updates(req->verb);
	move(f, state);
	return f;
}

void refd_flight_free(struct flight *f)
{
	if (!f)
		return;
	if (f->state == FLIGHT_ANSWERED)
		refd_answer_done(&f->ans);
	free(f);
}

/* State of a request after its connection is lost. With ALL_SENT, the daemon
 * may have received the whole request. */
static enum flight_state lost_state(const struct flight *f, bool all_sent,
    bool is_held)
{
	if (f->is_again)
		return FLIGHT_LOST;
	switch (refd_verbs[f->req->verb].loss) {
	case REFD_LOSS_OUTCOME:
		return all_sent ? FLIGHT_LOST : FLIGHT_UNSENT;
	/* A session ends with its connection. A daemon that has ended has
	 * nothing left to drain, and the next one was started to serve. */
	case REFD_LOSS_REQUEST:
		return all_sent ? FLIGHT_OVER : FLIGHT_UNSENT;
	case REFD_LOSS_COMMIT:
		return all_sent ? FLIGHT_LOST : FLIGHT_OVER;
	case REFD_LOSS_ABORT:
		return is_held ? FLIGHT_OVER : FLIGHT_LOST;
	case REFD_LOSS_NOTHING:
		break;
	}
	return FLIGHT_UNSENT;
}

static bool ends_session(const struct refd_request *req)
{
	return refd_verbs[req->verb].class == REFD_CLASS_END;
}

static int queue(struct flight *f, const struct refd_request *req,
    struct refd_conn *conn, enum flight_state state)
{
	struct pkt_buf buf = { 0 };
	uint64_t begin;
	size_t len;
	int err;

	refd_request_encode(req, &buf);
	len = buf.len;
	if (pkt_buf_failed(&buf))
		err = -EINVAL;
	else
		err = refd_conn_queue(conn, &buf, &begin);
	if (err == 0)
		f->end = begin + len;
	pkt_buf_done(&buf);
	if (err == 0)
		move(f, state);
	return err;
}

static void ask_later(struct flight *f)
{
	move(f, FLIGHT_PENDING);
	f->ask_at_ms = clock_now_ms() + f->nap_ms;
	if (f->nap_ms < ASK_MAX_MS)
		f->nap_ms *= 2;
}

/* A deadline counts from the first arrival, so a resend has less time left. */
static int send_request(struct flight *f, struct refd_conn *conn)
{
	struct refd_request req = *f->req;
	uint64_t spent = clock_now_ms() - f->born_ms;

	if (f->was_sent && req.deadline_ms)
		req.deadline_ms = spent < req.deadline_ms ?
		    req.deadline_ms - (uint32_t)spent :
		    1;
	f->was_sent = true;
	f->err = queue(f, &req, conn, FLIGHT_SENT);
	return f->err;
}

/* The outcome stays open until the daemon tells it, so a question that cannot
 * be sent is sent later. */
static void send_question(struct flight *f, struct refd_conn *conn)
{
	struct refd_request query = { .verb = REFD_VERB_QUERY,
		.request_id = f->req->request_id,
		.txid = f->req->txid };

	if (queue(f, &query, conn, FLIGHT_ASKING) < 0)
		ask_later(f);
}

int refd_flight_send(struct flight *f, struct refd_conn *conn)
{
	switch (f->state) {
	case FLIGHT_UNSENT:
		return send_request(f, conn);
	case FLIGHT_LOST:
		send_question(f, conn);
		break;
	case FLIGHT_SENT:
	case FLIGHT_ASKING:
	case FLIGHT_PENDING:
	case FLIGHT_LATER:
	case FLIGHT_OVER:
	case FLIGHT_ANSWERED:
		break;
	}
	return 0;
}

void refd_flight_lost(struct flight *f, uint64_t written, bool is_held)
{
	switch (f->state) {
	case FLIGHT_SENT:
		move(f, lost_state(f, written >= f->end, is_held));
		break;
	case FLIGHT_ASKING:
	case FLIGHT_PENDING:
		move(f, FLIGHT_LOST);
		break;
	case FLIGHT_UNSENT:
	case FLIGHT_LATER:
		move(f, f->is_again ? FLIGHT_LOST : FLIGHT_UNSENT);
		break;
	case FLIGHT_LOST:
	case FLIGHT_OVER:
	case FLIGHT_ANSWERED:
		break;
	}
}

bool refd_flight_awaits(const struct flight *f, uint32_t request_id)
{
	return f->req->request_id == request_id &&
	    (f->state == FLIGHT_SENT || f->state == FLIGHT_ASKING);
}

static bool is_by_id(const struct refd_request *req)
{
	return ends_session(req) ||
	    refd_verbs[req->verb].class == REFD_CLASS_TXID;
}

/* A request that names a transaction by its id may lack the updates, so the
 * answer may have any number of results. */
size_t refd_flight_answer_max(const struct flight *f)
{
	size_t nr = f->req->nr_updates;

	if (nr == 0 && is_by_id(f->req))
		nr = REFD_UPDATES_MAX;
	return refd_answer_bytes_max(nr);
}

static bool is_of_query(enum refd_answer_kind kind)
{
	return kind == REFD_ANSWER_RESULTS || kind == REFD_ANSWER_PENDING ||
	    kind == REFD_ANSWER_NEVER_SEEN || kind == REFD_ANSWER_EXPIRED;
}

static bool kind_fits(const struct flight *f, enum refd_answer_kind kind)
{
	if (kind == REFD_ANSWER_REFUSED)
		return true;
	if (f->state == FLIGHT_ASKING || is_by_id(f->req))
		return is_of_query(kind);
	if (kind == refd_verbs[f->req->verb].answer)
		return true;
	return refd_verb_has_updates(f->req->verb) &&
	    (kind == REFD_ANSWER_RESULTS ||
		(kind == REFD_ANSWER_PONG &&
		    (f->req->gate == REFD_GATE_PREPARED ||
			f->req->gate == REFD_GATE_ABORTED)));
}

/* Some kinds have no id, and a refusal has one only if the daemon could read
 * it. */
static bool txid_fits(const struct refd_request *req,
    const struct refd_answer *ans)
{
	static const struct refd_txid none;

	return refd_txid_eq(&ans->txid, &req->txid) ||
	    (refd_txid_eq(&ans->txid, &none) && !is_of_query(ans->kind) &&
		ans->kind != REFD_ANSWER_PREPARED);
}

/* If the request had updates, there must be a result for each of them. */
static int fit_results(const struct refd_request *req, struct refd_answer *ans)
{
	int err = refd_answer_set_outcome(ans);

	if (err < 0 ||
	    (!refd_verb_has_updates(req->verb) && req->nr_updates == 0))
		return err;
	if (ans->nr_updates != req->nr_updates)
		return -EPROTO;
	return refd_answer_complete(req, ans);
}

/* Whatever does not fit is malformed: it shows neither success nor failure. */
static int fit(const struct flight *f, struct refd_answer *ans)
{
	if (!kind_fits(f, ans->kind) || !txid_fits(f->req, ans))
		return -EPROTO;
	if (ans->kind == REFD_ANSWER_RESULTS)
		return fit_results(f->req, ans);
	return ans->kind != REFD_ANSWER_PREPARED ||
		refd_answer_is_complete(f->req, ans) ?
	    0 :
	    -EPROTO;
}

static void settle(struct flight *f, const struct refd_answer *ans)
{
	f->ans = *ans;
	move(f, FLIGHT_ANSWERED);
}

/* Makes an answer with the outcome "unknown". The answer has a result for each
 * update if the request names its updates. A caller would take an error for a
 * failure, so without memory the answer is REFUSED, which needs none. */
static void unknown(const struct refd_request *req, struct refd_answer *ans)
{
	int err;

	if (req->nr_updates > 0)
		err = refd_answer_unknown(req, ans);
	else
		err = refd_answer_refusal(req, REFD_UNKNOWN,
		    "the daemon does not know any more", ans);
	if (err < 0)
		*ans = (struct refd_answer){ .kind = REFD_ANSWER_REFUSED,
			.request_id = req->request_id,
			.txid = req->txid,
			.status = REFD_UNKNOWN };
}

/* The daemon can never tell the outcome. */
static void settle_unknown(struct flight *f)
{
	struct refd_answer ans;

	unknown(f->req, &ans);
	settle(f, &ans);
}

static void settle_never_seen(struct flight *f, struct refd_conn *conn)
{
	/* A session that was sent has ended with its connection. */
	if (ends_session(f->req) ||
	    (f->req->verb == REFD_VERB_SESSION && f->was_sent)) {
		move(f, FLIGHT_OVER);
		return;
	}
	move(f, FLIGHT_UNSENT);
	(void)refd_flight_send(f, conn);
	refd_conn_flush(conn);
}

static int told(struct flight *f, struct refd_answer *ans,
    struct refd_conn *conn)
{
	enum refd_answer_kind kind = ans->kind;
	enum refd_status status = ans->status;

	if (kind == REFD_ANSWER_RESULTS) {
		settle(f, ans);
		return 0;
	}
	refd_answer_done(ans);
	switch (kind) {
	case REFD_ANSWER_PENDING:
		ask_later(f);
		return 0;
	case REFD_ANSWER_NEVER_SEEN:
		settle_never_seen(f, conn);
		return 0;
	case REFD_ANSWER_REFUSED:
		if (status == REFD_BUSY)
			ask_later(f);
		else
			settle_unknown(f);
		return 0;
	case REFD_ANSWER_EXPIRED:
		settle_unknown(f);
		return 0;
	case REFD_ANSWER_RESULTS:
	case REFD_ANSWER_PREPARED:
	case REFD_ANSWER_PONG:
	case REFD_ANSWER_PAIRS:
	case REFD_ANSWER_RECORDS:
		break;
	}
	return -EPROTO;
}

/* Can the request still be sent before its deadline? Without a deadline in the
 * request, the daemon's default of 30 s counts. */
static bool may_come_later(const struct flight *f,
    const struct refd_answer *ans)
{
	uint32_t deadline_ms =
	    f->req->deadline_ms ? f->req->deadline_ms : REFD_UPDATE_DEADLINE_MS;

	return ans->kind == REFD_ANSWER_REFUSED && ans->status == REFD_BUSY &&
	    ans->retry_after_ms > 0 && refd_verb_has_updates(f->req->verb) &&
	    clock_now_ms() + ans->retry_after_ms < f->born_ms + deadline_ms;
}

static int put_off(struct flight *f, struct refd_answer *ans)
{
	move(f, FLIGHT_LATER);
	f->ask_at_ms = clock_now_ms() + ans->retry_after_ms;
	refd_answer_done(ans);
	return 0;
}

int refd_flight_answered(struct flight *f, struct refd_answer *ans,
    struct refd_conn *conn)
{
	int err = fit(f, ans);

	if (err < 0) {
		refd_answer_done(ans);
		return err;
	}
	if (f->state == FLIGHT_ASKING ||
	    (ends_session(f->req) && ans->kind != REFD_ANSWER_REFUSED))
		return told(f, ans, conn);
	if (may_come_later(f, ans))
		return put_off(f, ans);
	settle(f, ans);
	return 0;
}

int refd_flight_ask_again(struct flight *f, struct refd_conn *conn,
    uint64_t *until)
{
	int err = 0;

	if (f->state != FLIGHT_PENDING && f->state != FLIGHT_LATER)
		return 0;
	if (clock_now_ms() < f->ask_at_ms) {
		if (f->ask_at_ms < *until)
			*until = f->ask_at_ms;
		return 0;
	}
	if (f->state == FLIGHT_LATER) {
		move(f, FLIGHT_UNSENT); /* not tried for ever */
		err = send_request(f, conn);
	} else {
		send_question(f, conn);
	}
	refd_conn_flush(conn);
	return err;
}

int refd_flight_abandon(const struct flight *f, int err, const char *why,
    struct refd_answer *ans)
{
	const bool has_outcome =
	    refd_verb_has_updates(f->req->verb) || ends_session(f->req);

	/* The caller knows -EPROTO as an unknown outcome. */
	if (!has_outcome || err == -EPROTO)
		return err;
	if (is_open(f)) {
		unknown(f->req, ans);
		return 0;
	}
	if (err != -ECONNRESET && err != -EPERM)
		return err;
	return refd_answer_refusal(f->req,
	    err == -EPERM ? REFD_DENIED : REFD_BUSY, why, ans);
}

bool refd_flight_is_prepared(const struct flight *f)
{
	return f->state == FLIGHT_ANSWERED &&
	    f->ans.kind == REFD_ANSWER_PREPARED;
}

bool refd_flight_has_ended_session(const struct flight *f)
{
	return f->state == FLIGHT_OVER ||
	    (f->state == FLIGHT_ANSWERED && f->ans.kind == REFD_ANSWER_RESULTS);
}

bool refd_flight_is_refused_commit(const struct flight *f)
{
	return f->req->verb == REFD_VERB_COMMIT &&
	    f->state == FLIGHT_ANSWERED && !is_open(f) &&
	    f->ans.kind == REFD_ANSWER_REFUSED;
}

bool refd_flight_is_settled(const struct flight *f)
{
	return f->state == FLIGHT_ANSWERED || f->state == FLIGHT_OVER ||
	    f->err < 0;
}

int refd_flight_take(struct flight *f, struct refd_answer *ans)
{
	int err;

	if (f->err < 0)
		return f->err;
	if (f->state == FLIGHT_OVER) {
		err = refd_answer_refusal(f->req, REFD_ABORTED,
		    f->req->verb == REFD_VERB_DRAIN ?
			"the daemon ended before it was drained" :
			"the session ended with its connection",
		    ans);
		return err < 0 ? err : 1;
	}
	if (f->state != FLIGHT_ANSWERED)
		return 0;
	*ans = f->ans;
	/* ANS owns the content now. Not move(): maybe_sent stays as it is. */
	f->state = FLIGHT_UNSENT;
	return 1;
}
