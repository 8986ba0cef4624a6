/*
 * Which file packed-refs is: itself, or what a link of that name leads to
 * beneath the same directory. git-new-workdir and others make such links; one
 * that leads elsewhere is git's to follow, with the rights of who asked.
 *
 * Any thread; blocks. The target of a link may be exchanged meanwhile: open it
 * beneath DIRFD, as sys.h has it, and fstat the descriptor.
 */
#ifndef STORE_PACKED_FILE_H
#define STORE_PACKED_FILE_H

#include "daemon/base/sys.h"
#include "proto/limits.h"

/* NAME, to be used below DIRFD, and what lstat says of it. 0, -ENOENT: there
 * is none; -ELOOP: a link that leads elsewhere, to a link, or through one. */
int packed_file(const struct sys *sys, int dirfd, char name[REFD_PATH_MAX],
    struct sys_stat *st);

#endif
