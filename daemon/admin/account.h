/*
 * The account that a command runs as. Root's command on another account's
 * state or repository becomes that account before it reads anything there.
 */
#ifndef ADMIN_ACCOUNT_H
#define ADMIN_ACCOUNT_H

#include <stdbool.h>

/* If this is root and the directory PATH belongs to another account, makes
 * the whole process that account, with its groups, for good. A PATH that can't
 * be opened changes nothing. Before there are threads; asks for accounts, so
 * it may block. False: it failed, which was said. */
bool account_become_owner_of(const char *path);

#endif
