/*
 * Happy path:
 *	add	makes the name and the names above, and queues the update
 *	up	the update is first of its name and awake: it may be tried
 *	hold	nothing blocks the update: it goes into a batch
 *	back	decided: the next update of the name is first, after a rest
 *	drop	removes an unused name, and unused names above
 *
 * Failure modes:
 *	out of memory	only at add; nothing else allocates
 *	deep names use more memory than the requests	BUSY at add, by
 *			max_bytes: a name of a kilobyte can have five hundred
 *			names above
 */
#include "daemon/scheduler/ref_queue.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "daemon/base/busy_cause.h"
#include "daemon/scheduler/fairness.h"

#define DROP_EVERY_NS (10 * 1000 * 1000)

enum name_place {
	NAME_IDLE,
	NAME_UP,      /* in up_of->up */
	NAME_BLOCKED, /* in blocked_by->blocked */
	NAME_ASLEEP,  /* in names.asleep */
	NAME_HELD     /* the first update is in a batch */
};

/* One component of a name. The path from the root to this component is the
 * name. The parent of a root is NULL, and the component of a root is the key of
 * its repository. */
struct ref_queue {
	struct txn_update *first, *last; /* waiting updates, in arrival order */
	size_t nr_busy_below;            /* names below with waiting updates */
	/* arrival + 1 of the last entry that added a name below; 0: none */
	uint64_t came_by;
	int64_t rest_until_ns;

	enum name_place place;
	struct entry *up_of;
	struct ref_queue *blocked_by;
	struct ref_queue *next, *prev; /* in up_of->up or blocked_by->blocked */
	struct heap_link wake;

	struct ref_queue *blocked; /* names that are blocked by this name */
	struct ref_queue *children, *next_child, *prev_child;
	UT_hash_handle hh;

	/* The key; component is not terminated. */
	size_t key_len;
	struct ref_queue *parent;
	char component[];
};

static uint64_t arrival_of(const struct txn_update *u)
{
	return entry_of(u)->arrival + (size_t)(u - u->txn->updates);
}

/* ---- the tree ---- */

static size_t size_of(const struct ref_queue *n)
{
	return sizeof(*n) + n->key_len - sizeof(n->parent);
}

/* Chooses a table by other bits of the hash than the table uses itself. */
static struct ref_queue **table_of(struct ref_queues *ns, unsigned hash)
{
	return &ns->tables[hash >> 24];
}

static struct ref_queue *child_new(struct ref_queues *ns,
    struct ref_queue *parent, const char *component, size_t len, unsigned hash)
{
	struct ref_queue **table = table_of(ns, hash), *n;

	n = calloc(1, sizeof(*n) + len);
	if (n == NULL)
		return NULL;
	n->parent = parent;
	memcpy(n->component, component, len);
	n->key_len = sizeof(n->parent) + len;
	HASH_ADD_KEYPTR_BYHASHVALUE(hh, *table, &n->parent, n->key_len, hash,
	    n);
	if (n->hh.tbl == NULL) {
		free(n);
		return NULL;
	}
	if (parent != NULL)
		DL_APPEND2(parent->children, n, prev_child, next_child);
	ns->bytes += size_of(n);
	return n;
}

static struct ref_queue *child_get(struct ref_queues *ns,
    struct ref_queue *parent, const char *component, size_t len)
{
	struct {
		struct ref_queue *parent;
		char component[REFD_REFNAME_MAX];
	} key;
	struct ref_queue *table, *n;
	unsigned hash;

	assert(len <= sizeof(key.component));
	key.parent = parent;
	memcpy(key.component, component, len);
	HASH_VALUE(&key, sizeof(key.parent) + len, hash);
	table = *table_of(ns, hash);
	HASH_FIND_BYHASHVALUE(hh, table, &key, sizeof(key.parent) + len, hash,
	    n);
	return n != NULL ? n : child_new(ns, parent, component, len, hash);
}

/* Frees N, and the names above N, if they are unused. */
static void drop_unused(struct ref_queues *ns, struct ref_queue *n)
{
	struct ref_queue *parent, **table;

	while (n != NULL && n->first == NULL && n->children == NULL &&
	    n->blocked == NULL && n->place == NAME_IDLE) {
		parent = n->parent;
		if (parent != NULL)
			DL_DELETE2(parent->children, n, prev_child, next_child);
		if (ns->dir == n)
			ns->dir = NULL;
		ns->bytes -= size_of(n);
		table = table_of(ns, n->hh.hashv);
		HASH_DEL(*table, n);
		free(n);
		n = parent;
	}
}

/* Are the LEN bytes at PATH the name of DIR? */
static bool is_path_of(const struct ref_queue *dir, uint64_t repo_key,
    const char *path, size_t len)
{
	size_t component_len;

	for (; dir->parent != NULL; dir = dir->parent) {
		component_len = dir->key_len - sizeof(dir->parent);
		if (component_len > len ||
		    memcmp(path + len - component_len, dir->component,
			component_len) != 0)
			return false;
		len -= component_len;
		if (dir->parent->parent == NULL)
			continue;
		if (len == 0 || path[--len] != '/')
			return false;
	}
	return len == 0 &&
	    memcmp(dir->component, &repo_key, sizeof(repo_key)) == 0;
}

/* NULL: out of memory. */
static struct ref_queue *get_queue(struct ref_queues *ns, uint64_t repo_key,
    const char *text)
{
	const char *end = strrchr(text, '/');
	struct ref_queue *n, *child;

	if (end != NULL && ns->dir != NULL &&
	    is_path_of(ns->dir, repo_key, text, (size_t)(end - text))) {
		n = ns->dir;
		text = end + 1;
	} else {
		n = child_get(ns, NULL, (const char *)&repo_key,
		    sizeof(repo_key));
	}
	while (n != NULL) {
		end = strchrnul(text, '/');
		child = child_get(ns, n, text, (size_t)(end - text));
		if (child == NULL)
			drop_unused(ns, n);
		n = child;
		if (*end == '\0')
			break;
		text = end + 1;
	}
	ns->dir = n != NULL ? n->parent : NULL;
	return n;
}

void ref_queue_done(struct ref_queues *ns)
{
	struct ref_queue *n, *next;
	size_t i;

	for (i = 0; i < REF_QUEUE_TABLES; i++)
		HASH_ITER(hh, ns->tables[i], n, next) {
			HASH_DEL(ns->tables[i], n);
			free(n);
		}
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

/* Moves N, which no batch holds, to its right place. */
static void settle(struct ref_queues *ns, struct ref_queue *n, int64_t now_ns)
{
	int64_t wake_ns = n->rest_until_ns;

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
	settle(ns, n, now_ns);
	while (n->blocked != NULL)
		settle(ns, n->blocked, now_ns);
	drop_unused(ns, n);
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

	while (after != NULL && !after->in_batch &&
	    arrival_of(after) > arrival_of(u))
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
	n = get_queue(ns, repo_key, u->ask->name);
	if (n == NULL)
		return busy_cause_count(BUSY_MEMORY);
	after = place_for(n, u);
	if (after != NULL && after->txn == u->txn && !ent->goes_in_order)
		return REFD_DUPLICATE;
	insert(n, u, after);
	if (find_siblings(n, ent) && !ent->goes_in_order)
		ent->goes_whole = true;
	if (after == NULL)
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

struct txn_update *ref_queue_first_up(const struct entry *ent)
{
	return ent->up != NULL ? ent->up->first : NULL;
}

static bool is_in_the_way(const struct ref_queue *n, const struct txn_update *u)
{
	const struct txn_update *first = n->first;

	if (first == NULL ||
	    (first->txn == u->txn && !entry_of(u)->goes_in_order))
		return false;
	return n->place == NAME_HELD || arrival_of(first) < arrival_of(u);
}

/* Searches depth first, only below names with waiting updates. */
static const struct ref_queue *find_below(const struct ref_queue *top,
    const struct txn_update *u)
{
	const struct ref_queue *n = top;

	for (;;) {
		if (n->nr_busy_below > 0 && n->children != NULL) {
			n = n->children;
		} else {
			while (n != top && n->next_child == NULL)
				n = n->parent;
			if (n == top)
				return NULL;
			n = n->next_child;
		}
		if (is_in_the_way(n, u))
			return n;
	}
}

const struct txn_update *ref_queue_in_the_way(const struct txn_update *u)
{
	const struct ref_queue *n = u->ref_queue, *other;

	for (other = n->parent; other != NULL; other = other->parent)
		if (is_in_the_way(other, u))
			return other->first;
	other = find_below(n, u);
	return other != NULL ? other->first : NULL;
}

void ref_queue_park(struct ref_queues *ns, struct txn_update *u,
    const struct txn_update *in_the_way)
{
	struct ref_queue *n = u->ref_queue;

	assert(n->place == NAME_UP && n->first == u);
	leave(ns, n);
	n->place = NAME_BLOCKED;
	n->blocked_by = in_the_way->ref_queue;
	DL_APPEND(n->blocked_by->blocked, n);
}

void ref_queue_hold(struct ref_queues *ns, struct txn_update *u)
{
	struct ref_queue *n = u->ref_queue;

	assert(n->place == NAME_UP && n->first == u);
	leave(ns, n);
	n->place = NAME_HELD;
	u->in_batch = true;
}

void ref_queue_back(struct ref_queues *ns, struct txn_update *u,
    int64_t rest_until_ns, int64_t now_ns)
{
	struct ref_queue *n = u->ref_queue;

	assert(n->place == NAME_HELD && n->first == u);
	n->place = NAME_IDLE;
	u->in_batch = false;
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
	changed(ns, n, now_ns);
}

void ref_queue_let_go(struct ref_queues *ns, struct txn_update *u,
    int64_t now_ns)
{
	struct ref_queue *n = u->ref_queue;

	assert(n->place == NAME_HELD && n->first == u);
	n->place = NAME_IDLE;
	u->in_batch = false;
	unlink_update(u);
	changed(ns, n, now_ns);
}

int64_t ref_queue_wake(struct ref_queues *ns, int64_t now_ns)
{
	struct heap_link *l;

	while ((l = ns->asleep.root) != NULL && l->key <= now_ns)
		changed(ns, HEAP_ITEM(l, struct ref_queue, wake), now_ns);
	return l != NULL ? l->key : INT64_MAX;
}
