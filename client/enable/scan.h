/*
 * The repositories below a directory. Blocking; one thread.
 */
#ifndef CLIENT_ENABLE_SCAN_H
#define CLIENT_ENABLE_SCAN_H

#include "client/git/gitdir.h"

/* Calls EACH with every one; nothing in them is looked for. A directory that
 * can't be read is said to be so. */
void scan_repositories(const char *root,
    void (*each)(const struct gitdir *gd, void *data), void *data);

#endif
