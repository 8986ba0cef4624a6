/*
 * Proves the costs of the object barrier, counted in system calls of a store
 * with all its threads. A ref that moves to durable objects costs no sync. New
 * packs alone cost one fsync for every file and for the directory. Loose
 * objects, many packs, a new repository, a new shallow, and any work after a
 * start cost one syncfs. A partial barrier does not make skipped objects count
 * as durable. New repositories share a syncfs and a flush of the journal. After
 * a clock was set back, nothing counts as durable. Missing objects and failed
 * syncs are refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#include "daemon/store/store_internal.h"
#include "tests/lib/store_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define S 1000000000LL

static struct sys disk;
static _Atomic int nr_syncfs, nr_fsync, syncfs_fails, fsync_fails;
/* Files that seem to have changed just now. All other files are old. */
static _Atomic bool packs_new, loose_new, repo_new, config_new, alternates_new;
static _Atomic bool pack_goes, packs_change, ids_new, shallow_new;
/* Each syncfs posts syncfs_began and waits. */
static _Atomic bool syncfs_waits;
static sem_t syncfs_began, syncfs_goes_on;
static _Atomic int64_t wall_back_ns;
/* Durations of the syncs by the store's clock, and their sum so far. */
static _Atomic int64_t syncfs_ns, fsync_ns, took_ns;

static bool is_objects(const struct sys *sys, int fd)
{
	char path[4096];

	return sys_kernel.fd_path(sys, fd, path, sizeof(path)) == 0 &&
	    strstr(path, "/objects") != NULL;
}

static int disk_syncfs(const struct sys *sys, int fd)
{
	if (syncfs_fails < 0)
		return syncfs_fails;
	nr_syncfs++;
	if (syncfs_waits) {
		sem_post(&syncfs_began);
		sem_wait(&syncfs_goes_on);
	}
	took_ns += syncfs_ns;
	return sys_kernel.syncfs(sys, fd);
}

static int disk_fsync(const struct sys *sys, int fd)
{
	if (!is_objects(sys, fd))
		return sys_kernel.fsync(sys, fd);
	if (fsync_fails < 0)
		return fsync_fails;
	nr_fsync++;
	took_ns += fsync_ns;
	return sys_kernel.fsync(sys, fd);
}

static bool looks_new(const char *path)
{
	if (strcmp(path, "HEAD") == 0)
		return repo_new;
	if (strcmp(path, "config") == 0)
		return config_new;
	if (strcmp(path, "id") == 0)
		return ids_new;
	if (strcmp(path, "alternates") == 0)
		return alternates_new;
	if (strcmp(path, "shallow") == 0)
		return shallow_new;
	if (strncmp(path, "pack", 4) == 0)
		return packs_new;
	return loose_new && strlen(path) == 2;
}

static int disk_lstatat(const struct sys *sys, int dirfd, const char *path,
    struct sys_stat *st)
{
	int r = sys_kernel.lstatat(sys, dirfd, path, st);

	if (pack_goes && strncmp(path, "pack-", 5) == 0)
		return -ENOENT;
	st->ctime_ns += looks_new(path) ? 3600 * S : -3600 * S;
	return r;
}

/* Every fsync changes the directory of packs. */
static int disk_fstat(const struct sys *sys, int fd, struct sys_stat *st)
{
	int r = sys_kernel.fstat(sys, fd, st);

	if (packs_change && is_objects(sys, fd))
		st->ctime_ns += nr_fsync;
	return r;
}

static int64_t disk_now_wall(const struct sys *sys)
{
	return sys_kernel.now_wall(sys) + took_ns - wall_back_ns;
}

static int64_t disk_now_mono(const struct sys *sys)
{
	return sys_kernel.now_mono(sys) + took_ns;
}

static void setup(void)
{
	disk = sys_kernel;
	disk.syncfs = disk_syncfs;
	disk.fsync = disk_fsync;
	disk.fstat = disk_fstat;
	disk.lstatat = disk_lstatat;
	disk.now_wall = disk_now_wall;
	disk.now_mono = disk_now_mono;
	syncfs_ns = 1000 * S;
	fsync_ns = S;
	packs_new = loose_new = repo_new = config_new = alternates_new = false;
	pack_goes = packs_change = ids_new = shallow_new = false;
	syncfs_waits = false;
	wall_back_ns = syncfs_fails = fsync_fails = 0;
	sr_mode = REFD_DURABILITY_BATCH; /* records contain no objects */
	sr_sys = &disk;
	sr_interval_ns = 3600 * S;
	sr_setup();
}

/* ---- costs ---- */

static enum refd_status cost_of(int syncfs, int fsyncs)
{
	int syncfs_before = nr_syncfs, fsyncs_before = nr_fsync;
	enum refd_status status;
	struct refd_txid id;
	struct txn *txn;

	refd_txid_make(&id);
	txn = sr_admit(&id, sr_repo, "refs/heads/a", sr_commit);
	ck_assert_int_eq(txn->refused, REFD_OK);
	status = txn->updates[0].status;
	ck_assert_int_eq(nr_syncfs - syncfs_before, syncfs);
	ck_assert_int_eq(nr_fsync - fsyncs_before, fsyncs);
	sr_done_with(txn);
	return status;
}

/*
 * Makes one pack of two files (git from 2.41 on would add a reverse index), and
 * ensures one syncfs since the start.
 */
static void settle(void)
{
	tmp_run("cd r.git && echo %s | git -c pack.writeReverseIndex=false "
		"pack-objects -q --revs objects/pack/pack >/dev/null",
	    sr_commit);
	ck_assert_int_eq(cost_of(1, 0), REFD_PENDING);
}

CASE(.setup = setup, .teardown = sr_teardown, .seconds = 60);

TEST(nothing_for_what_is_old)
{
	settle();
	ck_assert_int_eq(cost_of(0, 0), REFD_PENDING);
}

/* Recovery makes the syncfs, in the repositories that it visits. */
TEST(a_syncfs_after_a_start)
{
	int before;

	settle();
	sr_close();
	before = nr_syncfs;
	sr_open();
	ck_assert_int_eq(nr_syncfs, before + 1);
	ck_assert_int_eq(cost_of(0, 0), REFD_PENDING);
}

/* The .pack, the .idx and pack/ are synced. The next barrier syncs them again,
 * because an fsync is no syncfs. */
TEST(packs_alone)
{
	settle();
	packs_new = true;
	ck_assert_int_eq(cost_of(0, 3), REFD_PENDING);
	ck_assert_int_eq(cost_of(0, 3), REFD_PENDING);
}

/* git writes shallow after the pack, and without a sync. The pack is as old as
 * the last syncfs, or new. */
TEST(a_new_shallow_costs_a_syncfs, .times = 2)
{
	settle();
	tmp_put("r.git/shallow", "");
	packs_new = _i == 1;
	ck_assert_int_eq(cost_of(0, _i == 1 ? 3 : 0), REFD_PENDING);
	shallow_new = true;
	ck_assert_int_eq(cost_of(1, 0), REFD_PENDING);
}

/* The barrier compares the last durations of both ways on this disk. */
TEST(packs_where_a_syncfs_is_cheaper)
{
	int i;

	syncfs_ns = 100 * S;
	settle();
	packs_new = true;
	fsync_ns = 40 * S;
	ck_assert_int_eq(cost_of(0, 3), REFD_PENDING);
	ck_assert_int_eq(cost_of(1, 0), REFD_PENDING);
	/* The fsyncs are tried again later. */
	for (i = 0; nr_fsync == 3 && i < 10; i++)
		cost_of(i == 0, i == 0 ? 0 : 3);
	ck_assert_int_eq(nr_fsync, 6);
}

/* Objects that a partial barrier left out do not count as durable. */
TEST(loose_ones_beside_packs)
{
	settle();
	packs_new = true;
	ck_assert_int_eq(cost_of(0, 3), REFD_PENDING);
	packs_new = false;
	loose_new = true;
	ck_assert_int_eq(cost_of(1, 0), REFD_PENDING);
	packs_new = true;
	ck_assert_int_eq(cost_of(1, 0), REFD_PENDING);
}

TEST(many_packs)
{
	settle();
	tmp_run("cd r.git/objects/pack && p=$(ls *.pack) && for i in 1 2 3 4; "
		"do cp $p pack-$i.pack; cp ${p%%.pack}.idx pack-$i.idx; done");
	packs_new = true;
	ck_assert_int_eq(cost_of(1, 0), REFD_PENDING);
}

/* Others do not wait for a look at each of very many files. */
TEST(many_old_files)
{
	settle();
	tmp_run(
	    "cd r.git/objects/pack && seq -f old-%%g.rev 9000 | xargs touch");
	packs_new = true;
	ck_assert_int_eq(cost_of(1, 0), REFD_PENDING);
}

TEST(a_repository_that_is_new_itself, .times = 2)
{
	settle();
	packs_new = true;
	repo_new = _i == 0;
	config_new = _i == 1;
	ck_assert_int_eq(cost_of(1, 0), REFD_PENDING);
}

#define NR_NEW 3 /* plus r.git: fewer than the rig keeps open */

static void admit_at(int i, const char *hex)
{
	char path[sizeof(sr_repo) + 16];
	struct refd_txid id;

	snprintf(path, sizeof(path), "%s%d", sr_repo, i);
	refd_txid_make(&id);
	store_admit(sr_store, sr_make_txn(&id, path, "refs/heads/a", hex));
}

static uint64_t nr_flushes(void)
{
	struct store_stats stats;

	store_stats(sr_store, &stats);
	return stats.flushes;
}

static void take_back(int nr)
{
	struct store_done done;

	while (nr-- > 0) {
		done = sr_wait_done();
		ck_assert_ptr_nonnull(done.admitted);
		ck_assert_int_eq(done.admitted->refused, REFD_OK);
		ck_assert_int_eq(done.admitted->updates[0].status,
		    REFD_PENDING);
		sr_done_with(done.admitted);
	}
}

static int nr_before_barrier(void)
{
	const struct txn *txn;
	int nr = 0;

	mutex_lock(&sr_store->barriers.mutex);
	for (txn = sr_store->barriers.waiting.head; txn != NULL;
	    txn = txn->next)
		nr++;
	mutex_unlock(&sr_store->barriers.mutex);
	return nr;
}

/* The other transactions arrive during the first syncfs. The last transaction
 * names no object. */
TEST(repositories_that_nobody_served)
{
	static const char none[] = "0000000000000000000000000000000000000000";
	uint64_t flushes;
	int i, syncs;

	settle();
	tmp_run("for i in 0 1 2; do cp -r r.git r.git$i && "
		"rm -r r.git$i/refd; done");
	ids_new = syncfs_waits = true;
	sem_init(&syncfs_began, 0, 0);
	sem_init(&syncfs_goes_on, 0, 0);
	/* Too little time for a repository to be closed meanwhile. */
	syncfs_ns = S;
	flushes = nr_flushes();
	syncs = nr_syncfs;
	admit_at(0, sr_commit);
	sem_wait(&syncfs_began);
	for (i = 1; i < NR_NEW; i++)
		admit_at(i, i == NR_NEW - 1 ? none : sr_commit);
	/* Every admission thread takes one. */
	while (nr_before_barrier() < NR_NEW - 1)
		sched_yield();
	ck_assert_int_eq(cost_of(0, 0), REFD_PENDING);
	syncfs_waits = false;
	sem_post(&syncfs_goes_on);
	take_back(NR_NEW);
	ck_assert_int_eq(nr_syncfs - syncs, 2);
	ck_assert_uint_ge(nr_flushes() - flushes, 1);
	ck_assert_uint_le(nr_flushes() - flushes, 2);
	flushes = nr_flushes();
	for (i = 0; i < NR_NEW; i++)
		admit_at(i, sr_commit);
	take_back(NR_NEW);
	ck_assert_int_eq(nr_syncfs - syncs, 2);
	ck_assert_uint_eq(nr_flushes(), flushes);
}

/* The journal is opened again during the syncfs, and may have lost the row. */
TEST(a_repository_whose_row_may_be_lost_is_refused)
{
	char path[sizeof(sr_repo) + 1];
	struct refd_txid id;
	struct txn *txn;

	settle();
	tmp_run("cp -r r.git r.git0 && rm -r r.git0/refd");
	snprintf(path, sizeof(path), "%s0", sr_repo);
	ids_new = syncfs_waits = true;
	sem_init(&syncfs_began, 0, 0);
	sem_init(&syncfs_goes_on, 0, 0);
	refd_txid_make(&id);
	txn = sr_make_txn(&id, path, "refs/heads/a", sr_commit);
	store_admit(sr_store, txn);
	sem_wait(&syncfs_began);
	txn->repo->journal_epoch--;
	syncfs_waits = false;
	sem_post(&syncfs_goes_on);
	ck_assert_ptr_eq(sr_wait_done().admitted, txn);
	ck_assert_int_ne(txn->updates[0].status, REFD_PENDING);
	sr_done_with(txn);
}

TEST(a_pack_that_goes_meanwhile)
{
	settle();
	packs_new = pack_goes = true;
	ck_assert_int_eq(cost_of(1, 0), REFD_PENDING);
}

/* While the packs are synced, another pack arrives. */
TEST(a_pack_that_comes_meanwhile)
{
	settle();
	packs_new = packs_change = true;
	ck_assert_int_eq(cost_of(1, 3), REFD_PENDING);
}

TEST(a_clock_set_back)
{
	settle();
	wall_back_ns = 60 * S;
	ck_assert_int_eq(cost_of(1, 0), REFD_PENDING);
}

/* The checkpointer noticed the clock, although all files look old now. */
TEST(a_clock_set_back_and_forth)
{
	struct store_question cp = { .kind = STORE_ASK_CHECKPOINT };

	settle();
	wall_back_ns = 60 * S;
	store_ask(sr_store, &cp);
	ck_assert_ptr_eq(sr_wait_done().answered, &cp);
	wall_back_ns = 0;
	ck_assert_int_eq(cost_of(1, 0), REFD_PENDING);
}

static const struct {
	int err;
	enum refd_status status;
} failures[] = {
	{ -EIO, REFD_IO },
	{ -ENOSPC, REFD_NOSPACE },
	{ -EDQUOT, REFD_NOSPACE },
};
#define NR_FAILURES ((int)(sizeof(failures) / sizeof(failures[0])))

/* A failed file system is opened again and synced twice: once to see that a
 * sync succeeds, and once because all earlier knowledge is void. */
static void is_believed_again(void)
{
	syncfs_fails = fsync_fails = 0;
	loose_new = false;
	packs_new = true;
	ck_assert_int_eq(cost_of(2, 0), REFD_PENDING);
	ck_assert_int_eq(cost_of(0, 3), REFD_PENDING);
}

TEST(a_syncfs_that_fails_is_refused, .times = NR_FAILURES)
{
	settle();
	loose_new = true;
	syncfs_fails = failures[_i].err;
	ck_assert_int_eq(cost_of(0, 0), failures[_i].status);
	is_believed_again();
}

/* After one failed pack, any other object may be lost, too. */
TEST(a_pack_that_fails_is_refused, .times = NR_FAILURES)
{
	settle();
	packs_new = true;
	fsync_fails = failures[_i].err;
	ck_assert_int_eq(cost_of(0, 0), failures[_i].status);
	is_believed_again();
}

static enum refd_status refused_for(const char *alternates)
{
	enum refd_status refused;
	struct refd_txid id;
	struct txn *txn;

	tmp_put("r.git/objects/info/alternates", alternates);
	refd_txid_make(&id);
	txn = sr_admit(&id, sr_repo, "refs/heads/a", sr_commit);
	refused = txn->refused;
	sr_done_with(txn);
	return refused;
}

TEST(alternates_are_synced_too)
{
	settle();
	tmp_run("git init -q --bare pool.git");
	tmp_put("r.git/objects/info/alternates", "../../pool.git/objects\n");
	ck_assert_int_eq(cost_of(0, 0), REFD_PENDING);
	alternates_new = true;
	ck_assert_int_eq(cost_of(1, 0), REFD_PENDING);
	/* Refused, so git does the work. */
	ck_assert_int_eq(refused_for("/nowhere/objects\n"), REFD_UNSUPPORTED);
	ck_assert_int_eq(refused_for("\"/quoted/objects\"\n"),
	    REFD_UNSUPPORTED);
}
