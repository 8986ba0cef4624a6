/*
 * The report of "refd enable" and "refd disable" on standard output: a line for
 * each action, or a JSON object. One thread.
 */
#ifndef CLIENT_ENABLE_ENABLE_REPORT_H
#define CLIENT_ENABLE_ENABLE_REPORT_H

#include <stdbool.h>

#include "proto/lib/cli.h"

enum enable_report_form {
	ENABLE_REPORT_TEXT,
	ENABLE_REPORT_JSON,   /* for programs */
	ENABLE_REPORT_NOTHING /* for the doctor, which looks again */
};

/* From now on. */
void enable_report_as(enum enable_report_form wanted);
/* More repositories than that get a sentence instead of a line for each change,
 * which nobody would read; programs get all. From now on; returns whether. */
#define ENABLE_REPORT_REPOSITORIES 10
bool enable_report_briefly(size_t nr);
/* "PATH: TEXT", or TEXT alone if PATH is NULL. ACTION is the word for programs:
 * refd-json(5) lists all of them. */
void enable_report(const char *action, const char *path, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
/* A setting was added to the configuration of PATH, or removed. */
void enable_report_setting(const char *path, bool is_added, const char *key,
    const char *value);
/* A line of "refd enable --list". */
void enable_report_state(const char *state, const char *kind, const char *path);

#endif
