/*
 * Checks the contract between scheduler and store for every window.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "tests/lib/scheduler_rig_internal.h"

unsigned rig_repo_of(const struct txn *txn)
{
	return (unsigned)strtoul(txn->req.git_dir, NULL, 10);
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

/* Fails if a live update of W, from part I and index K on, has the same or a
 * related name as U. The scheduler is not responsible for locks of sessions. */
static void check_apart(const struct window *w, size_t i, size_t k,
    const struct txn_update *u)
{
	const struct txn_update *v;

	if (w->session == WINDOW_COMMIT || w->session == WINDOW_ABORT)
		return;
	for (; i < w->nr_parts; i++, k = 0) {
		for (; k < w->parts[i].nr; k++) {
			v = w->parts[i].updates[k];
			if (v->in_window && meet(u, v) && !may_meet(u, v))
				ck_abort_msg("%s and %s are both on their way",
				    u->ask->name, v->ask->name);
		}
	}
}

static bool deletes_in(const struct window *w, unsigned repo)
{
	const struct txn_update *u;
	size_t i, k;

	for (i = 0; i < w->nr_parts; i++) {
		for (k = 0; k < w->parts[i].nr; k++) {
			u = w->parts[i].updates[k];
			if (u->in_window && txn_update_deletes(u) &&
			    rig_repo_of(u->txn) == repo)
				return true;
		}
	}
	return false;
}

/* U deletes, and a deletion of the same repository is in a window. The
 * scheduler is not responsible for sessions. */
static bool waits_to_delete(const struct txn_update *u)
{
	const struct window *w;

	if (!txn_update_deletes(u))
		return false;
	LL_FOREACH(rig_windows, w)
		if (w->session != WINDOW_COMMIT && w->session != WINDOW_ABORT &&
		    deletes_in(w, rig_repo_of(u->txn)))
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
			if (v->status != REFD_PENDING || v->in_window ||
			    rig_asks[i].is_prepared || !meet(u, v))
				continue;
			if (came_before(v, u) || may_meet(u, v))
				ck_abort_msg("%s overtakes %s", u->ask->name,
				    v->ask->name);
		}
	}
}

static void check_part(const struct window *w, size_t i)
{
	const struct txn_part *part = &w->parts[i];
	const struct window *other;
	size_t k, nr_live = 0;

	MUST(part->nr > 0);
	for (k = 0; k < part->nr; k++) {
		struct txn_update *u = part->updates[k];

		MUST(u->txn == part->txn);
		MUST(u->again == TXN_AGAIN_NO);
		MUST(u->in_window == (u->status == REFD_PENDING));
		MUST(u->in_window || !u->recorded);
		nr_live += u->in_window;
		if (rig_config.large || !u->in_window)
			continue;
		check_apart(w, i, k + 1, u);
		LL_FOREACH(rig_windows, other)
			check_apart(other, 0, 0, u);
		check_order(u);
		MUST(!waits_to_delete(u));
	}
	if (part->txn->req.atomic && nr_live == 0)
		MUST(part->nr == part->txn->nr_updates);
	if (part->txn->req.atomic && nr_live > 0)
		MUST(part->nr == nr_live && nr_live == part->txn->nr_updates);
	for (k = 0; k < part->txn->nr_updates && nr_live > 0; k++)
		MUST(part->txn->updates[k].status != REFD_PENDING ||
		    part->txn->updates[k].ref_queue != NULL);
	for (k = i + 1; k < w->nr_parts; k++)
		MUST(w->parts[k].txn != part->txn);
	LL_FOREACH(rig_windows, other)
		for (k = 0; k < other->nr_parts; k++)
			MUST(other->parts[k].txn != part->txn);
}

static struct rig_ask *ask_of(const struct txn *txn)
{
	return &rig_asks[txn->req.request_id];
}

/* The window has all undecided updates of a session, and nothing else. */
static void check_session(const struct window *w)
{
	const struct txn_part *part = &w->parts[0];
	size_t i, nr = 0;

	MUST(w->nr_parts == 1);
	MUST(part->txn->req.verb == REFD_VERB_SESSION);
	MUST(part->nr > 0);
	MUST(w->locked_ns == 0 && w->unlocked_ns == 0);
	for (i = 0; i < part->txn->nr_updates; i++)
		nr += part->txn->updates[i].status == REFD_PENDING;
	MUST(part->nr == nr);
	for (i = 0; i < part->nr; i++) {
		MUST(part->updates[i]->txn == part->txn);
		MUST(part->updates[i]->status == REFD_PENDING);
		MUST(part->updates[i]->again == TXN_AGAIN_NO);
		MUST(part->updates[i]->in_window);
		MUST(i == 0 || part->updates[i] > part->updates[i - 1]);
	}
}

/* A session ends once, after its preparation, with the locks of the
 * preparation. It has no names in the scheduler. */
static void check_end(const struct window *w)
{
	const struct txn_part *part = &w->parts[0];
	struct rig_ask *ask = ask_of(part->txn);
	size_t i;

	check_session(w);
	MUST(ask->is_prepared && part->txn->prepared != NULL);
	ask->is_prepared = false;
	for (i = 0; i < part->nr; i++)
		MUST(part->updates[i]->ref_queue == NULL);
}

void rig_check_window(const struct window *w)
{
	size_t i;

	MUST(w->nr_parts > 0);
	if (w->session == WINDOW_COMMIT || w->session == WINDOW_ABORT) {
		check_end(w);
		return;
	}
	if (w->session == WINDOW_PREPARE) {
		check_session(w);
		MUST(w->parts[0].txn->prepared == NULL);
	}
	for (i = 0; i < w->nr_parts; i++) {
		check_part(w, i);
		if (w->session == WINDOW_WHOLE)
			MUST(w->parts[i].txn->req.verb ==
				REFD_VERB_TRANSACTION ||
			    !w->parts[i].updates[0]->in_window);
	}
}

void rig_check_room(const struct window *w)
{
	const struct window *other;
	size_t nr = 0;

	if (w->session == WINDOW_COMMIT || w->session == WINDOW_ABORT)
		return;
	LL_FOREACH(rig_windows, other)
		nr += other->session == WINDOW_WHOLE ||
		    other->session == WINDOW_PREPARE;
	MUST(nr < rig_config.committers && rig_takes);
}

void rig_check_back(const struct window *w)
{
	const struct txn *txn = w->parts[0].txn;

	if (w->session == WINDOW_PREPARE)
		ask_of(txn)->is_prepared = txn->prepared != NULL;
	else
		MUST(w->session == WINDOW_WHOLE || txn->prepared == NULL);
}

static bool is_in_store(const struct txn *txn)
{
	const struct window *w;
	size_t i;

	LL_FOREACH(rig_windows, w)
		for (i = 0; i < w->nr_parts; i++)
			if (w->parts[i].txn == txn)
				return true;
	return false;
}

static bool stands_in_the_way(const struct txn_update *v,
    const struct txn_update *u)
{
	return v != u && v->status == REFD_PENDING && meet(u, v) &&
	    !may_meet(u, v) && (v->in_window || came_before(v, u));
}

/* The direct window of a transaction in admission blocks U. */
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
	const struct window *w;
	const struct txn *txn;
	size_t i, k, nr, nr_undecided;

	LL_COUNT(rig_windows, w, nr);
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
