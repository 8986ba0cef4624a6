/*
 * The repositories below a directory. Blocking; one thread.
 */
#ifndef CLIENT_ENABLE_SCAN_H
#define CLIENT_ENABLE_SCAN_H

#include "client/git/gitdir.h"

/* Calls EACH for every repository, and does not look inside of repositories. An
 * unreadable directory is an error message. */
void scan_repositories(const char *root,
    void (*each)(const struct gitdir *gd, void *data), void *data);

#endif
