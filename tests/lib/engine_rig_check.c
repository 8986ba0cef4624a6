/*
 * What engine and store have agreed on, checked of every window.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "tests/lib/engine_rig_internal.h"

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

/* No live update of W, from part I, index K on, meets U. */
static void check_apart(const struct window *w, size_t i, size_t k,
    const struct txn_update *u)
{
	for (; i < w->nr_parts; i++, k = 0)
		for (; k < w->parts[i].nr; k++)
			if (w->parts[i].updates[k]->in_window &&
			    meet(u, w->parts[i].updates[k]))
				ck_abort_msg("%s and %s are both on their way",
				    u->ask->name,
				    w->parts[i].updates[k]->ask->name);
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
			/* One that is admitted again is away till then. */
			if (v->txn->readmitted && v->name == NULL)
				continue;
			if (v->status == REFD_PENDING && !v->in_window &&
			    came_before(v, u) && meet(u, v))
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
	}
	if (part->txn->req.atomic)
		MUST(part->nr == part->txn->nr_updates);
	if (part->txn->req.atomic && nr_live > 0)
		MUST(part->nr == nr_live);
	for (k = 0; k < part->txn->nr_updates && nr_live > 0; k++)
		MUST(part->txn->updates[k].status != REFD_PENDING ||
		    part->txn->updates[k].name != NULL);
	for (k = i + 1; k < w->nr_parts; k++)
		MUST(w->parts[k].txn != part->txn);
	LL_FOREACH(rig_windows, other)
		for (k = 0; k < other->nr_parts; k++)
			MUST(other->parts[k].txn != part->txn);
}

void rig_check_window(const struct window *w)
{
	const struct window *other;
	size_t i;

	MUST(w->nr_parts > 0);
	for (i = 0; i < w->nr_parts; i++)
		check_part(w, i);
	LL_COUNT(rig_windows, other, i);
	MUST(i < rig_config.lanes);
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

static bool could_go(const struct txn_update *u)
{
	const struct txn_update *v;
	size_t i, k;

	if (u->status != REFD_PENDING || u->retry_ns > rig_now)
		return false;
	for (i = 0; i < rig_nr_asks; i++) {
		if (!is_waiting(&rig_asks[i]))
			continue;
		for (k = 0; k < rig_asks[i].txn->nr_updates; k++) {
			v = &rig_asks[i].txn->updates[k];
			if (v != u && v->status == REFD_PENDING && meet(u, v) &&
			    (v->in_window || came_before(v, u)))
				return false;
		}
	}
	return true;
}

void rig_check_nothing_idles(void)
{
	const struct window *w;
	const struct txn *txn;
	size_t i, k, nr;

	LL_COUNT(rig_windows, w, nr);
	for (i = 0; i < rig_nr_asks && nr < rig_config.lanes; i++) {
		if (!is_waiting(&rig_asks[i]) || is_in_store(rig_asks[i].txn))
			continue;
		txn = rig_asks[i].txn;
		for (k = 0, nr = 0; k < txn->nr_updates; k++)
			nr += could_go(&txn->updates[k]);
		if (txn->req.atomic ? nr == txn->nr_updates : nr > 0)
			ck_abort_msg("%s could go", txn->updates[0].ask->name);
		nr = 0;
	}
}
