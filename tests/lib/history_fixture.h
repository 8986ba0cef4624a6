/*
 * A journal with history, and questions about this history, for the tests of
 * history. One at a time, in `fixture`. Every call fails the test and returns
 * no error, unless stated.
 */
#ifndef TESTS_LIB_HISTORY_FIXTURE_H
#define TESTS_LIB_HISTORY_FIXTURE_H

#include "daemon/store/history/history.h"
#include "daemon/store/journal/record.h"

struct history_fixture {
	struct sys sys; /* the kernel's, with clocks of its own */
	int64_t wall_ms;
	int64_t mono_ns; /* stands still, but for what each look adds */
	int64_t mono_step_ns;
	struct journal *j;
	struct history *h;
	struct repos repos;
	char root[4096];
	const char *roots[1];
	int64_t retention_ms; /* for fixture_history() */
	uint64_t retention_bytes;
	bool has_index; /* fixture_history() indexes all that is there */
};
extern struct history_fixture fixture;

/* In a directory of its own; a journal, no history. */
void fixture_setup(void);
void fixture_teardown(void);
/* (Re)opens them. */
void fixture_open_journal(void);
void fixture_close(void);
void fixture_history(void);
void fixture_index(void);

/* A repository NAME below the root, made if need be, and its id in refd/id:
 * its number. */
uint64_t fixture_repo(const char *name, mode_t mode);
/* Makes PATH, a repository, the one that has UUID. */
void fixture_write_id(const char *path, const uint8_t uuid[16]);

/* A record in the making, of alice (uid 1000) unless changed. */
struct fixture_record {
	struct journal_row row;
	struct record rec;
	struct record_member members[16];
};
/* Of REPO, "update refs/heads/NAME from old to new". */
void fixture_begin(struct fixture_record *r, uint64_t repo, const char *ref);
struct record_member *fixture_add(struct fixture_record *r, const char *ref);
/* Its LSN. */
uint64_t fixture_commit(struct fixture_record *r);
/* The three in one. */
uint64_t fixture_update(uint64_t repo, const char *ref);
/* NR of them with few flushes: every third of X, the others of Y. */
void fixture_updates(uint64_t repo, unsigned nr, const char *x, const char *y);

/* Statements done in a database file beside them. */
void fixture_sql(const char *file, const char *sql);

/* A question of root's; its strings are borrowed. */
struct store_history *fixture_ask(enum refd_verb verb);
/* Answers it up to the last row; false: it waits. */
bool fixture_answer(struct store_history *ask);
/* ... and says what came, as " <ref>@<lsn>" or " <ref>@<lsn>:<code>" for each,
 * page by page until there is no more; frees it. *PAGES may be NULL. */
const char *fixture_told(struct store_history *ask, unsigned *pages);
/* Frees it without freeing what it borrows. */
void fixture_free(struct store_history *ask);

/* Six records, in a.git, which all may read, and b.git, which root may. */
extern uint64_t fixture_a, fixture_b;
void fixture_some(void);
/* fixture_history(), in one of so many ways: WAY 0 reads the journal alone, 1 has
 * half of it indexed, 2 all. */
#define FIXTURE_WAYS 3
void fixture_open(int way);
/* What a log of REPO (a name below the root, NULL: any) and PATTERN (or NULL)
 * tells; as fixture_told(). */
const char *fixture_log(const char *repo, const char *pattern, bool reverse,
    uint32_t limit, unsigned *pages);

#endif
