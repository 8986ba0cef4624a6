/*
 * refd restore: gives the refs of a repository their values at a point in time,
 * in one transaction.
 */
#ifndef CLIENT_RESTORE_RESTORE_H
#define CLIENT_RESTORE_RESTORE_H

#include "proto/lib/command.h"

extern const struct command restore_command;

#endif
