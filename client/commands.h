/*
 * All commands of refd, for main.c, so a file that defines a command includes
 * this.
 *
 * A new command is declared here, listed in main.c, and has an item in refd(1)
 * or a page (install.sh looks). The commands that ask the daemon a question are
 * in client/ask.c. A command with --json has a table in refd-json(5) and a line
 * "says" in tests/scenario/json.sh. options.sh tries the options of each
 * command, and the completions ask "refd help", so nothing is added there.
 */
#ifndef CLIENT_COMMANDS_H
#define CLIENT_COMMANDS_H

#include "proto/lib/command.h"

extern const struct command checkpoint_command, disable_command, doctor_command,
    drain_command, enable_command, hook_command, locks_command, log_command,
    look_command, migrate_command, pack_command, pause_command, ping_command,
    query_command, restore_command, resume_command, role_command,
    slowlog_command, stats_command, status_command, top_command, update_command,
    verify_command, wait_command, watch_command;

#endif
