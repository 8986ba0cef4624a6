/*
 * Happy path:
 *	get	makes a name and the names above
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

#include <utlist.h>

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

void ref_tree_drop_unused(struct ref_queues *ns, struct ref_queue *n)
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
	struct ref_queue *n, *next;
	size_t i;

	for (i = 0; i < REF_QUEUE_TABLES; i++)
		HASH_ITER(hh, ns->tables[i], n, next) {
			HASH_DEL(ns->tables[i], n);
			free(n);
		}
}

struct ref_queue *ref_tree_next_below(const struct ref_queue *top,
    struct ref_queue *n)
{
	do {
		if (n->nr_busy_below > 0 && n->children != NULL) {
			n = n->children;
		} else {
			while (n != top && n->next_child == NULL)
				n = n->parent;
			if (n == top)
				return NULL;
			n = n->next_child;
		}
	} while (n->first == NULL);
	return n;
}
