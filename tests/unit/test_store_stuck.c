/*
 * Proves that a repository on a hanging disk does not stop the admission of
 * other repositories, regardless of the number of hanging repositories. Open
 * repositories hold no more workers than repositories that are being opened. A
 * waiting transaction that is given up comes back at once and is never begun,
 * also at a hanging syncfs. A repository with a hanging packed-refs does not
 * keep other repositories from being opened. When the disk is back, all
 * remaining transactions come back.
 */
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "daemon/store/admission/admissions_internal.h"
#include "daemon/store/store_internal.h"
#include "tests/lib/store_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

static struct sys disk;
static _Atomic bool hangs, syncs_hang; /* syncs_hang needs hangs */
static _Atomic bool packed_hangs, objects_hang;
static _Atomic int nr_held;
static sem_t is_held, let_go, objects_go;

static void hang_until(sem_t *go, const char *path)
{
	if (!hangs || strstr(path, "hung") == NULL)
		return;
	nr_held++;
	sem_post(&is_held);
	sem_wait(go);
}

static void hang_at(const char *path)
{
	hang_until(&let_go, path);
}

static int disk_open_below(const struct sys *sys, int dirfd, const char *path,
    bool *is_plain)
{
	if (!objects_hang)
		hang_at(path);
	return sys_kernel.open_below(sys, dirfd, path, is_plain);
}

static int disk_openat(const struct sys *sys, int dirfd, const char *path,
    int flags, mode_t mode)
{
	char dir[4096];

	if (!objects_hang)
		hang_at(packed_hangs && strcmp(path, "packed-refs") == 0 ?
			"hung" :
			path);
	/* Loose objects: by now the repository is open. */
	else if (strncmp(path, sr_commit, 2) == 0 && strlen(path) == 2 &&
	    sys_kernel.fd_path(sys, dirfd, dir, sizeof(dir)) == 0)
		hang_until(&objects_go, dir);
	return sys_kernel.openat(sys, dirfd, path, flags, mode);
}

static int disk_syncfs(const struct sys *sys, int fd)
{
	hang_at(syncs_hang ? "hung" : "");
	return sys_kernel.syncfs(sys, fd);
}

static void setup(void)
{
	disk = sys_kernel;
	disk.open_below = disk_open_below;
	disk.openat = disk_openat;
	disk.syncfs = disk_syncfs;
	disk.fs_type = sr_other_fs_type;
	hangs = syncs_hang = packed_hangs = objects_hang = false;
	nr_held = 0;
	sem_init(&is_held, 0, 0);
	sem_init(&let_go, 0, 0);
	sem_init(&objects_go, 0, 0);
	sr_sys = &disk;
	sr_interval_ns = INT64_C(3600) * 1000000000;
	sr_setup();
	tmp_run("for i in 0 1 2 3 4 5 6 7; do cp -r r.git hung$i.git; done");
}

static void teardown(void)
{
	sr_teardown();
}

static struct txn *make_at(const char *name)
{
	char path[sizeof(sr_repo) + 32];
	struct refd_txid id;

	snprintf(path, sizeof(path), "%s/%s", tmp_root, name);
	refd_txid_make(&id);
	return sr_make_txn(&id, path, "refs/heads/a", sr_commit);
}

static void admit_at(const char *name)
{
	struct txn *txn = make_at(name);

	store_admit(sr_store, txn);
	ck_assert_ptr_eq(sr_wait_done().admitted, txn);
	ck_assert_int_eq(txn->refused, REFD_OK);
	ck_assert_int_eq(txn->updates[0].status, REFD_PENDING);
	sr_done_with(txn);
}

/* R.git is open already, as are all repositories in use. */
static void admit_another(void)
{
	admit_at("r.git");
}

static void come_back(int nr)
{
	struct txn *txn;

	hangs = false;
	while (nr_held-- > 0) {
		sem_post(&let_go);
		sem_post(&objects_go);
	}
	while (nr-- > 0) {
		txn = sr_wait_done().admitted;
		ck_assert_int_eq(txn->refused, REFD_OK);
		sr_done_with(txn);
	}
}

CASE(.setup = setup, .teardown = teardown, .seconds = 60);

TEST(others_are_admitted)
{
	admit_another();
	hangs = true;
	store_admit(sr_store, make_at("hung0.git"));
	sem_wait(&is_held);
	admit_another();
	admit_another();
	come_back(1);
}

/* The repositories of the inner root hold the workers of their root alone. */
TEST(a_root_below_a_root_hangs_alone)
{
	char inner[sizeof(sr_repo)];

	sr_close();
	snprintf(inner, sizeof(inner), "%s/inner", tmp_root);
	tmp_run("mkdir inner && mv hung?.git inner");
	sr_inner_root = inner;
	sr_open();
	hangs = true;
	store_admit(sr_store, make_at("inner/hung0.git"));
	sr_await(&is_held);
	store_admit(sr_store, make_at("inner/hung1.git"));
	sr_await(&is_held);
	admit_another();
	come_back(2);
	sr_inner_root = NULL;
}

TEST(others_are_admitted_while_many_hang)
{
	char name[32];
	int i;

	admit_another();
	hangs = true;
	for (i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "hung%d.git", i);
		store_admit(sr_store, make_at(name));
	}
	for (i = 0; i < ADMISSION_PER_PLACE; i++)
		sem_wait(&is_held);
	admit_another();
	ck_assert_int_eq(nr_held, ADMISSION_PER_PLACE);
	come_back(8);
}

/* Number of workers with a queue. *WAITS: a further queue waits, and no worker
 * may take it. */
static size_t nr_at_work(bool *waits)
{
	const struct admission_queues *a = &sr_store->admissions->queues;
	size_t i, nr = 0;

	mutex_lock(&sr_store->admissions->mutex);
	for (i = 0; i < ADMISSION_WORKERS; i++)
		nr += a->slots[i].queue != NULL;
	*waits = a->ready != NULL && !admission_queues_has_work(a);
	mutex_unlock(&sr_store->admissions->mutex);
	return nr;
}

/* Below one root, newly opened repositories count for their file system in the
 * same way as repositories that were open before. */
TEST(a_file_system_that_hangs_holds_few_workers)
{
	bool waits = false;
	char name[32];
	int i;

	admit_at("hung7.git");
	while (nr_at_work(&waits) > 0)
		sched_yield();
	hangs = objects_hang = true;
	for (i = 0; i < ADMISSION_PER_PLACE; i++) {
		snprintf(name, sizeof(name), "hung%d.git", i);
		store_admit(sr_store, make_at(name));
		sem_wait(&is_held);
	}
	store_admit(sr_store, make_at("hung7.git"));
	while (nr_at_work(&waits) == ADMISSION_PER_PLACE && !waits)
		sched_yield();
	ck_assert(waits);
	come_back(ADMISSION_PER_PLACE + 1);
}

/* Two repositories below one root hang in their opening, then at their objects.
 * The third repository waits for the root only until both are open: less than
 * the interval after which a thread looks by itself. */
TEST(a_root_is_free_once_its_repositories_are_open)
{
	struct timespec began, now;
	bool waits = false;
	struct txn *txn;
	char name[32];
	int i;

	tmp_run("cp -r r.git free.git");
	hangs = true;
	for (i = 0; i < ADMISSION_PER_PLACE; i++) {
		snprintf(name, sizeof(name), "hung%d.git", i);
		store_admit(sr_store, make_at(name));
		sem_wait(&is_held);
	}
	txn = make_at("free.git");
	store_admit(sr_store, txn);
	while (nr_at_work(&waits) == ADMISSION_PER_PLACE && !waits)
		sched_yield();
	objects_hang = true;
	clock_gettime(CLOCK_MONOTONIC, &began);
	for (i = 0; i < ADMISSION_PER_PLACE; i++)
		sem_post(&let_go);
	ck_assert_ptr_eq(sr_wait_done().admitted, txn);
	clock_gettime(CLOCK_MONOTONIC, &now);
	ck_assert_int_lt(now.tv_sec - began.tv_sec, 6);
	sr_done_with(txn);
	come_back(ADMISSION_PER_PLACE);
}

TEST(what_is_given_up_is_never_begun)
{
	struct txn *txns[3];
	int i;

	admit_another();
	hangs = true;
	for (i = 0; i < 3; i++) {
		txns[i] = make_at("hung0.git");
		store_admit(sr_store, txns[i]);
	}
	sem_wait(&is_held);
	/* The transaction may still be in the look-up, or waiting. */
	for (i = 0; i < 2; i++) {
		store_give_up(sr_store, txns[i]);
		ck_assert_ptr_eq(sr_wait_done().admitted, txns[i]);
		ck_assert_ptr_null(txns[i]->repo);
		ck_assert_int_eq(txns[i]->refused, REFD_OK);
		ck_assert_int_eq(txns[i]->updates[0].status, REFD_PENDING);
		sr_done_with(txns[i]);
	}
	admit_another();
	come_back(1);
}

/* Exactly once: the transaction was done before, and the answer says so. */
TEST(an_id_that_was_used_is_known_all_the_same)
{
	struct refd_txid id;
	struct txn *txn;

	refd_txid_make(&id);
	txn = sr_admit(&id, sr_repo, "refs/heads/a", sr_commit);
	sr_apply(txn);
	sr_done_with(txn);
	txn = sr_make_txn(&id, sr_repo, "refs/heads/a", sr_commit);
	store_admit(sr_store, txn);
	store_give_up(sr_store, txn);
	ck_assert_ptr_eq(sr_wait_done().admitted, txn);
	sr_done_with_replayed(txn);
}

/* A syncfs hangs, and the next syncfs is not begun: both transactions can be
 * given up, and later failures of other syncs do not concern them. */
TEST(what_waits_at_the_barrier_is_given_up)
{
	struct txn *first, *second;

	hangs = syncs_hang = true;
	first = make_at("r.git");
	store_admit(sr_store, first);
	sem_wait(&is_held);
	second = make_at("r.git");
	store_admit(sr_store, second);
	store_give_up(sr_store, first);
	ck_assert_ptr_eq(sr_wait_done().admitted, first);
	ck_assert_int_eq(first->updates[0].status, REFD_PENDING);
	sr_done_with(first);
	store_give_up(sr_store, second);
	ck_assert_ptr_eq(sr_wait_done().admitted, second);
	sr_done_with(second);
	come_back(0);
	admit_another();
}

/* TXN is given up while a worker reads its object, before it waits at the
 * barrier. It must not wait for the syncfs that hangs. */
TEST(what_is_given_up_before_the_barrier_comes_back)
{
	struct txn *txn;

	hangs = syncs_hang = objects_hang = true;
	txn = make_at("hung0.git");
	store_admit(sr_store, txn);
	sem_wait(&is_held);
	store_give_up(sr_store, txn);
	objects_hang = false;
	sem_post(&objects_go);
	ck_assert_ptr_eq(sr_wait_done().admitted, txn);
	sr_done_with(txn);
	come_back(0);
}

/* A hanging packed-refs: the table of repositories is full, and a repository to
 * be closed is searched. */
TEST(others_are_opened_while_packed_refs_hangs)
{
	struct txn *txn = make_at("r.git"), *another;
	struct batch *b;
	char name[32];
	int i;

	tmp_run("cd r.git && git update-ref refs/heads/p %s && git pack-refs "
		"--all",
	    sr_commit);
	store_admit(sr_store, txn);
	ck_assert_ptr_eq(sr_wait_done().admitted, txn);
	hangs = packed_hangs = true;
	b = sr_make_batch(txn);
	store_apply(sr_store, b);
	sem_wait(&is_held);
	hangs = false;
	for (i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "hung%d.git", i);
		another = make_at(name);
		store_admit(sr_store, another);
		ck_assert_ptr_eq(sr_wait_done().admitted, another);
		ck_assert_int_eq(another->refused, REFD_OK);
		sr_done_with(another);
	}
	sem_post(&let_go);
	ck_assert_ptr_eq(sr_wait_done().applied, b);
	ck_assert_int_eq(txn->updates[0].status, REFD_OK);
	batch_free(b);
	sr_done_with(txn);
}
