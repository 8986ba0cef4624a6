/*
 * The table of numbers, as numbers.c fills it and numbers_form.c writes it.
 * Private to them. Loop thread; nothing blocks.
 */
#ifndef NET_NUMBERS_INTERNAL_H
#define NET_NUMBERS_INTERNAL_H

#include "daemon/base/busy_cause.h"
#include "daemon/net/net_internal.h"

struct snapshot {
	struct scheduler_stats scheduler;
	struct store_stats store;
	struct measure measure; /* zeroes while recovering */
	struct net_counts net;

	uint64_t connections, serving, paused, uptime_s;
	uint64_t to_replay, checkpoint_age_s, checkpoint_took_us;
	uint64_t heap_bytes, peak_rss_bytes, cpu_us;
	uint64_t turn_max_us, flush_hangs_s;
	uint64_t busy[BUSY_CAUSES];
	uint64_t stage_s[STORE_STAGES], stage_stuck[STORE_STAGES];
};

enum number_kind {
	COUNTER,
	GAUGE,
	MICROSECONDS, /* a counter of them */
	DURATION,     /* a gauge of them */
	TIMES,        /* a histogram of microseconds */
	SIZES,        /* ... of things */
	BY_CLOSE,     /* a counter for each reason to close a window */
	BY_STATUS,    /* ... for each status of a ref */
	BY_CAUSE,     /* ... for each cause of busy */
	BY_STAGE      /* a gauge for each stage of the store */
};

/* The key of refd stats; the name for Prometheus. */
struct number {
	const char *key, *name;
	enum number_kind kind;
	size_t offset;
	const char *help;
};

extern const struct number numbers_table[];
extern const size_t numbers_nr;

void numbers_take(struct net *net, struct snapshot *s);

#endif
