/*
 * The progress of a command, in the form of git: "Verifying repositories:  42%
 * (42/100)". A process has one line, on standard error, and only if standard
 * error is a terminal. One thread.
 */
#ifndef PROTO_LIB_PROGRESS_H
#define PROTO_LIB_PROGRESS_H

#include <stdint.h>

/*
 * Replaces the line, at most once a second, and not in the first second. TOTAL
 * is 0 if not known. PLACE and NAME tell the present work, and each may be "".
 */
void progress_show(const char *title, uint64_t done, uint64_t total,
    const char *place, const char *name);
/* Replaces the line by LINE at once. */
void progress_line(const char *line);
/* From now on, TAKE gets the lines, because this process has no terminal. */
void progress_relay(void (*take)(const char *line));
/* Removes the line, so that other output can follow. */
void progress_clear(void);

#endif
