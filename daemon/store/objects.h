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

/* Which of objects/00 to objects/ff there are, as of the ctime of objects/.
 * Zeroed: nothing is known. */
struct objects_fanouts {
	int64_t ctime_ns;
	uint8_t present[32];
};

struct objects_walk {
	const struct sys *sys;
	/* What is on DEV and changed before that is durable; INT64_MIN:
	 * nothing is known to be. */
	int64_t (*limit)(void *arg, uint64_t dev);
	/*
	 * Something on DEV is new: in the directory FD, which is open for the
	 * call; of a store PACKS_ALONE are, in pack/, that changed at LIMIT or
	 * later. Other than 0 ends the walk.
	 */
	int (*found)(void *arg, int fd, uint64_t dev, bool packs_alone,
	    int64_t limit);
	void *arg;
	/* Of the repository's own store, kept from walk to walk; or NULL. */
	struct objects_fanouts *fanouts;
};

/* Through objects/ of the directory COMMON_FD. 0 at the end; negative errno:
 * a store could not be looked at, so that nothing is known; or found()'s. A
 * store that is not there holds nothing. */
int objects_walk(const struct objects_walk *walk, int common_fd);

/* The files of pack/ below FD that changed at LIMIT or later, synced with
 * their directory. *NR: how many files. COUNT_ALONE: nothing is synced.
 * -EAGAIN: packs came or went meanwhile. */
int objects_sync_packs(const struct sys *sys, int fd, int64_t limit,
    bool count_alone, size_t *nr);

#endif
