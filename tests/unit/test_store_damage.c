/*
 * Proves how the store handles a damaged journal. A journal that ends before
 * the last record that a repository has seen is refused before any byte
 * changes. The sentence gives a possible reason. A damaged record ends
 * recovery, and refd verify names the record. A store at work reports it once,
 * and takes no outcome from the records before it.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/store_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"
#include "tests/lib/verify_help.h"

#define WAL_FILE "state/journal.db-wal"

static struct refd_txid first_id;

static struct refd_txid update(const char *name)
{
	struct refd_txid id;
	struct txn *txn;

	refd_txid_make(&id);
	txn = sr_admit(&id, sr_repo, name, sr_commit);
	sr_apply(txn);
	ck_assert_int_eq(txn->updates[0].status, REFD_OK);
	sr_done_with(txn);
	return id;
}

static void checkpoint(void)
{
	struct store_question cp = { .kind = STORE_ASK_CHECKPOINT };

	store_ask(sr_store, &cp);
	ck_assert_ptr_eq(sr_wait_done().answered, &cp);
	ck_assert_int_eq(cp.answer.kind, REFD_ANSWER_PAIRS);
}

/* Makes three records. The database has the first record, and the repository
 * has seen the second. Then leaves the state of a crash. */
static void setup(void)
{
	sr_interval_ns = INT64_C(3600) * 1000000000;
	sr_setup();
	vh_reset();
	first_id = update("refs/heads/a");
	checkpoint();
	update("refs/heads/b");
	checkpoint();
	update("refs/heads/c");
	tmp_run("cp -a r.git/refd/checkpoint seen");
	sr_close_crashed();
	tmp_run("mv seen r.git/refd/checkpoint");
}

static void teardown(void)
{
	sr_teardown();
}

static struct store_config config(void)
{
	static const char *roots[] = { tmp_root };

	return (struct store_config){ .sys = &sys_kernel,
		.state_dir = sr_state,
		.roots = roots,
		.nr_roots = 1,
		.durability = REFD_DURABILITY_JOURNAL,
		.max_open_repos = 4 };
}

/* Refused with a sentence that contains WORDS. Nothing changes. */
static void assert_refused(int err, const char *words)
{
	static const char sums[] =
	    "sha256sum state/journal.db && cat state/journal.db-wal | "
	    "sha256sum";
	char *before = tmp_output(sums), *after, *why = NULL;
	struct store_config cfg = config();
	struct store *store;

	ck_assert_int_eq(store_open(&cfg, &store, &why), err);
	ck_assert_msg(strstr(why, words) != NULL, "'%s' not in: %s", words,
	    why);
	after = tmp_output(sums);
	ck_assert_str_eq(before, after);
	free(before);
	free(after);
	free(why);
}

/* Flips two bits in the page of the frame at byte AT. */
static void damage_wal(off_t at)
{
	int fd = openat(tmp_fd, WAL_FILE, O_RDWR | O_CLOEXEC);
	uint8_t byte;

	ck_assert_int_eq(pread(fd, &byte, 1, at + 1000), 1);
	byte ^= 0x30;
	ck_assert_int_eq(pwrite(fd, &byte, 1, at + 1000), 1);
	close(fd);
}

/* The last frame of the WAL with the salts of the header. */
static off_t last_frame(void)
{
	int fd = openat(tmp_fd, WAL_FILE, O_RDWR | O_CLOEXEC);
	uint8_t salts[8], found[8];
	off_t at = 32;

	ck_assert_int_eq(pread(fd, salts, sizeof(salts), 16), sizeof(salts));
	while (pread(fd, found, sizeof(found), at + 8) == sizeof(found) &&
	    memcmp(found, salts, sizeof(salts)) == 0)
		at += 24 + 4096;
	close(fd);
	return at - 24 - 4096;
}

/* As the message tells a user of the sqlite3 shell, which removes the WAL. */
static void change(const char *sql)
{
	char path[4200];
	sqlite3 *db;

	snprintf(path, sizeof(path), "%s/journal.db", sr_state);
	ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	tmp_run("rm -f state/journal.db-room");
}

CASE(.setup = setup, .teardown = teardown, .seconds = 120);

TEST(a_damaged_wal_is_refused)
{
	damage_wal(32);
	assert_refused(-EBADMSG, "damaged from byte 32 ");
	damage_wal(32);
	sr_open();
}

TEST(a_lost_wal_is_refused)
{
	tmp_run("mv " WAL_FILE " away && : >" WAL_FILE);
	assert_refused(-EBADMSG, "its end, with the last records, was cut off");
	/* An administrator who trusts the file is not believed either. */
	tmp_run("mv state/journal.db-room room");
	assert_refused(-ESTALE, "has seen record 2 of it");
	tmp_run("mv away " WAL_FILE " && mv room state/journal.db-room");
	sr_open();
}

/* No repository has seen the later records. */
TEST(what_nobody_has_seen_is_a_torn_end)
{
	tmp_run("rm r.git/refd/checkpoint");
	damage_wal(last_frame());
	sr_open();
}

static void found(void *arg, const struct store_found *found)
{
	(void)arg;
	(void)found;
}

static void progress(void *arg, uint64_t done, uint64_t total)
{
	(void)arg;
	(void)done;
	(void)total;
}

TEST(a_damaged_record_ends_recovery)
{
	struct store_report report = { found, progress, NULL };
	struct store_config cfg = config();
	struct store *store;
	uint64_t deferred;
	char *why = NULL;

	change("UPDATE record SET repo = repo + 1 WHERE lsn = 3");
	ck_assert_int_eq(store_open(&cfg, &store, &why), 0);
	free(why);
	ck_assert_ptr_null(store_recover_why(store));
	ck_assert_int_eq(store_recover(store, &report, &deferred), -EUCLEAN);
	why = store_recover_why(store);
	ck_assert_ptr_nonnull(strstr(why, "journal.db is damaged: record 3 "));
	ck_assert_ptr_nonnull(strstr(why, "refd recover --discard"));
	free(why);
	store_free(store);
	change("UPDATE record SET repo = repo - 1 WHERE lsn = 3");
	sr_open();
}

static sem_t told;
static char *told_why;

static void event(enum store_event event, const char *place, const char *why)
{
	ck_assert_int_eq(event, STORE_JOURNAL_DAMAGED);
	ck_assert_str_eq(place, sr_state);
	/* Reported once. */
	ck_assert_ptr_null(told_why);
	told_why = strdup(why);
	sem_post(&told);
}

/* The historian reads all rows, because its index is missing. */
TEST(a_store_at_work_tells)
{
	struct store_stats stats;

	sr_open();
	store_stats(sr_store, &stats);
	ck_assert(!stats.is_journal_damaged);
	sr_close();
	change("UPDATE record SET time_us = time_us + 1 WHERE lsn = 1");
	tmp_run("rm -f state/history.db*");
	sem_init(&told, 0, 0);
	sr_event = event;
	sr_open();
	sr_await(&told);
	ck_assert_ptr_nonnull(strstr(told_why, "record 1 "));
	store_stats(sr_store, &stats);
	ck_assert(stats.is_journal_damaged);
	/* The store goes on. */
	update("refs/heads/d");
	ck_assert_uint_eq(vh_look("r.git"), 1);
	ck_assert_msg(vh_has("journal-damaged ", "record 1 "), "%s",
	    vh_lines());
	sr_close();
	sr_event = NULL;
	free(told_why);
	sr_open();
}

/* Record 2 now has the id of record 1, and could take it back. */
TEST(an_outcome_is_not_told_in_part)
{
	struct store_question query = { .kind = STORE_ASK_ID };
	struct txn *txn;

	sr_open();
	sr_close();
	change("UPDATE record SET txid ="
	       " (SELECT txid FROM record WHERE lsn = 1) WHERE lsn = 2");
	sr_open();
	txn = sr_admit(&first_id, sr_repo, "refs/heads/a", sr_commit);
	ck_assert_int_eq(txn->refused, REFD_UNKNOWN);
	ck_assert_int_eq(txn->updates[0].status, REFD_PENDING);
	ck_assert_uint_eq(txn->nr_decided, 0);
	ck_assert_uint_eq(txn->lsn, 0);
	sr_done_with(txn);
	query.req.txid = first_id;
	store_ask(sr_store, &query);
	ck_assert_ptr_eq(sr_wait_done().answered, &query);
	ck_assert_int_eq(query.answer.status, REFD_IO);
}
