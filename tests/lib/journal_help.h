/*
 * Numbered rows for tests of the journal. The number of a row determines its
 * transaction id, uid and body. Every call fails the test instead of returning
 * an error, unless stated otherwise.
 */
#ifndef TESTS_LIB_JOURNAL_HELP_H
#define TESTS_LIB_JOURNAL_HELP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/journal/journal.h"

#define HELP_BOOT "00000000-0000-4000-8000-000000000001"
#define HELP_UID  1000
/* Less than five frames, so that rows are both inside and beyond the room. */
#define HELP_WAL_ROOM 20480

struct journal *help_open(const struct sys *sys, const char *dir,
    const char *vfs);
/* In tmp_root (tests/lib/tmp.h), with the kernel's calls. */
struct journal *help_open_here(void);
void help_close(struct journal *j);
void help_reopen(struct journal *j);
/* Reads a number from the database in tmp_root, which nobody may use
 * meanwhile. */
int64_t help_ask(const char *sql);
/* journal_open() and journal_claim(). */
int help_start(const struct journal_config *cfg, struct journal **j,
    char **why);
/* Returns the result of help_start(), and closes the journal. WHY may be NULL;
 * otherwise *WHY must be freed. */
int help_try_open(const struct sys *sys, const char *dir, const char *vfs,
    char **why);

/* A row whose body is BYTES long, at least 16. Freed by help_row_done(). */
struct journal_row help_row(unsigned number, size_t bytes);
void help_row_done(struct journal_row *row);

/* Returns the result of journal_commit() for rows FIRST to FIRST + NR - 1. */
int help_commit(struct journal *j, unsigned first, unsigned nr, size_t bytes);

/* Returns the number of rows. Fails unless all rows equal those of help_row(),
 * in the order of LSNs, without duplicates. Sets SEEN[number] for numbers below
 * NR_SEEN. */
size_t help_scan(struct journal *j, bool *seen, size_t nr_seen);
bool help_has(struct journal *j, unsigned number);

#endif
