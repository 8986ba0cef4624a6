#include "daemon/server/requests.h"

#include <stdio.h>
#include <unistd.h>

#include "daemon/base/busy_cause.h"
#include "daemon/server/peer.h"
#include "daemon/server/report.h"
#include "daemon/server/server_internal.h"

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
 * it can. The request is refused at once: its id stays unused, and no lock is
 * taken. */
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

/* A checkpoint syncs every file system, so few accounts may ask for it. */
static void ask_checkpoint(struct server *server, struct conn *conn,
    const struct refd_request *req)
{
	if (conn->peer.uid != 0 && conn->peer.uid != (uint32_t)geteuid())
		conn_refuse(conn, req, REFD_DENIED,
		    "only root and the daemon's own user may ask for a "
		    "checkpoint");
	else
		scheduler_checkpoint(server->scheduler, req, conn->peer.uid,
		    conn_answer, conn);
}

/* Requests that need the journal, and so the scheduler. */
static void give_to_scheduler(struct server *server, struct conn *conn,
    struct refd_request *req)
{
	int64_t now_ns = SYS(server->cfg.sys, now_mono);

	if (server->scheduler == NULL) {
		conn_refuse(conn, req, BUSY(RECOVERING));
		return;
	}
	switch (req->verb) {
	case REFD_VERB_TRANSACTION:
	case REFD_VERB_SESSION:
		submit_transaction(server, conn, req);
		break;
	case REFD_VERB_QUERY:
		scheduler_query(server->scheduler, req, conn->peer.uid, now_ns,
		    conn_answer, conn);
		break;
	case REFD_VERB_CANCEL:
		scheduler_cancel(server->scheduler, req, conn->peer.uid, now_ns,
		    conn_answer, conn);
		break;
	case REFD_VERB_COMMIT:
		scheduler_commit(server->scheduler, req, conn->peer.uid, now_ns,
		    conn_answer, conn);
		break;
	case REFD_VERB_ABORT:
		scheduler_abort(server->scheduler, req, conn->peer.uid, now_ns,
		    conn_answer, conn);
		break;
	case REFD_VERB_CHECKPOINT:
		ask_checkpoint(server, conn, req);
		break;
	case REFD_VERB_PACK:
		ask_to_pack(server, conn, req);
		break;
	case REFD_VERB_LOOK:
		ask_to_look(server, conn, req);
		break;
	case REFD_VERB_LOG:
	case REFD_VERB_WATCH:
		scheduler_history(server->scheduler, req, &conn->peer, now_ns,
		    conn_answer, conn);
		break;
	/* requests_take() gives these to the server or to admin.c. */
	case REFD_VERB_PING:
	case REFD_VERB_STATUS:
	case REFD_VERB_STATS:
	case REFD_VERB_METRICS:
	case REFD_VERB_TOP:
	case REFD_VERB_SLOW:
	case REFD_VERB_LOCKS:
	case REFD_VERB_PAUSE:
	case REFD_VERB_DRAIN:
	case REFD_VERB_RESUME:
		break;
	}
	loop_want_turn(&server->loop);
}

static void answer_alone(struct server *server, struct conn *conn,
    const struct refd_request *req)
{
	struct refd_answer pong = { .kind = REFD_ANSWER_PONG,
		.request_id = req->request_id };

	if (req->verb == REFD_VERB_STATUS)
		report_status(server, conn, req->request_id);
	else if (req->verb == REFD_VERB_STATS)
		report_metrics(server, conn, req->request_id,
		    metrics_key_values);
	else if (req->verb == REFD_VERB_METRICS)
		report_metrics(server, conn, req->request_id, metrics_text);
	else
		conn_answer(conn, &pong);
}

void requests_take(void *arg, struct conn *conn, struct refd_request *req)
{
	struct server *server = arg;

	switch (refd_verb_class(req->verb)) {
	case REFD_CLASS_SERVER:
		answer_alone(server, conn, req);
		break;
	case REFD_CLASS_ADMIN:
		admin_take(server, conn, req);
		break;
	case REFD_CLASS_UPDATES:
	case REFD_CLASS_END:
	case REFD_CLASS_TXID:
	case REFD_CLASS_JOURNAL:
		give_to_scheduler(server, conn, req);
		break;
	}
	/* txn_new() took the content of a transaction; this frees the rest. */
	refd_request_done(req);
}
