/*
 * refd/id of a repository (daemon/store/repos/repo_id.h). Any thread; blocks.
 */
#ifndef GROUP_SERVICE_FETCH_ID_H
#define GROUP_SERVICE_FETCH_ID_H

#include "daemon/group/service/fetch.h"
#include "proto/lib/own_file.h"

#define FETCH_ID_HEX 32

/* Returns HEX, with a NUL. */
char *fetch_id_hex(const uint8_t uuid[16], char hex[FETCH_ID_HEX + 1]);

/* Reads the uuid of the repository DIR. FOREIGN: DIR has no refd/id that this
 * account or root wrote. */
enum own_file fetch_id_read(const char *dir, char hex[FETCH_ID_HEX + 1]);

/* May a missing repository be made? The leader has begun without refs, or all
 * refs are copied. */
bool fetch_id_is_new(const struct fetch_wish *wish);

/* 0: the directory REPO_FD has the uuid of WISH, in a file that is CLOSED or
 * OPEN (*WHOSE). -ESTALE: the directory has a different uuid, or no proper
 * file. -ENOENT: there is no file. Otherwise the disk has failed. */
int fetch_id_look(int repo_fd, const struct fetch_wish *wish,
    enum own_file *whose);

/* Is REPO_FD a repository without an id that fetch_id_claim() would take? */
bool fetch_id_may_claim(int repo_fd, const struct fetch_site *site,
    const struct fetch_wish *wish);

/* Makes refd/group in REPO_FD. 0 or a negative errno. */
int fetch_id_mark(int repo_fd);

/*
 * Checks that the repository REPO_FD has the uuid of WISH. A repository without
 * an id gets the uuid, but no journal, because the daemon adds its own journal.
 * The repository must then have no refs, and the leader's repository must not
 * be older than the group, because no row has such refs. The file is durable
 * after the next sync of the file system. False: WHY is the reason.
 */
bool fetch_id_claim(int repo_fd, const struct fetch_site *site,
    const char *root, const struct fetch_wish *wish, struct text *why);

#endif
