/*
 * Small files and directories that have to be there after a power cut.
 * Blocking; one thread. 0 or negative errno, nothing is said.
 */
#ifndef CLIENT_ENABLE_DURABLE_H
#define CLIENT_ENABLE_DURABLE_H

#include <sys/types.h>

#include "client/base/cli.h"

/* PATH becomes a whole file with that text. PATH.new is used for it, and what
 * stands there is removed; umask applies to MODE. */
int durable_write(const char *path, const struct text *t, mode_t mode);
/* Writes T to FD, and waits for the disk. */
int durable_put(int fd, const struct text *t);
/* The directory that PATH is in: names made and removed there. */
int durable_sync_parent(const char *path);

#endif
