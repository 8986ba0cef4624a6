/*
 * The table of metrics, private to metrics.c, which has the table, and to
 * metrics_form.c, which writes its values.
 */
#ifndef METRICS_METRICS_INTERNAL_H
#define METRICS_METRICS_INTERNAL_H

#include "daemon/metrics/metrics.h"

enum metric_kind {
	COUNTER,
	GAUGE,
	MICROSECONDS, /* a counter of microseconds */
	DURATION,     /* a gauge of microseconds */
	TIMES,        /* a histogram of microseconds */
	SIZES,        /* a histogram of sizes */
	BY_CLOSE,     /* a counter for each reason to close a batch */
	BY_STATUS,    /* a counter for each status of a ref */
	BY_CAUSE,     /* a counter for each cause of busy */
	BY_STAGE      /* a gauge for each stage of the store */
};

struct metric {
	const char *key;  /* in refd stats */
	const char *name; /* in Prometheus */
	enum metric_kind kind;
	size_t offset; /* of the value in struct metrics */
	const char *help;
};

extern const struct metric metrics_table[];
extern const size_t metrics_table_nr;

#endif
