/*
 * A directory tree as text, through any struct sys, for comparison: of the
 * kernel with a fake, or of states before and after.
 */
#ifndef TESTS_LIB_SYSTREE_H
#define TESTS_LIB_SYSTREE_H

#include "daemon/base/sys.h"

/*
 * A line for each path below BASE, in the order of names: type and mode; for a
 * file its size, links, a sum of its content, and the first path of the same
 * inode, which shows hard links; for a symbolic link its target. To be freed.
 * If something can't be read, the line has the reason.
 */
char *systree(const struct sys *sys, const char *base);

/* Up to MAX lines "name type" of a directory, sorted, each to be freed. Returns
 * their number or a negative errno (-E2BIG: more than MAX). */
int systree_list(const struct sys *sys, int dirfd, const char *path,
    char **lines, int max);

#endif
