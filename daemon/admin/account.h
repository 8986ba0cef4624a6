/*
 * The account of a command. If root runs a command on the state or repository
 * of another account, the command becomes the account before reading any file
 * there.
 */
#ifndef ADMIN_ACCOUNT_H
#define ADMIN_ACCOUNT_H

#include <stdbool.h>

/* If this process is root and the directory PATH belongs to another account,
 * permanently makes the whole process that account, with its groups. If PATH
 * cannot be opened, nothing changes. Call before threads exist. Looks up
 * accounts, so may block. False: failed, with a message printed. */
bool account_become_owner_of(const char *path);

#endif
