/*
 * Inodes, directories, and the list of changes that are not on disk yet.
 *
 * The tree in memory is the present state. The list can undo the changes, the
 * newest first. A change on disk has left the list. Two changes of the same
 * name stay in order: changes_last() takes the earlier change with the later
 * change.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/memfs_internal.h"

/* ---- inodes ---- */

static uint64_t take_number(struct memfs_mount *mnt)
{
	if (mnt->nr_free_inos > 0)
		return mnt->free_inos[--mnt->nr_free_inos];
	return mnt->next_ino++;
}

struct inode *inode_new(struct memfs_mount *mnt, uint32_t mode)
{
	struct inode *node = memfs_grow(NULL, NULL, 1, sizeof(*node));

	node->mnt = mnt;
	node->mode = mode;
	node->ino = take_number(mnt);
	node->cut_to = SIZE_MAX;
	node->mtime = node->ctime = memfs_file_time(mnt->fs);
	node->disk_mtime = node->mtime;
	node->disk_ctime = node->ctime;
	mnt->inodes_left--;
	return node;
}

void inode_get(struct inode *node)
{
	node->refs++;
}

static void get_or_none(struct inode *node)
{
	if (node != NULL)
		inode_get(node);
}

static void put_or_none(struct inode *node)
{
	if (node != NULL)
		inode_put(node);
}

/* An inode that was gone has names or descriptors again, because a power loss
 * undid the unlink. A new file may have the number meanwhile. */
static void inode_revive(struct inode *node)
{
	struct memfs_mount *mnt = node->mnt;
	size_t i;

	node->is_gone = false;
	mnt->inodes_left--;
	mnt->blocks_left -= (int64_t)node->nr_taken;
	for (i = 0; i < mnt->nr_free_inos; i++) {
		if (mnt->free_inos[i] == node->ino) {
			mnt->free_inos[i] = mnt->free_inos[--mnt->nr_free_inos];
			return;
		}
	}
	node->ino = take_number(mnt);
}

void inode_settle(struct inode *node)
{
	struct memfs_mount *mnt = node->mnt;

	if (node->links > 0 || node->opens > 0 || node->is_gone)
		return;
	node->is_gone = true;
	mnt->inodes_left++;
	mnt->blocks_left += (int64_t)node->nr_taken;
	mnt->free_inos = memfs_grow(mnt->free_inos, &mnt->free_inos_room,
	    mnt->nr_free_inos + 1, sizeof(*mnt->free_inos));
	mnt->free_inos[mnt->nr_free_inos++] = node->ino;
}

uint32_t inode_nlink(const struct inode *node)
{
	if (!S_ISDIR(node->mode))
		return node->links;
	return node->links == 0 ? 0 : 2 + node->nr_subdirs;
}

/* A directory without a name keeps its parent for "..". */
static void link_down(struct inode *dir, struct inode *node)
{
	node->links--;
	if (S_ISDIR(node->mode)) {
		dir->nr_subdirs--;
		if (node->links == 0) {
			node->parent = node->kept_parent = dir;
			inode_get(dir);
		}
	}
	inode_settle(node);
	inode_put(node);
}

static void link_up(struct inode *dir, struct inode *node)
{
	inode_get(node);
	node->links++;
	if (node->is_gone)
		inode_revive(node);
	if (S_ISDIR(node->mode)) {
		dir->nr_subdirs++;
		node->parent = dir;
		put_or_none(node->kept_parent);
		node->kept_parent = NULL;
	}
}

/* A directory without any reference may still contain names, if an fsync of the
 * directory made them durable before its own name. */
static void free_names(struct inode *dir)
{
	struct dentry *d, *next;
	size_t i;

	for (i = 0; i < dir->nr_slots; i++) {
		for (d = dir->slots[i]; d != NULL; d = next) {
			next = d->next;
			d->node->links--;
			d->node->parent = NULL;
			inode_settle(d->node);
			inode_put(d->node);
			free(d);
		}
	}
	free(dir->slots);
}

void inode_put(struct inode *node)
{
	if (--node->refs > 0)
		return;
	free_names(node);
	put_or_none(node->kept_parent);
	data_free(node);
	free(node->target);
	free(node);
}

/* ---- directories: a hash table with chains ---- */

static uint32_t hash_of(const char *name, size_t len)
{
	uint32_t h = 2166136261U;
	size_t i;

	for (i = 0; i < len; i++)
		h = (h ^ (unsigned char)name[i]) * 16777619U;
	return h;
}

struct dentry *dentry_new(const char *name, size_t len)
{
	struct dentry *d = memfs_grow(NULL, NULL, 1, sizeof(*d) + len + 1);

	memcpy(d->name, name, len);
	d->len = (unsigned)len;
	d->hash = hash_of(name, len);
	return d;
}

/* The place of the pointer to the entry, also if there is no entry yet. */
static struct dentry **slot_of(const struct inode *dir, uint32_t hash,
    const char *name, size_t len)
{
	struct dentry **p = &dir->slots[hash & (dir->nr_slots - 1)];

	while (*p != NULL &&
	    ((*p)->hash != hash || (*p)->len != len ||
		memcmp((*p)->name, name, len) != 0))
		p = &(*p)->next;
	return p;
}

struct dentry *dir_find(const struct inode *dir, const char *name, size_t len)
{
	if (dir->nr_names == 0)
		return NULL;
	return *slot_of(dir, hash_of(name, len), name, len);
}

static void grow_slots(struct inode *dir)
{
	struct dentry **old = dir->slots, *d, *next;
	size_t i, nr_old = dir->nr_slots;

	dir->nr_slots = nr_old == 0 ? 8 : nr_old * 4;
	dir->slots = memfs_grow(NULL, NULL, dir->nr_slots, sizeof(*dir->slots));
	for (i = 0; i < nr_old; i++) {
		for (d = old[i]; d != NULL; d = next) {
			next = d->next;
			d->next = dir->slots[d->hash & (dir->nr_slots - 1)];
			dir->slots[d->hash & (dir->nr_slots - 1)] = d;
		}
	}
	free(old);
}

void dir_set(struct inode *dir, const struct dentry *name, struct inode *node)
{
	struct dentry **p, *d;
	struct inode *old;

	if (dir->nr_names >= dir->nr_slots)
		grow_slots(dir);
	p = slot_of(dir, name->hash, name->name, name->len);
	d = *p;
	old = d != NULL ? d->node : NULL;
	if (node != NULL) {
		if (d == NULL) {
			*p = d = dentry_new(name->name, name->len);
			dir->nr_names++;
		}
		d->node = node;
		link_up(dir, node);
	} else if (d != NULL) {
		*p = d->next;
		dir->nr_names--;
		free(d);
	}
	if (old != NULL)
		link_down(dir, old);
}

/* ---- pending changes ---- */

static struct mem_change *change_new(struct inode *home)
{
	struct memfs_mount *mnt = home->mnt;
	struct mem_change *c;

	mnt->log = memfs_grow(mnt->log, &mnt->log_room, mnt->nr_log + 1,
	    sizeof(*mnt->log));
	c = &mnt->log[mnt->nr_log++];
	*c = (struct mem_change){ .home = home };
	inode_get(home);
	return c;
}

void change_names(struct inode *home, unsigned nr, struct mem_half *half)
{
	struct mem_change *c = change_new(home);
	unsigned i;

	c->nr = nr;
	for (i = 0; i < nr; i++) {
		c->half[i] = half[i];
		inode_get(half[i].dir);
		get_or_none(half[i].old);
		get_or_none(half[i].new);
	}
	for (i = 0; i < nr; i++)
		dir_set(half[i].dir, half[i].name, half[i].new);
}

void change_mode(struct inode *node, uint32_t mode)
{
	struct mem_change *c = change_new(node);

	c->node = node;
	c->old_mode = node->mode;
	inode_get(node);
	node->mode = mode;
}

static void change_forget(struct mem_change *c)
{
	unsigned i;

	for (i = 0; i < c->nr; i++) {
		inode_put(c->half[i].dir);
		put_or_none(c->half[i].old);
		put_or_none(c->half[i].new);
		free(c->half[i].name);
	}
	put_or_none(c->node);
	inode_put(c->home);
}

/* The names that some changes touch; a mode counts as a name in its inode. */
struct touched {
	const struct inode **dir;
	const struct dentry **name;
	size_t room;
};

static size_t touched_slot(const struct touched *t, const struct inode *dir,
    const struct dentry *name)
{
	size_t h = ((uintptr_t)dir >> 4) * 31 + (name ? name->hash : 0);

	for (;; h++) {
		h &= t->room - 1;
		if (t->dir[h] == NULL)
			return h;
		if (t->dir[h] != dir || !t->name[h] != !name)
			continue;
		if (name == NULL || strcmp(t->name[h]->name, name->name) == 0)
			return h;
	}
}

static void touch(struct touched *t, const struct inode *dir,
    const struct dentry *name)
{
	size_t h = touched_slot(t, dir, name);

	t->dir[h] = dir;
	t->name[h] = name;
}

static void touch_all(struct touched *t, const struct mem_change *c)
{
	unsigned i;

	for (i = 0; i < c->nr; i++)
		touch(t, c->half[i].dir, c->half[i].name);
	if (c->node != NULL)
		touch(t, c->node, NULL);
}

static bool touches_any(const struct touched *t, const struct mem_change *c)
{
	unsigned i;

	for (i = 0; i < c->nr; i++) {
		if (t->dir[touched_slot(t, c->half[i].dir, c->half[i].name)] !=
		    NULL)
			return true;
	}
	return c->node != NULL && t->dir[touched_slot(t, c->node, NULL)];
}

/* Also marks earlier changes of the same names. */
static void mark_what_precedes(struct memfs_mount *mnt)
{
	struct touched t = { .room = 8 };
	struct mem_change *c;
	size_t i;

	while (t.room < mnt->nr_log * 4)
		t.room *= 2;
	t.dir = memfs_grow(NULL, NULL, t.room, sizeof(*t.dir));
	t.name = memfs_grow(NULL, NULL, t.room, sizeof(*t.name));
	for (i = mnt->nr_log; i-- > 0;) {
		c = &mnt->log[i];
		if (!c->is_marked)
			c->is_marked = touches_any(&t, c);
		if (c->is_marked)
			touch_all(&t, c);
	}
	free(t.dir);
	free(t.name);
}

void changes_last(struct memfs_mount *mnt)
{
	size_t i, kept = 0, marked = 0;

	for (i = 0; i < mnt->nr_log; i++)
		marked += mnt->log[i].is_marked;
	if (marked == 0)
		return;
	if (marked < mnt->nr_log)
		mark_what_precedes(mnt);
	for (i = 0; i < mnt->nr_log; i++) {
		if (mnt->log[i].is_marked)
			change_forget(&mnt->log[i]);
		else
			mnt->log[kept++] = mnt->log[i];
	}
	mnt->nr_log = kept;
}

void changes_mark_home(struct memfs_mount *mnt, const struct inode *home)
{
	size_t i;

	for (i = 0; i < mnt->nr_log; i++)
		mnt->log[i].is_marked = mnt->log[i].home == home;
}

void changes_mark_from(struct memfs_mount *mnt, size_t first)
{
	size_t i;

	for (i = 0; i < mnt->nr_log; i++)
		mnt->log[i].is_marked = i >= first;
}

static void change_undo(struct mem_change *c)
{
	unsigned i;

	for (i = c->nr; i-- > 0;) {
		dir_set(c->half[i].dir, c->half[i].name, c->half[i].old);
		if (c->half[i].old != NULL)
			c->half[i].old->ctime = c->half[i].old_ctime;
	}
	if (c->node != NULL)
		c->node->mode = c->old_mode;
}

void changes_cut(struct memfs_mount *mnt, size_t keep)
{
	size_t i;

	for (i = mnt->nr_log; i-- > keep;)
		change_undo(&mnt->log[i]);
	for (i = 0; i < mnt->nr_log; i++)
		change_forget(&mnt->log[i]);
	mnt->nr_log = 0;
}
