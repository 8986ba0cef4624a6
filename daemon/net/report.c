#include "daemon/net/report.h"

#include <inttypes.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/net/numbers.h"
#include "daemon/net/pairs.h"
#include "daemon/net/stall.h"

/* All zero while recovering: the store is recovery's then. */
static void ask(struct net *net, struct scheduler_stats *scheduler,
    struct store_stats *store)
{
	*scheduler = (struct scheduler_stats){ 0 };
	*store = (struct store_stats){ 0 };
	if (net->scheduler == NULL)
		return;
	scheduler_stats(net->scheduler, scheduler);
	store_stats(net->store, store);
}

static void add_progress(struct pairs *pairs, struct net *net)
{
	uint64_t done, total;

	if (net->recovery == NULL)
		return;
	recovery_progress(net->recovery, &done, &total);
	pairs_addf(pairs, "progress", "%" PRIu64 " of %" PRIu64, done, total);
}

/* The last of the log, the newest first. It names repositories, which are not
 * everybody's to know. */
static void add_log(struct pairs *pairs)
{
	struct log_kept kept[LOG_KEPT];
	size_t i, nr = log_recent(kept);

	for (i = 0; i < nr; i++) {
		pairs_add_number(pairs, "log.time_ms",
		    (uint64_t)kept[i].wall_ms);
		pairs_add(pairs, "log.level",
		    kept[i].is_error ? "error" : "warning");
		pairs_add(pairs, "log.text", kept[i].text);
	}
}

void report_status(struct net *net, struct conn *conn, uint32_t request_id)
{
	int64_t up_ns = SYS(net->cfg.sys, now_mono) - net->started_ns;
	struct pairs pairs = { 0 };
	struct scheduler_stats scheduler;
	struct store_stats store;
	const char *fatal = NULL;
	bool shows_paths;

	ask(net, &scheduler, &store);
	if (net->scheduler != NULL)
		fatal = store_fatal(net->store);
	pairs_addf(&pairs, "software", "refd/%s", REFD_VERSION);
	pairs_add_number(&pairs, "pid", (uint64_t)getpid());
	pairs_addf(&pairs, "state", "%s",
	    refd_server_state_name(net_server_state(net)));
	add_progress(&pairs, net);
	pairs_add_number(&pairs, "uptime_s", (uint64_t)up_ns / 1000000000);
	pairs_add_number(&pairs, "connections", net->nr_conns);
	pairs_add_number(&pairs, "transactions", scheduler.transactions);
	pairs_add(&pairs, "paused",
	    net->scheduler != NULL && scheduler_is_paused(net->scheduler) ?
		"yes" :
		"no");
	pairs_add_number(&pairs, "waiting", scheduler.waiting);
	pairs_add_number(&pairs, "in_store", scheduler.in_store);
	pairs_add_number(&pairs, "prepared", scheduler.prepared);
	pairs_add(&pairs, "socket", net->cfg.socket_path);
	pairs_add(&pairs, "state_dir", net->cfg.state_dir);
	pairs_addf(&pairs, "durability", "%s",
	    refd_durability_name(net->cfg.settings.durability));
	pairs_add_number(&pairs, "last_lsn", store.last_lsn);
	pairs_add_number(&pairs, "forgotten_lsn", store.forgotten_lsn);
	pairs_add_number(&pairs, "awaiting_repos", store.awaiting_repos);
	pairs_add_number(&pairs, "awaiting_refs", store.awaiting_refs);
	pairs_add_number(&pairs, "doubted_filesystems", store.doubted_fs);
	pairs_add_number(&pairs, "open_repos", store.open_repos);
	pairs_add_number(&pairs, "indexed_lsn", store.indexed_lsn);
	pairs_add_number(&pairs, "trimmed_lsn", store.trimmed_lsn);
	pairs_add_number(&pairs, "watching", store.watching);
	pairs_add_number(&pairs, "flush_hangs_s", stall_seconds(net));
	pairs_addf(&pairs, "fatal", "%s", fatal != NULL ? fatal : "");
	pairs_addf(&pairs, "confined_by", "%s", net->cfg.confined->by);
	pairs_addf(&pairs, "confined_without", "%s",
	    net->cfg.confined->without);
	shows_paths = conn->is_admin || conn->peer.uid == 0 ||
	    conn->peer.uid == (uint32_t)geteuid();
	if (shows_paths)
		pairs_add(&pairs, "flush_hangs_on", stall_path(net));
	stall_pairs(net, &pairs, shows_paths);
	if (shows_paths)
		add_log(&pairs);
	pairs_answer(&pairs, conn, request_id);
}

void report_stats(struct net *net, struct conn *conn, uint32_t request_id)
{
	struct pairs pairs = { 0 };

	numbers_pairs(net, &pairs);
	pairs_answer(&pairs, conn, request_id);
}

void report_metrics(struct net *net, struct conn *conn, uint32_t request_id)
{
	struct pairs pairs = { 0 };

	numbers_metrics(net, &pairs);
	pairs_answer(&pairs, conn, request_id);
}
