/* refd log and refd watch: past and future changes of refs. */
#ifndef CLIENT_LOG_LOG_H
#define CLIENT_LOG_LOG_H

#include "proto/lib/command.h"

extern const struct command log_command, watch_command;

#endif
