/*
 * Happy path:
 *	add	queues the update at its name (ref_tree.c)
 *	up	the update is first of its name and awake, and no other name
 *		is in the way
 *	hold	the update goes into a batch. If a whole transaction goes, its
 *		names stay up, and held_from of the entry says that they are
 *		held
 *	back	decided: the next update of the name is first, after a rest
 *
 * Failure modes:
 *	out of memory	only at add; nothing else allocates
 *	deep names use more memory than the requests	BUSY at add, by
 *			max_bytes: a name of a kilobyte can have five hundred
 *			names above
 */
#include "daemon/scheduler/ref_queue.h"

#include <assert.h>
#include <string.h>

#include <utlist.h>

#include "daemon/base/busy_cause.h"
#include "daemon/scheduler/fairness.h"
#include "daemon/scheduler/ref_tree.h"

#define DROP_EVERY_NS (10 * 1000 * 1000)
/* Names that wake in one call. */
#define WAKE_AT_ONCE 256

static size_t index_of(const struct txn_update *u)
{
	return (size_t)(u - u->txn->updates);
}

static uint64_t arrival_of(const struct txn_update *u)
{
	return entry_of(u)->arrival + index_of(u);
}

/* Is the first update of N in a batch? */
static bool is_held(const struct ref_queue *n)
{
	return n->place == NAME_HELD ||
	    (n->place == NAME_UP && index_of(n->first) >= n->up_of->held_from);
}

/* ---- places ---- */

static void leave(struct ref_queues *ns, struct ref_queue *n)
{
	switch (n->place) {
	case NAME_UP:
		DL_DELETE(n->up_of->up, n);
		n->up_of->nr_up--;
		fairness_refresh(n->up_of);
		break;
	case NAME_BLOCKED:
		DL_DELETE(n->blocked_by->blocked, n);
		break;
	case NAME_ASLEEP:
		heap_remove(&ns->asleep, &n->wake);
		break;
	case NAME_IDLE:
	case NAME_HELD:
		break;
	}
	n->place = NAME_IDLE;
}

static bool is_in_the_way(const struct ref_queue *n, const struct txn_update *u)
{
	const struct txn_update *first = n->first;

	if (first == NULL ||
	    (first->txn == u->txn && !entry_of(u)->goes_in_order))
		return false;
	return is_held(n) || arrival_of(first) < arrival_of(u);
}

/* The name that blocks the first update of N; NULL: the update may go. */
static struct ref_queue *find_in_the_way(struct ref_queue *n)
{
	struct ref_queue *other;

	for (other = n->parent; other != NULL; other = other->parent)
		if (is_in_the_way(other, n->first))
			return other;
	other = n;
	while ((other = ref_tree_next_below(n, other)) != NULL)
		if (is_in_the_way(other, n->first))
			return other;
	return NULL;
}

static void block(struct ref_queue *n, struct ref_queue *by)
{
	n->place = NAME_BLOCKED;
	n->blocked_by = by;
	DL_APPEND(by->blocked, n);
}

/* Moves N, which no batch holds, to its right place. */
static void settle(struct ref_queues *ns, struct ref_queue *n, int64_t now_ns)
{
	int64_t wake_ns = n->rest_until_ns;
	struct ref_queue *other;

	leave(ns, n);
	if (n->first != NULL && n->first->retry_ns > wake_ns)
		wake_ns = n->first->retry_ns;
	if (wake_ns > now_ns) {
		/* Unused names are dropped together. */
		if (n->first == NULL)
			wake_ns = (wake_ns / DROP_EVERY_NS + 1) * DROP_EVERY_NS;
		n->place = NAME_ASLEEP;
		heap_add(&ns->asleep, &n->wake, wake_ns);
	} else if (n->first != NULL) {
		other = find_in_the_way(n);
		if (other != NULL) {
			block(n, other);
			return;
		}
		n->place = NAME_UP;
		n->up_of = entry_of(n->first);
		DL_APPEND(n->up_of->up, n);
		n->up_of->nr_up++;
		fairness_refresh(n->up_of);
	}
}

/* N has a new first update, or its first update may be tried at a different
 * time. */
static void changed(struct ref_queues *ns, struct ref_queue *n, int64_t now_ns)
{
	struct ref_queue *blocked = n->blocked, *other;

	settle(ns, n, now_ns);
	/* N may block some of them again. */
	n->blocked = NULL;
	while ((other = blocked) != NULL) {
		DL_DELETE(blocked, other);
		other->place = NAME_IDLE;
		settle(ns, other, now_ns);
	}
	ref_tree_drop_unused(ns, n);
}

static void yield(struct ref_queues *ns, struct ref_queue *n,
    const struct ref_queue *to, int64_t now_ns)
{
	if (n->place == NAME_UP && !is_held(n) && is_in_the_way(to, n->first))
		settle(ns, n, now_ns);
}

/* The first update of N has just come. Its entry is older than a different
 * entry of the repository, whose names may be up. */
static void yield_related(struct ref_queues *ns, struct ref_queue *n,
    int64_t now_ns)
{
	struct ref_queue *other;

	for (other = n->parent; other != NULL; other = other->parent)
		yield(ns, other, n, now_ns);
	other = n;
	while ((other = ref_tree_next_below(n, other)) != NULL)
		yield(ns, other, n, now_ns);
}

/* ---- the queue of a name ---- */

static void count_busy(struct ref_queue *n, int by)
{
	for (n = n->parent; n != NULL; n = n->parent)
		n->nr_busy_below += (size_t)by;
}

/* Inserts U behind AFTER; NULL: at the front. */
static void insert(struct ref_queue *n, struct txn_update *u,
    struct txn_update *after)
{
	if (n->first == NULL)
		count_busy(n, 1);
	u->ref_queue = n;
	u->prev_waiting = after;
	u->next_waiting = after != NULL ? after->next_waiting : n->first;
	if (u->next_waiting != NULL)
		u->next_waiting->prev_waiting = u;
	else
		n->last = u;
	if (after != NULL)
		after->next_waiting = u;
	else
		n->first = u;
}

static void unlink_update(struct txn_update *u)
{
	struct ref_queue *n = u->ref_queue;

	if (u->prev_waiting != NULL)
		u->prev_waiting->next_waiting = u->next_waiting;
	else
		n->first = u->next_waiting;
	if (u->next_waiting != NULL)
		u->next_waiting->prev_waiting = u->prev_waiting;
	else
		n->last = u->prev_waiting;
	u->next_waiting = u->prev_waiting = NULL;
	u->ref_queue = NULL;
	if (n->first == NULL)
		count_busy(n, -1);
}

/* Returns the update behind which U belongs, nearly always the last. An update
 * that was admitted again returns to its old place, but not ahead of an update
 * in a batch. */
static struct txn_update *place_for(const struct ref_queue *n,
    const struct txn_update *u)
{
	struct txn_update *after = n->last;

	while (after != NULL && arrival_of(after) > arrival_of(u) &&
	    !(after == n->first && is_held(n)))
		after = after->prev_waiting;
	return after;
}

static bool waits_at(const struct ref_queue *n, const struct entry *ent)
{
	const struct txn_update *v = n->last;

	while (v != NULL && v->txn != ent->txn && arrival_of(v) > ent->arrival)
		v = v->prev_waiting;
	return v != NULL && v->txn == ent->txn;
}

/* ENT has just come to N. Does ENT have a name above or below N? The entries of
 * a repository arrive one after the other, so the last entry of a name is
 * enough. */
static bool find_siblings(struct ref_queue *n, struct entry *ent)
{
	bool found = n->came_by == ent->arrival + 1;

	for (n = n->parent; n != NULL; n = n->parent) {
		found = found || waits_at(n, ent);
		n->came_by = ent->arrival + 1;
	}
	return found;
}

bool ref_queue_is_full(const struct ref_queues *ns)
{
	return ns->bytes > ns->max_bytes;
}

enum refd_status ref_queue_add(struct ref_queues *ns, uint64_t repo_key,
    struct txn_update *u, int64_t now_ns)
{
	struct entry *ent = entry_of(u);
	struct txn_update *after;
	struct ref_queue *n;

	if (strlen(u->ask->name) > REFD_REFNAME_MAX)
		return REFD_LIMIT;
	if (ref_queue_is_full(ns))
		return busy_cause_count(BUSY_NAMES);
	n = ref_tree_get(ns, repo_key, u->ask->name);
	if (n == NULL)
		return busy_cause_count(BUSY_MEMORY);
	after = place_for(n, u);
	if (after != NULL && after->txn == u->txn && !ent->goes_in_order)
		return REFD_DUPLICATE;
	insert(n, u, after);
	if (find_siblings(n, ent) && !ent->goes_in_order)
		ent->goes_whole = true;
	if (ent->deletion == NULL && txn_update_deletes(u))
		ent->deletion = u;
	if (after == NULL) {
		changed(ns, n, now_ns);
		if (ent->arrival < ent->queue->newest)
			yield_related(ns, n, now_ns);
	}
	if (ent->arrival > ent->queue->newest)
		ent->queue->newest = ent->arrival;
	return REFD_OK;
}

void ref_queue_remove(struct ref_queues *ns, struct txn_update *u,
    int64_t now_ns)
{
	struct ref_queue *n = u->ref_queue;
	bool was_first = n->first == u;

	assert(!u->in_batch);
	if (was_first)
		leave(ns, n);
	unlink_update(u);
	if (was_first)
		changed(ns, n, now_ns);
}

/* ---- going ---- */

struct txn_update *ref_queue_first_up(const struct entry *ent)
{
	return ent->up != NULL ? ent->up->first : NULL;
}

struct txn_update *ref_queue_deletion(struct entry *ent)
{
	const struct txn_update *end = ent->txn->updates + ent->txn->nr_updates;
	struct txn_update *u = ent->deletion;

	while (
	    u != NULL && (u->status != REFD_PENDING || !txn_update_deletes(u)))
		u = u + 1 < end ? u + 1 : NULL;
	ent->deletion = u;
	return u;
}

void ref_queue_park(struct ref_queues *ns, struct txn_update *u,
    const struct txn_update *other)
{
	struct ref_queue *n = u->ref_queue;

	assert(n->place == NAME_UP && !is_held(n) && n->first == u);
	leave(ns, n);
	block(n, other->ref_queue);
}

void ref_queue_hold(struct ref_queues *ns, struct txn_update *u)
{
	struct ref_queue *n = u->ref_queue;

	assert(n->place == NAME_UP && !is_held(n) && n->first == u);
	leave(ns, n);
	n->place = NAME_HELD;
}

void ref_queue_hold_all(struct entry *ent)
{
	assert(ent->nr_up == ent->nr_undecided);
	ent->held_from = 0;
}

bool ref_queue_is_held(const struct txn_update *u)
{
	const struct ref_queue *n = u->ref_queue;

	return n != NULL && n->first == u && is_held(n);
}

/* The batch of U is back. */
static void free_name(struct ref_queues *ns, struct txn_update *u)
{
	struct ref_queue *n = u->ref_queue;

	assert(ref_queue_is_held(u));
	if (n->place == NAME_UP)
		n->up_of->held_from = index_of(u) + 1;
	leave(ns, n);
	u->in_batch = false;
}

void ref_queue_back(struct ref_queues *ns, struct txn_update *u,
    int64_t rest_until_ns, int64_t now_ns)
{
	struct ref_queue *n = u->ref_queue;
	bool is_older;

	free_name(ns, u);
	if (u->status != REFD_PENDING) {
		unlink_update(u);
		n->rest_until_ns = rest_until_ns;
	} else if (u->next_waiting != NULL &&
	    arrival_of(u->next_waiting) < arrival_of(u)) {
		/* An older update may have been admitted again meanwhile. All
		 * names must have the same order of entries. Otherwise two
		 * entries could wait for each other. */
		unlink_update(u);
		insert(n, u, place_for(n, u));
	}
	is_older = n->first != NULL && arrival_of(n->first) < arrival_of(u);
	changed(ns, n, now_ns);
	/* An update that was admitted late is first now. */
	if (is_older)
		yield_related(ns, n, now_ns);
}

void ref_queue_let_go(struct ref_queues *ns, struct txn_update *u,
    int64_t now_ns)
{
	struct ref_queue *n = u->ref_queue;

	free_name(ns, u);
	unlink_update(u);
	changed(ns, n, now_ns);
}

int64_t ref_queue_wake(struct ref_queues *ns, int64_t now_ns)
{
	struct heap_link *l;
	size_t nr = 0;

	while ((l = ns->asleep.root) != NULL && l->key <= now_ns &&
	    nr++ < WAKE_AT_ONCE)
		changed(ns, HEAP_ITEM(l, struct ref_queue, wake), now_ns);
	return l != NULL ? l->key : INT64_MAX;
}
