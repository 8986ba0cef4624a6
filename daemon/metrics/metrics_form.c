#include "daemon/metrics/metrics_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- keys and values ---- */

static uint64_t value_of(const struct metrics *m, const struct metric *metric)
{
	return *(const uint64_t *)((const char *)m + metric->offset);
}

static const uint64_t *array_of(const struct metrics *m,
    const struct metric *metric)
{
	return (const uint64_t *)((const char *)m + metric->offset);
}

static const struct histogram *histogram_of(const struct metrics *m,
    const struct metric *metric)
{
	return (const struct histogram *)((const char *)m + metric->offset);
}

static const char *label_of(const struct metric *metric, size_t i)
{
	if (metric->kind == BY_STAGE)
		return store_stage_name(i);
	if (metric->kind == BY_CAUSE)
		return busy_cause_name(i);
	return metric->kind == BY_CLOSE ? measure_close_name(i) :
					  refd_status_name(i);
}

static const char *label_name(const struct metric *metric)
{
	if (metric->kind == BY_STAGE)
		return "stage";
	if (metric->kind == BY_CAUSE)
		return "cause";
	return metric->kind == BY_CLOSE ? "reason" : "status";
}

static size_t labels_of(const struct metric *metric)
{
	if (metric->kind == BY_STAGE)
		return STORE_STAGES;
	if (metric->kind == BY_CAUSE)
		return BUSY_CAUSES;
	return metric->kind == BY_CLOSE ? BATCH_CLOSES : REFD_STATUSES;
}

static void add_suffixed(struct key_values *kv, const char *key,
    const char *suffix, uint64_t value)
{
	char name[64];

	snprintf(name, sizeof(name), "%s_%s", key, suffix);
	key_values_add_number(kv, name, value);
}

static void add_labels(struct key_values *kv, const struct metric *metric,
    const uint64_t *values)
{
	size_t i;

	for (i = 0; i < labels_of(metric); i++) {
		/* The key refs_ok is another row of the table. */
		if (metric->kind == BY_STATUS && i == REFD_OK)
			continue;
		/* There are many statuses and causes and few occur, so zeros
		 * are left out. */
		if (values[i] == 0 &&
		    (metric->kind == BY_STATUS || metric->kind == BY_CAUSE))
			continue;
		add_suffixed(kv, metric->key, label_of(metric, i), values[i]);
	}
}

static void add_histogram(struct key_values *kv, const char *key,
    const struct histogram *h)
{
	add_suffixed(kv, key, "count", h->count);
	add_suffixed(kv, key, "sum", h->sum);
	add_suffixed(kv, key, "p50", histogram_quantile(h, 500));
	add_suffixed(kv, key, "p99", histogram_quantile(h, 990));
	add_suffixed(kv, key, "max", h->max);
}

void metrics_key_values(const struct metrics *m, struct key_values *kv)
{
	const struct metric *metric;
	size_t i;

	if (m == NULL) {
		kv->failed = true;
		return;
	}
	for (i = 0; i < metrics_table_nr; i++) {
		metric = &metrics_table[i];
		switch (metric->kind) {
		case COUNTER:
		case GAUGE:
		case MICROSECONDS:
		case DURATION:
			key_values_add_number(kv, metric->key,
			    value_of(m, metric));
			break;
		case TIMES:
		case SIZES:
			add_histogram(kv, metric->key, histogram_of(m, metric));
			break;
		case BY_CLOSE:
		case BY_STATUS:
		case BY_CAUSE:
		case BY_STAGE:
			add_labels(kv, metric, array_of(m, metric));
			break;
		}
	}
}

/* ---- text for Prometheus ---- */

static const char *type_of(enum metric_kind kind)
{
	switch (kind) {
	case GAUGE:
	case DURATION:
	case BY_STAGE:
		return "gauge";
	case TIMES:
	case SIZES:
		return "histogram";
	case COUNTER:
	case MICROSECONDS:
	case BY_CLOSE:
	case BY_STATUS:
	case BY_CAUSE:
		break;
	}
	return "counter";
}

/* Prometheus has durations in seconds. */
static void put_seconds(FILE *out, uint64_t us)
{
	fprintf(out, "%" PRIu64 ".%06" PRIu64, us / 1000000, us % 1000000);
}

static void put_scaled(FILE *out, enum metric_kind kind, uint64_t value)
{
	if (kind == TIMES || kind == MICROSECONDS || kind == DURATION)
		put_seconds(out, value);
	else
		fprintf(out, "%" PRIu64, value);
}

static void put_histogram(FILE *out, const struct metric *metric,
    const struct histogram *h)
{
	uint64_t below = 0;
	size_t i;

	for (i = 0; i + 1 < HISTOGRAM_BUCKETS; i++) {
		below += h->buckets[i];
		fprintf(out, "%s_bucket{le=\"", metric->name);
		put_scaled(out, metric->kind, histogram_limit(i));
		fprintf(out, "\"} %" PRIu64 "\n", below);
	}
	fprintf(out, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n%s_sum ",
	    metric->name, h->count, metric->name);
	put_scaled(out, metric->kind, h->sum);
	fprintf(out, "\n%s_count %" PRIu64 "\n", metric->name, h->count);
}

static void put_labels(FILE *out, const struct metric *metric,
    const uint64_t *values)
{
	size_t i;

	for (i = 0; i < labels_of(metric); i++)
		fprintf(out, "%s{%s=\"%s\"} %" PRIu64 "\n", metric->name,
		    label_name(metric), label_of(metric, i), values[i]);
}

static void put_metric(FILE *out, const struct metrics *m,
    const struct metric *metric)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", metric->name, metric->help,
	    metric->name, type_of(metric->kind));
	switch (metric->kind) {
	case COUNTER:
	case GAUGE:
	case MICROSECONDS:
	case DURATION:
		fprintf(out, "%s ", metric->name);
		put_scaled(out, metric->kind, value_of(m, metric));
		fputc('\n', out);
		break;
	case TIMES:
	case SIZES:
		put_histogram(out, metric, histogram_of(m, metric));
		break;
	case BY_CLOSE:
	case BY_STATUS:
	case BY_CAUSE:
	case BY_STAGE:
		put_labels(out, metric, array_of(m, metric));
		break;
	}
}

static void add_text(const struct metrics *m, const struct metric *metric,
    struct key_values *kv)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (out == NULL) {
		kv->failed = true;
		return;
	}
	put_metric(out, m, metric);
	if (fclose(out) == 0)
		key_values_add(kv, metric->name, text);
	else
		kv->failed = true;
	free(text);
}

void metrics_text(const struct metrics *m, struct key_values *kv)
{
	size_t i;

	if (m == NULL) {
		kv->failed = true;
		return;
	}
	key_values_addf(kv, "refd_build_info",
	    "# HELP refd_build_info Which version this is.\n"
	    "# TYPE refd_build_info gauge\n"
	    "refd_build_info{version=\"%s\"} 1\n",
	    REFD_VERSION);
	for (i = 0; i < metrics_table_nr; i++)
		add_text(m, &metrics_table[i], kv);
}
