/*
 * Checks the contract between scheduler and store for every batch.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "daemon/scheduler/state.h"
#include "tests/lib/scheduler_rig_internal.h"

unsigned rig_repo_of(const struct txn *txn)
{
	return (unsigned)strtoul(txn->req.git_dir, NULL, 10);
}

bool rig_is_checked_again(const struct txn *txn)
{
	const struct entry *ent = txn->scheduler;

	return ent->state == ENTRY_ADMITTING && ent->queue != NULL;
}

static bool related(const char *a, const char *b)
{
	size_t la = strlen(a), lb = strlen(b);
	size_t l = la < lb ? la : lb;

	if (strncmp(a, b, l) != 0)
		return false;
	return la == lb || (la < lb ? b[l] : a[l]) == '/';
}

static bool meet(const struct txn_update *a, const struct txn_update *b)
{
	return rig_repo_of(a->txn) == rig_repo_of(b->txn) &&
	    related(a->ask->name, b->ask->name);
}

/* In a push that is not atomic, related names must keep their order. */
static bool goes_in_order(const struct txn *txn)
{
	return txn->req.push && !txn->req.atomic &&
	    txn->req.verb == REFD_VERB_TRANSACTION;
}

/* In other transactions, related names go together, but no name twice. */
static bool may_meet(const struct txn_update *u, const struct txn_update *v)
{
	return u->txn == v->txn && !goes_in_order(u->txn) &&
	    strcmp(u->ask->name, v->ask->name) != 0;
}

bool rig_holds_no_names(const struct batch *b)
{
	return b->session == BATCH_COMMIT || b->session == BATCH_ABORT ||
	    b->session == BATCH_LOOK;
}

/* Fails if a live update of W, from part I and index K on, has the same or a
 * related name as U. The scheduler is not responsible for locks of sessions. */
static void check_apart(const struct batch *b, size_t i, size_t k,
    const struct txn_update *u)
{
	const struct txn_update *v;

	if (rig_holds_no_names(b))
		return;
	for (; i < b->nr_slices; i++, k = 0) {
		for (; k < b->slices[i].nr; k++) {
			v = b->slices[i].updates[k];
			if (v->in_batch && meet(u, v) && !may_meet(u, v))
				ck_abort_msg("%s and %s are both on their way",
				    u->ask->name, v->ask->name);
		}
	}
}

static bool deletes_in(const struct batch *b, unsigned repo)
{
	const struct txn_update *u;
	size_t i, k;

	for (i = 0; i < b->nr_slices; i++) {
		for (k = 0; k < b->slices[i].nr; k++) {
			u = b->slices[i].updates[k];
			if (u->in_batch && txn_update_deletes(u) &&
			    rig_repo_of(u->txn) == repo)
				return true;
		}
	}
	return false;
}

/* U deletes, and a deletion of the same repository is in a batch. The
 * scheduler is not responsible for sessions. */
static bool waits_to_delete(const struct txn_update *u)
{
	const struct batch *b;

	if (!txn_update_deletes(u))
		return false;
	LL_FOREACH(rig_batches, b)
		if (!rig_holds_no_names(b) &&
		    deletes_in(b, rig_repo_of(u->txn)))
			return true;
	return false;
}

static bool came_before(const struct txn_update *v, const struct txn_update *u)
{
	return v->txn == u->txn ? v < u : v->txn->peer.pid < u->txn->peer.pid;
}

static bool is_waiting(const struct rig_ask *ask)
{
	return ask->repo != NULL;
}

static void check_order(const struct txn_update *u)
{
	const struct txn_update *v;
	size_t i, k;

	for (i = 0; i < rig_nr_asks; i++) {
		if (!is_waiting(&rig_asks[i]))
			continue;
		for (k = 0; k < rig_asks[i].txn->nr_updates; k++) {
			v = &rig_asks[i].txn->updates[k];
			/* While it is readmitted, a transaction is not in the
			 * queues. */
			if (v->txn->readmitted && v->ref_queue == NULL)
				continue;
			if (v->status != REFD_PENDING || v->in_batch ||
			    rig_asks[i].is_prepared || !meet(u, v))
				continue;
			if (came_before(v, u) || may_meet(u, v))
				ck_abort_msg("%s overtakes %s", u->ask->name,
				    v->ask->name);
		}
	}
}

/* No transaction goes long after the check of its objects, or if a pause has
 * ended since. */
static void check_fresh(const struct txn *txn, size_t nr_live)
{
	const struct entry *ent = txn->scheduler;

	if (nr_live == 0 || txn->direct != NULL ||
	    txn->req.gate != REFD_GATE_NONE)
		return;
	MUST(txn_is_fresh(txn, rig_now));
	MUST(ent->nr_pauses == rig_scheduler->nr_pauses);
}

static void check_slice(const struct batch *b, size_t i)
{
	const struct txn_slice *slice = &b->slices[i];
	const struct batch *other;
	size_t k, nr_live = 0;

	MUST(slice->nr > 0);
	for (k = 0; k < slice->nr; k++) {
		struct txn_update *u = slice->updates[k];

		MUST(u->txn == slice->txn);
		MUST(u->again == TXN_AGAIN_NO);
		MUST(u->in_batch == (u->status == REFD_PENDING));
		MUST(u->in_batch || !u->recorded);
		nr_live += u->in_batch;
		if (rig_config.large || !u->in_batch)
			continue;
		check_apart(b, i, k + 1, u);
		LL_FOREACH(rig_batches, other)
			check_apart(other, 0, 0, u);
		check_order(u);
		MUST(!waits_to_delete(u));
	}
	if (slice->txn->req.atomic && nr_live == 0)
		MUST(slice->nr == slice->txn->nr_updates);
	if (slice->txn->req.atomic && nr_live > 0)
		MUST(slice->nr == nr_live && nr_live == slice->txn->nr_updates);
	for (k = 0; k < slice->txn->nr_updates && nr_live > 0; k++)
		MUST(slice->txn->updates[k].status != REFD_PENDING ||
		    slice->txn->updates[k].ref_queue != NULL);
	check_fresh(slice->txn, nr_live);
	for (k = i + 1; k < b->nr_slices; k++)
		MUST(b->slices[k].txn != slice->txn);
	LL_FOREACH(rig_batches, other)
		for (k = 0; k < other->nr_slices; k++)
			MUST(other->slices[k].txn != slice->txn);
}

static struct rig_ask *ask_of(const struct txn *txn)
{
	return &rig_asks[txn->req.request_id];
}

/* The batch has all undecided updates of a session, and nothing else. */
static void check_session(const struct batch *b)
{
	const struct txn_slice *slice = &b->slices[0];
	size_t i, nr = 0;

	MUST(b->nr_slices == 1);
	MUST(slice->txn->req.verb == REFD_VERB_SESSION);
	MUST(slice->nr > 0);
	MUST(b->locked_ns == 0 && b->unlocked_ns == 0);
	for (i = 0; i < slice->txn->nr_updates; i++)
		nr += slice->txn->updates[i].status == REFD_PENDING;
	MUST(slice->nr == nr);
	for (i = 0; i < slice->nr; i++) {
		MUST(slice->updates[i]->txn == slice->txn);
		MUST(slice->updates[i]->status == REFD_PENDING);
		MUST(slice->updates[i]->again == TXN_AGAIN_NO);
		MUST(slice->updates[i]->in_batch);
		MUST(i == 0 || slice->updates[i] > slice->updates[i - 1]);
	}
}

/* A session ends once, after its preparation, with the locks of the
 * preparation. Only in a group it has names in the scheduler. */
static void check_end(const struct batch *b)
{
	const struct txn_slice *slice = &b->slices[0];
	struct rig_ask *ask = ask_of(slice->txn);
	size_t i;

	check_session(b);
	MUST(ask->is_prepared && slice->txn->prepared != NULL);
	ask->is_prepared = false;
	for (i = 0; i < slice->nr; i++)
		MUST((slice->updates[i]->ref_queue != NULL) ==
		    (slice->txn->replica != NULL));
}

void rig_check_batch(const struct batch *b)
{
	size_t i;

	MUST(b->nr_slices > 0);
	if (b->session == BATCH_LOOK)
		return;
	if (b->session == BATCH_COMMIT || b->session == BATCH_ABORT) {
		check_end(b);
		return;
	}
	if (b->session == BATCH_PREPARE) {
		check_session(b);
		MUST(b->slices[0].txn->prepared == NULL);
	}
	for (i = 0; i < b->nr_slices; i++) {
		check_slice(b, i);
		if (b->session == BATCH_WHOLE)
			MUST(b->slices[i].txn->req.verb ==
				REFD_VERB_TRANSACTION ||
			    !b->slices[i].updates[0]->in_batch);
	}
}

void rig_check_room(const struct batch *b)
{
	const struct batch *other;
	size_t nr = 0;

	if (rig_holds_no_names(b))
		return;
	LL_FOREACH(rig_batches, other)
		nr += other->session == BATCH_WHOLE ||
		    other->session == BATCH_PREPARE;
	MUST(nr < rig_config.committers && rig_takes);
}

void rig_check_back(const struct batch *b)
{
	const struct txn *txn = b->slices[0].txn;

	if (b->session == BATCH_PREPARE)
		ask_of(txn)->is_prepared = txn->prepared != NULL;
	else
		MUST(b->session == BATCH_WHOLE || txn->prepared == NULL);
}

static bool is_in_store(const struct txn *txn)
{
	const struct batch *b;
	size_t i;

	if (rig_is_checked_again(txn))
		return true;
	LL_FOREACH(rig_batches, b)
		for (i = 0; i < b->nr_slices; i++)
			if (b->slices[i].txn == txn)
				return true;
	return false;
}

static bool stands_in_the_way(const struct txn_update *v,
    const struct txn_update *u)
{
	return v != u && v->status == REFD_PENDING && meet(u, v) &&
	    !may_meet(u, v) && (v->in_batch || came_before(v, u));
}

/* The direct batch of a transaction in admission blocks U. */
static bool waits_for_direct(const struct txn_update *u)
{
	const struct txn *txn;
	size_t i;

	LL_FOREACH(rig_admissions, txn) {
		if (txn->direct == NULL)
			continue;
		if (txn_update_deletes(u) &&
		    deletes_in(txn->direct, rig_repo_of(u->txn)))
			return true;
		for (i = 0; i < txn->nr_updates; i++)
			if (stands_in_the_way(&txn->updates[i], u))
				return true;
	}
	return false;
}

static bool could_go(const struct txn_update *u)
{
	size_t i, k;

	if (u->status != REFD_PENDING || u->retry_ns > rig_now ||
	    waits_to_delete(u) || waits_for_direct(u))
		return false;
	for (i = 0; i < rig_nr_asks; i++) {
		if (!is_waiting(&rig_asks[i]) || rig_asks[i].is_prepared)
			continue;
		for (k = 0; k < rig_asks[i].txn->nr_updates; k++)
			if (stands_in_the_way(&rig_asks[i].txn->updates[k], u))
				return false;
	}
	return true;
}

/* All undecided updates go together. */
static bool goes_whole(const struct txn *txn)
{
	const struct txn_update *u = txn->updates;
	size_t i, k;

	if (txn->req.atomic || txn->req.verb == REFD_VERB_SESSION)
		return true;
	for (i = 0; i < txn->nr_updates && !goes_in_order(txn); i++)
		for (k = 0; k < i; k++)
			if (meet(&u[i], &u[k]))
				return true;
	return false;
}

void rig_check_nothing_idles(void)
{
	const struct batch *b;
	const struct txn *txn;
	size_t i, k, nr, nr_undecided;

	LL_COUNT(rig_batches, b, nr);
	LL_FOREACH(rig_admissions, txn)
		nr += txn->direct != NULL;
	if (!rig_takes)
		return;
	for (i = 0; i < rig_nr_asks && nr < rig_config.committers; i++) {
		if (!is_waiting(&rig_asks[i]) || rig_asks[i].is_prepared ||
		    is_in_store(rig_asks[i].txn))
			continue;
		txn = rig_asks[i].txn;
		nr = nr_undecided = 0;
		for (k = 0; k < txn->nr_updates; k++) {
			nr += could_go(&txn->updates[k]);
			nr_undecided += txn->updates[k].status == REFD_PENDING;
		}
		if (nr > 0 && (!goes_whole(txn) || nr == nr_undecided))
			ck_abort_msg("%s could go", txn->updates[0].ask->name);
		nr = 0;
	}
}
