/*
 * A journal with history in it, and questions about that: what the tests of
 * history share. One at a time, in `past`. Every call fails the test rather
 * than returning an error, unless it says otherwise.
 */
#ifndef TESTS_LIB_PAST_RIG_H
#define TESTS_LIB_PAST_RIG_H

#include "daemon/store/history/history.h"
#include "daemon/store/journal/record.h"

struct past_rig {
	struct sys sys; /* the kernel's, with clocks of its own */
	int64_t wall_ms;
	int64_t mono_ns; /* stands still, but for what each look adds */
	int64_t mono_step_ns;
	struct journal *j;
	struct history *h;
	struct repos repos;
	char root[4096];
	const char *roots[1];
	int64_t retention_ms; /* for past_history() */
	uint64_t retention_bytes;
	bool has_index; /* past_history() indexes all that is there */
};
extern struct past_rig past;

/* In a directory of its own; a journal, no history. */
void past_setup(void);
void past_teardown(void);
/* (Re)opens them. */
void past_open_journal(void);
void past_close(void);
void past_history(void);
void past_index(void);

/* A repository NAME below the root, made if need be, and its id in refd/id:
 * its number. */
uint64_t past_repo(const char *name, mode_t mode);
/* Makes PATH, a repository, the one that has UUID. */
void past_write_id(const char *path, const uint8_t uuid[16]);

/* A record in the making, of alice (uid 1000) unless changed. */
struct past_record {
	struct journal_row row;
	struct record rec;
	struct record_member members[16];
};
/* Of REPO, "update refs/heads/NAME from old to new". */
void past_begin(struct past_record *r, uint64_t repo, const char *ref);
struct record_member *past_add(struct past_record *r, const char *ref);
/* Its LSN. */
uint64_t past_commit(struct past_record *r);
/* The three in one. */
uint64_t past_update(uint64_t repo, const char *ref);
/* NR of them with few flushes: every third of X, the others of Y. */
void past_updates(uint64_t repo, unsigned nr, const char *x, const char *y);

/* Statements done in a database file beside them. */
void past_sql(const char *file, const char *sql);

/* A question of root's; its strings are borrowed. */
struct store_history *past_ask(enum refd_verb verb);
/* Answers it up to the last row; false: it waits. */
bool past_answer(struct store_history *ask);
/* ... and says what came, as " <ref>@<lsn>" or " <ref>@<lsn>:<code>" for each,
 * page by page until there is no more; frees it. *PAGES may be NULL. */
const char *past_told(struct store_history *ask, unsigned *pages);
/* Frees it without freeing what it borrows. */
void past_free(struct store_history *ask);

/* Six records, in a.git, which all may read, and b.git, which root may. */
extern uint64_t past_a, past_b;
void past_some(void);
/* past_history(), in one of so many ways: WAY 0 reads the journal alone, 1 has
 * half of it indexed, 2 all. */
#define PAST_WAYS 3
void past_open(int way);
/* What a log of REPO (a name below the root, NULL: any) and PATTERN (or NULL)
 * tells; as past_told(). */
const char *past_log(const char *repo, const char *pattern, bool reverse,
    uint32_t limit, unsigned *pages);

#endif
