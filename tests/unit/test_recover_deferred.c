/*
 * Proves that deferred records cost nothing but themselves. All other records
 * are forgotten, and deferred records stay, whatever is forgotten later. A
 * deferred record counts once, even beside its original. Every record is redone
 * by the rule of the run that wrote it. A log line that found no room is
 * deferred, too, so a crash does not lose the line. A malformed packed-refs is
 * saved only under its lock, and if it is still malformed there.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/scripted_txn.h"
#include "tests/lib/suite.h"
#include "tests/lib/world_rig.h"

#define AWAY "/srv/away"

static int count_row(void *arg, const struct journal_row *row)
{
	(void)row;
	++*(unsigned *)arg;
	return 0;
}

static unsigned nr_deferred(void)
{
	unsigned nr = 0;

	ck_assert_int_eq(
	    journal_each_deferred(w->store.journal, 0, count_row, &nr), 0);
	return nr;
}

CASE(.setup = wr_setup_apart, .teardown = wr_teardown, .seconds = 60);

TEST(a_missing_repository_holds_nothing_back)
{
	uint64_t last;
	int i;

	wr_ok("x=1");
	wr_ok("y=1");
	wr_power_loss(MEMFS_DATA_NONE, 0);
	wr_rename(WORLD_REPO, AWAY);
	for (i = 0; i < 3; i++) {
		last = w->up ? journal_last_lsn(w->store.journal) : 0;
		if (i > 0)
			ck_assert_int_eq(scripted_crash(w), 0);
		else
			ck_assert_int_eq(world_start(w), 0);
		ck_assert_uint_eq(w->deferred, 2);
		ck_assert_uint_ge(journal_forgotten(w->store.journal), 2);
		/* A start that finds no new record writes no new row. */
		if (i > 0)
			ck_assert_uint_eq(journal_last_lsn(w->store.journal),
			    last);
		ck_assert_int_eq(journal_forget(w->store.journal,
				     journal_last_lsn(w->store.journal), true),
		    0);
		ck_assert_uint_eq(nr_deferred(), 2);
	}
	wr_rename(AWAY, WORLD_REPO);
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->deferred, 0);
	ck_assert_uint_eq(nr_deferred(), 0);
	ck_assert_int_eq(world_ref(w, "x"), '1');
	ck_assert_int_eq(world_ref(w, "y"), '1');
}

/* A retry drops the deferred rows. A later start reads no record of them: the
 * retry must sync the values first. */
TEST(a_retry_survives_a_power_loss, .times = 2)
{
	unsigned long n;
	bool hit = true;

	for (n = 0; hit; n++) {
		world_free(w);
		wr_setup_apart();
		wr_ok("x=1");
		wr_power_loss(MEMFS_DATA_NONE, 0);
		wr_rename(WORLD_REPO, AWAY);
		ck_assert_int_eq(world_start(w), 0);
		ck_assert_uint_eq(w->deferred, 1);
		wr_rename(AWAY, WORLD_REPO);
		scripted_sync(w);
		if (_i == 0) {
			memfs_power_loss_at(w->fs, n);
			world_retry(w);
		} else {
			memfs_crash(w->fs);
			world_crash(w);
			memfs_power_loss_at(w->fs, n);
			world_start(w);
		}
		hit = memfs_was_hit(w->fs);
		wr_power_loss_and_start(MEMFS_DATA_NONE, 0);
		ck_assert_uint_eq(w->deferred, 0);
		ck_assert_int_eq(world_ref(w, "x"), '1');
		ck_assert_int_eq(world_log_count(w, "x", '0', '1'), 1);
	}
	ck_assert_uint_gt(n, 5);
}

/* The daemon is killed at each change of the journal's disk in a start. */
TEST(a_row_and_its_copy_count_once)
{
	unsigned long n;
	bool hit = true;

	for (n = 0; hit; n++) {
		world_free(w);
		wr_setup_apart();
		world_stop_clock(w, true);
		wr_ok("x=1");
		wr_ok("x=2:1");
		memfs_write(w->fs, WORLD_REPO "/refs/heads/x.lock", "");
		wr_power_loss(MEMFS_DATA_NONE, 0);
		memfs_crash_at(w->fs, n);
		world_start(w);
		hit = memfs_was_hit(w->fs);
		memfs_crash(w->fs);
		world_crash(w);
		ck_assert_int_eq(SYS(memfs_other(w->fs), unlinkat, AT_FDCWD,
				     WORLD_REPO "/refs/heads/x.lock"),
		    0);
		ck_assert_int_eq(world_start(w), 0);
		ck_assert_uint_eq(w->deferred, 0);
		ck_assert_int_eq(world_ref(w, "x"), '2');
		ck_assert_int_eq(world_log_count(w, "x", '0', '1'), 1);
		ck_assert_int_eq(world_log_count(w, "x", '1', '2'), 1);
	}
	ck_assert_uint_gt(n, 5);
}

/* The lock is gone by then. A lock would tell the start that the update is
 * unfinished. */
TEST(a_line_that_found_no_room_is_not_lost, .times = 3)
{
	unsigned long n;
	bool hit = true;
	unsigned owed = 0;

	for (n = 0; hit; n++) {
		world_free(w);
		wr_setup_apart();
		wr_ok("x=1");
		hit = wr_fail_write("x=2:1", false, n, -ENOSPC);
		if (w->owed == 0)
			continue;
		owed++;
		ck_assert_int_eq(world_log_count(w, "x", '1', '2'), 0);
		if (_i == 2)
			ck_assert_int_eq(world_retry(w), 0);
		else if (_i == 1)
			wr_power_loss(MEMFS_DATA_NONE, 0);
		else
			memfs_crash(w->fs);
		if (_i < 2) {
			world_crash(w);
			ck_assert_int_eq(world_start(w), 0);
		}
		ck_assert_uint_eq(w->deferred, 0);
		ck_assert_int_eq(world_ref(w, "x"), '2');
		ck_assert_int_eq(world_log_count(w, "x", '0', '1'), 1);
		ck_assert_int_eq(world_log_count(w, "x", '1', '2'), 1);
		ck_assert_int_eq(scripted_crash(w), 0);
		ck_assert_int_eq(world_log_count(w, "x", '1', '2'), 1);
	}
	ck_assert_uint_ge(owed, 1);
}

static unsigned nr_commits;

static int commit_once(void *arg, struct journal_row *rows, size_t nr,
    bool flush)
{
	struct world *of = arg;

	if (nr_commits++ > 0)
		return -ENOSPC;
	return pipeline_commit(of->store.pipeline, rows, nr, flush);
}

/* The journal has no room for the deferred row either: then no checkpoint
 * forgets the update's own record. */
TEST(a_line_without_a_deferred_row_keeps_its_record)
{
	unsigned long n;
	bool hit = true;
	unsigned kept = 0;

	for (n = 0; hit; n++) {
		world_free(w);
		wr_setup_apart();
		wr_ok("x=1");
		nr_commits = 0;
		w->store.pipeline->applier.commit = commit_once;
		hit = wr_fail_write("x=2:1", false, n, -ENOSPC);
		if (nr_commits < 2)
			continue;
		kept++;
		ck_assert_uint_eq(w->owed, 0);
		ck_assert_int_eq(world_ref(w, "x"), '2');
		ck_assert_int_eq(world_log_count(w, "x", '1', '2'), 0);
		ck_assert_int_eq(world_checkpoint(w), 0);
		wr_power_loss_and_start(MEMFS_DATA_NONE, 0);
		ck_assert_int_eq(world_ref(w, "x"), '2');
		ck_assert_int_eq(world_log_count(w, "x", '0', '1'), 1);
		ck_assert_int_eq(world_log_count(w, "x", '1', '2'), 1);
	}
	ck_assert_uint_ge(kept, 1);
}

/* While there is no room, the line blocks no other work. */
TEST(a_line_waits_for_room)
{
	struct record_member m[] = { scripted_member(RECORD_LOG, "HEAD", '1',
					 '2'),
		scripted_member(RECORD_WRITE, "refs/heads/x", '1', '2') };
	struct scripted_txn h = { .w = w, .publish = SCRIPTED_ALL };

	SCRIPTED_APPLY(&h, m);
	wr_power_loss(MEMFS_DATA_NONE, 0);
	wr_rename(WORLD_REPO, AWAY);
	ck_assert_int_eq(world_start(w), 0);
	wr_rename(AWAY, WORLD_REPO);
	/* First the value's row, then the rows of the lines. */
	memfs_fail_call(w->fs, MEMFS_PWRITE, 1, -ENOSPC);
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert(memfs_was_hit(w->fs));
	ck_assert_uint_eq(w->deferred, 1);
	ck_assert_uint_eq(w->nr_still, 0);
	ck_assert_int_eq(world_ref(w, "x"), '2');
	wr_ok("x=3:2");
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->deferred, 0);
	ck_assert_int_eq(
	    scripted_log_lines(w, WORLD_REPO "/logs/HEAD", '1', '2'), 1);
}

/* ---- leftovers of an earlier run ---- */

static void assert_nothing_of_it(void)
{
	ck_assert(!memfs_exists(w->fs, WORLD_REPO "/packed-refs.new"));
	ck_assert(!memfs_exists(w->fs, WORLD_REPO "/packed-refs.lock"));
}

/* git would fail on this file for ever. */
TEST(no_packed_refs_new_is_left)
{
	unsigned long n;
	bool hit = true, seen = false;

	for (n = 0; hit; n++) {
		world_free(w);
		wr_setup_apart();
		memfs_write(w->fs, WORLD_REPO "/packed-refs",
		    "# pack-refs with: peeled fully-peeled sorted \n"
		    "3131313131313131313131313131313131313131 "
		    "refs/heads/x\n");
		memfs_crash_at(w->fs, n);
		world_done(w, world_apply(w, "-x:1", false));
		hit = memfs_was_hit(w->fs);
		seen =
		    seen || memfs_exists(w->fs, WORLD_REPO "/packed-refs.new");
		memfs_crash(w->fs);
		world_crash(w);
		ck_assert_int_eq(world_start(w), 0);
		assert_nothing_of_it();
	}
	ck_assert(seen);
	/* A file of another writer stays. */
	memfs_write(w->fs, WORLD_REPO "/packed-refs.new", "his");
	memfs_write(w->fs, WORLD_REPO "/packed-refs.lock", "");
	ck_assert_int_eq(scripted_crash(w), 0);
	ck_assert(memfs_holds(w->fs, WORLD_REPO "/packed-refs.new", "his"));
}

/* The directory of the log is removed, so its name is free again. */
TEST(no_log_of_what_never_was_is_left)
{
	unsigned long n;
	bool hit = true;

	for (n = 0; hit; n++) {
		world_free(w);
		wr_setup_apart();
		memfs_crash_at(w->fs, n);
		world_done(w, world_apply(w, "a/b=1:0", false));
		hit = memfs_was_hit(w->fs);
		memfs_crash(w->fs);
		world_crash(w);
		ck_assert_int_eq(world_start(w), 0);
		if (world_ref(w, "a/b") == '1')
			continue;
		wr_ok("a=1:0");
		ck_assert_int_eq(world_ref(w, "a"), '1');
	}
	ck_assert_uint_gt(n, 10);
}

/* ---- logs of refs that another writer changed ---- */

/* ---- unreachable or linked paths ---- */

TEST(a_linked_directory_is_not_followed)
{
	wr_ok("d/x=1");
	wr_power_loss(MEMFS_DATA_NONE, 0);
	memfs_mkdirs(w->fs, "/elsewhere");
	if (memfs_exists(w->fs, WORLD_REPO "/refs/heads/d"))
		ck_assert_int_eq(SYS(memfs_other(w->fs), rmdirat, AT_FDCWD,
				     WORLD_REPO "/refs/heads/d"),
		    0);
	memfs_symlink(w->fs, "/elsewhere", WORLD_REPO "/refs/heads/d");
	ck_assert_int_eq(world_start(w), 0);
	ck_assert_uint_eq(w->deferred, 1);
	ck_assert(!memfs_exists(w->fs, "/elsewhere/x"));
	ck_assert_int_eq(SYS(memfs_other(w->fs), unlinkat, AT_FDCWD,
			     WORLD_REPO "/refs/heads/d"),
	    0);
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->deferred, 0);
	ck_assert_int_eq(world_ref(w, "d/x"), '1');
}

TEST(a_malformed_packed_refs_is_kept_under_its_lock)
{
	wr_ok("x=1");
	wr_power_loss(MEMFS_DATA_NONE, 0);
	memfs_write(w->fs, WORLD_REPO "/packed-refs", "garbage\n");
	memfs_write(w->fs, WORLD_REPO "/packed-refs.lock", "");
	ck_assert_int_eq(world_start(w), 0);
	ck_assert_uint_eq(w->deferred, 1);
	ck_assert(memfs_holds(w->fs, WORLD_REPO "/packed-refs", "garbage\n"));
	ck_assert_int_eq(SYS(memfs_other(w->fs), unlinkat, AT_FDCWD,
			     WORLD_REPO "/packed-refs.lock"),
	    0);
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->deferred, 0);
	ck_assert(memfs_holds(w->fs, w->evidence, "garbage\n"));
	ck_assert_int_eq(world_ref(w, "x"), '1');
}

/* A person, or git, has the lock and puts a good file there. */
static void put_packed_refs(struct memfs *fs, void *arg)
{
	bool *is_put = arg;

	*is_put = !memfs_exists(fs, WORLD_REPO "/packed-refs.lock") &&
	    memfs_holds(fs, WORLD_REPO "/packed-refs", "garbage\n");
	if (!*is_put)
		return;
	world_write(fs, WORLD_REPO "/good",
	    "# pack-refs with: peeled fully-peeled sorted \n"
	    "@3 refs/heads/other\n");
	wr_rename(WORLD_REPO "/good", WORLD_REPO "/packed-refs");
}

/* Recovery looks at packed-refs again under the lock. */
TEST(a_good_packed_refs_comes_before_the_lock)
{
	bool is_put = true, had_some = false;
	unsigned long n;

	for (n = 0; is_put || !had_some; n++) {
		if (n > 0)
			wr_setup();
		wr_ok("x=1");
		wr_power_loss(MEMFS_DATA_NONE, 0);
		memfs_write(w->fs, WORLD_REPO "/packed-refs", "garbage\n");
		is_put = false;
		memfs_between(w->fs, n, put_packed_refs, &is_put);
		ck_assert_int_eq(world_start(w), 0);
		ck_assert_uint_eq(w->deferred, 0);
		ck_assert_int_eq(world_ref(w, "x"), '1');
		if (is_put)
			ck_assert_msg(world_ref(w, "other") == '3',
			    "%lu: the good file went", n);
		had_some = had_some || is_put;
		wr_teardown();
	}
	wr_setup();
}

/* git migrated the repository after a power loss, or after a crash that left a
 * lock. */
TEST(nothing_is_written_beside_a_reftable, .times = 2)
{
	struct scripted_txn h = { .w = w,
		.publish = _i == 0 ? SCRIPTED_ALL : 0 };
	struct record_member m =
	    scripted_member(RECORD_WRITE, "refs/heads/x", '0', '1');

	wr_ok("y=1");
	scripted_sync(w);
	scripted_apply(&h, &m, 1);
	memfs_mkdirs(w->fs, WORLD_REPO "/reftable");
	if (_i == 0)
		wr_power_loss(MEMFS_DATA_NONE, 0);
	ck_assert_int_eq(_i == 0 ? world_start(w) : scripted_crash(w), 0);
	ck_assert_uint_ge(w->deferred, 1);
	ck_assert_uint_eq(w->found[STORE_DEFERRED], 1);
	ck_assert_uint_eq(w->found[STORE_FAILED], 0);
	ck_assert_int_eq(world_ref(w, "x"), '0');
	ck_assert_int_eq(world_retry(w), -EMEDIUMTYPE);
	ck_assert_int_eq(world_ref(w, "x"), '0');
	ck_assert_int_eq(scripted_crash(w), 0);
	ck_assert_uint_ge(w->deferred, 1);
	ck_assert_int_eq(SYS(memfs_other(w->fs), rmdirat, AT_FDCWD,
			     WORLD_REPO "/reftable"),
	    0);
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert_uint_eq(w->deferred, 0);
	ck_assert_int_eq(world_ref(w, "x"), '1');
}

TEST(what_is_given_up_is_dropped)
{
	uint64_t nr = 0, id;
	char *uuids;

	wr_ok("x=1");
	wr_power_loss(MEMFS_DATA_NONE, 0);
	wr_rename(WORLD_REPO, AWAY);
	ck_assert_int_eq(world_start(w), 0);
	ck_assert_int_eq(
	    store_find_known(&w->store, "/srv/none.git", &id, &uuids), -ENOENT);
	ck_assert_ptr_null(uuids);
	ck_assert_int_eq(store_find_known(&w->store, WORLD_REPO, &id, &uuids),
	    0);
	free(uuids);
	ck_assert_int_eq(store_count_deferred(&w->store, id, &nr), 0);
	ck_assert_uint_eq(nr, 1);
	ck_assert_int_eq(store_forget(&w->store, id, &nr), 0);
	ck_assert_uint_eq(nr, 1);
	ck_assert_int_eq(scripted_crash(w), 0);
	ck_assert_uint_eq(w->deferred, 0);
	wr_rename(AWAY, WORLD_REPO);
	ck_assert_int_eq(scripted_crash(w), 0);
	ck_assert_int_eq(world_ref(w, "x"), '0');
}

/* A new repository was made at the path of the lost one. */
TEST(one_of_several_is_given_up_by_its_id)
{
	static const char newer[] = "07000000000000000000000000000000";
	struct journal_repo repo = { .uuid = { 7 }, .path = WORLD_REPO };
	uint64_t id;
	char *uuids;

	wr_ok("x=1");
	ck_assert_int_eq(journal_register_repo(w->store.journal, &repo), 0);
	ck_assert_int_eq(store_find_known(&w->store, WORLD_REPO, &id, &uuids),
	    -ENOTUNIQ);
	ck_assert_uint_eq(strlen(uuids), 2 * 32 + 2);
	ck_assert_ptr_nonnull(strstr(uuids, newer));
	free(uuids);
	ck_assert_int_eq(store_find_known(&w->store, newer, &id, &uuids), 0);
	ck_assert_uint_eq(id, repo.id);
	ck_assert_str_eq(uuids, newer);
	free(uuids);
}
