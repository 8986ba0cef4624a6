#include "daemon/base/time.h"
#include "daemon/metrics/metrics_internal.h"

#include <malloc.h>
#include <stddef.h>
#include <sys/resource.h>

#include "daemon/base/log.h"

const struct metric metrics_table[] = {
#define AT(field) offsetof(struct metrics, field)
	{ "serving", "refd_serving", GAUGE, AT(serving),
	    "1 while transactions are taken." },
	{ "paused", "refd_paused", GAUGE, AT(paused),
	    "1 while an administrator keeps batches from starting." },
	{ "uptime_s", "refd_uptime_seconds", GAUGE, AT(uptime_s),
	    "Since the daemon was started." },
	{ "connections", "refd_connections", GAUGE, AT(connections),
	    "Clients that are connected." },
	{ "turned_away", "refd_connections_refused_total", COUNTER,
	    AT(turned_away), "Connections that were turned away." },
	{ "transactions", "refd_transactions_total", COUNTER,
	    AT(scheduler.transactions),
	    "Transactions that were decided, unless they only verify values." },
	{ "committed", "refd_transactions_committed_total", COUNTER,
	    AT(scheduler.committed), "Those of which every ref is ok." },
	{ "partial", "refd_transactions_partial_total", COUNTER,
	    AT(scheduler.partial), "Those of which some refs failed." },
	{ "rejected", "refd_transactions_rejected_total", COUNTER,
	    AT(scheduler.rejected), "Those of which every ref failed." },
	{ "unknown", "refd_transactions_unknown_total", COUNTER,
	    AT(scheduler.unknown), "Those whose outcome can't be known." },
	{ "refs_ok", "refd_refs_ok_total", COUNTER, AT(scheduler.refs_ok),
	    "Refs of decided transactions that are ok." },
	{ "refs_failed", "refd_refs_failed_total", COUNTER,
	    AT(scheduler.refs_failed), "Those that are not." },
	{ "refs", "refd_refs_total", BY_STATUS, AT(measure.refs),
	    "Refs of decided transactions, by their status." },
	{ "busy", "refd_busy_total", BY_CAUSE, AT(busy),
	    "Decisions to answer busy, of a ref or of a request, by cause." },
	{ "waiting", "refd_transactions_waiting", GAUGE, AT(scheduler.waiting),
	    "The queue: transactions that no batch has taken yet." },
	{ "in_store", "refd_transactions_in_batch", GAUGE,
	    AT(scheduler.in_store), "Transactions that a batch has." },
	{ "prepared", "refd_sessions_prepared", GAUGE, AT(scheduler.prepared),
	    "Sessions that hold their locks." },
	{ "sessions_prepared", "refd_sessions_prepared_total", COUNTER,
	    AT(scheduler.sessions_prepared), "Sessions that came so far." },
	{ "sessions_committed", "refd_sessions_committed_total", COUNTER,
	    AT(scheduler.sessions_committed), "Those that were committed." },
	{ "sessions_aborted", "refd_sessions_aborted_total", COUNTER,
	    AT(scheduler.sessions_aborted), "Those that were not." },
	{ "batches", "refd_batches_total", COUNTER, AT(scheduler.batches),
	    "Batches that were handed to the store." },
	{ "batch_closed", "refd_batches_closed_total", BY_CLOSE,
	    AT(measure.closed), "Batches, by what kept more out of them." },
	{ "batch_txns", "refd_batch_transactions", SIZES,
	    AT(measure.batch_txns), "Transactions in a batch." },
	{ "batch_refs", "refd_batch_refs", SIZES, AT(measure.batch_refs),
	    "Refs in a batch." },
	{ "store_batches", "refd_batches_done_total", COUNTER,
	    AT(store.batches), "Batches that the store has finished." },
	{ "flushes", "refd_journal_flushes_total", COUNTER, AT(store.flushes),
	    "Flushes of the journal." },
	{ "admit_us", "refd_admission_seconds", TIMES, AT(measure.admit),
	    "Of a transaction: looked at, its repository opened." },
	{ "barrier_us", "refd_barrier_seconds", TIMES, AT(measure.barrier),
	    "Of one whose objects were new: until they were durable." },
	{ "queue_us", "refd_queue_seconds", TIMES, AT(measure.queue),
	    "Of a transaction: waiting for its turn." },
	{ "lock_us", "refd_lock_seconds", TIMES, AT(measure.lock),
	    "Of a batch: taking locks and looking under them." },
	{ "flush_us", "refd_flush_seconds", TIMES, AT(measure.flush),
	    "Of a batch: until its record is durable." },
	{ "publish_us", "refd_publish_seconds", TIMES, AT(measure.publish),
	    "Of a batch: until its refs are there and unlocked." },
	{ "reply_us", "refd_reply_seconds", TIMES, AT(measure.reply),
	    "Of a batch: from there until its answers are sent." },
	{ "total_us", "refd_transaction_seconds", TIMES, AT(measure.total),
	    "Of a transaction: from its arrival until it is decided." },
	{ "flush_hangs_s", "refd_flush_hanging_seconds", GAUGE,
	    AT(flush_hangs_s),
	    "How long a flush has hung, of the journal or another; 0: none." },
	{ "stage_s", "refd_stage_seconds", BY_STAGE, AT(stage_s),
	    "How long the longest work in progress has lasted, by stage." },
	{ "stage_stuck", "refd_stage_stuck_threads", BY_STAGE, AT(stage_stuck),
	    "Threads at one piece of work for more than 5 s, by stage." },
	{ "barriers", "refd_barriers_total", COUNTER, AT(store.barriers),
	    "Transactions that waited for their objects." },
	{ "barrier_syncs", "refd_barrier_syncfs_total", COUNTER,
	    AT(store.barrier_syncs), "File systems synced for them." },
	{ "barrier_fsyncs", "refd_barrier_fsyncs_total", COUNTER,
	    AT(store.barrier_fsyncs), "Single files synced for them." },
	{ "barrier_copies", "refd_barrier_copies_total", COUNTER,
	    AT(store.barrier_copies),
	    "Copies of new objects for records, in place of a barrier." },
	{ "checkpoints", "refd_checkpoints_total", COUNTER,
	    AT(store.checkpoints), "Checkpoints that went well." },
	{ "checkpoint_failures", "refd_checkpoint_failures_total", COUNTER,
	    AT(store.checkpoint_failures), "And that did not." },
	{ "checkpoint_age_s", "refd_checkpoint_age_seconds", GAUGE,
	    AT(checkpoint_age_s), "Since the last that went well." },
	{ "checkpoint_took_us", "refd_checkpoint_last_seconds", DURATION,
	    AT(checkpoint_took_us), "How long the last one took." },
	{ "packed_refs", "refd_packed_refs_total", COUNTER,
	    AT(store.packed_refs), "Loose refs moved to packed-refs." },
	{ "seen", "refd_seen_total", COUNTER, AT(scheduler.seen),
	    "Changes by writers who did not tell refd." },
	{ "pack_failures", "refd_pack_failures_total", COUNTER,
	    AT(store.pack_failures), "Rounds of packing that failed." },
	{ "to_replay", "refd_records_to_replay", GAUGE, AT(to_replay),
	    "Records that a start after a power cut would replay." },
	{ "wal_bytes", "refd_journal_wal_bytes", GAUGE, AT(store.wal_bytes),
	    "Frames in use in the journal's WAL; its file also has room." },
	{ "journal_bytes", "refd_journal_bytes", GAUGE, AT(store.journal_bytes),
	    "The journal's database file, without its WAL." },
	{ "last_lsn", "refd_last_lsn", GAUGE, AT(store.last_lsn),
	    "The number of the last record." },
	{ "forgotten_lsn", "refd_forgotten_lsn", GAUGE, AT(store.forgotten_lsn),
	    "Up to there nothing is replayed." },
	{ "group_member", "refd_group_member", GAUGE, AT(shares_rows),
	    "1 for a node of a group." },
	{ "group_connected", "refd_group_connected", GAUGE, AT(is_connected),
	    "1 while refd-group is connected." },
	{ "group_lag_us", "refd_group_lag_seconds", DURATION, AT(lag_us),
	    "For so long the node has not had every row of the group." },
	{ "group_row_us", "refd_group_row_seconds", DURATION, AT(row_us),
	    "How long the first row that waits, or the row in work, has taken; "
	    "0: none." },
	{ "group_waiting_repos", "refd_group_waiting_repositories", GAUGE,
	    AT(store.replica.waiting_repos),
	    "Repositories with rows of the group that wait on this node." },
	{ "group_epoch", "refd_group_epoch", GAUGE, AT(store.replica.epoch),
	    "The epoch in which the node leads its group; 0: it does not." },
	{ "group_lsn", "refd_group_last_lsn", GAUGE, AT(shared_lsn),
	    "The last row of the group that the node has applied." },
	{ "group_batches", "refd_group_waiting_batches", GAUGE,
	    AT(store.replica.batches),
	    "Batches that wait for the log of the group." },
	{ "group_holds", "refd_group_waiting_transactions", GAUGE,
	    AT(store.replica.holds),
	    "Transactions whose objects other nodes do not hold yet." },
	{ "awaiting_repos", "refd_awaiting_repositories", GAUGE,
	    AT(store.awaiting_repos), "Repositories that await recovery." },
	{ "awaiting_refs", "refd_awaiting_refs", GAUGE, AT(store.awaiting_refs),
	    "And refs in them." },
	{ "doubted_filesystems", "refd_doubted_filesystems", GAUGE,
	    AT(store.suspect_fs),
	    "That failed to sync, and were not mounted anew since." },
	{ "open_repos", "refd_open_repositories", GAUGE, AT(store.open_repos),
	    "Repositories that are open." },
	{ "watching", "refd_watchers", GAUGE, AT(store.watching),
	    "Questions that wait for something to happen." },
	{ "turn_us", "refd_loop_turn_seconds", TIMES, AT(turn),
	    "Turns of the loop: while one lasts nobody is heard." },
	{ "turn_max_us", "refd_loop_turn_max_seconds", DURATION,
	    AT(turn_max_us), "The longest." },
	{ "log_errors", "refd_log_errors_total", COUNTER, AT(errors),
	    "Lines of the log that are errors." },
	{ "log_warnings", "refd_log_warnings_total", COUNTER, AT(warnings),
	    "And warnings." },
	{ "heap_bytes", "refd_heap_bytes", GAUGE, AT(heap_bytes),
	    "Memory that is allocated." },
	{ "peak_rss_bytes", "refd_peak_resident_bytes", GAUGE,
	    AT(peak_rss_bytes), "The most that was resident." },
	{ "cpu_us", "process_cpu_seconds_total", MICROSECONDS, AT(cpu_us),
	    "Processor time, of user and system." },
#undef AT
};

const size_t metrics_table_nr =
    sizeof(metrics_table) / sizeof(metrics_table[0]);

/* ---- values ---- */

static uint64_t microseconds(const struct timeval *tv)
{
	return (uint64_t)tv->tv_sec * 1000000 + (uint64_t)tv->tv_usec;
}

/* musl does not count its heap. */
static uint64_t heap_bytes(void)
{
#ifdef __GLIBC__
	struct mallinfo2 heap = mallinfo2();

	return heap.uordblks + heap.hblkhd;
#else
	return 0;
#endif
}

static void add_process(struct metrics *m)
{
	struct rusage usage;

	m->heap_bytes = heap_bytes();
	if (getrusage(RUSAGE_SELF, &usage) < 0)
		return;
	m->peak_rss_bytes = (uint64_t)usage.ru_maxrss * 1024;
	m->cpu_us =
	    microseconds(&usage.ru_utime) + microseconds(&usage.ru_stime);
}

void metrics_complete(struct metrics *m)
{
	const struct store_stats *store = &m->store;

	if (store->last_lsn > store->forgotten_lsn)
		m->to_replay = store->last_lsn - store->forgotten_lsn;
	m->checkpoint_took_us = (uint64_t)store->checkpoint_took_ns / 1000;
	if (store->checkpoint_ns != 0)
		m->checkpoint_age_s =
		    (uint64_t)((m->now_ns - store->checkpoint_ns) / NS_PER_S);
	m->turn_max_us = m->turn.max;
	m->shares_rows = store->replica.shares_rows;
	m->shared_lsn = m->shares_rows != 0 ? store->replica.lsn : 0;
	m->is_connected = store->replica.is_connected;
	m->lag_us = (uint64_t)store->replica.lag_ns / 1000;
	m->row_us = (uint64_t)store->replica.row_ns / 1000;
	busy_cause_counts(m->busy);
	log_counts(&m->errors, &m->warnings);
	add_process(m);
}
