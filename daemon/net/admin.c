#include "daemon/net/admin.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/busy_cause.h"
#include "daemon/base/log.h"
#include "daemon/net/clients.h"
#include "daemon/net/pairs.h"
#include "daemon/net/stall.h"

#define BUSIEST   20
#define NS_PER_US 1000
#define NS_PER_MS 1000000

/* ---- the socket ---- */

static void admin_accepted(void *arg, int fd)
{
	clients_add(arg, fd, true);
}

void admin_listen(struct net *net)
{
	char *path = NULL, *why = NULL;
	int fd = net->cfg.admin_fd, r = -ENOMEM;

	if (asprintf(&path, "%s%s", net->cfg.socket_path, REFD_ADMIN_SUFFIX) <
	    0)
		path = NULL;
	if (path != NULL && fd >= 0)
		r = listener_adopt(net->cfg.sys, fd, path,
		    &net->admin_listener);
	else if (path != NULL)
		r = listener_open(net->cfg.sys, path, 0600,
		    &net->admin_listener, &why);
	if (r == 0)
		r = listener_start(net->admin_listener, net->base,
		    admin_accepted, net);
	if (r < 0)
		log_event(LOG_LEVEL_WARNING, "admin-socket-failed",
		    LOG_STR("error", why != NULL ? why : strerror(-r)),
		    LOG_TEXT("there is no pause, drain, top, locks and "
			     "slowlog"));
	free(path);
	free(why);
}

/* ---- top ---- */

static void add_busiest(struct pairs *pairs, const char *kind,
    const struct busy *busy, int64_t now_ns)
{
	struct busy_one list[BUSIEST];
	int64_t span_ns;
	size_t i, nr = busy_list(busy, now_ns, list, BUSIEST, &span_ns);
	char key[32];

	for (i = 0; i < nr; i++) {
		snprintf(key, sizeof(key), "%s.name", kind);
		pairs_add(pairs, key, list[i].name);
		snprintf(key, sizeof(key), "%s.transactions", kind);
		pairs_add_number(pairs, key, list[i].txns);
		snprintf(key, sizeof(key), "%s.refs", kind);
		pairs_add_number(pairs, key, list[i].refs);
		snprintf(key, sizeof(key), "%s.span_ms", kind);
		pairs_add_number(pairs, key, (uint64_t)(span_ns / NS_PER_MS));
	}
}

static void add_times(struct pairs *pairs, const char *what,
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
		pairs_add_number(pairs, key,
		    histogram_quantile(h, quantiles[i].permille));
	}
}

static void add_recent(struct pairs *pairs, struct net *net, int64_t now_ns)
{
	struct measure_period recent;
	struct scheduler_stats stats;
	int64_t span_ns;

	measure_recent(scheduler_measure(net->scheduler), now_ns, &recent,
	    &span_ns);
	scheduler_stats(net->scheduler, &stats);
	pairs_add_number(pairs, "span_ms", (uint64_t)(span_ns / NS_PER_MS));
	pairs_add_number(pairs, "windows", recent.windows);
	pairs_add_number(pairs, "transactions", recent.transactions);
	pairs_add_number(pairs, "refs", recent.refs);
	add_times(pairs, "flush_us", &recent.flush);
	add_times(pairs, "total_us", &recent.total);
	add_times(pairs, "window_txns", &recent.window_txns);
	pairs_add_number(pairs, "waiting", stats.waiting);
	pairs_add_number(pairs, "in_store", stats.in_store);
	pairs_add_number(pairs, "prepared", stats.prepared);
	add_busiest(pairs, "repo", scheduler_busy_repos(net->scheduler),
	    now_ns);
	add_busiest(pairs, "client", scheduler_busy_clients(net->scheduler),
	    now_ns);
}

static void report_top(struct net *net, struct conn *conn, uint32_t request_id)
{
	int64_t now_ns = SYS(net->cfg.sys, now_mono);
	struct pairs pairs = { 0 };

	pairs_add(&pairs, "state",
	    net->scheduler != NULL && scheduler_is_paused(net->scheduler) ?
		"paused" :
		refd_server_state_name(net_server_state(net)));
	pairs_add_number(&pairs, "uptime_s",
	    (uint64_t)((now_ns - net->started_ns) / 1000000000));
	pairs_add_number(&pairs, "connections", net->nr_conns);
	pairs_add_number(&pairs, "flush_hangs_s", stall_seconds(net));
	pairs_add(&pairs, "flush_hangs_on", stall_path(net));
	if (net->scheduler != NULL)
		add_recent(&pairs, net, now_ns);
	pairs_answer(&pairs, conn, request_id);
}

/* ---- the slow log ---- */

static void add_us(struct pairs *pairs, const char *key, int64_t ns)
{
	pairs_add_number(pairs, key, ns > 0 ? (uint64_t)(ns / NS_PER_US) : 0);
}

static void add_slow(struct pairs *pairs, const struct slow_one *one)
{
	char id[REFD_TXID_HEX + 1];

	pairs_add(pairs, "slow.txn", refd_txid_hex(&one->txid, id));
	pairs_add_number(pairs, "slow.time_ms", (uint64_t)one->wall_ms);
	pairs_add_number(pairs, "slow.uid", one->uid);
	pairs_add_number(pairs, "slow.pid", (uint64_t)one->pid);
	pairs_add(pairs, "slow.outcome", refd_outcome_name(one->outcome));
	pairs_add(pairs, "slow.repo", one->repo);
	pairs_add(pairs, "slow.ref", one->ref);
	pairs_add_number(pairs, "slow.refs", one->nr_refs);
	pairs_add(pairs, "slow.sid", one->sid);
	add_us(pairs, "slow.total_us", one->total_ns);
	add_us(pairs, "slow.admit_us", one->admit_ns);
	add_us(pairs, "slow.barrier_us", one->barrier_ns);
	add_us(pairs, "slow.queue_us", one->queue_ns);
	add_us(pairs, "slow.lock_us", one->lock_ns);
	add_us(pairs, "slow.flush_us", one->flush_ns);
	add_us(pairs, "slow.publish_us", one->publish_ns);
	add_us(pairs, "slow.reply_us", one->reply_ns);
}

static void report_slow(struct net *net, struct conn *conn, uint32_t request_id)
{
	const struct slow_one *one;
	struct pairs pairs = { 0 };
	const struct slow *slow;
	uint64_t nr;

	pairs_add_number(&pairs, "limit_ms",
	    (uint64_t)(net->cfg.settings.scheduler.slow_ns / NS_PER_MS));
	if (net->scheduler != NULL) {
		slow = scheduler_slow(net->scheduler);
		pairs_add_number(&pairs, "slow_transactions", slow->sent);
		for (nr = slow->sent; (one = slow_get(slow, nr)) != NULL; nr--)
			add_slow(&pairs, one);
	}
	pairs_answer(&pairs, conn, request_id);
}

static void log_slow(struct net *net, const struct slow_one *one)
{
	char id[REFD_TXID_HEX + 1];

	log_limited(&net->slow_limit, LOG_LEVEL_INFO, "slow",
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

void admin_log_slow(struct net *net)
{
	const struct slow *slow = scheduler_slow(net->scheduler);
	const struct slow_one *one;

	while (net->slow_logged < slow->sent) {
		one = slow_get(slow, ++net->slow_logged);
		if (one != NULL)
			log_slow(net, one);
	}
}

/* ---- locks ---- */

static void add_lock(void *arg, const struct scheduler_lock *lock)
{
	char id[REFD_TXID_HEX + 1];
	struct pairs *pairs = arg;

	pairs_addf(pairs, "lock.file", "%s/%s.lock", lock->repo, lock->path);
	pairs_add(pairs, "lock.kind",
	    lock->kind == SCHEDULER_LOCK_HELD ? "held" : "waits");
	pairs_add_number(pairs, "lock.age_ms",
	    (uint64_t)(lock->age_ns / NS_PER_MS));
	pairs_add(pairs, "lock.txn", refd_txid_hex(lock->txid, id));
	pairs_add_number(pairs, "lock.uid", lock->uid);
	pairs_add_number(pairs, "lock.pid", (uint64_t)lock->pid);
}

static void report_locks(struct net *net, struct conn *conn,
    uint32_t request_id)
{
	struct pairs pairs = { 0 };

	scheduler_locks(net->scheduler, SYS(net->cfg.sys, now_mono), add_lock,
	    &pairs);
	pairs_answer(&pairs, conn, request_id);
}

/* ---- pause, drain, resume ---- */

static void answered(void *arg, const struct refd_answer *ans)
{
	conn_answer(arg, ans);
}

static void answer_state(struct net *net, struct conn *conn,
    const struct refd_request *req)
{
	struct pairs pairs = { 0 };
	struct scheduler_stats stats;

	scheduler_stats(net->scheduler, &stats);
	pairs_add(&pairs, "paused",
	    scheduler_is_paused(net->scheduler) ? "yes" : "no");
	pairs_add_number(&pairs, "waiting", stats.waiting);
	pairs_add_number(&pairs, "in_store", stats.in_store);
	pairs_answer(&pairs, conn, req->request_id);
}

/* Whoever did it, since somebody will ask. */
static void say(const struct conn *conn, const char *what)
{
	log_event(LOG_LEVEL_INFO, what, LOG_NUM("uid", conn->peer.uid),
	    LOG_NUM("pid", conn->peer.pid), LOG_TEXT("by an administrator"));
}

static void pause_windows(struct net *net, struct conn *conn,
    const struct refd_request *req)
{
	scheduler_pause(net->scheduler);
	say(conn, "paused");
	answer_state(net, conn, req);
}

static void resume(struct net *net, struct conn *conn,
    const struct refd_request *req)
{
	scheduler_resume(net->scheduler);
	say(conn, "resumed");
	answer_state(net, conn, req);
}

static void drain(struct net *net, struct conn *conn,
    const struct refd_request *req)
{
	say(conn, "drained");
	scheduler_close(net->scheduler, req, answered, conn);
}

/* ---- ---- */

static void refuse(struct conn *conn, const struct refd_request *req,
    enum refd_status status, const char *why)
{
	struct refd_answer ans = { .kind = REFD_ANSWER_REFUSED,
		.request_id = req->request_id,
		.status = status,
		.text = why };

	conn_answer(conn, &ans);
}

void admin_take(struct net *net, struct conn *conn,
    const struct refd_request *req)
{
	if (!conn->is_admin) {
		refuse(conn, req, REFD_DENIED,
		    "this is asked on the socket for administration");
		return;
	}
	if (req->verb == REFD_VERB_TOP) {
		report_top(net, conn, req->request_id);
		return;
	}
	if (net->state != NET_STATE_SERVING) {
		if (net->scheduler == NULL)
			refuse(conn, req, BUSY(RECOVERING));
		else
			refuse(conn, req, BUSY(STOPPING));
		return;
	}
	switch (req->verb) {
	case REFD_VERB_SLOW:
		report_slow(net, conn, req->request_id);
		break;
	case REFD_VERB_LOCKS:
		report_locks(net, conn, req->request_id);
		break;
	case REFD_VERB_PAUSE:
		pause_windows(net, conn, req);
		break;
	case REFD_VERB_DRAIN:
		drain(net, conn, req);
		break;
	case REFD_VERB_RESUME:
		resume(net, conn, req);
		break;
	case REFD_VERB_TOP:
	case REFD_VERB_TRANSACTION:
	case REFD_VERB_SESSION:
	case REFD_VERB_COMMIT:
	case REFD_VERB_ABORT:
	case REFD_VERB_CANCEL:
	case REFD_VERB_QUERY:
	case REFD_VERB_PING:
	case REFD_VERB_STATUS:
	case REFD_VERB_STATS:
	case REFD_VERB_CHECKPOINT:
	case REFD_VERB_LOG:
	case REFD_VERB_WATCH:
	case REFD_VERB_METRICS:
		break;
	}
	net_want_turn(net);
}
