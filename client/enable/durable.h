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
/*
 * The same under git's lock PATH.lock: -EEXIST when another has it. STAGE, on
 * the same file system, is what the lock is a link to, so that one that was
 * left by a kill is known as ours: unlock removes it, and no other.
 */
int durable_replace(const char *path, const char *stage, const struct text *t,
    mode_t mode);
void durable_unlock(const char *path, const char *stage);
/* What PATH, a file or a directory, is; and for a file its name too. */
int durable_sync(const char *path);
/* The directory that PATH is in: names made and removed there. */
int durable_sync_parent(const char *path);

#endif
