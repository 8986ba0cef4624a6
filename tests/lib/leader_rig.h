/*
 * For tests of batches on the leader of a group, in a world of world_rig.h or
 * tables_rig.h. No other node is there: the journal takes the rows alone. Every
 * failure fails the test.
 */
#ifndef TESTS_LIB_LEADER_RIG_H
#define TESTS_LIB_LEADER_RIG_H

#include "tests/lib/tables_rig.h"

extern bool ldr_has_tables;
/* How often a ref was told to have another value than the group gave it, and
 * the only name that may be told. */
extern unsigned ldr_nr_told;
extern const char *ldr_told;
/* The names that the last row answers, and changes. */
extern char ldr_names[200];

typedef int ldr_commit_fn(void *arg, struct journal_row *rows, size_t nr,
    bool flush);
/* applier.commit of the journal alone. */
extern ldr_commit_fn *ldr_commit;

/* Fixtures. */
void ldr_begin_files(void);
void ldr_begin_tables(void);
/* Again, by ldr_has_tables. */
void ldr_begin(void);
void ldr_end(void);
/* From now on the rows are those of a group, and COMMIT takes them. */
void ldr_join(ldr_commit_fn *commit);
/* As ldr_join(). Each row gets the next LSN of the group, except those of this
 * node, and the name to be told is refs/heads/a. */
void ldr_lead(void);
/* After a restart of the world. */
void ldr_share_rows(void);
/* Another program does SPEC. */
void ldr_write_beside(const char *spec);
/* The value of NAME, as in world_ref(). */
char ldr_value(const char *name);

#endif
