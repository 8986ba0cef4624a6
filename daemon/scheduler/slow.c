#include "daemon/scheduler/slow.h"

#include <stdlib.h>
#include <string.h>

void slow_done(struct slow *s)
{
	free(s->kept);
	s->kept = NULL;
}

static void copy(char to[SLOW_TEXT], const char *from)
{
	size_t len = from != NULL ? strnlen(from, SLOW_TEXT - 1) : 0;

	if (len > 0)
		memcpy(to, from, len);
	to[len] = '\0';
}

static void fill(struct slow_one *one, const struct txn *txn, const char *repo,
    int64_t end_ns)
{
	const struct txn_times *times = &txn->times;

	one->txid = txn->req.txid;
	one->uid = txn->peer.uid;
	one->pid = txn->peer.pid;
	one->nr_refs = txn->nr_updates;
	one->done_ns = end_ns;
	one->total_ns = end_ns - times->arrived_ns;
	one->barrier_ns = times->barrier_ns;
	one->admit_ns = 0;
	if (times->admitted_ns != 0)
		one->admit_ns =
		    times->admitted_ns - times->arrived_ns - times->barrier_ns;
	one->queue_ns = measure_queue_ns(times, end_ns);
	one->lock_ns = times->lock_ns;
	one->flush_ns = times->flush_ns;
	one->publish_ns = times->publish_ns;
	one->reply_ns = 0;
	copy(one->repo, repo);
	copy(one->ref, txn->nr_updates > 0 ? txn->updates[0].ask->name : "");
	copy(one->sid, txn->req.trace2_sid);
}

void slow_look(struct slow *s, const struct txn *txn, const char *repo,
    enum refd_outcome outcome, int64_t now_ns, int64_t wall_ms)
{
	int64_t done_ns = txn->times.done_ns;
	struct slow_one *one;

	if (s->limit_ns == 0 || txn->times.arrived_ns == 0 ||
	    txn->req.verb == REFD_VERB_SESSION)
		return;
	if (done_ns == 0)
		done_ns = now_ns;
	if (done_ns - txn->times.arrived_ns < s->limit_ns)
		return;
	if (s->kept == NULL)
		s->kept = calloc(SLOW_KEPT, sizeof(*s->kept));
	if (s->kept == NULL)
		return;
	one = &s->kept[s->nr % SLOW_KEPT];
	one->nr = ++s->nr;
	one->wall_ms = wall_ms;
	one->outcome = outcome;
	fill(one, txn, repo, done_ns);
}

void slow_sent(struct slow *s, int64_t now_ns)
{
	uint64_t nr = s->sent;
	struct slow_one *one;

	if (s->nr - nr > SLOW_KEPT)
		nr = s->nr - SLOW_KEPT;
	for (; nr < s->nr; nr++) {
		one = &s->kept[nr % SLOW_KEPT];
		if (now_ns > one->done_ns)
			one->reply_ns = now_ns - one->done_ns;
		one->total_ns += one->reply_ns;
	}
	s->sent = s->nr;
}

const struct slow_one *slow_get(const struct slow *s, uint64_t nr)
{
	if (nr == 0 || nr > s->sent || s->nr - nr >= SLOW_KEPT)
		return NULL;
	return &s->kept[(nr - 1) % SLOW_KEPT];
}
