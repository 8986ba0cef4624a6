/*
 * Files and directories beneath a descriptor, where another user may exchange
 * any name at any time: for example a member of the group of a shared
 * repository. So no function follows a link, and each level is opened beneath
 * the level above.
 *
 * Blocking; one thread. A failure ends the program with a message.
 */
#ifndef CLIENT_BASE_TREE_H
#define CLIENT_BASE_TREE_H

#include <stdint.h>
#include <sys/stat.h>

#include "proto/lib/cli.h"

/* If R is negative: "cannot WHAT NAME", and errno. */
void tree_check(int r, const char *what, int dirfd, const char *name);
/* A descriptor of the directory NAME. */
int tree_open(int dirfd, const char *name);
/* The same; makes NAME, which must not exist. */
int tree_make(int dirfd, const char *name);
/* T becomes the content of the file NAME, of at most 1 MiB, without a NUL. */
void tree_read(int dirfd, const char *name, struct text *t);
/* The same. ST becomes the status of this very file. */
void tree_read_stat(int dirfd, const char *name, struct text *t,
    struct stat *st);
/* Makes the file NAME with CONTENT, which is on the disk then. */
void tree_write(int dirfd, const char *name, const char *content);
bool tree_has(int dirfd, const char *name);
/* Syncs the file system of DIRFD. */
void tree_sync(int dirfd);

/* Calls FN for all names in the directory FROM. FN may remove, move or exchange
 * the name. */
typedef void tree_fn(void *arg, int from, const char *name);
void tree_each(int from, tree_fn *fn, void *arg);

struct tree {
	enum { TREE_COPY, TREE_REMOVE, TREE_SUM } task;
	int nr_again; /* TREE_REMOVE: of directories that got files meanwhile */
	int to;       /* TREE_COPY: the directory that gets the copy */
	/* TREE_SUM: any write, and any change of a name, changes the sum. */
	uint64_t sum;
	char *lock; /* TREE_SUM: the path of a file "*.lock", or NULL; owned */
};

/* Does the task of the struct tree ARG for NAME and all below NAME, without the
 * names that vanish meanwhile. A copy has files and directories, and nothing
 * else is allowed there. */
void tree_walk(void *arg, int from, const char *name);

#endif
