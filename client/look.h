/* refd look: records the changes of writers who did not tell refd. */
#ifndef CLIENT_LOOK_H
#define CLIENT_LOOK_H

#include "proto/lib/command.h"

extern const struct command look_command;

#endif
