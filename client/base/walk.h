/*
 * All names below a directory, in no order. The walk keeps one name of each
 * level in memory, because anybody may fill a directory with millions of names.
 * The walk opens each directory below the descriptor of the one above, and
 * follows no link. So nobody can lead the walk elsewhere by an exchange of
 * names. Blocking; one thread.
 */
#ifndef CLIENT_BASE_WALK_H
#define CLIENT_BASE_WALK_H

/* Each level needs a descriptor, and a process has 1024 or more. */
#define WALK_LEVELS_MAX 256

enum walk_next { WALK_ON, WALK_PAST, WALK_END };

/* Borrowed for the call. */
struct walk_at {
	int around;       /* the directory with NAME */
	const char *name; /* the start: its path */
	const char *path; /* of the start, and all names from there */
	int level;        /* 0: the start */
	int dir;          /* of a directory, for fstatat(2) and others; or -1 */
	/* 0, or why the walk does not show all of the directory: -ELOOP beyond
	 * WALK_LEVELS_MAX, -ENAMETOOLONG for a name in it, or another errno. */
	int err;
};

/* WALK_PAST means not into the directory. A directory that cannot be shown as a
 * whole comes again with ERR. */
typedef enum walk_next walk_fn(void *arg, const struct walk_at *at);

/* The start DIR comes first. 0, or a negative errno if DIR cannot be opened. */
int walk_below(const char *dir, walk_fn *fn, void *arg);

#endif
