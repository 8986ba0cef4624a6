/* Formats numbers, times and names for people. One thread. */
#ifndef CLIENT_ADMIN_SHOW_H
#define CLIENT_ADMIN_SHOW_H

#include "proto/lib/cli.h"
#include "proto/lib/colour.h"
#include "proto/message.h"

/* "850 us", "1.2 ms", "3.4 s", "5 min", "3 h", "2 d". */
void show_time(struct text *t, uint64_t us);
/* "5 s", "4:05", "1:04:05", "3d 01:04:05" */
void show_span(struct text *t, uint64_t seconds);
/* A coarse time: "12 s", "5 min", "3 h", "1 day", "2 days". */
void show_age(struct text *t, uint64_t seconds);
/* A moment, of at most show_when_width() columns: on a terminal "5 min ago",
 * elsewhere the time in UTC. */
void show_when(struct text *t, uint64_t ms, uint64_t now_ms);
int show_when_width(void);
/* A time in UTC: "2026-08-01T00:00:00Z". */
void show_moment(struct text *t, uint64_t ms);
/* NAME, padded to WIDTH columns, or "..." and the end of a longer name. */
void show_end(struct text *t, const char *name, size_t width);
/* The account's name, or its number. */
void show_user(struct text *t, uint64_t uid);
/* NR with commas, and ONE or MANY: "1 record", "4,000 records". */
void show_count(struct text *t, uint64_t nr, const char *one, const char *many);
/* NR per MS milliseconds, as a rate per second. */
void show_rate(struct text *t, uint64_t nr, uint64_t ms);
/* A line "key: value" for each pair outside of rows. */
void show_pairs(struct text *t, const struct refd_answer *ans);
/* Ends the line that begins at byte BEGIN of T: cuts the line after COLUMNS
 * columns (0: nowhere), and colours the rest. */
void show_cut(struct text *t, size_t begin, size_t columns, enum colour colour);
/* S in COLOUR, in lines that begin with INDENT blanks and have at most COLUMNS
 * columns; 0: any number. A longer word has its own line. */
void show_lines(struct text *t, enum colour colour, const char *s,
    size_t indent, size_t columns);
/* Columns of the terminal on standard output, or 0 if there is none. */
size_t show_columns(void);

#endif
