/*
 * Rows for tests of the journal, each known by a number: its transaction id,
 * uid and body follow from that. Every call fails the test rather than
 * returning an error, unless it says otherwise.
 */
#ifndef TESTS_LIB_JOURNAL_HELP_H
#define TESTS_LIB_JOURNAL_HELP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/journal/journal.h"

#define HELP_BOOT "00000000-0000-4000-8000-000000000001"
#define HELP_UID  1000
/* Less than five frames: so that rows are both in it and beyond it. */
#define HELP_WAL_ROOM 20480

struct journal *help_open(const struct sys *sys, const char *dir,
    const char *vfs);
/* In tmp_root (tests/lib/tmp.h), by the kernel's own calls. */
struct journal *help_open_here(void);
void help_close(struct journal *j);
/* One number out of the database in tmp_root, with nobody at work in it. */
int64_t help_ask(const char *sql);
/* journal_open() and journal_claim(). */
int help_start(const struct journal_config *cfg, struct journal **j,
    char **why);
/* What help_start() answers; the journal is closed again. WHY may be NULL,
 * else to be freed. */
int help_try_open(const struct sys *sys, const char *dir, const char *vfs,
    char **why);

/* A row whose body is BYTES long, at least 16. Freed by help_row_done(). */
struct journal_row help_row(unsigned number, size_t bytes);
void help_row_done(struct journal_row *row);

/* What journal_commit() answers for rows FIRST to FIRST + NR - 1. */
int help_commit(struct journal *j, unsigned first, unsigned nr, size_t bytes);

/* How many rows there are; each must be what help_row() made, in LSN order,
 * none twice. SEEN[number] is set for those below NR_SEEN. */
size_t help_scan(struct journal *j, bool *seen, size_t nr_seen);
bool help_has(struct journal *j, unsigned number);

#endif
