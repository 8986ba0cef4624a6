/*
 * <common-dir>/refd/id identifies the repository, at any path, and its journal.
 *
 *	uuid <32 hex digits>
 *	journal <32 hex digits>
 *	path <the path at the time of writing>
 *
 * Written at the first opening, and again after a move, or when another journal
 * may take the repository. A copy of the repository contains the file, too, so
 * the path tells a moved repository from a copy: if the old path still has the
 * same id, the repository is a copy and gets a new id. If the journal is all
 * zeros, refd-group has made the file, or refd disable has released the
 * repository, so the daemon adds its own journal at the first opening.
 *
 * Any thread; blocks; 0 or negative errno; nothing logs.
 */
#ifndef STORE_REPO_ID_H
#define STORE_REPO_ID_H

#include <stdbool.h>

#include "daemon/base/sys.h"
#include "proto/lib/own_file.h"

struct journal_repo;

struct repo_id {
	uint8_t uuid[16];
	uint8_t journal[16];
	char path[4096];
	/* Of the file when it was read. */
	enum own_file whose;
};

/* Does not follow a link. -ENOENT: no file, or an empty file, because after a
 * power loss a file that was never synced is empty. -EBADMSG: the content is
 * not an id. */
int repo_id_read(const struct sys *sys, int refd_fd, struct repo_id *id);
/* The same for the common dir. */
int repo_id_read_in(const struct sys *sys, int dirfd, struct repo_id *id);
/* Is ID the id of the directory PATH with the number INO? A group member who
 * may write in a repository can put any text into refd/. So a file counts if
 * only the account of this process, or root, may write the file. If others may
 * write the file, as after chmod -R g+w, the journal has to confirm it: KNOWN,
 * the row of the journal for the uuid of ID, must have the same path and
 * number. */
bool repo_id_is_believed(const struct repo_id *id,
    const struct journal_repo *known, const char *path, uint64_t ino);
/* May any journal take the repository? The journal in the file is all zeros if
 * a program copied the repository from another machine, because such a program
 * does not know the journal. It is also all zeros after refd disable, or if an
 * administrator has copied the repository. */
bool repo_id_is_unclaimed(const struct repo_id *id);
/* The file is durable after the next sync of its file system. If it REPLACES an
 * old file, the old file may come back until then. */
int repo_id_write(const struct sys *sys, int refd_fd, const struct repo_id *id,
    bool replaces);
/* A random (version 4) uuid. */
int repo_id_make_uuid(uint8_t uuid[16]);
void repo_id_hex(const uint8_t uuid[16], char hex[33]);

#endif
