/*
 * Small files that must outlast a power loss. Blocking; one thread. Returns 0
 * or negative errno, and prints nothing.
 */
#ifndef CLIENT_ENABLE_DURABLE_H
#define CLIENT_ENABLE_DURABLE_H

#include <sys/types.h>

#include "proto/lib/cli.h"

/* Replaces PATH by a file with the text T, by way of PATH.new. The umask
 * applies to MODE. */
int durable_write(const char *path, const struct text *t, mode_t mode);
/* Writes T to FD, and waits for the disk. */
int durable_put(int fd, const struct text *t);
/* Makes names durable that were made or removed in the directory of PATH. */
int durable_sync_parent(const char *path);
/* Makes the whole file system of PATH durable. */
int durable_sync_fs(const char *path);

#endif
