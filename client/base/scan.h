/*
 * The repositories below a directory. Blocking; one thread.
 */
#ifndef CLIENT_BASE_SCAN_H
#define CLIENT_BASE_SCAN_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Does DIR look like a repository or the top of a work tree? Reads no file, so
 * root may ask about a directory of any user. Only gitdir_at(), with the rights
 * of the owner, knows for sure.
 */
bool scan_is_repository(const char *dir);
/* The absolute path DIR, or the first directory above, that looks like one;
 * owned. NULL: none. */
char *scan_around(const char *dir);
/* Calls EACH for every such directory, and does not look inside. False: ROOT or
 * a directory below was not searched, and a message says why. */
bool scan_repositories(const char *root,
    void (*each)(const char *dir, void *data), void *data);
/* Like scan_repositories(), but for a search below directories of other users.
 * Anybody who may write below ROOT must not make the search fail. So
 * directories that have too many levels or long names are not searched as a
 * whole, and *NR_BEYOND gets their number. */
bool scan_all_but_beyond(const char *root,
    void (*each)(const char *dir, void *data), void *data, size_t *nr_beyond);

#endif
