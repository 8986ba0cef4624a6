/*
 * The kernel's calls about its page cache: sys.c's. As daemon/base/sys.h has
 * them.
 */
#ifndef BASE_SYS_CACHE_H
#define BASE_SYS_CACHE_H

#include "daemon/base/sys.h"

int sys_cache_drop(const struct sys *sys, int fd);
int sys_cache_holds(const struct sys *sys, int fd);

#endif
