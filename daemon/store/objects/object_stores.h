/*
 * The object stores of a repository: its own objects/, and the stores listed in
 * objects/info/alternates. The reader (odb.h) and the barrier's walk
 * (objects.h) use the same list.
 *
 * The files are hostile input, so objects/ and info/ are opened by single names
 * and may not be links. An alternate opens as a separate root: below a root of
 * the daemon, owned by the owner or the group of the repository. A missing path
 * is refused like a closed path, so that nobody learns the difference.
 *
 * Bounds: STORES_MAX stores, ALTERNATES_LINES lines in all, ALTERNATES_BYTES a
 * file, ALTERNATES_DEPTH deep (git's bound). A store that appears twice, by
 * device and inode, counts once.
 *
 * One thread at a time; blocks; nothing logs.
 */
#ifndef STORE_OBJECT_STORES_H
#define STORE_OBJECT_STORES_H

#include <stdbool.h>

#include "daemon/base/sys.h"

#define STORES_MAX       32
#define ALTERNATES_LINES 1000
#define ALTERNATES_BYTES (64 * 1024)
#define ALTERNATES_DEPTH 5

/* Which alternates may be read. */
struct object_rule {
	/* Opens the directory PATH, absolute, below a root of the daemon.
	 * -EXDEV: PATH is below no root. */
	int (*open_root)(const void *arg, const char *path);
	const void *arg;
	/* Of the repository; borrowed. */
	const uint32_t *owner, *group;
};

struct object_store {
	int fd;      /* objects/ */
	int info_fd; /* info/; -1: missing */
	uint64_t dev, ino, info_ino;
	struct sys_stat alternates; /* zeros: no such file */
	char *path; /* NULL: the repository's own store; owned */
};

struct object_stores {
	const struct sys *sys;
	int common_fd; /* borrowed */
	struct object_rule rule;
	struct object_store *at; /* the first is the repository's own */
	size_t nr;
	/* Alternates changed so recently that a later change may be invisible
	 * in the ctime. */
	bool is_recent;
};

/* No file is touched. */
void object_stores_init(struct object_stores *stores, const struct sys *sys,
    int common_fd, const struct object_rule *rule);
/*
 * Reads the list, or checks the list for changes. Returns 1 if the list
 * changed, and all descriptors are new, or 0 if nothing changed. On failure the
 * list is empty: -ELOOP: objects/ or info/ is a link; -EINVAL: alternates is
 * not a regular file of ALTERNATES_BYTES; -EXDEV: alternates leads to a store
 * that may not be read, or exceeds a bound; else objects/ of the repository
 * cannot be opened.
 */
int object_stores_refresh(struct object_stores *stores);
void object_stores_done(struct object_stores *stores);
/* Describes an error of refresh as the end of the sentence "'<repository>'
 * ...". */
const char *object_stores_why(int err);

#endif
