#include "daemon/store/recovery/chain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/refs/reflog.h"

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
	if (chain->hh.tbl != NULL)
		return chain;
	free(chain->key);
	free(chain);
	return NULL;
}

/* Another row's link of the same update: one of the two was put aside. */
static struct chain_link *find_twin(const struct chain *chain,
    const struct replay_row *row, const struct record_member *member)
{
	struct chain_link *link;
	size_t i;

	for (i = chain->nr; i > 0; i--) {
		link = &chain->links[i - 1];
		if (link->row->origin != row->origin)
			break;
		if (link->row != row && link->member->index == member->index)
			return link;
	}
	return NULL;
}

static bool is_line(const struct record_member *member)
{
	return member->action == RECORD_LOG;
}

static int chain_add(struct chain *chain, const struct replay_row *row,
    const struct record_member *member)
{
	struct chain_link *twin = find_twin(chain, row, member), *grown, line;
	size_t size;

	/* The line that it owed was put aside before all of it was. */
	if (twin != NULL && is_line(twin->member) && !is_line(member)) {
		line = *twin;
		twin->row = row;
		twin->member = member;
		if (row->evidence != EVIDENCE_CRASHED)
			return 0;
		row = line.row;
		member = line.member;
	} else if (twin != NULL && twin->row->evidence != EVIDENCE_CRASHED) {
		/* It is going to be redone by that, line and all. */
		return 0;
	}
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

static bool is_passed(const struct chain_link *link)
{
	return link->row->passed[link->member - link->row->rec.members];
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
			if (row->dropped[i] || row->passed[i] ||
			    m->status != REFD_OK || m->action == RECORD_NOTHING)
				continue;
			chain = chain_get(chains, m->worktree, m->name);
			if (chain == NULL || chain_add(chain, row, m) < 0)
				return -ENOMEM;
			if (m->action == RECORD_LOG)
				chain->has_log_links = true;
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

const struct chain_link *chain_last(const struct chain *chain)
{
	size_t i = chain->nr;

	while (i > 0)
		if (!is_passed(&chain->links[--i]))
			return &chain->links[i];
	return NULL;
}

const struct chain_link *chain_value(const struct chain *chain)
{
	size_t i = chain->nr;

	while (i > 0)
		if (!is_passed(&chain->links[--i]) &&
		    chain->links[i].member->action != RECORD_LOG)
			return &chain->links[i];
	return NULL;
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

static int add_line(struct chain_lines *lines, char *line)
{
	size_t size;
	char **grown;

	if (lines->nr == lines->size) {
		size = lines->size == 0 ? 4 : 2 * lines->size;
		grown = realloc(lines->lines, size * sizeof(*grown));
		if (grown == NULL)
			return -ENOMEM;
		lines->lines = grown;
		lines->size = size;
	}
	lines->lines[lines->nr++] = line;
	return 0;
}

void chain_lines_done(struct chain_lines *lines)
{
	while (lines->nr > 0)
		free(lines->lines[--lines->nr]);
	free(lines->lines);
	free(lines->last);
	memset(lines, 0, sizeof(*lines));
}

/* IS_DUE: it is to be redone, and not merely known to have been done. */
static int add_link(struct chain_lines *lines, const struct chain_link *link,
    bool is_due)
{
	size_t len;
	char *line;
	int r = 0;

	if (link->member->action == RECORD_DELETE) {
		chain_lines_done(lines);
		lines->deletes = is_due;
		return 0;
	}
	/* It was not there: whoever deleted it took the log along. */
	if (link->member->action == RECORD_WRITE && !link->member->had_old &&
	    link->member->target == NULL && !lines->deletes)
		chain_lines_done(lines);
	/* What was done after a deletion is in the log that is there. */
	if (!is_due && link->member->action == RECORD_WRITE)
		lines->deletes = false;
	if (!is_due || !link->member->log)
		return 0;
	line = edit_line(&link->row->rec, link->member, &len);
	if (line == NULL)
		return -ENOMEM;
	lines->row = link->row;
	if (link->row->evidence == EVIDENCE_CRASHED)
		lines->last = line;
	else
		r = add_line(lines, line);
	if (r < 0)
		free(line);
	return r;
}

int chain_log_lines(const struct chain *chain, const struct chain_link *after,
    bool held, struct chain_lines *out)
{
	const struct chain_link *link, *last = chain_last(chain);
	int r = 0;

	memset(out, 0, sizeof(*out));
	link = after != NULL ? after + 1 : chain->links;
	for (; link < chain->links + chain->nr && r == 0; link++)
		if (!is_passed(link))
			r = add_link(out, link,
			    link->row->evidence != EVIDENCE_CRASHED ||
				(link == last && held));
	if (r < 0)
		chain_lines_done(out);
	return r;
}
