#include "daemon/net/report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define PAIRS_MAX   32
#define VALUE_BYTES 256 /* longer ones are cut */

struct report {
	struct refd_pair pairs[PAIRS_MAX];
	char values[PAIRS_MAX][VALUE_BYTES];
	size_t nr;
};

static void __attribute__((format(printf, 3, 4)))
add(struct report *report, const char *key, const char *fmt, ...)
{
	char *value = report->values[report->nr];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(value, VALUE_BYTES, fmt, ap);
	va_end(ap);
	report->pairs[report->nr].key = key;
	report->pairs[report->nr].value = value;
	report->nr++;
}

static void add_number(struct report *report, const char *key, uint64_t value)
{
	add(report, key, "%" PRIu64, value);
}

/* Whole: who asks may want to open it. Borrowed until the answer. */
static void add_path(struct report *report, const char *key, const char *path)
{
	report->pairs[report->nr].key = key;
	report->pairs[report->nr].value = path;
	report->nr++;
}

static void answer(struct report *report, struct conn *conn,
    uint32_t request_id)
{
	struct refd_answer ans = { .kind = REFD_ANSWER_PAIRS,
		.request_id = request_id,
		.pairs = report->pairs,
		.nr_pairs = report->nr };

	conn_answer(conn, &ans);
}

/* All zero while recovering: the store is recovery's then. */
static void ask(struct net *net, struct engine_stats *engine,
    struct store_stats *store)
{
	*engine = (struct engine_stats){ 0 };
	*store = (struct store_stats){ 0 };
	if (net->engine == NULL)
		return;
	engine_stats(net->engine, engine);
	store_stats(net->store, store);
}

static void add_progress(struct report *report, struct net *net)
{
	uint64_t done, total;

	if (net->recovery == NULL)
		return;
	recovery_progress(net->recovery, &done, &total);
	add(report, "progress", "%" PRIu64 " of %" PRIu64, done, total);
}

void report_status(struct net *net, struct conn *conn, uint32_t request_id)
{
	int64_t up_ns = SYS(net->cfg.sys, now_mono) - net->started_ns;
	struct report report = { .nr = 0 };
	struct engine_stats engine;
	struct store_stats store;
	const char *fatal = NULL;

	ask(net, &engine, &store);
	if (net->engine != NULL)
		fatal = store_fatal(net->store);
	add(&report, "software", "refd/%s", REFD_VERSION);
	add_number(&report, "pid", (uint64_t)getpid());
	add(&report, "state", "%s",
	    refd_server_state_name(net_server_state(net)));
	add_progress(&report, net);
	add_number(&report, "uptime_s", (uint64_t)up_ns / 1000000000);
	add_number(&report, "connections", net->nr_conns);
	add_number(&report, "transactions", engine.transactions);
	add_number(&report, "waiting", engine.waiting);
	add_path(&report, "socket", net->cfg.socket_path);
	add_path(&report, "state_dir", net->cfg.state_dir);
	add(&report, "durability", "%s",
	    refd_durability_name(net->cfg.settings.durability));
	add_number(&report, "last_lsn", store.last_lsn);
	add_number(&report, "forgotten_lsn", store.forgotten_lsn);
	add_number(&report, "awaiting_repos", store.awaiting_repos);
	add_number(&report, "awaiting_refs", store.awaiting_refs);
	add_number(&report, "open_repos", store.open_repos);
	add_number(&report, "indexed_lsn", store.indexed_lsn);
	add_number(&report, "trimmed_lsn", store.trimmed_lsn);
	add_number(&report, "watching", store.watching);
	add(&report, "fatal", "%s", fatal != NULL ? fatal : "");
	answer(&report, conn, request_id);
}

void report_stats(struct net *net, struct conn *conn, uint32_t request_id)
{
	struct report report = { .nr = 0 };
	struct engine_stats engine;
	struct store_stats store;

	ask(net, &engine, &store);
	add_number(&report, "connections", net->nr_conns);
	add_number(&report, "transactions", engine.transactions);
	add_number(&report, "committed", engine.committed);
	add_number(&report, "partial", engine.partial);
	add_number(&report, "rejected", engine.rejected);
	add_number(&report, "unknown", engine.unknown);
	add_number(&report, "refs_ok", engine.refs_ok);
	add_number(&report, "refs_failed", engine.refs_failed);
	add_number(&report, "waiting", engine.waiting);
	add_number(&report, "in_store", engine.in_store);
	add_number(&report, "prepared", engine.prepared);
	add_number(&report, "sessions_prepared", engine.sessions_prepared);
	add_number(&report, "sessions_committed", engine.sessions_committed);
	add_number(&report, "sessions_aborted", engine.sessions_aborted);
	add_number(&report, "windows", engine.windows);
	add_number(&report, "window_refs_max", engine.window_refs_max);
	add_number(&report, "store_windows", store.windows);
	add_number(&report, "flushes", store.flushes);
	add_number(&report, "barriers", store.barriers);
	add_number(&report, "barrier_syncs", store.barrier_syncs);
	add_number(&report, "barrier_fsyncs", store.barrier_fsyncs);
	add_number(&report, "checkpoints", store.checkpoints);
	add_number(&report, "checkpoint_failures", store.checkpoint_failures);
	add_number(&report, "wal_bytes", store.wal_bytes);
	add_number(&report, "last_lsn", store.last_lsn);
	add_number(&report, "forgotten_lsn", store.forgotten_lsn);
	add_number(&report, "open_repos", store.open_repos);
	answer(&report, conn, request_id);
}
