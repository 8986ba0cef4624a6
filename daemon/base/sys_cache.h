/*
 * The page cache calls of sys_kernel; only for sys.c. The rules of
 * daemon/base/sys.h apply.
 */
#ifndef BASE_SYS_CACHE_H
#define BASE_SYS_CACHE_H

#include "daemon/base/sys.h"

int sys_cache_drop(const struct sys *sys, int fd);
int sys_cache_holds(const struct sys *sys, int fd);

#endif
