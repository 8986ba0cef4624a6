/*
 * Happy path: no directory changed, and the pack with the previous object also
 * has the next object, so the last pack with an object comes first in the list.
 * New packs come first, too.
 *
 * Failures: a pack removed since the listing has no objects. A malformed or
 * unreadable pack is an error, unless another pack has the object.
 */
#include "daemon/store/objects/pack_list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/fs_type.h"
#include "daemon/store/objects/odb.h"
#include "proto/lib/array.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW)

void pack_list_init(struct pack_list *l, const struct sys *sys)
{
	memset(l, 0, sizeof(*l));
	l->sys = sys;
}

static void close_pack(struct pack_list *l, struct listed_pack *p)
{
	l->nr_open -= p->pack.idx_fd >= 0;
	pack_close(l->sys, &p->pack);
}

static void free_pack(struct pack_list *l, struct listed_pack *p)
{
	HASH_DEL(l->dirs[p->dir].by_name, p);
	close_pack(l, p);
	pack_done(l->sys, &p->pack);
	free(p);
}

void pack_list_done(struct pack_list *l)
{
	size_t i;

	for (i = 0; i < l->nr; i++)
		free_pack(l, l->packs[i]);
	for (i = 0; i < l->nr_dirs; i++)
		if (l->dirs[i].fd >= 0)
			SYS(l->sys, close, l->dirs[i].fd);
	free(l->packs);
	free(l->dirs);
	pack_list_init(l, l->sys);
}

/* ---- listing ---- */

/* The length of NAME without ".idx", or 0 if NAME is no index. */
static size_t index_stem(const char *name)
{
	size_t len = strlen(name);

	return len > 4 && strcmp(name + len - 4, ".idx") == 0 ? len - 4 : 0;
}

static bool is_pack_name(const char *name)
{
	size_t len = strlen(name);

	return index_stem(name) > 0 ||
	    (len > 5 && strcmp(name + len - 5, ".pack") == 0);
}

/* Adds the pack in front of the list. */
static int add_pack(struct pack_list *l, size_t dir, const char *name,
    size_t len)
{
	size_t before = HASH_COUNT(l->dirs[dir].by_name);
	struct listed_pack **grown, *p;

	grown = array_room(l->packs, l->nr, &l->size, sizeof(*grown));
	if (grown == NULL)
		return -ENOMEM;
	l->packs = grown;
	p = calloc(1, sizeof(*p));
	if (p == NULL || pack_init(&p->pack, name, len, l->format) < 0) {
		free(p);
		return -ENOMEM;
	}
	HASH_ADD_KEYPTR(hh, l->dirs[dir].by_name, p->pack.name, len, p);
	if (HASH_COUNT(l->dirs[dir].by_name) == before) {
		pack_done(l->sys, &p->pack);
		free(p);
		return -ENOMEM;
	}
	p->dir = dir;
	p->is_there = true;
	memmove(l->packs + 1, l->packs, l->nr * sizeof(struct listed_pack *));
	l->packs[0] = p;
	l->nr++;
	return 0;
}

/* 1: the pack is new. */
static int see_entry(struct pack_list *l, size_t dir,
    const struct sys_dirent *entry)
{
	size_t len = index_stem(entry->name);
	struct listed_pack *p;
	int r;

	if (entry->type == DT_LNK && is_pack_name(entry->name))
		return -ELOOP;
	if (len == 0)
		return 0;
	HASH_FIND(hh, l->dirs[dir].by_name, entry->name, len, p);
	if (p != NULL) {
		p->is_there = true;
		return 0;
	}
	if (l->nr == ODB_PACKS) {
		l->dirs[dir].is_incomplete = true;
		return 0;
	}
	r = add_pack(l, dir, entry->name, len);
	return r < 0 ? r : 1;
}

/* 1: a pack was removed. */
static int drop_those_gone(struct pack_list *l, size_t dir)
{
	size_t i, kept = 0, before = l->nr;

	for (i = 0; i < before; i++)
		if (l->packs[i]->dir != dir || l->packs[i]->is_there)
			l->packs[kept++] = l->packs[i];
		else
			free_pack(l, l->packs[i]);
	l->nr = kept;
	return kept != before;
}

/* 1: a pack was added or removed. */
static int list_dir(struct pack_list *l, size_t nth)
{
	struct sys_dirent entry;
	struct sys_dir *dir;
	int r, more, changed = 0;
	size_t i, seen = 0;

	for (i = 0; i < l->nr; i++)
		if (l->packs[i]->dir == nth) {
			l->packs[i]->is_there = false;
			/* An index may stay after its pack is removed, so the
			 * next use opens the pack again. */
			pack_close_pack(l->sys, &l->packs[i]->pack);
		}
	l->dirs[nth].is_incomplete = false;
	r = SYS(l->sys, dir_open, l->dirs[nth].fd, ".", &dir);
	if (r < 0)
		return r;
	while (r >= 0 && (more = SYS(l->sys, dir_next, dir, &entry)) != 0) {
		if (seen++ == ODB_ENTRIES) {
			l->dirs[nth].is_incomplete = true;
			break;
		}
		r = more < 0 ? more : see_entry(l, nth, &entry);
		changed = changed || r > 0;
	}
	SYS(l->sys, dir_close, dir);
	l->nr_read += seen;
	if (r < 0)
		return r;
	return drop_those_gone(l, nth) || changed;
}

static void forget_dir(struct pack_list *l, size_t nth)
{
	size_t i;

	for (i = 0; i < l->nr; i++)
		if (l->packs[i]->dir == nth)
			l->packs[i]->is_there = false;
	drop_those_gone(l, nth);
	if (l->dirs[nth].fd >= 0)
		SYS(l->sys, close, l->dirs[nth].fd);
	l->dirs[nth].fd = -1;
	l->dirs[nth].is_incomplete = false;
}

static bool is_same(const struct sys_stat *a, const struct sys_stat *b)
{
	return a->dev == b->dev && a->ino == b->ino &&
	    a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns;
}

static int refresh_dir(struct pack_list *l, size_t nth, int store_fd)
{
	struct pack_dir *dir = &l->dirs[nth];
	bool had = dir->fd >= 0;
	struct sys_stat st;
	int r;

	r = SYS(l->sys, lstatat, store_fd, "pack", &st);
	if (r == -ENOENT) {
		forget_dir(l, nth);
		return had;
	}
	if (r < 0 || (had && !dir->is_recent && is_same(&st, &dir->st)))
		return r;
	if (!had || st.ino != dir->st.ino || st.dev != dir->st.dev) {
		forget_dir(l, nth);
		dir->fd = SYS(l->sys, openat, store_fd, "pack", DIR_FLAGS, 0);
		if (dir->fd < 0)
			return dir->fd == -ENOTDIR ? -ELOOP : dir->fd;
	}
	/* The status is read before the listing, so a change during the listing
	 * shows next time. */
	r = SYS(l->sys, fstat, dir->fd, &dir->st);
	if (r < 0)
		return r;
	dir->is_recent =
	    fs_time_may_repeat(dir->st.ctime_ns, SYS(l->sys, now_wall));
	r = list_dir(l, nth);
	if (r < 0)
		forget_dir(l, nth);
	return r;
}

static int make_dirs(struct pack_list *l, size_t nr)
{
	size_t i;

	if (l->nr_dirs == nr)
		return 0;
	l->dirs = calloc(nr, sizeof(*l->dirs));
	if (l->dirs == NULL)
		return -ENOMEM;
	for (i = 0; i < nr; i++)
		l->dirs[i].fd = -1;
	l->nr_dirs = nr;
	return 0;
}

int pack_list_refresh(struct pack_list *l, const struct object_stores *stores,
    enum refd_object_format format)
{
	int r, changed = 0;
	size_t i;

	l->format = format;
	r = make_dirs(l, stores->nr);
	for (i = 0; r >= 0 && i < stores->nr; i++) {
		r = refresh_dir(l, i, stores->at[i].fd);
		changed = changed || r > 0;
	}
	return r < 0 ? r : changed;
}

/* ---- look-ups ---- */

/* Closes a pack if all places are taken. */
static void make_room(struct pack_list *l)
{
	struct listed_pack *oldest = NULL;
	size_t i;

	for (i = 0; i < l->nr && l->nr_open >= ODB_OPEN; i++)
		if (l->packs[i]->pack.idx_fd >= 0 &&
		    (oldest == NULL ||
			l->packs[i]->pack.used < oldest->pack.used))
			oldest = l->packs[i];
	if (oldest != NULL)
		close_pack(l, oldest);
}

/* Returns 1 and the offset. A pack with the object stays open, but other packs
 * stay open only as far as places are free. */
static int find_in(struct pack_list *l, struct listed_pack *p,
    const struct refd_oid *oid, uint64_t *offset)
{
	bool was_open = p->pack.idx_fd >= 0;
	int r;

	r = pack_find(l->sys, l->dirs[p->dir].fd, &p->pack, oid, offset);
	if (r == 1)
		p->pack.used = ++l->clock;
	if (!was_open && p->pack.idx_fd >= 0) {
		if (r == 1)
			make_room(l);
		if (l->nr_open < ODB_OPEN)
			l->nr_open++;
		else
			pack_close(l->sys, &p->pack);
	}
	return r;
}

static void move_to_front(struct pack_list *l, size_t i)
{
	struct listed_pack *p = l->packs[i];

	memmove(l->packs + 1, l->packs, i * sizeof(struct listed_pack *));
	l->packs[0] = p;
}

/* The requested data of a found entry. */
struct pack_query {
	const struct refd_oid *oid;
	enum object_type *type;
	size_t max;
	struct object_content *out; /* NULL: the type alone */
};

static int look_in_pack(struct pack_list *l, struct listed_pack *p,
    const struct pack_query *w)
{
	int fd = l->dirs[p->dir].fd, r, in_index;
	uint64_t offset;

	r = in_index = find_in(l, p, w->oid, &offset);
	if (r == 1 && w->out != NULL)
		r = pack_read(l->sys, fd, &p->pack, offset, w->max, w->out);
	else if (r == 1)
		r = pack_type(l->sys, fd, &p->pack, offset, w->type);
	else if (r == 0)
		return 0;
	if (r == 0)
		return 1;
	if (r == -EFBIG)
		return r;
	/* The next use reads the pack again. A pack removed since the listing
	 * has no objects. */
	l->nr_open -= p->pack.idx_fd >= 0;
	pack_forget(l->sys, &p->pack);
	if (r == -ENOENT)
		return 0;
	snprintf(l->fault_in, sizeof(l->fault_in), "%s.%s", p->pack.name,
	    in_index < 0 ? "idx" : "pack");
	return r;
}

static int find_in_packs(struct pack_list *l, const struct pack_query *w)
{
	int r, worst = 0;
	size_t i;

	l->fault_in[0] = '\0';
	for (i = 0; i < l->nr; i++) {
		r = look_in_pack(l, l->packs[i], w);
		l->nr_steps += l->packs[i]->pack.nr_steps;
		l->packs[i]->pack.nr_steps = 0;
		if (r == 1)
			move_to_front(l, i);
		if (r == 1 || r == -EFBIG)
			return r;
		worst = r < 0 ? r : worst;
	}
	for (i = 0; i < l->nr_dirs; i++)
		if (l->dirs[i].is_incomplete)
			worst = -EMFILE;
	return worst;
}

int pack_list_type(struct pack_list *l, const struct refd_oid *oid,
    enum object_type *type)
{
	const struct pack_query w = { .oid = oid, .type = type };

	return find_in_packs(l, &w);
}

int pack_list_read(struct pack_list *l, const struct refd_oid *oid, size_t max,
    struct object_content *out)
{
	const struct pack_query w = { .oid = oid, .max = max, .out = out };

	return find_in_packs(l, &w);
}
