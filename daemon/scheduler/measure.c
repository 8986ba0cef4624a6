#include "daemon/scheduler/measure.h"

#include <stdio.h>
#include <string.h>

#define NR_DONE (sizeof(((struct measure *)0)->done_ns) / sizeof(int64_t))

const char *measure_close_name(enum batch_close closed)
{
	static const char *const names[] = {
#define X(symbol, name) [BATCH_CLOSE_##symbol] = name,
		BATCH_CLOSE_TABLE(X)
#undef X
	};

	return names[closed];
}

/* Makes NOW the current period and BEFORE the period before. */
static void turn_page(struct measure *m, int64_t now_ns)
{
	int64_t age_ns = now_ns - m->period_ns;

	if (m->period_ns != 0 && age_ns < MEASURE_PERIOD_NS)
		return;
	m->now.disk_errors = txn_disk_errors() - m->disk_errors;
	m->disk_errors += m->now.disk_errors;
	if (m->period_ns != 0 && age_ns < 2 * MEASURE_PERIOD_NS) {
		m->before = m->now;
		m->period_ns += MEASURE_PERIOD_NS;
	} else {
		memset(&m->before, 0, sizeof(m->before));
		m->period_ns = now_ns;
	}
	memset(&m->now, 0, sizeof(m->now));
}

void measure_recent(struct measure *m, int64_t now_ns,
    struct measure_period *recent, int64_t *span_ns)
{
	turn_page(m, now_ns);
	*recent = m->before;
	recent->batches += m->now.batches;
	recent->transactions += m->now.transactions;
	recent->refs += m->now.refs;
	recent->nospace += m->now.nospace;
	recent->io += m->now.io;
	recent->disk_errors += txn_disk_errors() - m->disk_errors;
	histogram_merge(&recent->flush, &m->now.flush);
	histogram_merge(&recent->total, &m->now.total);
	histogram_merge(&recent->batch_txns, &m->now.batch_txns);
	*span_ns = MEASURE_PERIOD_NS + (now_ns - m->period_ns);
}

void measure_batch(struct measure *m, struct batch *b, size_t nr_live,
    bool gave_back, int64_t now_ns)
{
	struct txn_times *times;
	size_t i;

	turn_page(m, now_ns);
	m->closed[gave_back ? BATCH_CLOSE_TIME : b->closed]++;
	m->now.batches++;
	histogram_add(&m->batch_txns, b->nr_slices);
	histogram_add(&m->now.batch_txns, b->nr_slices);
	histogram_add(&m->batch_refs, nr_live);
	histogram_add_ns(&m->lock, b->lock_ns);
	histogram_add_ns(&m->publish, b->publish_ns);
	/* A batch that only takes or releases locks commits nothing, so it has
	 * no time of a flush. */
	if (b->session == BATCH_WHOLE || b->session == BATCH_COMMIT) {
		histogram_add_ns(&m->flush, b->flush_ns);
		histogram_add_ns(&m->now.flush, b->flush_ns);
	}
	for (i = 0; i < b->nr_slices; i++) {
		times = &b->slices[i].txn->times;
		times->lock_ns += b->lock_ns;
		times->flush_ns += b->flush_ns;
		times->publish_ns += b->publish_ns;
		times->done_ns = b->done_ns;
	}
	if (m->nr_done < NR_DONE)
		m->done_ns[m->nr_done++] = b->done_ns;
}

int64_t measure_queue_ns(const struct txn_times *times, int64_t end_ns)
{
	int64_t ns = end_ns - times->admitted_ns - times->lock_ns -
	    times->flush_ns - times->publish_ns;

	return times->admitted_ns != 0 && ns > 0 ? ns : 0;
}

void measure_txn(struct measure *m, const struct txn *txn, int64_t now_ns)
{
	const struct txn_times *times = &txn->times;
	int64_t end_ns = times->done_ns != 0 ? times->done_ns : now_ns;
	size_t i;

	turn_page(m, now_ns);
	m->now.transactions++;
	m->now.refs += txn->nr_updates;
	m->now.nospace += txn->nr_of[REFD_NOSPACE];
	m->now.io += txn->nr_of[REFD_IO];
	for (i = 0; i < REFD_STATUSES; i++)
		m->refs[i] += txn->nr_of[i];
	if (times->admitted_ns != 0)
		histogram_add_ns(&m->admit,
		    times->admitted_ns - times->arrived_ns - times->barrier_ns);
	if (times->barrier_ns > 0)
		histogram_add_ns(&m->barrier, times->barrier_ns);
	histogram_add_ns(&m->queue, measure_queue_ns(times, end_ns));
	histogram_add_ns(&m->total, end_ns - times->arrived_ns);
	histogram_add_ns(&m->now.total, end_ns - times->arrived_ns);
}

/* The row for REPO: its present row, or that of the oldest failure. A user with
 * a row replaces only rows of the same user, because otherwise a user could
 * hide the failures of others behind broken repositories. */
static size_t row_for(const struct measure *m, const char *repo, uint32_t uid)
{
	size_t i, of_user = MEASURE_FAILED, last = MEASURE_FAILED - 1;

	for (i = 0; i < MEASURE_FAILED && m->failed[i].at_ns != 0; i++) {
		if (strncmp(m->failed[i].repo, repo, MEASURE_FAILED_TEXT - 1) ==
		    0)
			return i;
		if (m->failed[i].uid == uid)
			of_user = i;
	}
	return i < MEASURE_FAILED    ? i :
	    of_user < MEASURE_FAILED ? of_user :
				       last;
}

void measure_failed(struct measure *m, const char *repo, const char *ref,
    const char *why, uint32_t uid, int64_t now_ns)
{
	size_t i = row_for(m, repo, uid);
	struct measure_failed *row = m->failed;

	memmove(row + 1, row, i * sizeof(*row));
	row->at_ns = now_ns;
	row->uid = uid;
	snprintf(row->repo, sizeof(row->repo), "%s", repo);
	snprintf(row->ref, sizeof(row->ref), "%s", ref);
	snprintf(row->why, sizeof(row->why), "%s", why != NULL ? why : "");
}

void measure_sent(struct measure *m, int64_t now_ns)
{
	size_t i;

	for (i = 0; i < m->nr_done; i++)
		histogram_add_ns(&m->reply, now_ns - m->done_ns[i]);
	m->nr_done = 0;
}
