#include "client/deliver/console.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proto/lib/clock.h"
#include "proto/lib/consent.h"
#include "proto/lib/json.h"
#include "proto/lib/time_text.h"

/* ---- names ---- */

struct search {
	const char *name;
	bool is_found;
	struct text known;
};

static void compare(void *arg, const struct outbox_counts *counts)
{
	struct search *s = arg;

	s->is_found |= !strcmp(s->name, counts->name);
	text_addf(&s->known, "%s%s", s->known.len ? ", " : "", counts->name);
}

void console_require(struct outbox *o, const char *name)
{
	struct search s = { .name = name };

	outbox_each_endpoint(o, compare, &s);
	if (!s.is_found)
		die("the service has no endpoint '%s'; its endpoints: %s", name,
		    s.known.len ? s.known.data : "none");
	text_done(&s.known);
}

/* ---- dead letters ---- */

static void print_row(void *arg, const struct outbox_row *row)
{
	char when[64];

	(void)arg;
	print_lines(stdout, "%s\t%s\t%s\t%" PRIu64 "\t", row->endpoint, row->id,
	    time_text_local(row->died_ms, when), row->failures);
	print_part(stdout, "%s", row->error);
	print_lines(stdout, "\t");
	print_line(stdout, "%s", row->repo);
}

static void print_json(void *arg, const struct outbox_row *row)
{
	struct json j = { .to = stdout };

	(void)arg;
	json_begin(&j, NULL, '{');
	json_text(&j, "endpoint", row->endpoint);
	json_text(&j, "id", row->id);
	json_text(&j, "event", row->event);
	json_text(&j, "repo", row->repo);
	json_count(&j, "attempts", row->failures);
	json_text(&j, "error", row->error);
	json_count(&j, "queued_time_ms", row->time_ms);
	json_count(&j, "died_time_ms", row->died_ms);
	json_value(&j, "body", row->body);
	json_finish(&j, '}');
}

int console_list(struct outbox *o, const char *name, bool as_json)
{
	outbox_each_dead(o, name, as_json ? print_json : print_row, NULL);
	return EXIT_DONE;
}

typedef uint64_t change_fn(struct outbox *o, const char *name, const char *id);

static uint64_t change_all(struct outbox *o, change_fn *change,
    const char *name, char **ids, int nr)
{
	uint64_t changed = 0;
	int i;

	outbox_begin(o);
	if (nr == 0)
		changed = change(o, name, NULL);
	for (i = 0; i < nr; i++)
		changed += change(o, name, ids[i]);
	outbox_commit(o);
	return changed;
}

/* An id without a dead letter is a failure, so that a typing error is
 * noticed. */
static int report(uint64_t changed, int nr, const char *fate)
{
	say("%" PRIu64 " dead letters %s", changed, fate);
	return changed < (uint64_t)nr ? EXIT_FAILED : EXIT_DONE;
}

int console_retry(struct outbox *o, const char *name, char **ids, int nr)
{
	return report(change_all(o, outbox_retry, name, ids, nr), nr,
	    "wait for another attempt");
}

static bool has_consent(const char *question)
{
	enum consent consent = consent_ask(question);

	if (consent == CONSENT_NOBODY)
		say("nothing was deleted: --yes deletes without a question");
	else if (consent == CONSENT_NO)
		say("nothing was deleted");
	return consent == CONSENT_YES;
}

int console_drop(struct outbox *o, const char *name, char **ids, int nr,
    bool is_sure)
{
	if (!is_sure &&
	    !has_consent(nr ? "Delete these dead letters?" :
			      "Delete all dead letters of the endpoint?"))
		return EXIT_FAILED;
	return report(change_all(o, outbox_drop, name, ids, nr), nr, "deleted");
}

int console_forget(struct outbox *o, const char *name, bool is_sure)
{
	if (!is_sure &&
	    !has_consent("Delete the position, the waiting changes and the "
			 "dead letters of the endpoint?"))
		return EXIT_FAILED;
	outbox_begin(o);
	outbox_forget(o, name);
	outbox_commit(o);
	return EXIT_DONE;
}

/* ---- metrics ---- */

enum metric {
	DELIVERED,
	SECONDS,
	FAILED,
	DIED,
	GAPS,
	WAITING,
	WAITING_BYTES,
	OLDEST,
	DEAD,
	READ,
	NR_METRICS
};

static const struct {
	const char *name, *kind, *help;
} metrics[NR_METRICS] = {
	[DELIVERED] = { "delivered_total", "counter", "Successful attempts." },
	[SECONDS] = { "delivered_seconds_total", "counter",
	    "Time of the successful attempts." },
	[FAILED] = { "failed_total", "counter", "Failed attempts." },
	[DIED] = { "died_total", "counter",
	    "Changes that became dead letters." },
	[GAPS] = { "gaps_total", "counter",
	    "Gaps that stand for changes which were lost." },
	[WAITING] = { "waiting", "gauge", "Changes that wait." },
	[WAITING_BYTES] = { "waiting_bytes", "gauge",
	    "Bodies of the changes that wait." },
	[OLDEST] = { "oldest_seconds", "gauge",
	    "Age of the oldest change that waits; 0: none waits." },
	[DEAD] = { "dead_letters", "gauge", "Dead letters." },
	[READ] = { "read_lsn", "gauge",
	    "The last record that was read from the feed." },
};

/* The counts of all endpoints, and a copy of each name. */
struct printing {
	struct outbox_counts *list;
	size_t nr, size;
};

static void keep(void *arg, const struct outbox_counts *counts)
{
	struct printing *p = arg;

	p->list = xroom(p->list, p->nr, &p->size, sizeof(*p->list));
	p->list[p->nr] = *counts;
	p->list[p->nr++].name = xstrdup(counts->name);
}

static uint64_t value_of(const struct outbox_counts *c, enum metric metric,
    uint64_t now_ms)
{
	switch (metric) {
	case DELIVERED:
		return c->delivered;
	case SECONDS:
		return c->took_ms;
	case FAILED:
		return c->failed;
	case DIED:
		return c->died;
	case GAPS:
		return c->gaps;
	case WAITING:
		return c->waiting;
	case WAITING_BYTES:
		return c->waiting_bytes;
	case OLDEST:
		return c->oldest_ms && c->oldest_ms < now_ms ?
		    (now_ms - c->oldest_ms) / 1000 :
		    0;
	case DEAD:
		return c->dead;
	case READ:
		return c->position.at.lsn;
	case NR_METRICS:
		break;
	}
	return 0;
}

/* Names of endpoints need no quoting: endpoints.c. */
static void print_metric(const struct printing *p, enum metric m,
    uint64_t now_ms)
{
	uint64_t value;
	size_t i;

	print_lines(stdout,
	    "# HELP refd_deliver_%s %s\n# TYPE refd_deliver_%s %s\n",
	    metrics[m].name, metrics[m].help, metrics[m].name, metrics[m].kind);
	for (i = 0; i < p->nr; i++) {
		value = value_of(&p->list[i], m, now_ms);
		print_part(stdout, "refd_deliver_%s{endpoint=\"%s\"} ",
		    metrics[m].name, p->list[i].name);
		if (m == SECONDS)
			print_line(stdout, "%" PRIu64 ".%03u", value / 1000,
			    (unsigned)(value % 1000));
		else
			print_line(stdout, "%" PRIu64, value);
	}
}

int console_prometheus(struct outbox *o)
{
	struct printing p = { 0 };
	const uint64_t now_ms = clock_wall_ms();
	enum metric m;
	size_t i;

	outbox_each_endpoint(o, keep, &p);
	for (m = 0; m < NR_METRICS; m++)
		print_metric(&p, m, now_ms);
	for (i = 0; i < p.nr; i++)
		free((char *)p.list[i].name);
	free(p.list);
	return EXIT_DONE;
}
