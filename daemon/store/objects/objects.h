/*
 * What is new in a repository's object stores, by the ctimes of their
 * directories: objects/pack, the fan-outs, and the same of alternates.
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

/* Something that is new. */
struct objects_new {
	int fd;           /* objects/ itself, or what it has by NAME where that
			     is on another file system; open for the call */
	const char *name; /* "": objects/ */
	uint64_t dev, ino;
	bool packs_alone; /* are new, in its pack/ */
	int64_t limit;    /* at which it changed, or later */
};

struct objects_walk {
	const struct sys *sys;
	/* What is on the file system of the directory FD, which ST is of, and
	 * changed before that is durable; INT64_MIN: nothing is known to be. */
	int64_t (*limit)(void *arg, int fd, const struct sys_stat *st);
	/* Other than 0 ends the walk. */
	int (*found)(void *arg, const struct objects_new *found);
	void *arg;
	/* Of the repository's own store, kept from walk to walk; or NULL. */
	struct objects_fanouts *fanouts;
};

/* Through all STORES, which must have been read before: what alternates say
 * counts as of then. 0 at the end; negative errno: a store could not be looked
 * at, so that nothing is known; or found()'s. */
int objects_walk(const struct objects_walk *walk,
    const struct object_stores *stores);
/* The same, of stores that are read for the walk alone. Their errors too. */
int objects_walk_anew(const struct objects_walk *walk, int common_fd,
    const struct object_rule *rule);

/* The files of pack/ below FD that changed at LIMIT or later: counted; synced with
 * their directory; NR how many of them. -EAGAIN: packs came or went
 * meanwhile. */
int objects_count_packs(const struct sys *sys, int fd, int64_t limit,
    size_t *nr);
/* *LOST: a sync has failed, and not something on the way to it. */
int objects_sync_packs(const struct sys *sys, int fd, int64_t limit, size_t *nr,
    bool *lost);

#endif
