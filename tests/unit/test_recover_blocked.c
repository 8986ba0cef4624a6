/*
 * Proves that recovery gives up no acknowledged update because of files in the
 * way. Git can leave a lock below the name of a ref, when git prunes a packed
 * ref that is deleted meanwhile. After a power loss this lock stands in the way
 * of a file. A directory in refd/stage/ is no hindrance.
 *
 * If git's lock is from the boot before, recovery removes the lock, at whatever
 * call recovery is stopped. A lock that a living process may hold stays, and
 * the report names the command that can remove the lock.
 *
 * Git may also make and pack a ref while no daemon runs. Recovery makes no ref
 * of the journal below or above this ref.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/scripted_txn.h"
#include "tests/lib/suite.h"
#include "tests/lib/sweep.h"
#include "tests/lib/world_rig.h"

#define BELOW WORLD_REPO "/refs/heads/d"

static void lose_the_file(void)
{
	wr_ok("d=1");
	wr_power_loss(MEMFS_DATA_NONE, 0);
	memfs_mkdirs(w->fs, BELOW "/e");
}

CASE(.setup = wr_setup_apart, .teardown = wr_teardown, .seconds = 120);

/* Git died with the machine. The lock of another git stays. */
TEST(a_dead_lock_below_the_name_goes, .times = 3)
{
	lose_the_file();
	memfs_write(w->fs, BELOW "/e/x.lock", "");
	memfs_write(w->fs, BELOW "/y.lock", "");
	wr_power_loss(MEMFS_DATA_ALL, 1000);
	wr_know_boot();
	if (_i == 1)
		memfs_write(w->fs, BELOW "/e/z.lock", "");
	memfs_hide_types(w->fs, _i == 2);
	wr_start();
	ck_assert_uint_eq(w->found[STORE_UNLOCKED], 2);
	ck_assert_uint_eq(w->deferred, _i == 1);
	ck_assert_int_eq(world_ref(w, "d"), _i == 1 ? '0' : '1');
	wr_expect_locks(_i == 1 ? BELOW "/e/z.lock\n" : "");
	if (_i == 1)
		ck_assert_ptr_nonnull(
		    strstr(w->text, "a process of this boot may hold"));
}

TEST(a_directory_in_stage_stays, .times = 2)
{
	memfs_hide_types(w->fs, _i == 1);
	wr_ok("d=1");
	memfs_mkdirs(w->fs, WORLD_REPO "/refd/stage/0000000000000001.0");
	memfs_mkdirs(w->fs, WORLD_REPO "/refd/stage/more");
	wr_power_loss(MEMFS_DATA_NONE, 0);
	memfs_mkdirs(w->fs, WORLD_REPO "/refd/stage/more");
	ck_assert_int_eq(world_start(w), 0);
	ck_assert_uint_eq(w->deferred, 0);
	ck_assert_int_eq(world_ref(w, "d"), '1');
	ck_assert(memfs_exists(w->fs, WORLD_REPO "/refd/stage/more"));
	wr_ok("d=2:1");
}

/* ---- dead locks ---- */

#define X      WORLD_REPO "/refs/heads/x"
#define Y      WORLD_REPO "/refs/heads/y"
#define PACKED WORLD_REPO "/packed-refs"

/* Git dies with the machine, and with its locks on x, y and packed-refs. */
static void lose_power_with_locks(void)
{
	wr_ok("x=1");
	wr_ok("y=1;z=1");
	ck_assert_int_eq(world_checkpoint(w), 0);
	wr_ok("x=2:1");
	wr_ok("-y:1");
	wr_ok("z=2:1");
	memfs_write(w->fs, X ".lock",
	    "3333333333333333333333333333333333333333\n");
	memfs_write(w->fs, WORLD_REPO "/refs/heads/x~pid.lock", "pid 77\n");
	memfs_write(w->fs, Y ".lock", "");
	memfs_write(w->fs, PACKED ".lock", "");
	wr_power_loss(MEMFS_DATA_NONE, 0);
	wr_know_boot();
}

static void expect_redone(void)
{
	ck_assert_uint_eq(w->deferred, 0);
	ck_assert_int_eq(world_ref(w, "x"), '2');
	ck_assert_int_eq(world_ref(w, "y"), '0');
	ck_assert_int_eq(world_ref(w, "z"), '2');
	wr_expect_locks("");
	ck_assert_ptr_null(world_litter(w));
}

/* The locks of refd have more names, or another mode. */
static bool git_has_packed(void)
{
	struct sys_stat st;

	return SYS(memfs_other(w->fs), lstatat, AT_FDCWD, PACKED ".lock",
		   &st) == 0 &&
	    st.nlink == 1 && (st.mode & 0777) == 0666;
}

/* The last outcome. */
#define KILLED 5

/* Recovery is killed, or loses power with each outcome. The next recovery may
 * find nothing to do for packed-refs, and then leaves git's lock there. */
TEST(stopped_anywhere, .times = KILLED + 1)
{
	unsigned long n;
	bool hit = true;

	for (n = 0; hit; n += sweep_step()) {
		wr_teardown();
		wr_setup_apart();
		lose_power_with_locks();
		if (_i == KILLED)
			memfs_crash_at(w->fs, n);
		else
			memfs_power_loss_at(w->fs, n);
		world_start(w);
		hit = memfs_was_hit(w->fs);
		if (_i == KILLED) {
			memfs_crash(w->fs);
			world_crash(w);
		} else {
			wr_power_loss((enum memfs_data)_i, -1);
			wr_know_boot();
		}
		wr_start();
		if (_i != KILLED && git_has_packed())
			wr_unlink(PACKED ".lock");
		expect_redone();
	}
	ck_assert_uint_gt(n, 20);
}

static void is_kept(const char *why)
{
	wr_start();
	ck_assert_uint_gt(w->deferred, 0);
	ck_assert_uint_eq(w->found[STORE_UNLOCKED], 0);
	ck_assert_int_eq(world_ref(w, "z"), '2');
	ck_assert(memfs_exists(w->fs, X ".lock"));
	ck_assert_msg(strstr(w->text, why) != NULL, "%s", w->text);
	ck_assert_ptr_nonnull(
	    strstr(w->text, "\"refd locks --clear-dead " WORLD_REPO "\""));
}

/* A git of this boot has begun before refd. */
TEST(a_lock_of_this_boot_stays)
{
	wr_ok("z=2");
	wr_ok("x=1");
	wr_power_loss(MEMFS_DATA_NONE, 0);
	wr_know_boot();
	memfs_write(w->fs, X ".lock", "");
	is_kept("a process of this boot may hold the lock");
	/* Not later, either: only a start removes locks. */
	memfs_advance(w->fs, INT64_C(1000000000));
	ck_assert_int_eq(world_retry(w), 0);
	ck_assert(memfs_exists(w->fs, X ".lock"));
}

/* The clock was behind at the boot, and a git that lives has a lock from then:
 * the lock is older than the time at which the machine seems to have booted. */
TEST(a_clock_that_was_set)
{
	wr_ok("z=2");
	wr_ok("x=1");
	wr_power_loss(MEMFS_DATA_NONE, 0);
	memfs_step_clock(w->fs, INT64_C(-86400) * 1000000000);
	wr_know_boot();
	memfs_write(w->fs, X ".lock", "");
	memfs_step_clock(w->fs, INT64_C(86400) * 1000000000);
	is_kept("the clock was set");
}

TEST(a_lock_with_two_names_stays)
{
	wr_ok("z=2");
	wr_ok("x=1");
	memfs_write(w->fs, X ".lock", "");
	ck_assert_int_eq(SYS(memfs_other(w->fs), linkat, AT_FDCWD, X ".lock",
			     AT_FDCWD, WORLD_REPO "/refs/heads/other"),
	    0);
	wr_power_loss(MEMFS_DATA_ALL, 1000);
	wr_know_boot();
	is_kept("several names");
}

/* ---- packed refs ---- */

static const struct {
	const char *spec, *name, *packed;
} takings[] = { { "p=1;d=1", "d", "d/e" }, { "p=1;d/e=1", "d/e", "d" },
	{ "p=1;d/e/f=1", "d/e/f", "d" } };
#define NR_TAKINGS ((int)(sizeof(takings) / sizeof(takings[0])))

enum accident { POWER_LOSS, CRASH, CRASH_ATOMIC, NR_ACCIDENTS };

static void write_packed(const char *name)
{
	char text[256];

	snprintf(text, sizeof(text),
	    "# pack-refs with: peeled fully-peeled sorted \n"
	    "3232323232323232323232323232323232323232 refs/heads/%s\n",
	    name);
	memfs_write(w->fs, PACKED, text);
}

static int commit_then_kill(void *arg, struct journal_row *rows, size_t nr,
    bool flush)
{
	int r = journal_commit(w->store.journal, rows, nr, flush);

	(void)arg;
	memfs_crash_at(w->fs, 0);
	return r;
}

/* The transaction is recorded, and the refs are lost or were never made. A
 * person removes the locks of the crash. */
static void stop_before_publishing(struct scripted_txn *h, const char *spec,
    enum accident accident)
{
	struct txn *txn;

	if (accident != POWER_LOSS)
		w->store.pipeline->applier.commit = commit_then_kill;
	txn = world_apply(w, spec, accident == CRASH_ATOMIC);
	h->w = w;
	h->txid = txn->req.txid;
	world_done(w, txn);
	if (accident == POWER_LOSS) {
		wr_power_loss(MEMFS_DATA_NONE, 0);
	} else {
		memfs_crash(w->fs);
		wr_remove_locks();
		world_crash(w);
	}
	memfs_advance(w->fs, INT64_C(1000000000));
}

TEST(a_packed_ref_in_the_way_aborts, .times = NR_ACCIDENTS * NR_TAKINGS)
{
	const char *name = takings[_i % NR_TAKINGS].name;
	const char *packed = takings[_i % NR_TAKINGS].packed;
	enum accident accident = _i / NR_TAKINGS;
	struct scripted_txn h = { .w = NULL };
	int run;

	stop_before_publishing(&h, takings[_i % NR_TAKINGS].spec, accident);
	write_packed(packed);
	for (run = 0; run < 2; run++) {
		wr_start();
		ck_assert_uint_eq(w->deferred, 0);
		ck_assert_uint_eq(w->found[STORE_DROPPED], run == 0);
		ck_assert_int_eq(world_ref(w, packed), '2');
		ck_assert_int_eq(world_ref(w, name), '0');
		ck_assert(!world_has_log(w, name));
		/* An empty directory of before a crash stays. */
		ck_assert(
		    accident != POWER_LOSS || !memfs_exists(w->fs, BELOW));
		ck_assert_int_eq(scripted_status(&h, 1), REFD_CONFLICT);
		ck_assert_int_eq(scripted_status(&h, 0),
		    accident == CRASH_ATOMIC ? REFD_ABORTED : REFD_OK);
		ck_assert_int_eq(world_ref(w, "p"),
		    accident == CRASH_ATOMIC ? '0' : '1');
		wr_expect_locks("");
		ck_assert_int_eq(world_stop(w), 0);
	}
	wr_start();
}

/* Git had deleted the packed ref before refd took the name. The power loss
 * brings the former packed-refs back, which is no later write. */
TEST(a_packed_ref_of_before_takes_nothing, .times = NR_TAKINGS)
{
	wr_ok("q=1");
	write_packed(takings[_i].packed);
	wr_unlink(PACKED);
	memfs_advance(w->fs, INT64_C(1000000000));
	wr_ok(takings[_i].spec);
	wr_power_loss_and_start(MEMFS_DATA_NONE, 0);
	ck_assert_int_eq(world_ref(w, takings[_i].packed), '2');
	ck_assert_uint_eq(w->found[STORE_DROPPED], 0);
	ck_assert_int_eq(world_ref(w, takings[_i].name), '1');
}

/* Git replaces packed-refs, and a power loss takes this back. Recovery writes
 * packed-refs too, for a deletion by refd. The rest of the file stays old. */
static void lose_packed(const char *before, const char *after, const char *spec)
{
	wr_ok("q=1");
	memfs_write(w->fs, PACKED, before);
	memfs_write(w->fs, WORLD_REPO "/after", after);
	wr_rename(WORLD_REPO "/after", PACKED);
	memfs_advance(w->fs, INT64_C(1000000000));
	wr_ok("-z");
	wr_ok(spec);
	wr_power_loss_and_start(MEMFS_DATA_NONE, 0);
	ck_assert_int_eq(world_ref(w, "z"), '0');
	ck_assert_uint_eq(w->found[STORE_DROPPED], 0);
	ck_assert_uint_eq(w->found[STORE_LEFT], 0);
}

#define HEADER "# pack-refs with: peeled fully-peeled sorted \n"
#define THREES "3333333333333333333333333333333333333333"
#define FOURS  "3434343434343434343434343434343434343434"

TEST(a_rewrite_makes_no_packed_ref_younger)
{
	lose_packed(HEADER FOURS " refs/heads/d/e\n" FOURS " refs/heads/z\n",
	    HEADER FOURS " refs/heads/z\n", "d=1");
	ck_assert_int_eq(world_ref(w, "d"), '1');
}

TEST(a_rewrite_makes_no_packed_value_younger)
{
	lose_packed(HEADER THREES " refs/heads/x\n" FOURS " refs/heads/z\n",
	    HEADER FOURS " refs/heads/x\n" FOURS " refs/heads/z\n", "x=1:4");
	ck_assert_int_eq(world_ref(w, "x"), '1');
}
