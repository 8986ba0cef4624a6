/*
 * Shared by the files of the kernel's table. A function is the table entry with
 * the same name (sys.h).
 */
#ifndef BASE_SYS_KERNEL_H
#define BASE_SYS_KERNEL_H

#include "daemon/base/sys.h"

int sys_kernel_mount_id(const struct sys *sys, int fd, uint64_t *id);
/* f_type of statfs(2). */
int sys_kernel_fs_type(const struct sys *sys, int fd, uint64_t *type);

#endif
