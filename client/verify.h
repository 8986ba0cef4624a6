/*
 * refd verify: runs refd-admin, then confirms the restored refs to the daemon,
 * as the owner of the repository. For each ref, a transaction has the restored
 * value as old and as new value, so that history has the change. Nothing
 * changes, so no hook is asked. Without a daemon, verify warns.
 */
#ifndef CLIENT_VERIFY_H
#define CLIENT_VERIFY_H

#include "proto/lib/command.h"

extern const struct command verify_command;

#endif
