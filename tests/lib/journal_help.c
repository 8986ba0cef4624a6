#include "tests/lib/journal_help.h"

#include <check.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/tmp.h"

#define ROWS_MAX  1024
#define BYTES_MIN 16

static struct journal_config config(const struct sys *sys, const char *dir,
    const char *vfs)
{
	return (struct journal_config){ .sys = sys,
		.dir = dir,
		.vfs = vfs,
		.boot_id = HELP_BOOT,
		.wal_room = HELP_WAL_ROOM };
}

int help_start(const struct journal_config *cfg, struct journal **j, char **why)
{
	int r = journal_open(cfg, j, why);

	if (r == 0 && (r = journal_claim(*j, why)) != 0) {
		journal_close(*j);
		*j = NULL;
	}
	return r;
}

struct journal *help_open(const struct sys *sys, const char *dir,
    const char *vfs)
{
	struct journal_config cfg = config(sys, dir, vfs);
	struct journal *j = NULL;
	char *why = NULL;
	int r = help_start(&cfg, &j, &why);

	ck_assert_msg(r == 0, "journal_open: %d, %s", r, why);
	ck_assert_ptr_null(why);
	return j;
}

struct journal *help_open_here(void)
{
	return help_open(&sys_kernel, tmp_root, NULL);
}

void help_close(struct journal *j)
{
	ck_assert_int_eq(journal_close(j), 0);
}

void help_reopen(struct journal *j)
{
	char *why = NULL;
	int r = journal_reopen(j, &why);

	ck_assert_msg(r == 0, "journal_reopen: %d, %s", r, why);
	ck_assert_ptr_null(why);
}

int64_t help_ask(const char *sql)
{
	char path[4200];
	sqlite3 *db;
	sqlite3_stmt *s;
	int64_t value;

	snprintf(path, sizeof(path), "%s/journal.db", tmp_root);
	ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
	ck_assert_int_eq(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
	value = sqlite3_step(s) == SQLITE_ROW ? sqlite3_column_int64(s, 0) : 0;
	sqlite3_finalize(s);
	sqlite3_close(db);
	return value;
}

int help_try_open(const struct sys *sys, const char *dir, const char *vfs,
    char **why)
{
	struct journal_config cfg = config(sys, dir, vfs);
	struct journal *j = NULL;
	char *said = NULL;
	int r = help_start(&cfg, &j, &said);

	ck_assert((r == 0) == (j != NULL));
	ck_assert((r == 0) == (said == NULL));
	ck_assert_int_le(r, 0);
	journal_close(j);
	if (why != NULL)
		*why = said;
	else
		free(said);
	return r;
}

struct journal_row help_row(unsigned number, size_t bytes)
{
	struct journal_row row = {
		.kind = JOURNAL_SLICE,
		.uid = HELP_UID,
		.pid = number,
		.repo = 7,
		.token = UINT64_MAX - number,
		.mount = UINT64_MAX,
		.locked_at_ns = -1 - (int64_t)number,
		.time_us = 1600000000000000 + number,
		.final = true,
		.len = bytes,
	};
	char *body = malloc(bytes);

	ck_assert_uint_ge(bytes, BYTES_MIN);
	memset(body, 'a' + (int)(number % 26), bytes);
	snprintf(body, BYTES_MIN, "%u", number);
	row.body = (uint8_t *)body;
	snprintf((char *)row.txid.bytes, sizeof(row.txid.bytes), "t%014u",
	    number);
	return row;
}

void help_row_done(struct journal_row *row)
{
	free((void *)(uintptr_t)row->body);
}

int help_commit(struct journal *j, unsigned first, unsigned nr, size_t bytes)
{
	struct journal_row *rows = calloc(nr, sizeof(*rows));
	unsigned i;
	int r;

	for (i = 0; i < nr; i++)
		rows[i] = help_row(first + i, bytes);
	r = journal_commit(j, rows, nr, true);
	for (i = 0; i < nr; i++) {
		if (r == 0 && i > 0)
			ck_assert_uint_gt(rows[i].lsn, rows[i - 1].lsn);
		if (r != 0)
			ck_assert_uint_eq(rows[i].lsn, 0);
		help_row_done(&rows[i]);
	}
	free(rows);
	return r;
}

struct seen_rows {
	uint64_t last_lsn;
	size_t count;
	bool *seen;
	size_t nr_seen;
};

static void assert_row_eq(const struct journal_row *a,
    const struct journal_row *b)
{
	ck_assert_uint_eq(a->kind, b->kind);
	ck_assert_mem_eq(a->txid.bytes, b->txid.bytes, sizeof(a->txid.bytes));
	ck_assert_uint_eq(a->uid, b->uid);
	ck_assert_int_eq(a->pid, b->pid);
	ck_assert_uint_eq(a->repo, b->repo);
	ck_assert_uint_eq(a->token, b->token);
	ck_assert_uint_eq(a->mount, b->mount);
	ck_assert_int_eq(a->locked_at_ns, b->locked_at_ns);
	ck_assert_int_eq(a->time_us, b->time_us);
	ck_assert_uint_eq(a->refers_to, b->refers_to);
	ck_assert_int_eq(a->final, b->final);
	ck_assert_uint_eq(a->len, b->len);
	ck_assert_mem_eq(a->body, b->body, a->len);
}

static int see_row(void *arg, const struct journal_row *row)
{
	struct seen_rows *seen = arg;
	unsigned number = (unsigned)row->pid;
	struct journal_row expected = help_row(number, row->len);

	ck_assert_uint_gt(row->lsn, seen->last_lsn);
	ck_assert_uint_ne(row->start, 0);
	assert_row_eq(row, &expected);
	help_row_done(&expected);
	seen->last_lsn = row->lsn;
	seen->count++;
	if (number < seen->nr_seen) {
		ck_assert(!seen->seen[number]);
		seen->seen[number] = true;
	}
	return 0;
}

size_t help_scan(struct journal *j, bool *seen, size_t nr_seen)
{
	struct seen_rows state = { .seen = seen, .nr_seen = nr_seen };

	if (nr_seen > 0)
		memset(seen, 0, nr_seen * sizeof(*seen));
	ck_assert_int_eq(journal_scan(j, 0, see_row, &state), 0);
	return state.count;
}

bool help_has(struct journal *j, unsigned number)
{
	bool seen[ROWS_MAX];

	ck_assert_uint_lt(number, ROWS_MAX);
	help_scan(j, seen, ROWS_MAX);
	return seen[number];
}
