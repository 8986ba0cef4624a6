/*
 * The flush calls of sys_kernel; only for sys.c. The rules of daemon/base/sys.h
 * apply.
 */
#ifndef BASE_SYS_FLUSH_H
#define BASE_SYS_FLUSH_H

#include "daemon/base/sys.h"

int sys_flush_fsync(const struct sys *sys, int fd);
int sys_flush_fdatasync(const struct sys *sys, int fd);
int sys_flush_syncfs(const struct sys *sys, int fd);
int sys_flush_begin(const struct sys *sys, int fd);
int sys_flush_wait(const struct sys *sys, int fd);
int sys_flush_covers_all(const struct sys *sys, int fd);

#endif
