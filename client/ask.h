/* The commands that ask the daemon one question: see ask.c. */
#ifndef CLIENT_ASK_H
#define CLIENT_ASK_H

#include "proto/lib/command.h"

extern const struct command ping_command, query_command, stats_command,
    checkpoint_command;

#endif
