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
 *	the names use more memory than max_bytes	BUSY at add. Deep names
 *			can use more memory than the requests, because a name of
 *			a kilobyte can have five hundred names above
 *
 * After add nothing allocates, so an update that is queued can always go, come
 * back and leave.
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

uint64_t ref_queue_arrival(const struct txn_update *u)
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

/* The list for N, which is up, or comes up. */
static struct ref_queue **list_of(const struct ref_queue *n)
{
	return txn_update_deletes(n->first) ? &n->up_of->up_deleting :
					      &n->up_of->up;
}

static void leave(struct ref_queues *ns, struct ref_queue *n)
{
	switch (n->place) {
	case NAME_UP:
		DL_DELETE(*list_of(n), n);
		n->up_of->nr_up--;
		fairness_refresh(n->up_of);
		break;
	case NAME_BLOCKED:
		heap_remove(&n->blocked_by->blocked, &n->link);
		break;
	case NAME_ASLEEP:
		heap_remove(&ns->asleep, &n->link);
		break;
	case NAME_IDLE:
	case NAME_HELD:
		break;
	}
	n->place = NAME_IDLE;
}

/* Updates of related names that arrived before the returned number go before U.
 * The names of a transaction go together, so they wait for each other only if
 * the transaction goes in order. */
static uint64_t may_not_overtake(const struct txn_update *u)
{
	return entry_of(u)->goes_in_order ? ref_queue_arrival(u) :
					    entry_of(u)->arrival;
}

/* The name that blocks the first update of N; NULL: the update may go. */
static struct ref_queue *find_in_the_way(struct ref_queues *ns,
    const struct ref_queue *n)
{
	const uint64_t before = may_not_overtake(n->first);
	struct ref_queue *above;

	for (above = n->parent; above != NULL; above = above->parent) {
		ns->steps++;
		if (above->first != NULL &&
		    ref_queue_arrival(above->first) < before)
			return above;
	}
	return ref_tree_older_below(n, before);
}

/* Moves N, which no batch holds, to its right place. */
static void settle(struct ref_queues *ns, struct ref_queue *n, int64_t now_ns)
{
	int64_t wake_ns = n->rest_until_ns;

	ns->steps++;
	leave(ns, n);
	if (n->first != NULL && n->first->retry_ns > wake_ns)
		wake_ns = n->first->retry_ns;
	if (wake_ns > now_ns) {
		/* Unused names are dropped together. */
		if (n->first == NULL)
			wake_ns = (wake_ns / DROP_EVERY_NS + 1) * DROP_EVERY_NS;
		n->place = NAME_ASLEEP;
		heap_add(&ns->asleep, &n->link, wake_ns);
	} else if (n->first != NULL) {
		n->blocked_by = find_in_the_way(ns, n);
		if (n->blocked_by != NULL) {
			n->place = NAME_BLOCKED;
			heap_add(&n->blocked_by->blocked, &n->link,
			    (int64_t)may_not_overtake(n->first));
			return;
		}
		n->place = NAME_UP;
		n->up_of = entry_of(n->first);
		DL_APPEND(*list_of(n), n);
		n->up_of->nr_up++;
		fairness_refresh(n->up_of);
	}
}

/* The oldest name that N blocks, but has no reason to block any more; NULL:
 * none. */
static struct ref_queue *first_released(const struct ref_queue *n)
{
	const struct heap_link *l = n->blocked.root;

	if (l == NULL ||
	    (n->first != NULL && (int64_t)ref_queue_arrival(n->first) < l->key))
		return NULL;
	return HEAP_ITEM(l, struct ref_queue, link);
}

/* N has a new first update, or its first update may be tried at a different
 * time. */
static void changed(struct ref_queues *ns, struct ref_queue *n, int64_t now_ns)
{
	settle(ns, n, now_ns);
	if (!n->is_releasing && first_released(n) != NULL) {
		n->is_releasing = true;
		DL_APPEND2(ns->releasing, n, prev_releasing, next_releasing);
	}
	ref_tree_drop_unused(ns, n);
}

/* ---- the queue of a name ---- */

static void append(struct ref_queue *n, struct txn_update *u)
{
	u->ref_queue = n;
	u->prev_waiting = n->last;
	u->next_waiting = NULL;
	if (n->last != NULL)
		n->last->next_waiting = u;
	else
		n->first = u;
	n->last = u;
	if (n->first == u)
		ref_tree_note_first(n);
}

static void unlink_update(struct txn_update *u)
{
	struct ref_queue *n = u->ref_queue;
	const bool was_first = n->first == u;

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
	if (was_first)
		ref_tree_note_first(n);
}

/* An update of ENT has just been queued at N. Has ENT another name above or
 * below N? The entries of a repository arrive one after the other, so only the
 * entry that came to a name last can be ENT. */
static bool find_siblings(struct ref_queue *n, const struct entry *ent)
{
	bool found = n->came_by == ent->arrival + 1;

	for (n = n->parent; n != NULL; n = n->parent) {
		found = found || (n->last != NULL && n->last->txn == ent->txn);
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
	const char *name = u->final_name != NULL ? u->final_name : u->ask->name;
	struct entry *ent = entry_of(u);
	struct ref_queue *n;

	if (strlen(name) > REFD_REFNAME_MAX)
		return REFD_LIMIT;
	if (ref_queue_is_full(ns))
		return busy_cause_count(BUSY_NAMES);
	n = ref_tree_get(ns, repo_key, name);
	if (n == NULL)
		return busy_cause_count(BUSY_MEMORY);
	if (n->last != NULL && n->last->txn == u->txn && !ent->goes_in_order)
		return REFD_DUPLICATE;
	assert(n->last == NULL ||
	    ref_queue_arrival(n->last) < ref_queue_arrival(u));
	append(n, u);
	if (find_siblings(n, ent) && !ent->goes_in_order)
		ent->goes_whole = true;
	if (ent->deletion == NULL && txn_update_deletes(u))
		ent->deletion = u;
	if (n->first == u)
		changed(ns, n, now_ns);
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

struct txn_update *ref_queue_first_up(const struct entry *ent, bool may_delete)
{
	if (ent->up != NULL)
		return ent->up->first;
	return may_delete && ent->up_deleting != NULL ?
	    ent->up_deleting->first :
	    NULL;
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

	free_name(ns, u);
	if (u->status != REFD_PENDING) {
		unlink_update(u);
		n->rest_until_ns = rest_until_ns;
	}
	changed(ns, n, now_ns);
}

void ref_queue_keep(struct ref_queues *ns, struct txn_update *u)
{
	struct ref_queue *n = u->ref_queue;

	assert(ref_queue_is_held(u));
	leave(ns, n);
	n->place = NAME_HELD;
}

void ref_queue_let_go(struct ref_queues *ns, struct txn_update *u,
    int64_t now_ns)
{
	struct ref_queue *n = u->ref_queue;

	free_name(ns, u);
	unlink_update(u);
	changed(ns, n, now_ns);
}

/* Wakes a name that N blocks. */
static void release(struct ref_queues *ns, struct ref_queue *n, int64_t now_ns)
{
	struct ref_queue *other = first_released(n);

	if (other != NULL) {
		settle(ns, other, now_ns);
		return;
	}
	n->is_releasing = false;
	DL_DELETE2(ns->releasing, n, prev_releasing, next_releasing);
	ref_tree_drop_unused(ns, n);
}

void ref_queue_wake(struct ref_queues *ns, int64_t now_ns)
{
	struct heap_link *l;
	size_t nr;

	for (nr = 0; nr < WAKE_AT_ONCE && ns->releasing != NULL; nr++)
		release(ns, ns->releasing, now_ns);
	for (nr = 0; nr < WAKE_AT_ONCE && (l = ns->asleep.root) != NULL &&
	    l->key <= now_ns;
	    nr++)
		changed(ns, HEAP_ITEM(l, struct ref_queue, link), now_ns);
}

int64_t ref_queue_next(const struct ref_queues *ns)
{
	if (ns->releasing != NULL)
		return 0;
	return ns->asleep.root != NULL ? ns->asleep.root->key : INT64_MAX;
}
