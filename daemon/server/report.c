#include "daemon/server/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/time.h"
#include "daemon/server/server_internal.h"
#include "proto/hex.h"

/* What this node may do for clients, for `refd role` and load balancers. */
struct node_role {
	/* Static: "single" without other nodes, "leader" or "follower". Or
	 * "waits": the daemon does not serve, or the other nodes are out of
	 * reach. */
	const char *name;
	bool takes_writes; /* single and leader */
	/* The same, and a follower whose lag is at most group.max-lag. */
	bool serves_reads;
};

/* STORE has the present values of the store of SERVER. A paused daemon keeps
 * its role. */
static struct node_role node_role(const struct server *server,
    const struct store_stats *store)
{
	struct node_role role = { .name = "waits" };

	if (server_public_state(server) != REFD_SERVING)
		return role;
	role.name = store->replica.role;
	role.takes_writes = strcmp(role.name, "single") == 0 ||
	    strcmp(role.name, "leader") == 0;
	role.serves_reads = role.takes_writes ||
	    (strcmp(role.name, "follower") == 0 &&
		store->replica.lag_ns <= server->cfg.settings.max_lag_ns);
	return role;
}

/* ---- the metrics ---- */

static void add_stages(struct metrics *m, struct server *server)
{
	struct store_progress progress[STORE_STAGES];
	int64_t now_ns;
	size_t i;

	store_progress(server->store, STALL_TOLD_NS, progress);
	now_ns = SYS(server->cfg.sys, now_mono);
	for (i = 0; i < STORE_STAGES; i++) {
		if (progress[i].since_ns != 0)
			m->stage_s[i] =
			    (uint64_t)((now_ns - progress[i].since_ns) /
				NS_PER_S);
		m->stage_stuck[i] = progress[i].nr_stuck;
	}
}

struct metrics *report_collect(void *arg)
{
	struct metrics *m = calloc(1, sizeof(*m));
	struct server *server = arg;
	struct node_role role;

	if (m == NULL)
		return NULL;
	m->now_ns = SYS(server->cfg.sys, now_mono);
	/* The store belongs to the recovery thread during recovery, so nobody
	 * else reads it. */
	if (server->scheduler != NULL) {
		scheduler_stats(server->scheduler, &m->scheduler);
		store_stats(server->store, &m->store);
		m->measure = *scheduler_measure(server->scheduler);
		m->paused = scheduler_is_paused(server->scheduler);
		add_stages(m, server);
	}
	role = node_role(server, &m->store);
	m->role = role.name;
	m->takes_writes = role.takes_writes;
	m->serves_reads = role.serves_reads;
	m->serving = server_public_state(server) == REFD_SERVING;
	m->uptime_s = (uint64_t)((m->now_ns - server->started_ns) / NS_PER_S);
	m->flush_hangs_s = stall_seconds(&server->service.stall);
	m->connections = server->clients.nr_conns;
	m->turned_away = server->clients.turned_away;
	m->turn = server->turns;
	metrics_complete(m);
	return m;
}

/* ---- the answers ---- */

/* All zero while recovering, because the store then belongs to the recovery
 * thread. */
static void read_stats(struct server *server, struct scheduler_stats *scheduler,
    struct store_stats *store)
{
	*scheduler = (struct scheduler_stats){ 0 };
	*store = (struct store_stats){ 0 };
	if (server->scheduler == NULL)
		return;
	scheduler_stats(server->scheduler, scheduler);
	store_stats(server->store, store);
}

/* The log of tokens, and how far this node is in it. */
static void add_log_place(struct key_values *kv, struct server *server,
    const struct store_stats *store)
{
	static const uint8_t none[REFD_JOURNAL_ID_BYTES];
	uint8_t id[REFD_JOURNAL_ID_BYTES];
	char hex[2 * REFD_JOURNAL_ID_BYTES + 1];

	if (server->scheduler == NULL)
		return;
	store_token_log(server->store, id);
	if (memcmp(id, none, sizeof(id)) == 0)
		return;
	key_values_add(kv, "token_log", refd_hex_put(id, sizeof(id), hex));
	key_values_add_number(kv, "applied_lsn", store->replica.lsn);
}

static void add_progress(struct key_values *kv, struct server *server)
{
	uint64_t done, total;

	if (server->recovery == NULL)
		return;
	recovery_thread_progress(server->recovery, &done, &total);
	key_values_addf(kv, "progress", "%" PRIu64 " of %" PRIu64, done, total);
}

/* The load of the last seconds, as in refd top. */
static void add_recent(struct key_values *kv, struct server *server)
{
	struct measure_period recent;
	int64_t span_ns;

	if (server->scheduler == NULL)
		return;
	measure_recent(scheduler_measure(server->scheduler),
	    SYS(server->cfg.sys, now_mono), &recent, &span_ns);
	key_values_add_number(kv, "recent_ms", (uint64_t)(span_ns / 1000000));
	key_values_add_number(kv, "recent_transactions", recent.transactions);
	key_values_add_number(kv, "recent_refs", recent.refs);
	key_values_add_number(kv, "recent_nospace", recent.nospace);
	key_values_add_number(kv, "recent_io", recent.io);
	key_values_add_number(kv, "recent_disk_errors", recent.disk_errors);
	key_values_add_number(kv, "recent_flush_us_p50",
	    histogram_quantile(&recent.flush, 500));
	key_values_add_number(kv, "recent_flush_us_p99",
	    histogram_quantile(&recent.flush, 990));
}

static void add_paused(struct key_values *kv, struct server *server)
{
	bool is_paused =
	    server->scheduler != NULL && scheduler_is_paused(server->scheduler);
	int64_t now_ns = SYS(server->cfg.sys, now_mono);

	key_values_add(kv, "paused", is_paused ? "yes" : "no");
	if (is_paused)
		key_values_add_number(kv, "paused_s",
		    (uint64_t)(now_ns - server->paused_ns) / NS_PER_S);
}

/* Recent lines of the log, the newest first. The lines name repositories, so
 * only a reader who may know all repositories gets them. */
static void add_recent_log(struct key_values *kv)
{
	struct log_kept kept[LOG_KEPT];
	size_t i, nr = log_recent(kept);

	for (i = 0; i < nr; i++) {
		key_values_add_number(kv, "log.time_ms",
		    (uint64_t)kept[i].wall_ms);
		key_values_add(kv, "log.level",
		    kept[i].is_error ? "error" : "warning");
		key_values_add(kv, "log.text", kept[i].text);
	}
}

/* A row for each stage that stalls now. */
static void add_stalls(struct key_values *kv, struct server *server,
    bool shows_paths)
{
	int64_t now_ns = SYS(server->cfg.sys, now_mono);
	struct store_progress progress[STORE_STAGES], *p;
	char text[STALL_TEXT];
	size_t i;

	if (server->scheduler == NULL)
		return;
	store_progress(server->store, STALL_TOLD_NS, progress);
	for (i = 0; i < STORE_STAGES; i++) {
		p = &progress[i];
		if (p->nr_stuck == 0)
			continue;
		key_values_add(kv, "stall.stage", store_stage_name(i));
		key_values_add_number(kv, "stall.seconds",
		    (uint64_t)(now_ns - p->since_ns) / NS_PER_S);
		key_values_add_number(kv, "stall.stuck", p->nr_stuck);
		key_values_add_number(kv, "stall.threads", p->nr_threads);
		key_values_add(kv, "stall.text",
		    stall_describe(text, i, p, now_ns, shows_paths));
	}
}

/* The repositories behind recent_io. */
static void add_failed(struct key_values *kv, struct server *server)
{
	int64_t since_ns =
	    SYS(server->cfg.sys, now_mono) - 2 * MEASURE_PERIOD_NS;
	const struct measure_failed *rows;
	size_t i;

	if (server->scheduler == NULL)
		return;
	rows = scheduler_measure(server->scheduler)->failed;
	for (i = 0; i < MEASURE_FAILED && rows[i].at_ns != 0 &&
	    rows[i].at_ns >= since_ns;
	    i++) {
		key_values_add(kv, "failed.repo", rows[i].repo);
		key_values_add(kv, "failed.ref", rows[i].ref);
		key_values_add(kv, "failed.error", rows[i].why);
	}
}

static void add_shared(struct key_values *kv, const struct replica_state *state)
{
	key_values_add_number(kv, "group_epoch", state->epoch);
	key_values_add_number(kv, "group_lsn", state->lsn);
	key_values_add_number(kv, "group_waiting_repos", state->waiting_repos);
	key_values_add_number(kv, "group_lag_ms",
	    (uint64_t)state->lag_ns / NS_PER_MS);
	key_values_add(kv, "group_leader", state->leader);
}

void report_status(struct server *server, struct conn *conn,
    struct refd_request *req)
{
	int64_t up_ns = SYS(server->cfg.sys, now_mono) - server->started_ns;
	struct key_values kv = { 0 };
	struct scheduler_stats scheduler;
	struct store_stats store;
	struct node_role role;
	const char *fatal = NULL;
	bool shows_paths;
	size_t i;

	read_stats(server, &scheduler, &store);
	role = node_role(server, &store);
	if (server->scheduler != NULL)
		fatal = store_fatal(server->store);
	key_values_addf(&kv, "software", "refd/%s", REFD_VERSION);
	key_values_add_number(&kv, "pid", (uint64_t)getpid());
	key_values_addf(&kv, "state", "%s",
	    refd_server_state_name(server_public_state(server)));
	add_progress(&kv, server);
	key_values_add_number(&kv, "uptime_s", (uint64_t)up_ns / NS_PER_S);
	key_values_add_number(&kv, "connections", server->clients.nr_conns);
	key_values_add_number(&kv, "transactions", scheduler.transactions);
	add_paused(&kv, server);
	key_values_add_number(&kv, "waiting", scheduler.waiting);
	key_values_add_number(&kv, "in_store", scheduler.in_store);
	key_values_add_number(&kv, "prepared", scheduler.prepared);
	key_values_add(&kv, "socket", server->cfg.socket_path);
	key_values_add(&kv, "state_dir", server->cfg.state_dir);
	key_values_addf(&kv, "durability", "%s",
	    refd_durability_name(server->cfg.settings.durability));
	key_values_addf(&kv, "durability_weakest", "%s",
	    refd_durability_name(server->cfg.settings.weakest));
	key_values_add_number(&kv, "last_lsn", store.last_lsn);
	key_values_add_number(&kv, "forgotten_lsn", store.forgotten_lsn);
	add_log_place(&kv, server, &store);
	key_values_add(&kv, "role", role.name);
	key_values_add(&kv, "serves_reads", role.serves_reads ? "yes" : "no");
	if (store.replica.shares_rows)
		add_shared(&kv, &store.replica);
	key_values_add_number(&kv, "awaiting_repos", store.awaiting_repos);
	key_values_add_number(&kv, "awaiting_refs", store.awaiting_refs);
	key_values_add_number(&kv, "doubted_filesystems", store.suspect_fs);
	key_values_add_number(&kv, "journal_damaged", store.is_journal_damaged);
	key_values_add_number(&kv, "open_repos", store.open_repos);
	key_values_add_number(&kv, "indexed_lsn", store.indexed_lsn);
	key_values_add_number(&kv, "trimmed_lsn", store.trimmed_lsn);
	key_values_add(&kv, "head", store.head);
	key_values_add_number(&kv, "watching", store.watching);
	key_values_add_number(&kv, "flush_hangs_s",
	    stall_seconds(&server->service.stall));
	key_values_addf(&kv, "fatal", "%s", fatal != NULL ? fatal : "");
	key_values_addf(&kv, "confined_by", "%s", server->cfg.confined->by);
	key_values_addf(&kv, "confined_without", "%s",
	    server->cfg.confined->without);
	add_recent(&kv, server);
	shows_paths = conn->is_admin || conn->peer.uid == 0 ||
	    conn->peer.uid == (uint32_t)geteuid();
	if (shows_paths)
		key_values_add(&kv, "flush_hangs_on",
		    stall_path(&server->service.stall));
	add_stalls(&kv, server, shows_paths);
	if (shows_paths) {
		add_failed(&kv, server);
		add_recent_log(&kv);
	}
	for (i = 0; shows_paths && i < server->cfg.nr_roots; i++)
		key_values_add(&kv, "root.path", server->cfg.roots[i]);
	conn_answer_pairs(&kv, conn, req->request_id);
}

void report_metrics(struct server *server, struct conn *conn,
    uint32_t request_id, metrics_form_fn *form)
{
	struct metrics *metrics = report_collect(server);
	struct key_values kv = { 0 };

	form(metrics, &kv);
	free(metrics);
	conn_answer_pairs(&kv, conn, request_id);
}
