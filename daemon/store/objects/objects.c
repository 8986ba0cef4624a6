/*
 * The happy path: every directory changed well before the last sync of its file
 * system. The first walk costs some 260 stats. Later the ctime of objects/
 * shows that no fan-out was added, and only the present fan-outs are looked at.
 * After a push of loose objects, one stat of the right fan-out shows that the
 * store is new.
 *
 * Link, rename and create change a directory's ctime, so no new entry is
 * missed. objects/ itself changes with every push, because git's quarantine
 * comes and goes there. The only new entry could be a fan-out, which has its
 * own ctime.
 *
 * Failures: a directory that cannot be read ends the walk.
 */
#include "daemon/store/objects/objects.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW)

/* Files in a directory of packs, each of which costs a system call: all
 * barriers of the file system wait meanwhile, so a syncfs is better. */
#define PACK_FILES_MAX 8192

/* An open store. */
struct open_store {
	const struct objects_walk *walk;
	int fd;
	uint64_t dev, ino;
	int64_t limit;
	bool is_own; /* of the repository, and not an alternate */
};

/* ---- one store ---- */

static int tell(const struct objects_walk *w, const struct objects_new *found)
{
	return w->found != NULL ? w->found(w->arg, found) : 1;
}

/* Reports the directory NAME of objects/, which is on another file system. */
static int find_elsewhere(const struct objects_walk *w, int fd,
    const char *name)
{
	struct objects_new found = { .fd = fd, .name = name };
	struct sys_stat st;
	int r;

	r = SYS(w->sys, fstat, fd, &st);
	if (r < 0)
		return r;
	found.dev = st.dev;
	found.ino = st.ino;
	found.limit = w->limit(w->arg, fd, &st);
	return st.ctime_ns < found.limit ? 0 : tell(w, &found);
}

/* 1: NAME changed. A new directory on another file system is reported at once,
 * and is 0. */
static int is_new(const struct open_store *p, const char *name, bool *is_there)
{
	const struct objects_walk *w = p->walk;
	struct sys_stat st;
	int fd, r;

	*is_there = false;
	r = SYS(w->sys, lstatat, p->fd, name, &st);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	*is_there = true;
	if (st.dev == p->dev)
		return st.ctime_ns >= p->limit;
	fd = SYS(w->sys, openat, p->fd, name, DIR_FLAGS, 0);
	if (fd < 0)
		return fd;
	r = find_elsewhere(w, fd, name);
	SYS(w->sys, close, fd);
	return r;
}

/* Returns 1 if a fan-out is new. KNOWN has the present fan-outs, or is NULL if
 * they are unknown. Fills in SEEN. */
static int are_fanouts_new(const struct open_store *p, const uint8_t *known,
    uint8_t *seen)
{
	bool is_there;
	char name[3];
	int n, i, r;

	for (n = 0; n < 256; n++) {
		i = p->walk->first ^ n;
		if (known != NULL && !(known[i / 8] >> i % 8 & 1))
			continue;
		snprintf(name, sizeof(name), "%02x", i);
		r = is_new(p, name, &is_there);
		if (r == 1 && p->is_own && p->walk->fanout != NULL)
			r = p->walk->fanout(p->walk->arg, p->fd, name,
			    p->limit);
		if (r != 0)
			return r;
		if (is_there)
			seen[i / 8] |= (uint8_t)(1 << i % 8);
	}
	return 0;
}

static int look_at_store(const struct open_store *p, int64_t ctime_ns,
    const struct sys_stat *alternates, struct objects_fanouts *cache)
{
	const struct objects_walk *w = p->walk;
	struct objects_new found = { p->fd, "", p->dev, p->ino, false,
		p->limit };
	const uint8_t *known = NULL;
	uint8_t seen[32] = { 0 };
	bool is_there;
	int fanouts, packs, others;

	if (cache != NULL && cache->ctime_ns == ctime_ns)
		known = cache->present;
	fanouts = are_fanouts_new(p, known, seen);
	if (fanouts < 0)
		return fanouts;
	/* A fan-out may still be added in the present clock tick, so nothing is
	 * kept then. */
	if (fanouts == 0 && cache != NULL && known == NULL &&
	    ctime_ns < p->limit) {
		memcpy(cache->present, seen, sizeof(seen));
		cache->ctime_ns = ctime_ns;
	}
	packs = is_new(p, "pack", &is_there);
	if (packs < 0)
		return packs;
	others = alternates->ino != 0 &&
	    (alternates->ctime_ns >= p->limit || alternates->dev != p->dev);
	if (fanouts + packs + others == 0)
		return 0;
	found.packs_alone = fanouts + others == 0;
	return tell(w, &found);
}

/* ---- all of them ---- */

int objects_walk(const struct objects_walk *w,
    const struct object_stores *stores)
{
	const struct object_store *store;
	struct sys_stat st;
	struct open_store p;
	size_t i;
	int r = 0;

	for (i = 0; r == 0 && i < stores->nr; i++) {
		store = &stores->at[i];
		r = SYS(w->sys, fstat, store->fd, &st);
		if (r < 0)
			break;
		p = (struct open_store){ w, store->fd, st.dev, st.ino,
			w->limit(w->arg, store->fd, &st), i == 0 };
		r = look_at_store(&p, st.ctime_ns, &store->alternates,
		    i == 0 ? w->fanouts : NULL);
	}
	return r;
}

int objects_walk_anew(const struct objects_walk *w, int common_fd,
    const struct object_rule *rule)
{
	struct object_stores stores;
	int r;

	object_stores_init(&stores, w->sys, common_fd, rule);
	r = object_stores_refresh(&stores);
	if (r >= 0)
		r = objects_walk(w, &stores);
	object_stores_done(&stores);
	return r;
}

/* ---- packs ---- */

/* Skips half-written files, and files that only block a repack. */
static bool is_of_a_pack(const char *name)
{
	size_t len = strlen(name);

	return strncmp(name, "tmp_", 4) != 0 &&
	    (len < 5 || strcmp(name + len - 5, ".keep") != 0);
}

/* The state of the sync of a pack directory. */
struct syncing {
	const struct sys *sys;
	bool count_alone;
	size_t nr;
	bool lost;
};

static int sync_fd(struct syncing *sy, int fd)
{
	int r = SYS(sy->sys, fsync, fd);

	sy->lost = sy->lost || r < 0;
	return r;
}

static int sync_file(struct syncing *sy, int dirfd, const char *name)
{
	int fd, r;

	fd = SYS(sy->sys, openat, dirfd, name,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0)
		return fd;
	r = sync_fd(sy, fd);
	SYS(sy->sys, close, fd);
	return r;
}

static int sync_entries(struct syncing *sy, int fd, int64_t limit)
{
	size_t left = PACK_FILES_MAX;
	struct sys_dirent entry;
	struct sys_dir *dir;
	struct sys_stat st;
	int more, r;

	r = SYS(sy->sys, dir_open, fd, ".", &dir);
	if (r < 0)
		return r;
	while (r == 0 && (more = SYS(sy->sys, dir_next, dir, &entry)) != 0) {
		if (more < 0) {
			r = more;
			break;
		}
		if (left-- == 0) {
			r = -EAGAIN;
			break;
		}
		if (!is_of_a_pack(entry.name))
			continue;
		r = SYS(sy->sys, lstatat, fd, entry.name, &st);
		if (r == 0 && S_ISREG(st.mode) && st.ctime_ns >= limit) {
			sy->nr++;
			r = sy->count_alone ? 0 : sync_file(sy, fd, entry.name);
		}
	}
	SYS(sy->sys, dir_close, dir);
	return r;
}

/* The directory comes last, so that its names are names of whole files. If the
 * directory changed meanwhile, an object may have moved to a new pack, so this
 * sync is not enough. */
static int sync_pack(struct syncing *sy, int fd, int64_t limit)
{
	struct sys_stat before, after;
	int pack, r;

	pack = SYS(sy->sys, openat, fd, "pack", DIR_FLAGS, 0);
	if (pack < 0)
		return pack == -ENOENT ? 0 : pack;
	r = SYS(sy->sys, fstat, pack, &before);
	if (r == 0)
		r = sync_entries(sy, pack, limit);
	if (r == 0 && !sy->count_alone)
		r = sync_fd(sy, pack);
	if (r == 0)
		r = SYS(sy->sys, fstat, pack, &after);
	SYS(sy->sys, close, pack);
	if (r == -ENOENT || (r == 0 && after.ctime_ns != before.ctime_ns))
		return -EAGAIN;
	return r;
}

int objects_count_packs(const struct sys *sys, int fd, int64_t limit,
    size_t *nr)
{
	struct syncing sy = { sys, true, 0, false };
	int r = sync_pack(&sy, fd, limit);

	*nr = sy.nr;
	return r;
}

int objects_sync_packs(const struct sys *sys, int fd, int64_t limit, size_t *nr,
    bool *lost)
{
	struct syncing sy = { sys, false, 0, false };
	int r = sync_pack(&sy, fd, limit);

	*nr = sy.nr;
	*lost = sy.lost;
	return r;
}
