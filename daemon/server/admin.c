#include "daemon/server/admin.h"

#include <inttypes.h>
#include <stdio.h>

#include "daemon/base/key_values.h"
#include "daemon/base/time.h"
#include "daemon/server/server_internal.h"

#define BUSIEST 20

/* ---- top ---- */

static void add_busiest(struct key_values *kv, const char *kind,
    const struct busy *busy, int64_t now_ns)
{
	struct busy_one list[BUSIEST];
	int64_t span_ns;
	size_t i, nr = busy_list(busy, now_ns, list, BUSIEST, &span_ns);
	char key[32];

	for (i = 0; i < nr; i++) {
		snprintf(key, sizeof(key), "%s.name", kind);
		key_values_add(kv, key, list[i].name);
		snprintf(key, sizeof(key), "%s.transactions", kind);
		key_values_add_number(kv, key, list[i].txns);
		snprintf(key, sizeof(key), "%s.refs", kind);
		key_values_add_number(kv, key, list[i].refs);
		snprintf(key, sizeof(key), "%s.span_ms", kind);
		key_values_add_number(kv, key, (uint64_t)(span_ns / NS_PER_MS));
	}
}

static void add_times(struct key_values *kv, const char *what,
    const struct histogram *h)
{
	static const struct {
		const char *name;
		unsigned permille;
	} quantiles[] = { { "p50", 500 }, { "p99", 990 }, { "max", 1000 } };
	char key[32];
	size_t i;

	for (i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++) {
		snprintf(key, sizeof(key), "%s_%s", what, quantiles[i].name);
		key_values_add_number(kv, key,
		    histogram_quantile(h, quantiles[i].permille));
	}
}

static void add_recent(struct key_values *kv, struct server *server,
    int64_t now_ns)
{
	struct measure_period recent;
	struct scheduler_stats stats;
	int64_t span_ns;

	measure_recent(scheduler_measure(server->scheduler), now_ns, &recent,
	    &span_ns);
	scheduler_stats(server->scheduler, &stats);
	key_values_add_number(kv, "span_ms", (uint64_t)(span_ns / NS_PER_MS));
	key_values_add_number(kv, "batches", recent.batches);
	key_values_add_number(kv, "transactions", recent.transactions);
	key_values_add_number(kv, "refs", recent.refs);
	add_times(kv, "flush_us", &recent.flush);
	add_times(kv, "total_us", &recent.total);
	add_times(kv, "batch_txns", &recent.batch_txns);
	key_values_add_number(kv, "waiting", stats.waiting);
	key_values_add_number(kv, "in_store", stats.in_store);
	key_values_add_number(kv, "prepared", stats.prepared);
	add_busiest(kv, "repo", scheduler_busy_repos(server->scheduler),
	    now_ns);
	add_busiest(kv, "client", scheduler_busy_clients(server->scheduler),
	    now_ns);
}

void admin_answer_top(struct server *server, struct conn *conn,
    struct refd_request *req)
{
	int64_t now_ns = SYS(server->cfg.sys, now_mono);
	struct key_values kv = { 0 };

	key_values_add(&kv, "state",
	    server->scheduler != NULL &&
		    scheduler_is_paused(server->scheduler) ?
		"paused" :
		refd_server_state_name(server_public_state(server)));
	key_values_add_number(&kv, "uptime_s",
	    (uint64_t)((now_ns - server->started_ns) / 1000000000));
	key_values_add_number(&kv, "connections", server->clients.nr_conns);
	key_values_add_number(&kv, "flush_hangs_s",
	    stall_seconds(&server->service.stall));
	key_values_add(&kv, "flush_hangs_on",
	    stall_path(&server->service.stall));
	if (server->scheduler != NULL)
		add_recent(&kv, server, now_ns);
	conn_answer_pairs(&kv, conn, req->request_id);
}

/* ---- the slow log ---- */

static void add_us(struct key_values *kv, const char *key, int64_t ns)
{
	key_values_add_number(kv, key, ns > 0 ? (uint64_t)(ns / NS_PER_US) : 0);
}

static void add_slow(struct key_values *kv, const struct slow_one *one)
{
	char id[REFD_TXID_HEX + 1];

	key_values_add(kv, "slow.txn", refd_txid_hex(&one->txid, id));
	key_values_add_number(kv, "slow.time_ms", (uint64_t)one->wall_ms);
	key_values_add_number(kv, "slow.uid", one->uid);
	key_values_add_number(kv, "slow.pid", (uint64_t)one->pid);
	key_values_add(kv, "slow.outcome", refd_outcome_name(one->outcome));
	key_values_add(kv, "slow.repo", one->repo);
	key_values_add(kv, "slow.ref", one->ref);
	key_values_add_number(kv, "slow.refs", one->nr_refs);
	key_values_add(kv, "slow.sid", one->sid);
	add_us(kv, "slow.total_us", one->total_ns);
	add_us(kv, "slow.admit_us", one->admit_ns);
	add_us(kv, "slow.barrier_us", one->barrier_ns);
	add_us(kv, "slow.queue_us", one->queue_ns);
	add_us(kv, "slow.lock_us", one->lock_ns);
	add_us(kv, "slow.flush_us", one->flush_ns);
	add_us(kv, "slow.publish_us", one->publish_ns);
	add_us(kv, "slow.reply_us", one->reply_ns);
}

void admin_answer_slow(struct server *server, struct conn *conn,
    struct refd_request *req)
{
	const struct slow_one *one;
	struct key_values kv = { 0 };
	const struct slow *slow;
	uint64_t nr;

	key_values_add_number(&kv, "limit_ms",
	    (uint64_t)(server->cfg.settings.scheduler.slow_ns / NS_PER_MS));
	if (server->scheduler != NULL) {
		slow = scheduler_slow(server->scheduler);
		key_values_add_number(&kv, "slow_transactions", slow->sent);
		for (nr = slow->sent; (one = slow_get(slow, nr)) != NULL; nr--)
			add_slow(&kv, one);
	}
	conn_answer_pairs(&kv, conn, req->request_id);
}

static void log_slow_transaction(struct server *server,
    const struct slow_one *one)
{
	char id[REFD_TXID_HEX + 1];

	log_limited(&server->slow.limit, LOG_LEVEL_INFO, "slow",
	    LOG_WORD("transaction", refd_txid_hex(&one->txid, id)),
	    LOG_WORD("outcome", refd_outcome_name(one->outcome)),
	    LOG_NUM("refs", one->nr_refs), LOG_NUM("uid", one->uid),
	    LOG_NUM("pid", one->pid),
	    LOG_NUM("total_ms", one->total_ns / NS_PER_MS),
	    LOG_NUM("admit_ms", one->admit_ns / NS_PER_MS),
	    LOG_NUM("barrier_ms", one->barrier_ns / NS_PER_MS),
	    LOG_NUM("queue_ms", one->queue_ns / NS_PER_MS),
	    LOG_NUM("lock_ms", one->lock_ns / NS_PER_MS),
	    LOG_NUM("flush_ms", one->flush_ns / NS_PER_MS),
	    LOG_NUM("publish_ms", one->publish_ns / NS_PER_MS),
	    LOG_NUM("reply_ms", one->reply_ns / NS_PER_MS),
	    LOG_STR("repo", one->repo), LOG_STR("ref", one->ref),
	    LOG_STR("sid", one->sid));
}

void admin_slow_log(struct server *server)
{
	const struct slow *slow = scheduler_slow(server->scheduler);
	const struct slow_one *one;

	while (server->slow.logged < slow->sent) {
		one = slow_get(slow, ++server->slow.logged);
		if (one != NULL)
			log_slow_transaction(server, one);
	}
}

void admin_slow_init(struct admin_slow *slow)
{
	*slow = (struct admin_slow){ .limit = { .burst = 10, .seconds = 10 } };
}

/* ---- failed updates ---- */

void admin_log_io(void *limit, const struct scheduler_io *io)
{
	const struct txn *txn = io->txn;
	char id[REFD_TXID_HEX + 1];

	log_limited(limit, LOG_LEVEL_WARNING, "update-failed",
	    LOG_WORD("transaction", refd_txid_hex(&txn->req.txid, id)),
	    LOG_WORD("status", refd_status_name(REFD_IO)),
	    LOG_NUM("refs", io->nr), LOG_NUM("uid", txn->peer.uid),
	    LOG_NUM("pid", txn->peer.pid), LOG_STR("repo", io->repo),
	    LOG_STR("ref", io->ref),
	    LOG_STR("error", io->why != NULL ? io->why : ""));
}

/* ---- locks ---- */

static void add_lock(void *arg, const struct scheduler_lock *lock)
{
	char id[REFD_TXID_HEX + 1];
	struct key_values *kv = arg;

	key_values_addf(kv, "lock.file", "%s/%s.lock", lock->repo, lock->path);
	key_values_add(kv, "lock.kind",
	    lock->kind == SCHEDULER_LOCK_HELD ? "held" : "waits");
	key_values_add_number(kv, "lock.age_ms",
	    (uint64_t)(lock->age_ns / NS_PER_MS));
	key_values_add(kv, "lock.txn", refd_txid_hex(lock->txid, id));
	key_values_add_number(kv, "lock.uid", lock->uid);
	key_values_add_number(kv, "lock.pid", (uint64_t)lock->pid);
}

void admin_answer_locks(struct server *server, struct conn *conn,
    struct refd_request *req)
{
	struct key_values kv = { 0 };

	scheduler_locks(server->scheduler, SYS(server->cfg.sys, now_mono),
	    add_lock, &kv);
	conn_answer_pairs(&kv, conn, req->request_id);
}

/* ---- pause, drain, resume ---- */

static void answer_state(struct server *server, struct conn *conn,
    const struct refd_request *req)
{
	struct key_values kv = { 0 };
	struct scheduler_stats stats;

	scheduler_stats(server->scheduler, &stats);
	key_values_add(&kv, "paused",
	    scheduler_is_paused(server->scheduler) ? "yes" : "no");
	key_values_add_number(&kv, "waiting", stats.waiting);
	key_values_add_number(&kv, "in_store", stats.in_store);
	conn_answer_pairs(&kv, conn, req->request_id);
}

/* Names the administrator, because other administrators will ask. */
static void log_admin(const struct conn *conn, const char *what)
{
	log_event(LOG_LEVEL_INFO, what, LOG_NUM("uid", conn->peer.uid),
	    LOG_NUM("pid", conn->peer.pid), LOG_TEXT("by an administrator"));
}

void admin_pause(struct server *server, struct conn *conn,
    struct refd_request *req)
{
	if (!scheduler_is_paused(server->scheduler))
		server->paused_ns = SYS(server->cfg.sys, now_mono);
	scheduler_pause(server->scheduler);
	log_admin(conn, "paused");
	answer_state(server, conn, req);
}

void admin_resume(struct server *server, struct conn *conn,
    struct refd_request *req)
{
	scheduler_resume(server->scheduler);
	log_admin(conn, "resumed");
	answer_state(server, conn, req);
}

void admin_drain(struct server *server, struct conn *conn,
    struct refd_request *req)
{
	log_admin(conn, "drained");
	scheduler_close(server->scheduler, req, conn_answer, conn);
}
