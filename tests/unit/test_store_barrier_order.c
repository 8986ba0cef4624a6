/*
 * Proves the order of transactions at the object barrier while a syncfs hangs.
 * The transactions of a repository keep their order, even if the syncfs takes
 * so long that a second thread serves the file system. The file system holds
 * few threads.
 */
#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#include "daemon/store/store_internal.h"
#include "tests/lib/store_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define S 1000000000LL
/* Time in which a transaction would overtake an earlier transaction. */
#define PASS_MS 300

static struct sys disk;
/* Files that seem to have changed just now. All other files are old. */
static _Atomic bool loose_new, ids_new;
static _Atomic bool syncfs_hangs;
static sem_t has_begun, goes_on;
static _Atomic int64_t passed_ns; /* by the store's clocks alone */

static int disk_syncfs(const struct sys *sys, int fd)
{
	if (syncfs_hangs) {
		sem_post(&has_begun);
		sem_wait(&goes_on);
	}
	return sys_kernel.syncfs(sys, fd);
}

static bool looks_new(const char *path)
{
	if (strcmp(path, "id") == 0)
		return ids_new;
	return loose_new && strlen(path) == 2;
}

static int disk_lstatat(const struct sys *sys, int dirfd, const char *path,
    struct sys_stat *st)
{
	int r = sys_kernel.lstatat(sys, dirfd, path, st);

	st->ctime_ns += looks_new(path) ? 3600 * S : -3600 * S;
	return r;
}

static int64_t disk_now_wall(const struct sys *sys)
{
	return sys_kernel.now_wall(sys) + passed_ns;
}

static int64_t disk_now_mono(const struct sys *sys)
{
	return sys_kernel.now_mono(sys) + passed_ns;
}

static struct txn *admit_at(const char *path)
{
	struct refd_txid id;
	struct txn *txn;

	refd_txid_make(&id);
	txn = sr_make_txn(&id, path, "refs/heads/a", sr_commit);
	store_admit(sr_store, txn);
	return txn;
}

static void take_back(const struct txn *expected)
{
	struct txn *txn = sr_wait_done().admitted;

	if (expected != NULL)
		ck_assert_ptr_eq(txn, expected);
	ck_assert_int_eq(txn->refused, REFD_OK);
	ck_assert_int_eq(txn->updates[0].status, REFD_PENDING);
	sr_done_with(txn);
}

/* Number of slots that serve a file system. */
static int nr_serving(void)
{
	int i, nr = 0;

	mutex_lock(&sr_store->barriers.mutex);
	for (i = 0; i < BARRIERS_WORKERS; i++)
		nr += sr_store->barriers.slots[i].fs != NULL;
	mutex_unlock(&sr_store->barriers.mutex);
	return nr;
}

static bool one_waits(void)
{
	bool waits;

	mutex_lock(&sr_store->barriers.mutex);
	waits = sr_store->barriers.waiting.head != NULL;
	mutex_unlock(&sr_store->barriers.mutex);
	return waits;
}

/* The repository is known and has no new object. */
static void setup(void)
{
	disk = sys_kernel;
	disk.syncfs = disk_syncfs;
	disk.fs_type = sr_other_fs_type;
	disk.lstatat = disk_lstatat;
	disk.now_wall = disk_now_wall;
	disk.now_mono = disk_now_mono;
	loose_new = ids_new = syncfs_hangs = false;
	passed_ns = 0;
	sem_init(&has_begun, 0, 0);
	sem_init(&goes_on, 0, 0);
	sr_sys = &disk;
	sr_interval_ns = 3600 * S;
	sr_setup();
	take_back(admit_at(sr_repo));
	/* The thread may still be about to end. */
	while (nr_serving() > 0)
		sched_yield();
}

CASE(.setup = setup, .teardown = sr_teardown, .seconds = 60);

/* The first transaction waits for a syncfs. The second needs no syncfs. */
TEST(one_repository_keeps_its_order, .times = 2)
{
	struct txn *first, *second;

	loose_new = syncfs_hangs = true;
	first = admit_at(sr_repo);
	sem_wait(&has_begun);
	loose_new = syncfs_hangs = false;
	passed_ns += _i * 10 * S;
	second = admit_at(sr_repo);
	poll(NULL, 0, PASS_MS);
	sem_post(&goes_on);
	take_back(first);
	take_back(second);
}

/* Makes copies of the repository that the daemon never served. The sync before
 * the first update there hangs. */
static void make_new_repos(void)
{
	tmp_run("for i in 0 1 2; do cp -r r.git r.git$i && "
		"rm -r r.git$i/refd; done");
	ids_new = syncfs_hangs = true;
}

static void admit_at_new(int i)
{
	char path[sizeof(sr_repo) + 16];

	snprintf(path, sizeof(path), "%s%d", sr_repo, i);
	admit_at(path);
}

TEST(a_file_system_holds_few_threads)
{
	int i;

	make_new_repos();
	for (i = 0; i <= BARRIERS_OF_FS; i++) {
		admit_at_new(i);
		while (nr_serving() < i + 1 &&
		    (i < BARRIERS_OF_FS || !one_waits()))
			sched_yield();
		passed_ns += 10 * S;
	}
	poll(NULL, 0, PASS_MS);
	ck_assert_int_eq(nr_serving(), BARRIERS_OF_FS);
	sem_wait(&has_begun);
	syncfs_hangs = false;
	sem_post(&goes_on);
	while (i-- > 0)
		take_back(NULL);
}

/* No other transaction comes: a waiting thread looks again by itself. */
TEST(a_second_thread_comes_without_another_transaction)
{
	int i;

	make_new_repos();
	for (i = 0; i < 2; i++) {
		admit_at_new(i);
		while (i == 0 ? nr_serving() < 1 : !one_waits())
			sched_yield();
	}
	poll(NULL, 0, PASS_MS);
	ck_assert_int_eq(nr_serving(), 1);
	passed_ns += 10 * S;
	while (nr_serving() < 2)
		sched_yield();
	sem_wait(&has_begun);
	syncfs_hangs = false;
	sem_post(&goes_on);
	sem_post(&goes_on);
	take_back(NULL);
	take_back(NULL);
}
