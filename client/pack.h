#ifndef CLIENT_PACK_H
#define CLIENT_PACK_H

#include "proto/lib/command.h"

extern const struct command pack_command;

#endif
