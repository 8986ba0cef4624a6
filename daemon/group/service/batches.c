/*
 * Batches of the daemon. On a leader, turn_leader() of service.c calls
 * batches_lead() again and again, and each call does this:
 *
 *	1. The batches that wait become one transaction, with the next LSNs.
 *	2. The transaction is committed, and proven.
 *	3. Each batch gets COMMITTED with its first LSN.
 *
 * Failures: a doubtful transaction is settled by the ids of its rows, and sent
 * again with the same LSNs as long as the epoch lasts. No other transaction
 * begins before, because its LSNs come behind these. A batch is REFUSED only if
 * its rows were never sent, or if a later epoch has begun and the rows are
 * provably absent. STOP ends the attempts, so a batch can stay without an
 * outcome then.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/group/service/service_internal.h"

#define JOIN_BYTES GROUP_FRAME_MAX

/* The batches of one transaction. */
struct joined {
	struct daemon_frame *first, **end;
	struct group_row *rows;
	uint8_t (*ids)[GROUP_UUID_BYTES];
	uint64_t *lsns;
	size_t nr;
	size_t bytes; /* of the frames */
};

/* ---- answers ---- */

static void answer_all(struct service *v, const struct joined *j,
    enum group_frame_type type, const char *reason)
{
	struct group_frame f = { .type = type };
	const struct daemon_frame *b;

	group_frame_reason(f.refused.reason, reason);
	for (b = j->first; b; b = b->next) {
		f.refused.number = b->frame.batch.number;
		daemon_link_send(&v->link, &f);
	}
}

static void answer_committed(struct service *v, const struct joined *j)
{
	struct group_frame f = { .type = GROUP_COMMITTED };
	const struct daemon_frame *b;

	f.committed.lsn = v->last + 1;
	for (b = j->first; b; b = b->next) {
		f.committed.number = b->frame.batch.number;
		daemon_link_send(&v->link, &f);
		f.committed.lsn += b->frame.batch.nr;
	}
	v->last += j->nr;
	memcpy(v->last_id, j->ids[j->nr - 1], sizeof(v->last_id));
}

/* ---- joining ---- */

static void add(struct joined *j, struct daemon_frame *b)
{
	j->nr += b->frame.batch.nr;
	j->bytes += b->len;
	*j->end = b;
	j->end = &b->next;
}

/* Refuses a batch of an earlier epoch. Another node has led since this batch
 * was made, so the look-ups of its ids can be wrong. */
static void refuse_old(struct service *v, const struct group_frame *batch)
{
	struct group_frame f = { .type = GROUP_REFUSED };

	f.refused.number = batch->batch.number;
	group_frame_reason(f.refused.reason,
	    "the batch is of an earlier epoch of this node");
	daemon_link_send(&v->link, &f);
}

static void take_frame(struct service *v, struct joined *j,
    struct daemon_frame *frame)
{
	switch (frame->frame.type) {
	case GROUP_BATCH:
		if (v->epoch == 0 || frame->frame.batch.epoch == v->epoch) {
			add(j, frame);
			return;
		}
		refuse_old(v, &frame->frame);
		break;
	case GROUP_HOLD:
		hold_thread_take(v->holds, frame,
		    v->epoch ? NULL : v->told.owner);
		return;
	case GROUP_APPLIED:
		v->applied = frame->frame.applied.lsn;
		v->taken = frame->frame.applied.last;
		break;
	case GROUP_FOLLOWS:
		v->follows = frame->frame.follows.epoch;
		break;
	case GROUP_STOP:
		v->stops = true;
		break;
	default:
		die("the daemon has sent a second HELLO");
	}
	daemon_frame_free(frame);
}

/* Waits only for the first frame, because a batch that is there must not wait
 * for further batches. */
static void collect(struct service *v, struct joined *j, int wait_ms)
{
	struct daemon_frame *frame = daemon_link_next(&v->link, wait_ms);

	j->end = &j->first;
	while (frame) {
		take_frame(v, j, frame);
		if (j->bytes >= JOIN_BYTES)
			break;
		frame = daemon_link_next(&v->link, 0);
	}
}

static void copy_rows(struct joined *j)
{
	const struct daemon_frame *b;
	size_t i, at = 0;

	j->rows = xcalloc(j->nr, sizeof(*j->rows));
	j->ids = xcalloc(j->nr, sizeof(*j->ids));
	j->lsns = xcalloc(j->nr, sizeof(*j->lsns));
	for (b = j->first; b; b = b->next)
		for (i = 0; i < b->frame.batch.nr; i++, at++) {
			j->rows[at] = b->frame.batch.rows[i];
			memcpy(j->ids[at], j->rows[at].id, GROUP_UUID_BYTES);
		}
}

static int compare_ids(const void *a, const void *b)
{
	return memcmp(a, b, GROUP_UUID_BYTES);
}

/* Ends the program if two rows have one id. Ids are unique in the database,
 * which would otherwise reject the transaction for ever. */
static void check_ids(const struct joined *j)
{
	uint8_t(*ids)[GROUP_UUID_BYTES] = xcalloc(j->nr, sizeof(*ids));
	size_t i;

	memcpy(ids, j->ids, j->nr * sizeof(*ids));
	qsort(ids, j->nr, sizeof(*ids), compare_ids);
	for (i = 1; i < j->nr; i++)
		if (!compare_ids(ids[i - 1], ids[i]))
			die("the daemon has sent two rows with the same id: "
			    "report this as an error of refd");
	free(ids);
}

static void joined_done(struct joined *j)
{
	struct daemon_frame *next;

	for (; j->first; j->first = next) {
		next = j->first->next;
		daemon_frame_free(j->first);
	}
	free(j->rows);
	free(j->ids);
	free(j->lsns);
}

/* ---- a transaction ---- */

static const char refusal[] =
    "the lease is lost, or synchronous_standby_names is empty";

/* One statement inserts all rows or none, so all rows of a transaction are
 * there with its LSNs, or none. */
static bool is_present(const struct service *v, const struct joined *j)
{
	size_t i, present = 0;

	for (i = 0; i < j->nr; i++) {
		present += j->lsns[i] != 0;
		if (j->lsns[i] != 0 && j->lsns[i] != v->last + 1 + i)
			die("an id of a row is in the log already, as LSN "
			    "%llu: every row needs a new id",
			    (unsigned long long)j->lsns[i]);
	}
	if (present != 0 && present != j->nr)
		die("%zu of %zu rows of a transaction are in the log", present,
		    j->nr);
	return present != 0;
}

static enum group_settled settle(struct service *v, const struct joined *j)
{
	enum group_settled settled;

	do {
		settled = service_connect(v) ?
		    group_log_settle(&v->log, v->epoch,
			(const uint8_t(*)[GROUP_UUID_BYTES])j->ids, j->nr,
			j->lsns) :
		    GROUP_LOG_AGAIN;
		if (settled != GROUP_LOG_AGAIN)
			return settled;
	} while (service_retry(v, "settling a transaction"));
	return GROUP_LOG_AGAIN;
}

/* True: the outcome is known and told. False: the same rows must be sent
 * again. */
static bool end_doubt(struct service *v, const struct joined *j)
{
	enum group_settled settled = settle(v, j);

	if (settled == GROUP_LOG_AGAIN)
		return false;
	v->is_lost = settled == GROUP_LOG_LOST;
	if (is_present(v, j))
		answer_committed(v, j);
	else if (v->is_lost)
		answer_all(v, j, GROUP_REFUSED,
		    "another epoch has begun, and the rows are not in the log");
	else
		return false;
	return true;
}

/* Renews the lease after no row was inserted, perhaps because the lease is
 * over. While the standbys are away, no renewal ends. The lease is then over,
 * although no other node can take the lease. True: the lease is renewed. */
static bool renew_lease(struct service *v)
{
	struct lease lease;

	if (!lease_look(&v->log.s, &lease))
		return false;
	v->is_lost = lease.epoch > v->epoch;
	return lease.epoch == v->epoch && lease.is_over &&
	    lease.waits_for_standbys &&
	    lease_renew(&v->log.s, v->epoch) == LEASE_DONE;
}

/* Sends the transaction once, and settles a doubt. True: the daemon has the
 * outcome. */
static bool attempt(struct service *v, const struct joined *j, bool *is_first)
{
	switch (group_log_append(&v->log, v->epoch, v->last + 1, j->rows, j->nr,
	    *is_first)) {
	case GROUP_LOG_COMMITTED:
		answer_committed(v, j);
		return true;
	case GROUP_LOG_REFUSED:
		if (renew_lease(v))
			return false;
		answer_all(v, j, GROUP_REFUSED, refusal);
		return true;
	case GROUP_LOG_DOUBTFUL:
		break;
	}
	if (*is_first)
		answer_all(v, j, GROUP_DOUBTFUL, v->log.s.why.data);
	else if (!service_retry(v, "sending a transaction again"))
		return false;
	*is_first = false;
	return end_doubt(v, j);
}

static void attempt_until_told(struct service *v, const struct joined *j)
{
	bool is_first = true;

	do
		while (!service_connect(v))
			if (!service_retry(v, "no connection to the database"))
				return;
	while (!attempt(v, j, &is_first) && !v->stops);
}

void batches_lead(struct service *v, int wait_ms)
{
	struct joined j = { 0 };

	collect(v, &j, wait_ms);
	if (j.nr > 0) {
		copy_rows(&j);
		check_ids(&j);
		attempt_until_told(v, &j);
	}
	joined_done(&j);
}

void batches_follow(struct service *v, int wait_ms)
{
	struct joined j = { 0 };
	char *reason;

	collect(v, &j, wait_ms);
	reason = xasprintf("this node is a follower; the leader is '%s'",
	    v->told.owner);
	answer_all(v, &j, GROUP_REFUSED, reason);
	free(reason);
	joined_done(&j);
}
