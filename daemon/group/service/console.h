/*
 * The commands of the administrator on the group in PostgreSQL. Each prints to
 * standard output, and returns the exit status. Blocking; one thread.
 */
#ifndef CLIENT_GROUP_CONSOLE_H
#define CLIENT_GROUP_CONSOLE_H

#include "daemon/group/service/group_config.h"
#include "proto/group_frame.h"

struct session;

/* Ends the program if no commit could be proven: the role may not see the
 * standbys, or too few of them are synchronous. */
void console_check_server(struct session *s);
/* Creates tables, group and first lease. ORIGIN: see schema_create(). */
int console_create(const struct group_config *config,
    const uint8_t origin[GROUP_UUID_BYTES]);
/* Prints the state of the group. EXIT_FAILED: batches would be refused or
 * would wait. */
int console_status(const struct group_config *config);

#endif
