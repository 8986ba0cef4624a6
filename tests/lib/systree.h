/*
 * A directory tree as text, through any struct sys, so that two can be
 * compared: the kernel's and a fake's, or before and after.
 */
#ifndef TESTS_LIB_SYSTREE_H
#define TESTS_LIB_SYSTREE_H

#include "daemon/base/sys.h"

/*
 * One line for each path below BASE, in the order of names: type and mode;
 * for a file its size, links, a sum of its content, and the first path that
 * it was met at, which shows the hard links; for a symbolic link its target.
 * To be freed. Where something can't be read, the line says why.
 */
char *systree(const struct sys *sys, const char *base);

/* Up to MAX lines "name type" of a directory, sorted, each to be freed; how
 * many, or a negative errno (-E2BIG: more than MAX). */
int systree_list(const struct sys *sys, int dirfd, const char *path,
    char **lines, int max);

#endif
