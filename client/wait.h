/* refd wait: until a node has a transaction. */
#ifndef CLIENT_WAIT_H
#define CLIENT_WAIT_H

#include "proto/lib/command.h"

extern const struct command wait_command;

#endif
