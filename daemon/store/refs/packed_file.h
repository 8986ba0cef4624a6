/*
 * The real file behind packed-refs: packed-refs, or the target of a link named
 * packed-refs beneath the same directory. git-new-workdir and others make such
 * links. A link that leads elsewhere is left to git, which follows the link
 * with the rights of the client.
 *
 * Any thread; blocks. The target of a link may be exchanged meanwhile: open the
 * file beneath DIRFD, as required by sys.h, and fstat the descriptor.
 */
#ifndef STORE_PACKED_FILE_H
#define STORE_PACKED_FILE_H

#include "daemon/base/sys.h"
#include "proto/limits.h"

/* Sets NAME, for use below DIRFD, and the result of lstat. 0; -ENOENT: no such
 * file; -ELOOP: a link out of the directory, to a link, or through a link. */
int packed_file(const struct sys *sys, int dirfd, char name[REFD_PATH_MAX],
    struct sys_stat *st);

#endif
