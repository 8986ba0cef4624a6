/*
 * Proves that large transactions of new refs go to packed-refs. The tests cover
 * the choice between packed and loose refs, the bytes of the file, and one
 * rewrite for new refs and for deletions in the same batch. Plain git cannot,
 * at any point, create a ref above or below a new name. If git took a name, the
 * update is aborted and removed from packed-refs; an atomic transaction is
 * aborted as a whole. A start after a crash does the same.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/scripted_txn.h"
#include "tests/lib/suite.h"
#include "tests/lib/sweep.h"

#define R      WORLD_REPO
#define HEADER "# pack-refs with: peeled fully-peeled sorted \n"
#define ONES   "3131313131313131313131313131313131313131"
#define TWOS   "3232323232323232323232323232323232323232"
#define CS     "6363636363636363636363636363636363636363"
#define KEEP   ONES " refs/heads/keep\n"
#define P      ONES " refs/heads/p\n"

static struct world *w;

static void start(size_t least, const char *packed)
{
	w = world_new(memfs_new(), false);
	w->packed_least = least;
	if (packed != NULL)
		memfs_write(w->fs, R "/packed-refs", packed);
	ck_assert_int_eq(world_start(w), 0);
}

static void stop(void)
{
	char *locks = memfs_list_locks(w->fs, R);

	ck_assert_str_eq(locks, "");
	free(locks);
	world_free(w);
}

static void expect_ok(const char *spec, bool atomic)
{
	struct txn *txn = world_apply(w, spec, atomic);
	size_t i;

	ck_assert_ptr_nonnull(txn);
	for (i = 0; i < txn->nr_updates; i++)
		ck_assert_msg(txn->updates[i].status == REFD_OK, "%s: %s",
		    txn->updates[i].ask->name,
		    refd_status_name(txn->updates[i].status));
	world_done(w, txn);
}

static void remove_file(struct memfs *fs, const char *path)
{
	SYS(memfs_other(fs), unlinkat, -100, path);
}

static bool is_loose(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), R "/refs/%s", name);
	return memfs_exists(w->fs, path);
}

/* ---- where they go ---- */

CASE(.seconds = 120);

TEST(many_go_to_packed_refs, .times = 2)
{
	start(3, HEADER KEEP);
	expect_ok("b=1:0;@refs/tags/v=2:0;x/y=1:0", _i);
	ck_assert(memfs_holds(w->fs, R "/packed-refs",
	    HEADER ONES " refs/heads/b\n" KEEP ONES " refs/heads/x/y\n" TWOS
			" refs/tags/v\n^" CS "\n"));
	ck_assert(!is_loose("heads/b") && !is_loose("tags/v"));
	/* No empty directory is left. */
	ck_assert(!is_loose("heads/x"));
	stop();
}

TEST(the_first_packed_refs_has_gits_header)
{
	start(2, NULL);
	expect_ok("b=1:0;c=1:0", true);
	ck_assert(memfs_holds(w->fs, R "/packed-refs",
	    HEADER ONES " refs/heads/b\n" ONES " refs/heads/c\n"));
	stop();
}

TEST(few_stay_loose)
{
	start(3, HEADER KEEP);
	expect_ok("b=1:0;c=1:0", true);
	ck_assert(is_loose("heads/b") && is_loose("heads/c"));
	stop();
}

/* Moved, deleted and confirmed refs do not count and stay loose or packed. New
 * refs beside them are packed, unless an atomic transaction has both kinds. */
TEST(what_is_not_new_stays_loose)
{
	start(2, HEADER KEEP);
	expect_ok("old=1", false);
	expect_ok("b=1:0;c=1:0;old=2:1;keep=1:1;free=1", false);
	ck_assert(!is_loose("heads/b") && !is_loose("heads/c"));
	ck_assert(is_loose("heads/old") && is_loose("heads/free"));
	ck_assert_int_eq(world_ref(w, "b"), '1');
	ck_assert_int_eq(world_ref(w, "old"), '2');
	expect_ok("d=1:0;e=1:0;old=3:2", true);
	ck_assert(is_loose("heads/d") && is_loose("heads/e"));
	stop();
}

TEST(a_log_keeps_it_loose)
{
	start(2, HEADER KEEP);
	memfs_mkdirs(w->fs, R "/logs/refs/heads");
	memfs_write(w->fs, R "/logs/refs/heads/b", "");
	expect_ok("b=1:0;c=1:0;d=1:0", false);
	ck_assert(is_loose("heads/b") && !is_loose("heads/c"));
	ck_assert_int_eq(world_log_count(w, "b", '0', '1'), 1);
	memfs_write(w->fs, R "/logs/refs/heads/e", "");
	expect_ok("e=1:0;f=1:0", true);
	ck_assert(is_loose("heads/e") && is_loose("heads/f"));
	stop();
}

TEST(a_symbolic_ref_keeps_it_loose)
{
	start(2, HEADER KEEP);
	expect_ok("s>t", false);
	expect_ok("s=1:0;c=1:0;d=1:0", false);
	ck_assert(is_loose("heads/t") && !is_loose("heads/c"));
	ck_assert_int_eq(world_ref(w, "t"), '1');
	stop();
}

TEST(own_worktrees_refs_are_never_packed)
{
	start(2, HEADER KEEP);
	expect_ok("@refs/bisect/a=1:0;@refs/worktree/b=1:0;c=1:0;d=1:0", false);
	ck_assert(is_loose("bisect/a") && is_loose("worktree/b"));
	ck_assert(!is_loose("heads/c"));
	stop();
}

/* New refs do not wait for the lock of packed-refs, as deletions do. */
TEST(a_held_lock_on_packed_refs_keeps_them_loose, .times = 2)
{
	start(2, HEADER KEEP);
	memfs_write(w->fs, R "/packed-refs.lock", "");
	expect_ok("b=1:0;c=1:0", _i);
	ck_assert(is_loose("heads/b") && is_loose("heads/c"));
	remove_file(w->fs, R "/packed-refs.lock");
	stop();
}

/* A git that holds the lock of "a/b" may already have looked for refs below
 * "a/b". */
TEST(a_lock_above_keeps_it_loose)
{
	start(2, HEADER KEEP);
	memfs_mkdirs(w->fs, R "/refs/heads/a");
	memfs_write(w->fs, R "/refs/heads/a/b.lock", "");
	expect_ok("a/b/c/d=1:0;e=1:0;f=1:0", false);
	ck_assert(is_loose("heads/a/b/c/d") && !is_loose("heads/e"));
	remove_file(w->fs, R "/refs/heads/a/b.lock");
	stop();
}

TEST(names_in_the_way_fail_as_ever)
{
	struct txn *txn;

	start(2, HEADER KEEP P);
	expect_ok("d/f=1", false);
	txn = world_apply(w, "d=1:0;keep=2:0;p/x=1:0;g=1:0;h=1:0", false);
	ck_assert_int_eq(txn->updates[0].status, REFD_CONFLICT);
	ck_assert_int_eq(txn->updates[1].status, REFD_EXISTS);
	ck_assert_int_eq(txn->updates[2].status, REFD_CONFLICT);
	ck_assert_int_eq(txn->updates[3].status, REFD_OK);
	ck_assert_int_eq(txn->updates[4].status, REFD_OK);
	world_done(w, txn);
	ck_assert(memfs_holds(w->fs, R "/packed-refs",
	    HEADER ONES " refs/heads/g\n" ONES " refs/heads/h\n" KEEP P));
	stop();
}

TEST(one_rewrite_with_deletions_of_others)
{
	struct txn *txns[3];
	size_t i;

	start(2, HEADER KEEP P);
	expect_ok("old=1", false);
	txns[0] = world_begin(w, "b=1:0;c=1:0", true);
	txns[1] = world_begin(w, "-p:1", false);
	txns[2] = world_begin(w, "old=2:1", false);
	world_batch(w, txns, 3);
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(txns[i]->updates[0].status, REFD_OK);
		world_done(w, txns[i]);
	}
	ck_assert(memfs_holds(w->fs, R "/packed-refs",
	    HEADER ONES " refs/heads/b\n" ONES " refs/heads/c\n" KEEP));
	stop();
}

/* A packed session would lock packed-refs for as long as the client likes. */
TEST(a_session_stays_loose)
{
	struct txn *txn;

	start(2, HEADER KEEP);
	txn = world_session(w, "b=1:0;c=1:0", true);
	ck_assert(!memfs_exists(w->fs, R "/packed-refs.lock"));
	world_session_end(w, txn, true);
	ck_assert_int_eq(txn->updates[0].status, REFD_OK);
	world_done(w, txn);
	ck_assert(is_loose("heads/b") && is_loose("heads/c"));
	stop();
}

/* ---- git at the same time ---- */

/* The steps of git for one name, at some point of our batch: git locks the
 * name, then checks the loose refs and packed-refs. git renames when we are
 * done. */
static struct foreign {
	const char *dir, *lock, *file, *prefix; /* PREFIX: a conflicting packed
						 * ref */
	bool below, came, has_lock;
} below = { R "/refs/heads/n", R "/refs/heads/n/x.lock", R "/refs/heads/n/x",
	" refs/heads/n\n", true, false, false },
  above = { R "/refs/heads", R "/refs/heads/m.lock", R "/refs/heads/m",
	  " refs/heads/m/", false, false, false };

static void git_begins(struct memfs *fs, void *arg)
{
	struct foreign *f = arg;
	char *packed;
	size_t len;

	f->came = true;
	/* git fails if a file blocks mkdir, or if the lock is held. */
	if (memfs_holds(fs, f->dir, ONES "\n") || memfs_exists(fs, f->lock))
		return;
	memfs_mkdirs(fs, f->dir);
	memfs_write(fs, f->lock, ONES "\n");
	packed = memfs_read(fs, R "/packed-refs", &len);
	f->has_lock = memmem(packed, len, f->prefix, strlen(f->prefix)) == NULL;
	free(packed);
	/* git cannot replace a directory that is not empty. */
	if (!f->below && memfs_exists(fs, f->file))
		f->has_lock = false;
	if (!f->has_lock)
		remove_file(fs, f->lock);
}

/* True: git has its ref. */
static bool git_ends(struct foreign *f)
{
	const struct sys *other = memfs_other(w->fs);

	if (!f->has_lock)
		return false;
	f->has_lock = false;
	if (!f->below && memfs_exists(w->fs, f->file))
		SYS(other, rmdirat, -100, f->file);
	if (SYS(other, renameat, -100, f->lock, -100, f->file) == 0)
		return true;
	remove_file(w->fs, f->lock);
	return false;
}

/* Git comes at change N of the transaction. */
static struct txn *apply_beside(struct foreign *f, unsigned long n,
    const char *spec, bool atomic)
{
	start(3, HEADER KEEP);
	f->came = false;
	memfs_between(w->fs, n, git_begins, f);
	return world_apply(w, spec, atomic);
}

/* The refs that a transaction has taken out of packed-refs again stay out, even
 * if the disk has only a part of the renames. */
static void power_loss_beside_git(struct foreign *f, const char *spec,
    const char *name, bool atomic, long keep)
{
	unsigned nr_gits = 0;
	unsigned long n;
	struct txn *txn;
	bool ok, is_o;

	f->came = true;
	for (n = 0; f->came; n++) {
		txn = apply_beside(f, n, spec, atomic);
		ok = txn->updates[0].status == REFD_OK;
		is_o = txn->updates[1].status == REFD_OK;
		world_done(w, txn);
		f->has_lock = false;
		nr_gits += !ok;
		ck_assert_int_eq(scripted_power_loss(w, MEMFS_DATA_NONE, keep),
		    0);
		/* Recovery waits for a lock that git has left. */
		ck_assert_msg(world_ref(w, name) == (ok ? '1' : '0') ||
			(ok && w->deferred == 1),
		    "at %lu: %s is at '%c'", n, name, world_ref(w, name));
		ck_assert_int_eq(world_ref(w, "o"), is_o ? '1' : '0');
		ck_assert_int_eq(world_ref(w, "keep"), '1');
		world_free(w);
	}
	ck_assert_uint_gt(nr_gits, 0);
}

TEST(power_is_lost_after_git_came_below, .times = 40)
{
	power_loss_beside_git(&below, "n=1:0;o=1:0;r=1:0", "n", _i & 1, _i / 2);
}

/* A transaction makes three refs. git goes below "n", or above "m/q". */
static void beside_git(struct foreign *f, const char *spec, const char *name,
    bool atomic, bool by_kill)
{
	unsigned nr_ours = 0, nr_gits = 0;
	unsigned long n;
	struct txn *txn;
	bool ok, has;

	f->came = true;
	for (n = 0; f->came; n++) {
		txn = apply_beside(f, n, spec, atomic);
		ok = txn->updates[0].status == REFD_OK;
		ck_assert(ok || txn->updates[0].status == REFD_CONFLICT);
		ck_assert_int_eq(txn->updates[1].status,
		    ok || !atomic ? REFD_OK : REFD_ABORTED);
		world_done(w, txn);
		has = git_ends(f);
		ck_assert_msg(ok != has || !ok, "at %lu: both have it", n);
		if (by_kill)
			ck_assert_int_eq(scripted_crash(w), 0);
		ck_assert_msg(world_ref(w, name) == (ok ? '1' : '0'),
		    "at %lu: %s is at '%c'", n, name, world_ref(w, name));
		ck_assert_int_eq(world_ref(w, "o"), ok || !atomic ? '1' : '0');
		ck_assert_int_eq(world_ref(w, "keep"), '1');
		nr_ours += ok;
		nr_gits += has;
		stop();
	}
	ck_assert_uint_ge(nr_ours, 9);
	/* Above a name, our directory is in git's way. */
	ck_assert_uint_ge(nr_gits, f->below ? 10 : 0);
}

TEST(git_below_a_name, .times = 4)
{
	beside_git(&below, "n=1:0;o=1:0;r=1:0", "n", _i & 1, _i & 2);
}

TEST(git_above_a_name, .times = 4)
{
	beside_git(&above, "m/q=1:0;o=1:0;r=1:0", "m/q", _i & 1, _i & 2);
}

static void git_comes(struct memfs *fs, void *arg)
{
	(void)arg;
	git_begins(fs, &below);
}

/* The daemon is killed at each change of the disk, and git creates a ref below
 * the name after the commit. The next start keeps the atomic transaction whole,
 * and never keeps both refs. */
static int commit_then_git(void *arg, struct journal_row *rows, size_t nr,
    bool flush)
{
	int r = journal_commit(w->store.journal, rows, nr, flush);

	(void)arg;
	git_comes(w->fs, NULL);
	return r;
}

TEST(crashed_with_git_below_a_name, .times = 2)
{
	bool hit = true, has, done = false;
	unsigned long n;
	char o;

	for (n = 0; hit; n++) {
		start(3, HEADER KEEP);
		w->store.pipeline->applier.commit = commit_then_git;
		memfs_crash_at(w->fs, n);
		world_done(w, world_apply(w, "n=1:0;o=1:0;r=1:0", _i));
		hit = memfs_was_hit(w->fs);
		ck_assert_int_eq(scripted_crash(w), 0);
		has = git_ends(&below);
		done = done || has;
		ck_assert_msg(!has || world_ref(w, "n") == '0',
		    "at %lu: both have it", n);
		o = world_ref(w, "o");
		ck_assert(o == '0' || o == '1');
		if (_i)
			ck_assert_msg(o == world_ref(w, "n") &&
				o == world_ref(w, "r"),
			    "at %lu: torn", n);
		ck_assert_int_eq(world_ref(w, "keep"), '1');
		stop();
	}
	ck_assert(done);
}

/* A git dies together with us and leaves only a lock. git took this lock at any
 * moment, and would have given up after reading packed-refs. Published refs are
 * not taken back in part. */
static void dead_git_comes(struct memfs *fs, void *arg)
{
	struct foreign *f = arg;

	f->came = true;
	memfs_mkdirs(fs, f->dir);
	memfs_write(fs, f->lock, "");
}

static bool kill_beside_dead_git(unsigned long kill, unsigned long git)
{
	char n;

	start(3, HEADER KEEP);
	below.came = false;
	memfs_between(w->fs, git, dead_git_comes, &below);
	memfs_crash_at(w->fs, kill);
	world_done(w, world_apply(w, "l=1:0;n=1:0;r=1:0", true));
	if (!memfs_was_hit(w->fs) || !below.came) {
		memfs_crash(w->fs);
		world_free(w);
		return false;
	}
	ck_assert_int_eq(scripted_crash(w), 0);
	n = world_ref(w, "n");
	ck_assert_msg(n == world_ref(w, "l") && n == world_ref(w, "r"),
	    "at %lu, %lu: torn", kill, git);
	ck_assert_int_eq(world_ref(w, "keep"), '1');
	if (memfs_exists(w->fs, below.lock))
		remove_file(w->fs, below.lock);
	stop();
	return true;
}

TEST(crashed_together_with_a_git_below)
{
	unsigned long kill, git, nr = 0;

	/* The crash points begin near the commit. git comes at the crash or at
	 * a later call, of recovery for example. */
	for (kill = 20; kill < 45; kill++)
		for (git = kill; git < 110; git += sweep_step())
			nr += kill_beside_dead_git(kill, git);
	ck_assert_uint_gt(nr, 200 / sweep_step());
}

/* After a power loss, a lock below the name belongs to a dead git, which had
 * found the name taken. */
TEST(a_dead_gits_lock_below_takes_nothing, .times = 2)
{
	start(2, HEADER KEEP);
	expect_ok("n=1:0;o=1:0", _i);
	scripted_sync(w);
	memfs_mkdirs(w->fs, R "/refs/heads/n");
	memfs_write(w->fs, R "/refs/heads/n/x.lock", "");
	scripted_sync(w);
	ck_assert_int_eq(scripted_power_loss(w, MEMFS_DATA_ALL, 0), 0);
	ck_assert_int_eq(world_ref(w, "n"), '1');
	remove_file(w->fs, R "/refs/heads/n/x.lock");
	stop();
}
