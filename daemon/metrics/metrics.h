/*
 * All metrics of the daemon at one moment, and their two forms: keys and values
 * for `refd stats`, and text for Prometheus. One table names each metric, so
 * that both forms have the same metrics.
 *
 * The owner of the loop fills in a struct metrics on the loop thread, and
 * nothing blocks.
 */
#ifndef METRICS_METRICS_H
#define METRICS_METRICS_H

#include "daemon/base/busy_cause.h"
#include "daemon/base/key_values.h"
#include "daemon/scheduler/scheduler.h"
#include "daemon/store/store.h"

struct metrics {
	/* Filled in by the caller. */
	int64_t now_ns;
	struct scheduler_stats scheduler; /* zeroes while recovering */
	struct store_stats store;         /* the same */
	struct measure measure;           /* the same */
	uint64_t stage_s[STORE_STAGES], stage_stuck[STORE_STAGES];
	const char *role; /* struct node_role */
	bool takes_writes, serves_reads;
	uint64_t serving, paused, uptime_s, flush_hangs_s;
	uint64_t connections, turned_away;
	struct histogram turn; /* durations of the loop's turns */

	/* Filled in by metrics_complete(). */
	uint64_t to_replay, checkpoint_age_s, checkpoint_took_us, turn_max_us;
	uint64_t shares_rows, is_connected, lag_us, row_us;
	uint64_t shared_lsn;
	uint64_t busy[BUSY_CAUSES];
	uint64_t errors, warnings; /* lines of the log */
	uint64_t heap_bytes, peak_rss_bytes, cpu_us;
};

/* Computes derived values, and adds values of the process. */
void metrics_complete(struct metrics *m);

/* Adds the metrics to KV. If M is NULL, for want of memory, KV has failed. */
typedef void metrics_form_fn(const struct metrics *m, struct key_values *kv);
/* The pairs of refd stats. */
metrics_form_fn metrics_key_values;
/* For each metric, a pair of the name and the text for Prometheus. */
metrics_form_fn metrics_text;

#endif
