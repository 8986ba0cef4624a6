/* refd bench: measures a daemon on this machine, on a given file system. */
#ifndef CLIENT_BENCH_BENCH_H
#define CLIENT_BENCH_BENCH_H

#include "proto/lib/command.h"

extern const struct command bench_command;

#endif
