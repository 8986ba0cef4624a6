/*
 * Shared by reflog.c and reflog_repair.c. Rules as in reflog.h.
 */
#ifndef STORE_REFLOG_INTERNAL_H
#define STORE_REFLOG_INTERNAL_H

#include "daemon/store/files/format/reflog.h"

/*
 * Opens a log for reading and writing, with O_APPEND if in FLAGS; *SIZE is its
 * size. With CREATE makes the file and its directories if needed. Without,
 * returns -ENOENT, also for a directory. Otherwise the errors of
 * reflog_prepare().
 */
int reflog_open(const struct reflog_file *log, int flags, uint64_t *size,
    unsigned *made_dirs);

#endif
