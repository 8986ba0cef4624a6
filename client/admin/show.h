/* Formats numbers, times and names for people. One thread. */
#ifndef CLIENT_ADMIN_SHOW_H
#define CLIENT_ADMIN_SHOW_H

#include "client/base/cli.h"

/* "850 us", "1.2 ms", "3.4 s", "5 min", "3 h", "2 d". */
void show_time(struct text *t, uint64_t us);
/* "5 s", "4:05", "1:04:05", "3d 01:04:05" */
void show_span(struct text *t, uint64_t seconds);
/* A time in UTC: "2026-08-01T00:00:00Z". */
void show_moment(struct text *t, uint64_t ms);
/* NAME, padded to WIDTH columns. A longer name becomes "..." and its end. */
void show_end(struct text *t, const char *name, size_t width);
/* The account's name, or its number. */
void show_user(struct text *t, uint64_t uid);
/* NR per MS milliseconds, as a rate per second. */
void show_rate(struct text *t, uint64_t nr, uint64_t ms);

#endif
