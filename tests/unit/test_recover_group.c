/*
 * Proves that recovery in the journal of a group of nodes gives up no update on
 * this node alone. If an update would be left, dropped or deferred, recovery
 * fails, names the ref, and fails again at the next start, until the cause is
 * gone. The updates of a missing repository wait for it. Ordinary recovery
 * works as on a single machine. The owner of one repository can't pass it off
 * as an older copy of all. A log line that can't be written stops no start.
 */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/store/recovery/recover_internal.h"
#include "tests/lib/scripted_txn.h"
#include "tests/lib/suite.h"
#include "tests/lib/world_rig.h"

#define REF   WORLD_REPO "/refs/heads/x"
#define OTHER "/srv/other.git"
#define AWAY  "/srv/away.git"
#define TWOS  "2222222222222222222222222222222222222222\n"

/* From now on the journal is a group's. */
static void join(void)
{
	static const uint8_t uuid[16] = "a group";
	struct journal_row row = { .kind = JOURNAL_SLICE,
		.body = (const uint8_t *)"",
		.shared_lsn = 1 };

	journal_set_shared(w->store.journal, uuid);
	ck_assert_int_eq(journal_commit(w->store.journal, &row, 1, true), 0);
}

static void setup(void)
{
	wr_setup_apart();
	join();
}

/* Twice: the evidence stays. */
static void refuses(enum store_finding finding, const char *ref)
{
	char place[256];
	int i;

	snprintf(place, sizeof(place),
	    "'" WORLD_REPO "'%s%s: ", ref[0] != '\0' ? " " : "", ref);
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(world_start(w), -ENOTRECOVERABLE);
		ck_assert_msg(w->found[finding] >= 1, "%d", finding);
		ck_assert_msg(strncmp(w->why, place, strlen(place)) == 0, "%s",
		    w->why);
		ck_assert_ptr_nonnull(
		    strstr(w->why, store_finding_name(finding)));
	}
}

static void starts(void)
{
	ck_assert_int_eq(world_start(w), 0);
	ck_assert_str_eq(w->why, "");
	ck_assert_uint_eq(w->deferred, 0);
	ck_assert_int_eq(world_ref(w, "x"), '1');
	wr_expect_locks("");
}

START_TEST(a_lost_value_is_redone)
{
	wr_ok("x=1");
	wr_power_loss(MEMFS_DATA_NONE, 0);
	starts();
	ck_assert_uint_eq(w->found[STORE_REDONE], 1);
}
END_TEST

START_TEST(a_later_foreign_write)
{
	wr_ok("x=1");
	wr_ok("y=1");
	scripted_git_writes(w, REF, TWOS);
	scripted_sync(w);
	wr_power_loss(MEMFS_DATA_NONE, 0);
	refuses(STORE_LEFT, "refs/heads/x");
	world_write(w->fs, REF, "@1\n");
	starts();
	ck_assert_int_eq(world_ref(w, "y"), '1');
}
END_TEST

START_TEST(a_foreign_lock)
{
	wr_ok("x=1");
	memfs_write(w->fs, REF ".lock", "");
	wr_power_loss(MEMFS_DATA_NONE, 0);
	memfs_write(w->fs, REF ".lock", "");
	refuses(STORE_DEFERRED, "refs/heads/x");
	wr_unlink(REF ".lock");
	starts();
}
END_TEST

/* No abort record is written, and the locks stay. */
START_TEST(a_name_that_was_taken_before_a_crash)
{
	struct record_member m =
	    scripted_member(RECORD_WRITE, "refs/heads/x", '0', '1');
	struct scripted_txn h = { .w = w };

	m.answers = true;
	ck_assert_int_eq(scripted_apply(&h, &m, 1), -EAGAIN);
	memfs_write(w->fs, REF "/z", TWOS);
	memfs_crash(w->fs);
	world_crash(w);
	refuses(STORE_DROPPED, "refs/heads/x");
	ck_assert(memfs_exists(w->fs, REF ".lock"));
	wr_unlink(REF "/z");
	starts();
	ck_assert_int_eq(scripted_status(&h, 0), REFD_OK);
}
END_TEST

static int commit_then_die(void *arg, struct journal_row *rows, size_t nr,
    bool flush)
{
	int r = journal_commit(w->store.journal, rows, nr, flush);

	(void)arg;
	memfs_write(w->fs, REF "/z", TWOS);
	memfs_crash_at(w->fs, 0);
	return r;
}

START_TEST(an_atomic_transaction_whose_name_was_taken)
{
	w->store.pipeline->applier.commit = commit_then_die;
	world_done(w, world_apply(w, "x=1;y=1", true));
	memfs_crash(w->fs);
	world_crash(w);
	refuses(STORE_DROPPED, "refs/heads/x");
	wr_unlink(REF "/z");
	starts();
	ck_assert_int_eq(world_ref(w, "y"), '1');
}
END_TEST

static int import_then_die(void *arg, struct journal_row *rows, size_t nr,
    bool flush)
{
	memfs_write(w->fs, WORLD_REPO "/packed-refs",
	    "# pack-refs with: peeled fully-peeled sorted \n"
	    "3131313131313131313131313131313131313131 refs/heads/y\n");
	return commit_then_die(arg, rows, nr, flush);
}

/* The row of an import has no old values, and its refs were there before. */
START_TEST(an_import_whose_name_was_taken)
{
	w->store.pipeline->applier.commit = import_then_die;
	world_done(w, world_apply(w, "x=1;y=1", true));
	memfs_crash(w->fs);
	world_crash(w);
	refuses(STORE_DROPPED, "refs/heads/x");
	ck_assert_int_eq(world_ref(w, "y"), '1');
}
END_TEST

/* ---- log lines: each node has logs of its own ---- */

#define LOG       WORLD_REPO "/logs/refs/heads/x"
#define HEAD_LOCK WORLD_REPO "/HEAD.lock"

/* After the power loss, x has its value, and its log is lost. */
static void lose_log(void)
{
	wr_ok("x=1");
	scripted_sync(w);
	wr_unlink(LOG);
	scripted_sync(w);
	wr_power_loss(MEMFS_DATA_NONE, 0);
}

/* Each start goes on, and keeps one line for later ones. */
static void keeps_line(const char *locks)
{
	int i;

	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(world_start(w), 0);
		ck_assert_uint_eq(w->found[STORE_DEFERRED], 1);
		ck_assert_uint_eq(w->deferred, 1);
		ck_assert_int_eq(world_ref(w, "x"), '1');
		wr_expect_locks(locks);
		memfs_crash(w->fs);
		world_crash(w);
	}
}

/* The quota of its owner is full. */
START_TEST(a_log_without_room)
{
	lose_log();
	memfs_set_room(w->fs, wr_home, 0, -1);
	keeps_line("");
	ck_assert_int_eq(world_log_count(w, "x", '0', '1'), 0);
	memfs_set_room(w->fs, wr_home, -1, -1);
	starts();
	ck_assert_int_eq(world_log_count(w, "x", '0', '1'), 1);
}
END_TEST

START_TEST(a_log_whose_name_was_taken)
{
	lose_log();
	memfs_write(w->fs, LOG "/z", "");
	starts();
	ck_assert_uint_eq(w->found[STORE_LEFT], 1);
}
END_TEST

/* The line of HEAD follows from the update of x. */
START_TEST(a_foreign_lock_on_a_log)
{
	struct record_member m[] = { scripted_member(RECORD_LOG, "HEAD", '0',
					 '1'),
		scripted_member(RECORD_WRITE, "refs/heads/x", '0', '1') };
	struct scripted_txn h = { .w = w, .publish = SCRIPTED_ALL };

	ck_assert_int_eq(SCRIPTED_APPLY(&h, m), 0);
	wr_power_loss(MEMFS_DATA_NONE, 0);
	memfs_write(w->fs, HEAD_LOCK, "");
	keeps_line(HEAD_LOCK "\n");
	wr_unlink(HEAD_LOCK);
	starts();
	ck_assert_int_eq(
	    scripted_log_lines(w, WORLD_REPO "/logs/HEAD", '0', '1'), 1);
}
END_TEST

/* ---- repositories ---- */

/* A program may have removed or renamed it. Nobody sees its refs before the
 * redo. */
START_TEST(a_missing_repository)
{
	wr_ok("x=1");
	wr_power_loss(MEMFS_DATA_NONE, 0);
	wr_rename(WORLD_REPO, AWAY);
	ck_assert_int_eq(world_start(w), 0);
	ck_assert_uint_eq(w->found[STORE_REPO_MISSING], 1);
	ck_assert_uint_eq(w->deferred, 1);
	wr_rename(AWAY, WORLD_REPO);
	memfs_write(w->fs, REF ".lock", "");
	ck_assert_int_eq(world_retry(w), -ENOTRECOVERABLE);
	ck_assert_int_eq(world_retry(w), -ENOTRECOVERABLE);
	wr_unlink(REF ".lock");
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->deferred, 0);
	ck_assert_int_eq(world_ref(w, "x"), '1');
}
END_TEST

/* As before, and the start after that is on time. */
START_TEST(a_missing_repository_comes_back)
{
	wr_ok("x=1");
	wr_power_loss(MEMFS_DATA_NONE, 0);
	wr_rename(WORLD_REPO, AWAY);
	ck_assert_int_eq(world_start(w), 0);
	wr_rename(AWAY, WORLD_REPO);
	if (_i > 0)
		memfs_write(w->fs, REF ".lock", "");
	memfs_crash(w->fs);
	world_crash(w);
	if (_i > 0) {
		refuses(STORE_DEFERRED, "refs/heads/x");
		wr_unlink(REF ".lock");
	}
	starts();
}
END_TEST

static void make_other(void)
{
	memfs_mkdirs(w->fs, OTHER "/refs/heads");
	memfs_mkdirs(w->fs, OTHER "/objects/pack");
	memfs_write(w->fs, OTHER "/HEAD", "ref: refs/heads/main\n");
	memfs_write(w->fs, OTHER "/config", "[core]\n\tbare = true\n");
}

/* The first finding stops no other: each repository has one. */
START_TEST(all_repositories)
{
	struct record_member m =
	    scripted_member(RECORD_WRITE, "refs/heads/x", '0', '1');
	struct scripted_txn h = { .w = w }, other = { .w = w, .repo = OTHER };

	make_other();
	ck_assert_int_eq(scripted_apply(&h, &m, 1), -EAGAIN);
	ck_assert_int_eq(scripted_apply(&other, &m, 1), -EAGAIN);
	memfs_write(w->fs, REF "/z", TWOS);
	memfs_crash(w->fs);
	world_crash(w);
	wr_rename(OTHER, AWAY);
	refuses(STORE_DROPPED, "refs/heads/x");
	ck_assert_uint_eq(w->found[STORE_REPO_MISSING], 1);
	wr_rename(AWAY, OTHER);
	wr_unlink(REF "/z");
	starts();
	ck_assert(memfs_exists(w->fs, OTHER "/refs/heads/x"));
}
END_TEST

/* The other nodes have the object. A node that refused to start would serve no
 * other repository. */
START_TEST(a_damaged_object)
{
	wr_ok("x=1");
	wr_ok("x=p:1");
	wr_ok("y=1");
	wr_power_loss(MEMFS_DATA_NONE, 0);
	ck_assert_int_eq(world_start(w), 0);
	ck_assert_uint_eq(w->found[STORE_OBJECT_LACKING], 1);
	ck_assert_int_eq(world_ref(w, "x"), 'p');
	ck_assert_int_eq(world_ref(w, "y"), '1');
	wr_expect_locks("");
}
END_TEST

START_TEST(an_object_pruned_since)
{
	wr_ok("x=p");
	wr_ok("-x");
	wr_ok("x=1");
	wr_power_loss(MEMFS_DATA_NONE, 0);
	starts();
	ck_assert_uint_eq(w->found[STORE_OBJECT_LACKING], 0);
}
END_TEST

/* The file stays, so that the next start fails as well. */
START_TEST(a_malformed_packed_refs)
{
	wr_ok("x=1");
	memfs_write(w->fs, WORLD_REPO "/packed-refs", "torn");
	scripted_sync(w);
	wr_power_loss(MEMFS_DATA_NONE, 0);
	refuses(STORE_CORRUPT, "packed-refs");
	wr_expect_file(WORLD_REPO "/packed-refs", "torn");
	wr_unlink(WORLD_REPO "/packed-refs");
	starts();
}
END_TEST

/* One that was deferred before the node joined its group. */
START_TEST(a_deferred_record)
{
	world_free(w);
	wr_setup_apart();
	wr_ok("x=1");
	wr_power_loss(MEMFS_DATA_NONE, 0);
	memfs_write(w->fs, REF ".lock", "");
	wr_start();
	ck_assert_uint_eq(w->deferred, 1);
	join();
	memfs_crash(w->fs);
	world_crash(w);
	refuses(STORE_DEFERRED, "refs/heads/x");
	wr_unlink(REF ".lock");
	starts();
}
END_TEST

/* No update awaits the redo there, so its owner can't stop the node. */
START_TEST(a_repository_that_can_not_be_opened)
{
	struct record_member m =
	    scripted_member(RECORD_WRITE, "refs/heads/x", '0', '1');
	struct scripted_txn other = { .w = w,
		.repo = OTHER,
		.publish = SCRIPTED_ALL };

	make_other();
	ck_assert_int_eq(scripted_apply(&other, &m, 1), 0);
	ck_assert_int_eq(world_checkpoint(w), 0);
	ck_assert_int_eq(world_checkpoint(w), 0);
	wr_ok("x=1");
	wr_unlink(OTHER "/refd/lock");
	memfs_mkdirs(w->fs, OTHER "/refd/lock");
	scripted_sync(w);
	wr_power_loss(MEMFS_DATA_NONE, 0);
	starts();
	ck_assert_uint_eq(w->found[STORE_FAILED], 1);
}
END_TEST

#define HOUR_NS (INT64_C(3600) * 1000000000)

/* An older value of an older time, while the other repository is right. If it
 * has the same owner, the repositories are an older copy. Otherwise its owner
 * may have written both, and stops no node. */
START_TEST(an_owner_alone_stops_no_node)
{
	struct record_member m =
	    scripted_member(RECORD_WRITE, "refs/heads/x", '0', '1');
	struct scripted_txn other = { .w = w,
		.repo = OTHER,
		.publish = SCRIPTED_ALL };

	make_other();
	wr_ok("x=1");
	wr_ok("x=2");
	ck_assert_int_eq(scripted_apply(&other, &m, 1), 0);
	ck_assert_int_eq(world_stop(w), 0);
	memfs_shift_wall(w->fs, -HOUR_NS);
	world_write(w->fs, REF, "@1\n");
	memfs_shift_wall(w->fs, HOUR_NS);
	if (_i == 0) {
		ck_assert_int_eq(world_start(w), -ENOTRECOVERABLE);
		ck_assert_ptr_nonnull(strstr(w->why, "an older copy"));
	} else {
		memfs_set_owner(w->fs, OTHER "/refs", 1001, 1001);
		ck_assert_int_eq(seteuid(65534), 0);
		ck_assert_int_eq(world_start(w), 0);
		ck_assert_int_eq(seteuid(getuid()), 0);
	}
	ck_assert_uint_eq(w->found[STORE_LEFT], 1);
}
END_TEST

/* Neither does the running store write such rows. */
START_TEST(no_row_defers_or_aborts)
{
	struct record_member m =
	    scripted_member(RECORD_WRITE, "refs/heads/x", '0', '1');
	bool no = false;
	const struct replay_row row = { .rec = { .committer = "",
					    .message = "",
					    .nr_updates = 1,
					    .object_format = world_format(),
					    .members = &m,
					    .nr_members = 1 },
		.dropped = &no };
	struct replay_member failed = { &row, &m, REFD_CONFLICT, "" };
	const struct replay_members aborted = { &failed, 1, 1 };
	uint64_t last = journal_last_lsn(w->store.journal), nr = 0;
	struct recover_notes notes;
	int i, r;

	for (i = 0; i < 2; i++) {
		notes = (struct recover_notes){ .nr = 0 };
		r = i == 0 ? recover_notes_defer_row(&notes, &row, 0, &nr) :
			     recover_notes_abort(&notes, &aborted);
		ck_assert_int_eq(r, 0);
		ck_assert_int_eq(recover_notes_write(&notes, w->store.log),
		    -ENOTRECOVERABLE);
		recover_notes_done(&notes);
	}
	ck_assert_uint_eq(journal_last_lsn(w->store.journal), last);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("recover_group");
	TCase *tc = tcase_create("recover_group");

	tcase_add_checked_fixture(tc, setup, wr_teardown);
	tcase_add_test(tc, a_lost_value_is_redone);
	tcase_add_test(tc, a_later_foreign_write);
	tcase_add_test(tc, a_foreign_lock);
	tcase_add_test(tc, a_name_that_was_taken_before_a_crash);
	tcase_add_test(tc, an_atomic_transaction_whose_name_was_taken);
	tcase_add_test(tc, an_import_whose_name_was_taken);
	tcase_add_test(tc, a_log_without_room);
	tcase_add_test(tc, a_log_whose_name_was_taken);
	tcase_add_test(tc, a_foreign_lock_on_a_log);
	tcase_add_test(tc, a_missing_repository);
	tcase_add_loop_test(tc, a_missing_repository_comes_back, 0, 2);
	tcase_add_test(tc, all_repositories);
	tcase_add_test(tc, a_damaged_object);
	tcase_add_test(tc, an_object_pruned_since);
	tcase_add_test(tc, a_repository_that_can_not_be_opened);
	tcase_add_test(tc, a_malformed_packed_refs);
	tcase_add_test(tc, a_deferred_record);
	tcase_add_loop_test(tc, an_owner_alone_stops_no_node, 0, 2);
	tcase_add_test(tc, no_row_defers_or_aborts);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
