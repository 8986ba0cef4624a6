/*
 * Happy path:
 *	get	makes a name and the names above
 *	note	every name knows the oldest update below, so that a name finds
 *		an older update below in a few steps
 *	drop	removes a name that is not used any more, and unused names
 *		above
 *
 * Failure modes:
 *	out of memory	only at get
 */
#include "daemon/scheduler/ref_tree.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static size_t size_of(const struct ref_queue *n)
{
	return sizeof(*n) + n->len;
}

/* Chooses a table by other bits of the hash than the table uses itself, because
 * with the same bits all names of a table would begin at few slots. */
static struct ref_table *table_of(struct ref_queues *ns, uint32_t hash)
{
	return &ns->tables[hash >> 24];
}

static struct ref_queue *child_new(struct ref_queues *ns,
    struct ref_queue *parent, const char *component, size_t len, uint32_t hash)
{
	struct ref_queue *n = calloc(1, sizeof(*n) + len);

	if (n == NULL)
		return NULL;
	n->parent = parent;
	n->hash = hash;
	n->len = (uint32_t)len;
	memcpy(n->component, component, len);
	if (ref_table_add(table_of(ns, hash), hash, n) < 0) {
		free(n);
		return NULL;
	}
	if (parent != NULL)
		parent->nr_children++;
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
	struct ref_queue *n;
	uint32_t hash;

	assert(len <= sizeof(key.component));
	key.parent = parent;
	memcpy(key.component, component, len);
	HASH_VALUE(&key, sizeof(key.parent) + len, hash);
	n = ref_table_find(table_of(ns, hash), hash, parent, component, len);
	return n != NULL ? n : child_new(ns, parent, component, len, hash);
}

void ref_tree_drop_unused(struct ref_queues *ns, struct ref_queue *n)
{
	struct ref_queue *parent;

	while (n != NULL && n->first == NULL && n->nr_children == 0 &&
	    n->blocked.root == NULL && !n->is_releasing &&
	    n->place == NAME_IDLE) {
		parent = n->parent;
		if (parent != NULL)
			parent->nr_children--;
		if (ns->dir == n)
			ns->dir = NULL;
		ns->bytes -= size_of(n);
		ref_table_remove(table_of(ns, n->hash), n->hash, n);
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
		component_len = dir->len;
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

struct ref_queue *ref_tree_get(struct ref_queues *ns, uint64_t repo_key,
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
			ref_tree_drop_unused(ns, n);
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
	size_t i;

	for (i = 0; i < REF_QUEUE_TABLES; i++)
		ref_table_done(&ns->tables[i]);
}

/* ---- the oldest update below ---- */

static int64_t oldest_at_or_below(const struct ref_queue *n)
{
	int64_t oldest = INT64_MAX;

	if (n->first != NULL)
		oldest = (int64_t)ref_queue_arrival(n->first);
	if (n->below.root != NULL && n->below.root->key < oldest)
		oldest = n->below.root->key;
	return oldest;
}

void ref_tree_note_first(struct ref_queue *n)
{
	int64_t oldest;

	for (; n->parent != NULL; n = n->parent) {
		oldest = oldest_at_or_below(n);
		if (n->is_in_below && n->in_below.key == oldest)
			return;
		if (n->is_in_below)
			heap_remove(&n->parent->below, &n->in_below);
		n->is_in_below = oldest != INT64_MAX;
		if (n->is_in_below)
			heap_add(&n->parent->below, &n->in_below, oldest);
	}
}

struct ref_queue *ref_tree_older_below(const struct ref_queue *n,
    uint64_t before)
{
	struct ref_queue *below;
	int64_t oldest;

	if (n->below.root == NULL || n->below.root->key >= (int64_t)before)
		return NULL;
	oldest = n->below.root->key;
	do {
		below = HEAP_ITEM(n->below.root, struct ref_queue, in_below);
		n = below;
	} while (
	    n->first == NULL || (int64_t)ref_queue_arrival(n->first) != oldest);
	return below;
}
