/*
 * The calls of sys_kernel outside of sys.c: those that take a path, and the
 * life of a file system (sys_mount.c). For daemon/base/sys*.c alone, under the
 * rules of daemon/base/sys.h.
 */
#ifndef BASE_SYS_PATH_H
#define BASE_SYS_PATH_H

#include "daemon/base/sys.h"

int sys_path_openat(const struct sys *sys, int dirfd, const char *path,
    int flags, mode_t mode);
int sys_path_lstatat(const struct sys *sys, int dirfd, const char *path,
    struct sys_stat *st);
int sys_path_fstat(const struct sys *sys, int fd, struct sys_stat *st);
int sys_path_of_fd(const struct sys *sys, int fd, char *buf, size_t size);
int sys_path_open_below(const struct sys *sys, int dirfd, const char *path,
    bool *is_plain);
int sys_path_stays_below(const struct sys *sys, int dirfd, const char *path);
int sys_path_linkat(const struct sys *sys, int olddirfd, const char *oldpath,
    int newdirfd, const char *newpath);
int sys_path_renameat(const struct sys *sys, int olddirfd, const char *oldpath,
    int newdirfd, const char *newpath);
int sys_path_unlinkat(const struct sys *sys, int dirfd, const char *path);
int sys_path_rmdirat(const struct sys *sys, int dirfd, const char *path);
int sys_path_mkdirat(const struct sys *sys, int dirfd, const char *path,
    mode_t mode);
ssize_t sys_path_readlinkat(const struct sys *sys, int dirfd, const char *path,
    char *buf, size_t size);
int sys_path_chmod_trusted(const struct sys *sys, const char *path,
    mode_t mode);
int sys_mount_id(const struct sys *sys, int fd, uint64_t *id);

#endif
