/* The administrator's commands, and the screen of top. */
#ifndef CLIENT_ADMIN_ADMIN_H
#define CLIENT_ADMIN_ADMIN_H

#include "proto/lib/command.h"

extern const struct command status_command, role_command, top_command,
    slowlog_command, locks_command, pause_command, resume_command,
    drain_command;

#endif
