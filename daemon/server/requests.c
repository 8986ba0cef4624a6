#include "daemon/server/requests.h"

#include <assert.h>
#include <stdio.h>
#include <unistd.h>

#include "daemon/base/busy_cause.h"
#include "daemon/server/admin.h"
#include "daemon/server/peer.h"
#include "daemon/server/report.h"
#include "daemon/server/server_internal.h"
#include "proto/verb.h"

void requests_hello(const struct server *server, struct refd_hello *hello)
{
	const struct scheduler_config *cfg = &server->cfg.scheduler;
	int64_t horizon_ms = server_wall_ms(server) - cfg->retention_ms;

	if (horizon_ms < cfg->joined_ms)
		horizon_ms = cfg->joined_ms;
	*hello = (struct refd_hello){
		.version = REFD_PROTOCOL_VERSION,
		.state = server_public_state(server),
		.horizon_ms = horizon_ms > 0 ? (uint64_t)horizon_ms : 0,
		.pid = (uint64_t)getpid(),
		.max_updates = REFD_UPDATES_MAX,
		.max_bytes = REFD_TXN_BYTES_MAX,
	};
	if (server->recovery != NULL)
		recovery_thread_progress(server->recovery, &hello->done,
		    &hello->total);
	snprintf(hello->software, sizeof(hello->software), "refd/%s",
	    REFD_VERSION);
}

/* The reason why this daemon cannot keep the promise that REQ asks for; NULL:
 * it can. The request is refused at once, so its id stays unused, and no lock
 * is taken. */
static const char *why_unsupported(const struct server *server,
    const struct refd_request *req)
{
	const bool shares_rows = server->cfg.shares_rows;

	if (req->level.kind > REFD_LEVEL_LOGGED && shares_rows)
		return "level: in a group every update is logged, and "
		       "group.held says for all of them how many other nodes "
		       "have the objects; for applied, use refd wait there";
	if (req->level.kind > REFD_LEVEL_LOCAL && !shares_rows)
		return "level: this daemon belongs to no group, so it can "
		       "promise the level local only";
	return NULL;
}

/* NULL: REQ was refused. */
static struct txn *take_request(struct conn *conn, struct refd_request *req)
{
	struct txn *txn = txn_new(req);

	if (txn == NULL) {
		conn_refuse(conn, req, BUSY(MEMORY));
	} else if (peer_copy(&conn->peer, &txn->peer) < 0) {
		conn_refuse(conn, &txn->req, BUSY(MEMORY));
		txn_free(txn);
		txn = NULL;
	}
	return txn;
}

static void submit_transaction(struct server *server, struct conn *conn,
    struct refd_request *req)
{
	const char *why = why_unsupported(server, req);
	struct txn *txn;

	if (why != NULL) {
		conn_refuse(conn, req, REFD_UNSUPPORTED, why);
		return;
	}
	txn = take_request(conn, req);
	if (txn != NULL)
		scheduler_submit(server->scheduler, txn,
		    SYS(server->cfg.sys, now_mono), conn_answer, conn);
}

static void ask_to_pack(struct server *server, struct conn *conn,
    struct refd_request *req)
{
	struct txn *txn = take_request(conn, req);

	if (txn != NULL)
		scheduler_pack(server->scheduler, txn, conn_answer, conn);
}

static void ask_to_look(struct server *server, struct conn *conn,
    struct refd_request *req)
{
	struct txn *txn = take_request(conn, req);

	if (txn != NULL)
		scheduler_look(server->scheduler, txn, conn_answer, conn);
}

static void ask_checkpoint(struct server *server, struct conn *conn,
    struct refd_request *req)
{
	scheduler_checkpoint(server->scheduler, req, conn->peer.uid,
	    conn_answer, conn);
}

static void ask_history(struct server *server, struct conn *conn,
    struct refd_request *req)
{
	scheduler_history(server->scheduler, req, &conn->peer,
	    SYS(server->cfg.sys, now_mono), conn_answer, conn);
}

static void answer_ping(struct server *server, struct conn *conn,
    struct refd_request *req)
{
	const struct refd_answer pong = { .kind = REFD_ANSWER_PONG,
		.request_id = req->request_id };

	(void)server;
	conn_answer(conn, &pong);
}

static void answer_stats(struct server *server, struct conn *conn,
    struct refd_request *req)
{
	report_metrics(server, conn, req->request_id, metrics_key_values);
}

static void answer_metrics(struct server *server, struct conn *conn,
    struct refd_request *req)
{
	report_metrics(server, conn, req->request_id, metrics_text);
}

/* ---- the verbs ---- */

struct verb_rule {
	enum refd_verb verb;
	requests_verb_fn *take;
	/* Instead of TAKE, for a verb that names a transaction. */
	void (*by_id)(struct scheduler *e, const struct refd_request *req,
	    uint32_t uid, int64_t now_ns, scheduler_answer_fn *fn, void *arg);
};

/* In the order of REFD_VERB_TABLE. */
static const struct verb_rule verbs[] = {
	{ REFD_VERB_TRANSACTION, submit_transaction, NULL },
	{ REFD_VERB_SESSION, submit_transaction, NULL },
	{ REFD_VERB_COMMIT, NULL, scheduler_commit },
	{ REFD_VERB_ABORT, NULL, scheduler_abort },
	{ REFD_VERB_CANCEL, NULL, scheduler_cancel },
	{ REFD_VERB_QUERY, NULL, scheduler_query },
	{ REFD_VERB_PING, answer_ping, NULL },
	{ REFD_VERB_STATUS, report_status, NULL },
	{ REFD_VERB_STATS, answer_stats, NULL },
	{ REFD_VERB_CHECKPOINT, ask_checkpoint, NULL },
	{ REFD_VERB_PACK, ask_to_pack, NULL },
	{ REFD_VERB_LOOK, ask_to_look, NULL },
	{ REFD_VERB_LOG, ask_history, NULL },
	{ REFD_VERB_WATCH, ask_history, NULL },
	{ REFD_VERB_METRICS, answer_metrics, NULL },
	{ REFD_VERB_TOP, admin_answer_top, NULL },
	{ REFD_VERB_SLOW, admin_answer_slow, NULL },
	{ REFD_VERB_LOCKS, admin_answer_locks, NULL },
	{ REFD_VERB_PAUSE, admin_pause, NULL },
	{ REFD_VERB_DRAIN, admin_drain, NULL },
	{ REFD_VERB_RESUME, admin_resume, NULL },
};

_Static_assert(sizeof(verbs) / sizeof(verbs[0]) == REFD_VERBS,
    "each verb has a row");

/* May CONN ask now? Otherwise REQ was refused. */
static bool may_ask(const struct server *server, struct conn *conn,
    const struct refd_request *req)
{
	const struct refd_verb_row *verb = &refd_verbs[req->verb];

	if (verb->who == REFD_WHO_ADMIN && !conn->is_admin)
		conn_refuse(conn, req, REFD_DENIED,
		    "this is asked on the socket for administration");
	else if (verb->when != REFD_WHEN_EVER && server->scheduler == NULL)
		conn_refuse(conn, req, BUSY(RECOVERING));
	else if (verb->when == REFD_WHEN_SERVING &&
	    server->state != SERVER_STATE_SERVING)
		conn_refuse(conn, req, BUSY(STOPPING));
	else if (verb->who == REFD_WHO_OWN && conn->peer.uid != 0 &&
	    conn->peer.uid != (uint32_t)geteuid())
		conn_refuse(conn, req, REFD_DENIED,
		    "only root and the daemon's own user may ask for this");
	else
		return true;
	return false;
}

void requests_take(void *arg, struct conn *conn, struct refd_request *req)
{
	struct server *server = arg;
	const struct verb_rule *v = &verbs[req->verb];

	assert(v->verb == req->verb);
	if (may_ask(server, conn, req)) {
		if (v->by_id != NULL)
			v->by_id(server->scheduler, req, conn->peer.uid,
			    SYS(server->cfg.sys, now_mono), conn_answer, conn);
		else
			v->take(server, conn, req);
		if (refd_verbs[v->verb].when != REFD_WHEN_EVER)
			loop_want_turn(&server->loop);
	}
	/* txn_new() took the content of a transaction; this frees the rest. */
	refd_request_done(req);
}
