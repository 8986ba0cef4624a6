/*
 * A journal with history, and requests for this history, for the tests of
 * history. One at a time, in `fixture`. Every call fails the test instead of
 * returning an error, unless stated otherwise.
 */
#ifndef TESTS_LIB_HISTORY_FIXTURE_H
#define TESTS_LIB_HISTORY_FIXTURE_H

#include "daemon/store/history/history.h"
#include "daemon/store/journal/record.h"

struct history_fixture {
	struct sys sys; /* the kernel's, with fake clocks */
	int64_t wall_ms;
	int64_t mono_ns; /* advances only with each read */
	int64_t mono_step_ns;
	struct journal *j;
	struct history *h;
	struct store_config config; /* by fixture_history() */
	struct store_parts parts;
	struct repos repos;
	char root[4096];
	const char *roots[1];
	int64_t retention_ms; /* for fixture_history() */
	uint64_t retention_bytes;
	bool has_index; /* fixture_history() indexes all rows */
};
extern struct history_fixture fixture;

/* In a new directory; a journal without history. */
void fixture_setup(void);
void fixture_teardown(void);
/* (Re)opens them. */
void fixture_open_journal(void);
void fixture_close(void);
void fixture_history(void);
void fixture_index(void);
/* As history_index(), for no watch. */
int fixture_index_upto(uint64_t lsn);

/* Makes the repository NAME below the root if necessary, with an id in refd/id.
 * Returns its number. */
uint64_t fixture_repo(const char *name, mode_t mode);
/* Gives the repository at PATH the identity UUID. */
void fixture_write_id(const char *path, const uint8_t uuid[16]);

/* An unfinished record, of alice (uid 1000) unless changed. */
struct fixture_record {
	struct journal_row row;
	struct record rec;
	struct record_member members[16];
};
/* Begins a record of REPO: update refs/heads/NAME from old to new. */
void fixture_begin(struct fixture_record *r, uint64_t repo, const char *ref);
struct record_member *fixture_add(struct fixture_record *r, const char *ref);
/* Returns the LSN. */
uint64_t fixture_commit(struct fixture_record *r);
/* Begin, add and commit in one call. */
uint64_t fixture_update(uint64_t repo, const char *ref);
/* The same for NR records with few flushes: every third of X, the others of
 * Y. */
void fixture_updates(uint64_t repo, unsigned nr, const char *x, const char *y);

/* Executes SQL in a database file beside the journal. */
void fixture_sql(const char *file, const char *sql);
/* The size of the journal's file, without free pages. */
uint64_t fixture_used_bytes(void);

/* A request by root. Its strings are borrowed. */
struct store_question *fixture_ask(enum refd_verb verb);
/* One turn: indexes some rows, and answers ASK up to the last row. Returns
 * false if ASK waits. */
bool fixture_answer(struct store_question *ask);
/* Answers ASK page by page until the end, and frees ASK. Returns " <ref>@<lsn>"
 * or " <ref>@<lsn>:<code>" for each change. PAGES may be NULL. */
const char *fixture_told(struct store_question *ask, unsigned *pages);
/* Frees ASK without its borrowed strings. */
void fixture_free(struct store_question *ask);

/* Six records, in a.git, which all users may read, and b.git, which root may
 * read. */
extern uint64_t fixture_a, fixture_b;
void fixture_some(void);
/* fixture_history(), with a partial index. Way 0 has no index yet; way 1 has
 * half of the index, way 2 the whole index. */
#define FIXTURE_WAYS 3
void fixture_open(int way);
/* Returns the log of REPO (a name below the root, NULL: any) and PATTERN (or
 * NULL), as fixture_told(). */
const char *fixture_log(const char *repo, const char *pattern, bool reverse,
    uint32_t limit, unsigned *pages);

#endif
