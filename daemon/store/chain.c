#include "daemon/store/chain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/reflog.h"

static struct chain *chain_get(struct chain **chains, const char *worktree,
    const char *name)
{
	struct chain *chain;
	char *key;

	key = malloc(strlen(worktree) + strlen(name) + 2);
	if (key == NULL)
		return NULL;
	strcpy(key, worktree);
	strcat(key, "/");
	strcat(key, name);
	HASH_FIND_STR(*chains, key, chain);
	if (chain != NULL) {
		free(key);
		return chain;
	}
	chain = calloc(1, sizeof(*chain));
	if (chain == NULL) {
		free(key);
		return NULL;
	}
	chain->key = key;
	chain->worktree = worktree;
	chain->name = name;
	HASH_ADD_KEYPTR(hh, *chains, chain->key, strlen(chain->key), chain);
	return chain;
}

static int chain_add(struct chain *chain, const struct replay_row *row,
    const struct record_member *member)
{
	struct chain_link *grown;
	size_t size;

	if (chain->nr == chain->size) {
		size = chain->size == 0 ? 2 : 2 * chain->size;
		grown = realloc(chain->links, size * sizeof(*grown));
		if (grown == NULL)
			return -ENOMEM;
		chain->links = grown;
		chain->size = size;
	}
	chain->links[chain->nr].row = row;
	chain->links[chain->nr++].member = member;
	return 0;
}

int chains_build(struct chain **chains, const struct replay_row *rows)
{
	const struct record_member *m;
	const struct replay_row *row;
	struct chain *chain;
	size_t i;

	for (row = rows; row != NULL; row = row->next)
		for (i = 0; i < row->rec.nr_members; i++) {
			m = &row->rec.members[i];
			if (row->dropped[i] || m->status != REFD_OK ||
			    m->action == RECORD_NOTHING ||
			    m->action == RECORD_LOG)
				continue;
			chain = chain_get(chains, m->worktree, m->name);
			if (chain == NULL || chain_add(chain, row, m) < 0)
				return -ENOMEM;
		}
	return 0;
}

void chains_free(struct chain **chains)
{
	struct chain *chain, *next;

	HASH_ITER(hh, *chains, chain, next) {
		HASH_DEL(*chains, chain);
		free(chain->links);
		free(chain->key);
		free(chain);
	}
}

bool chain_knows(const struct chain *chain, const struct refd_oid *oid)
{
	const struct record_member *m;
	size_t i;

	for (i = 0; i < chain->nr; i++) {
		m = chain->links[i].member;
		if ((m->action == RECORD_WRITE &&
			refd_oid_eq(&m->new_oid, oid)) ||
		    (m->had_old && refd_oid_eq(&m->old_oid, oid)) ||
		    (m->had_packed && refd_oid_eq(&m->packed_oid, oid)))
			return true;
	}
	return false;
}

/* ---- lines ---- */

struct lines {
	char **items;
	size_t nr, size;
};

static int add_line(struct lines *lines, const struct replay_row *row,
    const struct record_member *m)
{
	static const struct refd_oid null_oid;
	size_t size, len;
	char **grown;

	if (lines->nr == lines->size) {
		size = lines->size == 0 ? 4 : 2 * lines->size;
		grown = realloc(lines->items, size * sizeof(*grown));
		if (grown == NULL)
			return -ENOMEM;
		lines->items = grown;
		lines->size = size;
	}
	lines->items[lines->nr] =
	    reflog_line(m->had_old ? &m->old_oid : &null_oid,
		m->action == RECORD_DELETE ? &null_oid : &m->new_oid,
		row->rec.committer, row->rec.message, &len);
	return lines->items[lines->nr++] == NULL ? -ENOMEM : 0;
}

void chain_lines_free(char **lines, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		free(lines[i]);
	free(lines);
}

static void lines_clear(struct lines *lines)
{
	chain_lines_free(lines->items, lines->nr);
	memset(lines, 0, sizeof(*lines));
}

int chain_log_lines(const struct chain *chain, char ***out, size_t *nr,
    bool *deletes)
{
	struct lines lines = { NULL, 0, 0 };
	const struct record_member *m;
	size_t i;

	*deletes = false;
	for (i = 0; i < chain->nr; i++) {
		m = chain->links[i].member;
		if (chain->links[i].row->rule == REPLAY_KILL &&
		    i + 1 < chain->nr)
			continue;
		if (m->action == RECORD_DELETE) {
			*deletes = true;
			lines_clear(&lines);
		} else if (m->log &&
		    add_line(&lines, chain->links[i].row, m) < 0) {
			lines_clear(&lines);
			return -ENOMEM;
		}
	}
	*out = lines.items;
	*nr = lines.nr;
	return 0;
}

int chain_head_lines(const struct replay_row *rows, struct stale *stale,
    const char *worktree, char ***out, size_t *nr)
{
	struct lines lines = { NULL, 0, 0 };
	const struct record_member *m;
	const struct replay_row *row;
	size_t i;

	for (row = rows; row != NULL; row = row->next) {
		if (row->rule == REPLAY_KILL &&
		    stale_lookup(stale, row->row.token, "HEAD") == NULL)
			continue;
		for (i = 0; i < row->rec.nr_members; i++) {
			m = &row->rec.members[i];
			if (row->dropped[i] || m->status != REFD_OK ||
			    m->action != RECORD_LOG ||
			    strcmp(m->worktree, worktree) != 0)
				continue;
			if (add_line(&lines, row, m) < 0) {
				lines_clear(&lines);
				return -ENOMEM;
			}
		}
	}
	*out = lines.items;
	*nr = lines.nr;
	return 0;
}
