/*
 * Between loose.c and loose_dirs.c.
 */
#ifndef STORE_LOOSE_INTERNAL_H
#define STORE_LOOSE_INTERNAL_H

#include "daemon/base/sys.h"

/* 1 when anything but directories is below PATH, 0 when not. */
int loose_dir_holds_file(const struct sys *sys, int dirfd, const char *path);

#endif
