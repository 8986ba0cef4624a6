/*
 * Between reflog.c and reflog_repair.c. As reflog.h has it.
 */
#ifndef STORE_REFLOG_INTERNAL_H
#define STORE_REFLOG_INTERNAL_H

#include "daemon/store/refs/reflog.h"

/*
 * Opens a log for reading and writing, with O_APPEND where FLAGS say so;
 * *SIZE is what it holds. With CREATE it and its directories are made if need be, without, -ENOENT stands for a
 * directory there too. Otherwise the errors of reflog_prepare().
 */
int reflog_open(const struct sys *sys, int dirfd, const char *log_path,
    int flags, bool create, mode_t file_mode, mode_t dir_mode, uint64_t *size,
    unsigned *made_dirs);

#endif
