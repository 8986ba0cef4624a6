/*
 * <common-dir>/refd/id: which repository this is, whatever its path, and
 * which journal its refs belong to.
 *
 *	uuid <32 hex digits>
 *	journal <32 hex digits>
 *	path <where it was when this was written>
 *
 * Written once. The path tells a repository that
 * was moved from a copy that was made with the file in it: where the old path
 * still holds the same id, this one is the copy and gets an id of its own.
 *
 * Any thread; blocks; 0 or negative errno; nothing logs.
 */
#ifndef STORE_REPO_ID_H
#define STORE_REPO_ID_H

#include <stdbool.h>

#include "daemon/base/sys.h"

struct repo_id {
	uint8_t uuid[16];
	uint8_t journal[16];
	char path[4096];
	uint32_t owner; /* of the file, as it was read: a uid */
};

/* A link is not followed. -ENOENT: none yet, or one that a cut left empty, so
 * that it was never synced. -EBADMSG: something else is there. */
int repo_id_read(const struct sys *sys, int refd_fd, struct repo_id *id);
/* Did this process's account, or root, write it? A group member who may write
 * in a repository can put any text into its refd/. */
bool repo_id_is_own(const struct repo_id *id);
/* It lasts when its file system was synced; one that it REPLACES does until
 * then. */
int repo_id_write(const struct sys *sys, int refd_fd, const struct repo_id *id,
    bool replaces);
/* A random (version 4) uuid. */
int repo_id_make_uuid(uint8_t uuid[16]);
void repo_id_hex(const uint8_t uuid[16], char hex[33]);

#endif
