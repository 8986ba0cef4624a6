/* The command refd migrate: see migrate.c. */
#ifndef CLIENT_MIGRATE_MIGRATE_H
#define CLIENT_MIGRATE_MIGRATE_H

#include "proto/lib/command.h"

extern const struct command migrate_command;

#endif
