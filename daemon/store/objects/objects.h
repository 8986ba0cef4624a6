/*
 * Finds new entries in a repository's object stores, by the ctimes of their
 * directories: objects/pack, the fan-outs, and the same in alternates.
 *
 * One walk in one thread; blocks; nothing logs.
 */
#ifndef STORE_OBJECTS_H
#define STORE_OBJECTS_H

#include <stdbool.h>

#include "daemon/base/sys.h"
#include "daemon/store/objects/object_stores.h"

/* Which of objects/00 to objects/ff there are, as of the ctime of objects/.
 * Zeroed: nothing is known. */
struct objects_fanouts {
	int64_t ctime_ns;
	uint8_t present[32];
};

/* A new entry. */
struct objects_new {
	/* objects/, or the entry NAME of objects/ if the entry is on another
	 * file system; open during the call */
	int fd;
	const char *name; /* "": objects/ */
	uint64_t dev, ino;
	bool packs_alone; /* only pack/ has new entries */
	int64_t limit;    /* changed at this time or later */
};

struct objects_walk {
	const struct sys *sys;
	/* Changes before this time are durable on the file system of the
	 * directory FD (with status ST); INT64_MIN: unknown. */
	int64_t (*limit)(void *arg, int fd, const struct sys_stat *st);
	/* Other than 0 ends the walk. NULL counts as 1 for the first entry. */
	int (*found)(void *arg, const struct objects_new *found);
	/* Called instead for the new fan-out NAME of the repository's own store
	 * FD. The fan-out counts as old for 0, and as new for 1; or negative
	 * errno. May be NULL. */
	int (*fanout)(void *arg, int fd, const char *name, int64_t limit);
	void *arg;
	/* The walk of a store ends at the first new fan-out, so the walk looks
	 * at this fan-out first, probably the one of a new object. */
	uint8_t first;
	/* Of the repository's own store, kept from walk to walk; or NULL. */
	struct objects_fanouts *fanouts;
};

/* Walks all STORES, which must have been read before, with their alternates as
 * of then. Returns 0 at the end, the result of found(), or a negative errno if
 * a store could not be read, so that nothing is known. */
int objects_walk(const struct objects_walk *walk,
    const struct object_stores *stores);
/* The same for stores that are read only for this walk. Also their errors. */
int objects_walk_anew(const struct objects_walk *walk, int common_fd,
    const struct object_rule *rule);

/* Counts the files of pack/ below FD that changed at LIMIT or later. The second
 * function also syncs these files with their directory. *NR is the number.
 * -EAGAIN: sync the file system instead, because packs came or went meanwhile,
 * or because there are too many files for a look at each. */
int objects_count_packs(const struct sys *sys, int fd, int64_t limit,
    size_t *nr);
/* *LOST: a sync failed, and not another call before. */
int objects_sync_packs(const struct sys *sys, int fd, int64_t limit, size_t *nr,
    bool *lost);

#endif
