#include "daemon/net/numbers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/net/numbers_internal.h"

/* ---- as pairs ---- */

static uint64_t value_of(const struct snapshot *s, const struct number *n)
{
	return *(const uint64_t *)((const char *)s + n->offset);
}

static const uint64_t *array_of(const struct snapshot *s,
    const struct number *n)
{
	return (const uint64_t *)((const char *)s + n->offset);
}

static const struct histogram *histogram_of(const struct snapshot *s,
    const struct number *n)
{
	return (const struct histogram *)((const char *)s + n->offset);
}

static const char *label_of(const struct number *n, size_t i)
{
	if (n->kind == BY_STAGE)
		return store_stage_name(i);
	if (n->kind == BY_CAUSE)
		return busy_cause_name(i);
	return n->kind == BY_CLOSE ? measure_close_name(i) :
				     refd_status_name(i);
}

static const char *label_name(const struct number *n)
{
	if (n->kind == BY_STAGE)
		return "stage";
	if (n->kind == BY_CAUSE)
		return "cause";
	return n->kind == BY_CLOSE ? "reason" : "status";
}

static size_t labels_of(const struct number *n)
{
	if (n->kind == BY_STAGE)
		return STORE_STAGES;
	if (n->kind == BY_CAUSE)
		return BUSY_CAUSES;
	return n->kind == BY_CLOSE ? WINDOW_CLOSES : REFD_STATUSES;
}

static void add_of(struct key_values *kv, const char *key, const char *what,
    uint64_t value)
{
	char name[64];

	snprintf(name, sizeof(name), "%s_%s", key, what);
	key_values_add_number(kv, name, value);
}

static void add_labels(struct key_values *kv, const struct number *n,
    const uint64_t *values)
{
	size_t i;

	/* Statuses and causes that came; refs_ok is there already. */
	for (i = 0; i < labels_of(n); i++)
		if ((n->kind != BY_STATUS && n->kind != BY_CAUSE) ||
		    (values[i] > 0 && (n->kind != BY_STATUS || i != REFD_OK)))
			add_of(kv, n->key, label_of(n, i), values[i]);
}

static void add_histogram(struct key_values *kv, const char *key,
    const struct histogram *h)
{
	add_of(kv, key, "count", h->count);
	add_of(kv, key, "sum", h->sum);
	add_of(kv, key, "p50", histogram_quantile(h, 500));
	add_of(kv, key, "p99", histogram_quantile(h, 990));
	add_of(kv, key, "max", h->max);
}

void numbers_pairs(struct net *net, struct key_values *kv)
{
	struct snapshot *s = malloc(sizeof(*s));
	const struct number *n;

	if (s == NULL) {
		kv->failed = true;
		return;
	}
	numbers_take(net, s);
	for (n = numbers_table; n < numbers_table + numbers_nr; n++) {
		switch (n->kind) {
		case COUNTER:
		case GAUGE:
		case MICROSECONDS:
		case DURATION:
			key_values_add_number(kv, n->key, value_of(s, n));
			break;
		case TIMES:
		case SIZES:
			add_histogram(kv, n->key, histogram_of(s, n));
			break;
		case BY_CLOSE:
		case BY_STATUS:
		case BY_CAUSE:
		case BY_STAGE:
			add_labels(kv, n, array_of(s, n));
			break;
		}
	}
	free(s);
}

/* ---- as Prometheus reads them ---- */

static const char *type_of(enum number_kind kind)
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

/* In Prometheus' own unit. */
static void put_seconds(FILE *out, uint64_t us)
{
	fprintf(out, "%" PRIu64 ".%06" PRIu64, us / 1000000, us % 1000000);
}

static void put_scaled(FILE *out, enum number_kind kind, uint64_t value)
{
	if (kind == TIMES || kind == MICROSECONDS || kind == DURATION)
		put_seconds(out, value);
	else
		fprintf(out, "%" PRIu64, value);
}

static void put_histogram(FILE *out, const struct number *n,
    const struct histogram *h)
{
	uint64_t below = 0;
	size_t i;

	for (i = 0; i + 1 < HISTOGRAM_BUCKETS; i++) {
		below += h->buckets[i];
		fprintf(out, "%s_bucket{le=\"", n->name);
		put_scaled(out, n->kind, histogram_limit(i));
		fprintf(out, "\"} %" PRIu64 "\n", below);
	}
	fprintf(out, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n%s_sum ", n->name,
	    h->count, n->name);
	put_scaled(out, n->kind, h->sum);
	fprintf(out, "\n%s_count %" PRIu64 "\n", n->name, h->count);
}

static void put_labels(FILE *out, const struct number *n,
    const uint64_t *values)
{
	size_t i;

	for (i = 0; i < labels_of(n); i++)
		fprintf(out, "%s{%s=\"%s\"} %" PRIu64 "\n", n->name,
		    label_name(n), label_of(n, i), values[i]);
}

static void put_metric(FILE *out, const struct snapshot *s,
    const struct number *n)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", n->name, n->help, n->name,
	    type_of(n->kind));
	switch (n->kind) {
	case COUNTER:
	case GAUGE:
	case MICROSECONDS:
	case DURATION:
		fprintf(out, "%s ", n->name);
		put_scaled(out, n->kind, value_of(s, n));
		fputc('\n', out);
		break;
	case TIMES:
	case SIZES:
		put_histogram(out, n, histogram_of(s, n));
		break;
	case BY_CLOSE:
	case BY_STATUS:
	case BY_CAUSE:
	case BY_STAGE:
		put_labels(out, n, array_of(s, n));
		break;
	}
}

void numbers_metrics(struct net *net, struct key_values *kv)
{
	struct snapshot *s = malloc(sizeof(*s));
	const struct number *n;
	char *text = NULL;
	size_t len;
	FILE *out;

	if (s != NULL)
		numbers_take(net, s);
	key_values_addf(kv, "refd_build_info",
	    "# HELP refd_build_info Which version this is.\n"
	    "# TYPE refd_build_info gauge\n"
	    "refd_build_info{version=\"%s\"} 1\n",
	    REFD_VERSION);
	for (n = numbers_table; s != NULL && n < numbers_table + numbers_nr;
	    n++) {
		out = open_memstream(&text, &len);
		if (out == NULL)
			break;
		put_metric(out, s, n);
		if (fclose(out) == 0)
			key_values_add(kv, n->name, text);
		else
			kv->failed = true;
		free(text);
		text = NULL;
	}
	kv->failed = kv->failed || n != numbers_table + numbers_nr;
	free(s);
}
