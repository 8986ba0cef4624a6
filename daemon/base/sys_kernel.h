/*
 * Between the files that the kernel's table is made of: each function here is
 * the entry of its name (sys.h).
 */
#ifndef BASE_SYS_KERNEL_H
#define BASE_SYS_KERNEL_H

#include "daemon/base/sys.h"

int sys_kernel_mount_id(const struct sys *sys, int fd, uint64_t *id);
/* Its statfs f_type. */
int sys_kernel_fs_type(const struct sys *sys, int fd, uint64_t *type);

#endif
