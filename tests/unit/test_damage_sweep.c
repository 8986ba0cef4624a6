/*
 * Proves that no single wrong bit in the journal loses an acknowledged ref
 * silently. A power loss takes the last refs of a repository, and one bit of
 * the journal is wrong. Then there are two permitted results. Either the start
 * brings back every ref, and every transaction has its outcome. Or the start
 * fails or reports the records that it could not redo, and after a repair of
 * the bit the next start brings everything back.
 *
 * The records are in the WAL, or in the database. The test tries every byte of
 * the WAL's header, of the frames' headers and of the database's header, and
 * one in 211 of all other bytes. With REFD_TEST_LONG all bytes are tried, with
 * SWEEP_STEP a tenth of them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/suite.h"
#include "tests/lib/sweep.h"
#include "tests/lib/sysvfs.h"
#include "tests/lib/world_rig.h"

#define REFS   5
#define DB     "/state/journal.db"
#define WAL    "/state/journal.db-wal"
#define HEADER 32
#define FRAME  (4096 + 24)

static struct refd_txid ids[REFS];

/* ---- state after the power loss ---- */

/* Refs 0 and 1 are on the repository's disk, by a checkpoint. */
static void update_and_cut(void)
{
	struct txn *txn;
	char spec[16];
	int i;

	wr_setup_apart();
	for (i = 0; i < REFS; i++) {
		snprintf(spec, sizeof(spec), "%c=%d", 'a' + i, i + 1);
		txn = world_apply(w, spec, false);
		ck_assert_int_eq(txn->updates[0].status, REFD_OK);
		ids[i] = txn->req.txid;
		world_done(w, txn);
		if (i == 1)
			ck_assert_int_eq(world_checkpoint(w), 0);
	}
	wr_power_loss(MEMFS_DATA_NONE, 0);
}

/* As a start that is cut off right after opening the journal. */
static void bring_into_database(void)
{
	struct journal_config cfg = { .sys = w->sys,
		.dir = "/state",
		.vfs = "sweep",
		.boot_id = memfs_boot_id(w->fs) };
	struct sysvfs *vfs = sysvfs_new("sweep", w->sys);
	struct journal *j;
	char *why;

	ck_assert_int_eq(journal_open(&cfg, &j, &why), 0);
	ck_assert_int_eq(journal_close(j), 0);
	sysvfs_free(vfs);
}

static void flip(const char *path, size_t at, unsigned bit)
{
	size_t len;
	char *bytes = memfs_read(w->fs, path, &len);

	ck_assert_uint_lt(at, len);
	bytes[at] ^= (char)(1 << bit);
	memfs_write_bytes(w->fs, path, bytes, len);
	free(bytes);
}

/* ---- results of the start ---- */

static bool refs_are_there(void)
{
	char name[2] = "a";
	int i;

	for (i = 0; i < REFS; i++, name[0]++)
		if (world_ref(w, name) != '1' + i)
			return false;
	return true;
}

static int count(void *arg, const struct journal_row *row)
{
	(void)row;
	++*(unsigned *)arg;
	return 0;
}

/* By their ids: rows, or an error. */
static bool outcomes_are_there(void)
{
	struct journal *j = w->store.journal;
	struct journal_reader *reader;
	unsigned nr;
	int i, r = 0;

	if (journal_reader_open(j, &reader) != 0)
		return true;
	for (i = 0; i < REFS && r == 0; i++) {
		nr = 0;
		r = journal_lookup(reader, JOURNAL_ANY_UID, &ids[i], count,
		    &nr);
		if (r == 0 && nr == 0)
			r = 1;
	}
	journal_reader_close(reader);
	return r <= 0;
}

static void assert_all_there(const char *where, const char *when)
{
	ck_assert_msg(refs_are_there(), "%s%s: a ref is lost", where, when);
	ck_assert_msg(outcomes_are_there(), "%s%s: an outcome is lost", where,
	    when);
}

static void try(bool in_database, const char *path, size_t at)
{
	char where[64];
	int r;

	snprintf(where, sizeof(where), "bit %zu of byte %zu of %s", at % 8, at,
	    path);
	update_and_cut();
	if (in_database)
		bring_into_database();
	flip(path, at, at % 8);
	r = world_start(w);
	ck_assert_msg(r == 0 || r == -EBADMSG || r == -EUCLEAN || r == -EIO ||
		r == -EPROTO || r == -EXDEV || r == -EROFS,
	    "%s: %d", where, r);
	if (r == 0 && w->deferred == 0) {
		assert_all_there(where, "");
	} else {
		world_crash(w);
		flip(path, at, at % 8);
		r = world_start(w);
		ck_assert_msg(r == 0, "%s, put right: %d", where, r);
		assert_all_there(where, ", put right");
	}
	world_free(w);
}

static bool is_tried(size_t at, bool is_header)
{
	size_t step = 211;

	if (getenv("REFD_TEST_LONG") != NULL)
		step = 1;
	else if (sweep_step() > 1)
		return at % (is_header ? 10 : 10 * step) == 0;
	return is_header || at % step == 0;
}

static size_t size_of(bool in_database, const char *path)
{
	size_t len;

	update_and_cut();
	if (in_database)
		bring_into_database();
	free(memfs_read(w->fs, path, &len));
	world_free(w);
	return len;
}

CASE(.name = "wal", .seconds = 1200);

TEST(a_bit_of_the_wal)
{
	size_t len = size_of(false, WAL), at;

	for (at = 0; at < len; at++)
		if (is_tried(at, at < HEADER || (at - HEADER) % FRAME < 24))
			try(false, WAL, at);
}

CASE(.name = "database", .seconds = 1200);

TEST(a_bit_of_the_database)
{
	size_t len = size_of(true, DB), at;

	for (at = 0; at < len; at++)
		if (is_tried(at, at < 100))
			try(true, DB, at);
}
