/*
 * Proves the findings of refd verify about a journal and a repository: the last
 * recorded value is missing, a later foreign value is accepted, records await
 * recovery or are deferred, refd's own locks, a foreign, older or unreadable
 * journal, wrong LSNs of a group, updates that were taken back, and many refs
 * in little memory. refd verify runs beside the store that owns the journal,
 * and reads the journal once for many repositories.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/admin/verify_internal.h"
#include "daemon/store/journal/journal_internal.h"
#include "daemon/store/journal/record.h"
#include "daemon/store/refs/token.h"
#include "tests/lib/journal_help.h"
#include "tests/lib/store_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"
#include "tests/lib/verify_help.h"

#define HAS(line, words)                                                       \
	ck_assert_msg(vh_has(line, words), "no '%s' (%s) in:%s", line, words,  \
	    vh_lines())
#define FINDS(n)                                                               \
	do {                                                                   \
		size_t found_ = vh_look("r.git");                              \
		ck_assert_msg(found_ == (n), "%zu found:%s", found_,           \
		    vh_lines());                                               \
	} while (0)

/* About, of a ref with a short name. */
#define REF_BYTES 150
/* A repository with the table of its refs, too. */
#define REPO_BYTES 700

static const char zeroes[] = "0000000000000000000000000000000000000000";
static char older[REFD_OID_MAX_HEX + 1];

static void update_in(const char *path, const char *name, const char *hex)
{
	struct refd_txid id;
	struct txn *txn;

	refd_txid_make(&id);
	txn = sr_admit(&id, path, name, hex);
	sr_apply(txn);
	ck_assert_int_eq(txn->updates[0].status, REFD_OK);
	sr_done_with(txn);
}

static void update(const char *name, const char *hex)
{
	update_in(sr_repo, name, hex);
}

/* r.git has a and b, made by refd. Logs are kept. */
static void setup(void)
{
	char *out;

	sr_setup();
	vh_reset();
	/* The file outlives the store. */
	out = tmp_output("GIT_DIR=r.git GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a "
			 "GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a "
			 "git commit-tree -m y %s^{tree}",
	    sr_commit);
	memcpy(older, out, 40);
	free(out);
	tmp_run("git -C r.git config core.logAllRefUpdates true && "
		"git config --global user.name a && "
		"git config --global user.email a@b");
	update("refs/heads/a", older);
	update("refs/heads/a", sr_commit);
	update("refs/heads/b", sr_commit);
}

static void teardown(void)
{
	sr_teardown();
}

CASE(.setup = setup, .teardown = teardown, .seconds = 120);

TEST(all_stands)
{
	FINDS(0);
	update("refs/heads/b", zeroes);
	tmp_run("git -C r.git pack-refs --all");
	FINDS(0);
	sr_close();
	FINDS(0);
	sr_open();
	update("refs/heads/b", older);
	FINDS(0);
}

TEST(another_later)
{
	tmp_run("git -C r.git update-ref refs/heads/a %s", older);
	tmp_run("git -C r.git branch -q -D b");
	sr_close();
	FINDS(1);
	HAS("ref-gone refs/heads/b", sr_commit);
	tmp_run("git -C r.git pack-refs --all");
	FINDS(1);
	/* Moved back, and as a symbolic ref. */
	tmp_run("git -C r.git symbolic-ref refs/heads/b refs/heads/a");
	FINDS(0);
}

TEST(older_files)
{
	sr_close();
	tmp_run("cd r.git/refs/heads && echo %s >a && "
		"touch -d '1 hour ago' a && rm b",
	    older);
	FINDS(4);
	HAS("journal-disagrees refs/heads/a", sr_commit);
	HAS("log-disagrees refs/heads/a", older);
	HAS("ref-lost refs/heads/b", sr_commit);
	HAS("log-orphan refs/heads/b", "");
	/* A value that was packed earlier. */
	tmp_run("cd r.git && rm refs/heads/a logs/refs/heads/* && "
		"echo '%s refs/heads/a' >packed-refs",
	    older);
	FINDS(2);
	HAS("ref-gone refs/heads/b", sr_commit);
	HAS("ref-returned refs/heads/a", older);
	tmp_run("cd r.git && touch -d '1 hour ago' packed-refs");
	FINDS(2);
	HAS("journal-disagrees refs/heads/a", sr_commit);
}

/* As by `git pack-refs --auto`, which read the refs before refd moved a, and
 * deleted b, and wrote packed-refs afterwards. */
static void pack_stale(void)
{
	tmp_run("cd r.git && rm -f refs/heads/a refs/heads/b && "
		"printf '# pack-refs with: peeled fully-peeled sorted \n"
		"%s refs/heads/a\n%s refs/heads/b\n' >new && "
		"mv new packed-refs",
	    older, sr_commit);
}

TEST(returned)
{
	update("refs/heads/b", zeroes);
	pack_stale();
	vh_ahead_ns = 3600 * INT64_C(1000000000);
	FINDS(3);
	HAS("log-disagrees refs/heads/a", sr_commit);
	HAS("ref-returned refs/heads/a", older);
	HAS("ref-returned refs/heads/a", "record 2 replaced");
	HAS("ref-returned refs/heads/b", sr_commit);
	HAS("ref-returned refs/heads/b",
	    "'refd restore --at 4 --undo-git --force --ref refs/heads/b'");
	/* No log tells more, and no daemon runs. */
	tmp_run("rm -r r.git/logs/refs");
	sr_close();
	FINDS(2);
	HAS("ref-returned refs/heads/a", "--at 2 --undo-git --ref");
	HAS("ref-returned refs/heads/b", sr_commit);
	/* Somebody says through refd that the value is right. */
	sr_open();
	update("refs/heads/a", older);
	FINDS(1);
	HAS("ref-returned refs/heads/b", sr_commit);
	/* A loose ref counts, and is never in doubt. */
	tmp_run("cd r.git && mkdir -p refs/heads && echo %s >refs/heads/b",
	    sr_commit);
	FINDS(0);
}

/* Git has a log, and so tells of a writer. */
TEST(written_again)
{
	update("refs/heads/b", zeroes);
	tmp_run("cd r.git && git update-ref refs/heads/a %s && "
		"git update-ref refs/heads/b %s && git pack-refs --all",
	    older, sr_commit);
	FINDS(0);
}

TEST(deleted_and_there)
{
	update("refs/heads/b", zeroes);
	sr_close();
	tmp_run("cd r.git/refs/heads && echo %s >b", older);
	FINDS(0);
	tmp_run("cd r.git/refs/heads && touch -d '1 hour ago' b");
	FINDS(1);
	HAS("journal-disagrees refs/heads/b", "its deletion");
}

/* A daemon may be about to publish the update, or to take it back. */
TEST(just_recorded)
{
	tmp_run("cd r.git/refs/heads && rm ../../logs/refs/heads/* && "
		"echo %s >a && touch -d '1 hour ago' a",
	    older);
	FINDS(0);
	vh_ahead_ns = 3600 * INT64_C(1000000000);
	FINDS(1);
	HAS("journal-disagrees refs/heads/a", sr_commit);
}

/* However few fit: one repository stays in memory. */
TEST(more_than_fit)
{
	char name[64];
	int i;

	vh_opt.fold_bytes = 3 * REF_BYTES;
	for (i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "refs/heads/n%d", i);
		update(name, sr_commit);
	}
	sr_close();
	FINDS(0);
	tmp_run("cd r.git && rm -r logs/refs && cd refs/heads && rm -r n*");
	FINDS(40);
	for (i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "ref-gone refs/heads/n%d", i);
		HAS(name, sr_commit);
	}
}

/* A row that REFERS_TO another one. Returns the LSN. */
static uint64_t commit_row(enum journal_kind kind, uint64_t refers_to,
    const char *name)
{
	static uint8_t repo_id = 1;
	struct record_member m = { .name = name,
		.worktree = "",
		.status = REFD_OK,
		.action = RECORD_WRITE };
	struct record rec = { .committer = "a <a> 0 +0000",
		.message = "",
		.members = &m,
		.nr_members = 1,
		.nr_updates = 1 };
	struct journal_row row = { .kind = kind,
		.repo = repo_id,
		.refers_to = refers_to,
		.final = true };
	struct journal *j = help_open(&sys_kernel, sr_state, NULL);
	uint8_t *body;

	refd_oid_parse(sr_commit, REFD_FORMAT_SHA1, &m.new_oid);
	body = record_encode(&rec, &row.len);
	row.body = body;
	refd_txid_make(&row.txid);
	ck_assert_int_eq(journal_commit(j, &row, 1, true), 0);
	free(body);
	ck_assert_int_eq(journal_close(j), 0);
	return row.lsn;
}

/* A lock as a crashed batch leaves it. */
static void make_lock(uint64_t batch, const char *ref)
{
	char name[TOKEN_NAME_MAX];

	token_name(name, batch, 0);
	tmp_run("cd r.git && : >refd/stage/%s && ln refd/stage/%s %s.lock",
	    name, name, ref);
}

TEST(what_awaits_recovery)
{
	sr_close();
	commit_row(JOURNAL_DEFERRED, 1, "refs/heads/p");
	FINDS(1);
	HAS("deferred refs/heads/p", "could not be redone");
	commit_row(JOURNAL_SLICE, 0, "refs/heads/p");
	/* In this state, a missing value is expected and must not be
	 * repaired. */
	tmp_run(": >r.git/refs/heads/a");
	make_lock(77, "refs/heads/b");
	ck_assert_uint_eq(vh_repair("r.git"), 4);
	HAS("awaits-recovery ", "no daemon runs");
	HAS("deferred refs/heads/p", "");
	HAS("ref-broken refs/heads/a", "empty");
	ck_assert(vh_did("ref-broken refs/heads/a", "recovery comes first"));
	/* The lock tells recovery that the update is unfinished. */
	ck_assert(vh_did("lock-of-refd refs/heads/b", "recovery comes first"));
	tmp_run("test -e r.git/refs/heads/b.lock");
}

/* Recovery deferred the row, and later gave the copy up. */
TEST(a_deferred_update_given_up)
{
	uint64_t row, copy;
	struct journal *j;

	sr_close();
	row = commit_row(JOURNAL_SLICE, 0, "refs/heads/p");
	copy = commit_row(JOURNAL_DEFERRED, row, "refs/heads/p");
	commit_row(JOURNAL_DEFERRED_END, copy, "refs/heads/p");
	j = help_open(&sys_kernel, sr_state, NULL);
	ck_assert_int_eq(journal_forget(j, copy, true), 0);
	help_close(j);
	FINDS(1);
	HAS("ref-gone refs/heads/p", sr_commit);
	commit_row(JOURNAL_ABORT, copy, "refs/heads/p");
	FINDS(0);
}

/* The newer rows are right, and are compared. */
TEST(a_damaged_row)
{
	char path[4200];
	sqlite3 *db;

	sr_close();
	snprintf(path, sizeof(path), "%s/journal.db", sr_state);
	ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(db,
			     "UPDATE record SET time_us = 7 WHERE lsn = 2",
			     NULL, NULL, NULL),
	    SQLITE_OK);
	sqlite3_close(db);
	tmp_run("rm r.git/refs/heads/[ab] r.git/logs/refs/heads/[ab]");
	FINDS(2);
	HAS("journal-damaged ", "record 2 is not what was written");
	HAS("ref-gone refs/heads/b", sr_commit);
	commit_row(JOURNAL_SLICE, 0, "refs/heads/p");
	FINDS(2);
	HAS("journal-damaged ", "record 2 is not what was written");
	HAS("awaits-recovery ", "no daemon runs");
}

/* ---- many repositories ---- */

#define MANY 4

/* Each has a, b and c. c was moved, by two rows of the journal. */
static void make_many(void)
{
	char path[4200];
	int i;

	for (i = 0; i < MANY; i++) {
		tmp_run("cp -r r.git r%d.git && rm -r r%d.git/refd", i, i);
		snprintf(path, sizeof(path), "%s/r%d.git", tmp_root, i);
		update_in(path, "refs/heads/c", older);
		update_in(path, "refs/heads/c", sr_commit);
	}
}

static void nothing_is_found(void)
{
	char name[32];
	int i;

	for (i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "r%d.git", i);
		ck_assert_msg(vh_look(name) == 0, "%s:%s", name, vh_lines());
	}
}

TEST(one_reading_for_many)
{
	struct verify_rows *rows = verify_rows_new(&vh_opt, false);
	uint64_t last = 3 + 2 * MANY;

	make_many();
	vh_opt.rows = rows;
	nothing_is_found();
	/* Rows that came since then are right, and are read alone. */
	update("refs/heads/a", older);
	update("refs/heads/new", older);
	FINDS(0);
	nothing_is_found();
	sr_close();
	tmp_run("rm r3.git/refs/heads/c r3.git/logs/refs/heads/c && "
		"rm r.git/refs/heads/new r.git/logs/refs/heads/new");
	FINDS(1);
	HAS("ref-gone refs/heads/new", older);
	ck_assert_uint_eq(vh_look("r3.git"), 1);
	HAS("ref-gone refs/heads/c", sr_commit);
	/* A row that was read is taken back: the one before counts. */
	commit_row(JOURNAL_ABORT, last, "refs/heads/c");
	ck_assert_uint_eq(vh_look("r3.git"), 1);
	HAS("ref-gone refs/heads/c", older);
	ck_assert_uint_eq(rows->nr_reads, 1);
	ck_assert_uint_eq(rows->nr_rows, last);
	vh_opt.rows = NULL;
	verify_rows_free(rows);
}

/* Recovery has forgotten rows that awaited it when the journal was opened. */
TEST(recovered_meanwhile)
{
	struct verify_rows *rows = verify_rows_new(&vh_opt, false);

	sr_close();
	commit_row(JOURNAL_SLICE, 0, "refs/heads/p");
	vh_opt.rows = rows;
	FINDS(1);
	HAS("awaits-recovery ", "no daemon runs");
	sr_open();
	sr_close();
	FINDS(0);
	vh_opt.rows = NULL;
	verify_rows_free(rows);
}

/* Then the journal is read for some repositories at a time. */
TEST(many_that_do_not_fit)
{
	struct verify_rows *rows = verify_rows_new(&vh_opt, false);

	make_many();
	vh_opt.fold_bytes = 2 * (REF_BYTES + REPO_BYTES);
	vh_opt.rows = rows;
	nothing_is_found();
	ck_assert_uint_gt(rows->nr_reads, 1);
	ck_assert_uint_le(rows->nr_reads, MANY);
	ck_assert_uint_le(rows->fold.bytes, 3 * (REF_BYTES + REPO_BYTES));
	nothing_is_found();
	tmp_run("rm r0.git/refs/heads/c r0.git/logs/refs/heads/c");
	sr_close();
	ck_assert_uint_eq(vh_look("r0.git"), 1);
	HAS("ref-gone refs/heads/c", sr_commit);
	vh_opt.rows = NULL;
	verify_rows_free(rows);
}

/* The bound counts bytes, not refs: a long name takes the room of many short
 * ones. */
TEST(long_names)
{
	struct verify_rows *rows;
	char name[256], path[4200];
	int i, is_long;

	make_many();
	/* As many refs. */
	vh_opt.fold_bytes = 10 * REF_BYTES + MANY * REPO_BYTES;
	for (is_long = 0; is_long < 2; is_long++) {
		for (i = 0; i < MANY && is_long; i++) {
			snprintf(name, sizeof(name), "refs/heads/%0200d", i);
			snprintf(path, sizeof(path), "%s/r%d.git", tmp_root, i);
			update_in(path, name, sr_commit);
			update_in(path, name, zeroes);
			update_in(path, "refs/heads/c", sr_commit);
		}
		rows = verify_rows_new(&vh_opt, false);
		vh_opt.rows = rows;
		nothing_is_found();
		ck_assert_uint_ge(rows->nr_reads, 1 + (unsigned)is_long);
		ck_assert_uint_le(rows->nr_reads, 1 + MANY * (unsigned)is_long);
		vh_opt.rows = NULL;
		verify_rows_free(rows);
	}
}

/* The reading of the journal that fails; 0: none. */
static unsigned fails_at;

static int open_or_fail(const struct sys *sys, int dirfd, const char *path,
    int flags, mode_t mode)
{
	const size_t len = strlen(path);

	if (len > 4 && strcmp(path + len - 4, "-wal") == 0 && fails_at > 0 &&
	    --fails_at == 0)
		return -EIO;
	return sys_kernel.openat(sys, dirfd, path, flags, mode);
}

/* The rows come in several readings. One of them fails, and the next
 * repository has all of them. */
TEST(a_reading_that_fails)
{
	struct verify_rows *rows = verify_rows_new(&vh_opt, false);
	struct sys calls = *vh_opt.sys;
	unsigned at = 0, i;
	bool was_hit;

	calls.openat = open_or_fail;
	vh_opt.sys = &calls;
	vh_opt.rows = rows;
	tmp_run("git -C r.git config core.logAllRefUpdates false && "
		"rm -r r.git/logs");
	do {
		update("refs/heads/b", sr_commit);
		FINDS(0);
		update("refs/heads/b", zeroes);
		for (i = 0; i < 260; i++)
			update("refs/heads/c", i % 2 == 0 ? older : sr_commit);
		fails_at = ++at;
		vh_look("r.git");
		was_hit = fails_at == 0;
		fails_at = 0;
		if (was_hit)
			HAS("journal-unreadable ", "");
		ck_assert_msg(!vh_has("ref-gone refs/heads/b", ""), "%u:%s", at,
		    vh_lines());
		FINDS(0);
	} while (was_hit);
	ck_assert_uint_gt(at, 4);
	vh_opt.rows = NULL;
	verify_rows_free(rows);
	vh_reset();
}

/* The look at an open file at which the daemon goes on; 0: at none. */
static unsigned stop_at;

static int fstat_and_stop(const struct sys *sys, int fd, struct sys_stat *st)
{
	if (stop_at > 0 && --stop_at == 0)
		tmp_run("touch state/journal.db");
	return sys_kernel.fstat(sys, fd, st);
}

/* The command is stopped in any place for longer than the daemon waits, and
 * reads again. */
TEST(stopped_while_it_reads)
{
	struct verify_rows *rows;
	struct sys calls = *vh_opt.sys;
	unsigned at = 0, again = 0;
	bool was_hit;
	size_t found;

	calls.fstat = fstat_and_stop;
	vh_opt.sys = &calls;
	do {
		rows = verify_rows_new(&vh_opt, false);
		vh_opt.rows = rows;
		stop_at = ++at;
		found = vh_look("r.git");
		was_hit = stop_at == 0;
		stop_at = 0;
		if (found > 0)
			HAS("journal-unreadable ", "");
		ck_assert_uint_le(found, 1);
		again += found == 0 && rows->nr_reads > 1;
		vh_opt.rows = NULL;
		verify_rows_free(rows);
	} while (was_hit);
	ck_assert_uint_gt(again, 0);
	vh_reset();
}

TEST(locks_of_ours)
{
	uint64_t this_start = 1;

	make_lock(this_start << JOURNAL_TOKEN_BITS | 77, "refs/heads/a");
	FINDS(0);
	make_lock(77, "refs/heads/b");
	FINDS(1);
	HAS("lock-of-refd refs/heads/b", "ended");
	ck_assert_uint_eq(vh_repair("r.git"), 1);
	ck_assert(vh_did("lock-of-refd refs/heads/b", "a daemon"));
	sr_close();
	FINDS(2);
	HAS("lock-of-refd refs/heads/a", "ended");
	ck_assert_uint_ge(vh_repair("r.git"), 1);
	tmp_run("test -z \"$(find r.git -name '*.lock')\"");
	FINDS(0);
}

TEST(other_journals)
{
	sr_close();
	tmp_run("mv state old && mkdir state");
	FINDS(1);
	HAS("journal-unreadable ", "not looked at");
	sr_open();
	FINDS(1);
	HAS("journal-other refd/id", "is another");
	sr_close();
	tmp_run("rm -r state && mv old state && "
		"sed -i 's/^lsn.*/lsn 00000000000000009999/' "
		"r.git/refd/checkpoint");
	FINDS(1);
	HAS("journal-older refd/checkpoint", "9999");
	tmp_run(
	    "rm r.git/refd/checkpoint && sed -i 's/^uuid ./uuid 0/;"
	    "s/^\\(uuid .\\)./\\10/;s/^\\(uuid ..\\)./\\10/' r.git/refd/id");
	FINDS(1);
	HAS("journal-unknown refd/id", "does not know");
	tmp_put("r.git/refd/id", "uuid\n");
	FINDS(1);
	HAS("id-broken refd/id", "not what refd wrote");
	tmp_run("rm r.git/refd/id");
	FINDS(0);
}

/* Sets the group LSN of the row at LSN, with the right checksum. */
static int forge(void *arg, const struct journal_row *from)
{
	const uint64_t *shared_lsn = arg;
	struct journal_row row = *from;
	char sql[128], path[4200];
	sqlite3 *db;

	row.shared_lsn = *shared_lsn;
	snprintf(path, sizeof(path), "%s/journal.db", sr_state);
	snprintf(sql, sizeof(sql),
	    "UPDATE record SET group_lsn = %llu, checksum = %lu"
	    " WHERE lsn = %llu",
	    (unsigned long long)row.shared_lsn,
	    (unsigned long)journal_checksum(&row), (unsigned long long)row.lsn);
	ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	return 1;
}

static void set_group_lsn(uint64_t lsn, uint64_t shared_lsn)
{
	const struct journal_config cfg = { .sys = &sys_kernel,
		.dir = sr_state,
		.boot_id = HELP_BOOT };
	struct journal *j;
	char *why;

	ck_assert_int_eq(journal_view(&cfg, &j, &why), 0);
	/* The view notices. */
	ck_assert_int_eq(journal_scan(j, lsn - 1, forge, &shared_lsn), -EAGAIN);
	journal_view_close(j);
}

TEST(wrong_lsns_of_a_group)
{
	static const uint8_t uuid[16] = "a group";
	struct journal_row rows[] = { help_row(1, 16), help_row(2, 16) };
	struct journal *j;
	uint64_t last;

	sr_close();
	j = help_open(&sys_kernel, sr_state, NULL);
	journal_set_shared(j, uuid);
	rows[0].repo = rows[1].repo = 0;
	rows[0].shared_lsn = 1;
	rows[1].shared_lsn = 2;
	ck_assert_int_eq(journal_commit(j, rows, 2, true), 0);
	last = rows[1].lsn;
	help_close(j);
	FINDS(0);
	set_group_lsn(last, 3);
	FINDS(1);
	HAS("journal-group ",
	    "has LSN 3 of the group: the record before has "
	    "1, and the journal 2");
	set_group_lsn(last, 1);
	FINDS(1);
	HAS("journal-group ", "has LSN 1 of the group");
	set_group_lsn(last, 2);
	FINDS(0);
	help_row_done(&rows[0]);
	help_row_done(&rows[1]);
}
