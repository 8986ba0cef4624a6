/*
 * The report of "refd enable" and "refd disable" on standard output: a line for
 * each action. One thread.
 */
#ifndef CLIENT_ENABLE_ENABLE_REPORT_H
#define CLIENT_ENABLE_ENABLE_REPORT_H

#include <stdbool.h>

#include "proto/lib/cli.h"

/* Decides whether reports are printed from now on. The doctor prints its own
 * findings instead. With more than ENABLE_REPORT_REPOSITORIES repositories, the
 * command prints one sentence in the end, because nobody would read a line for
 * each change. */
#define ENABLE_REPORT_REPOSITORIES 10
void enable_report_quietly(bool is_quiet);
/* "PATH: TEXT", or TEXT alone if PATH is NULL. */
void enable_report(const char *path, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* A setting was added to the configuration of PATH, or removed. */
void enable_report_setting(const char *path, bool is_added, const char *key,
    const char *value);

#endif
