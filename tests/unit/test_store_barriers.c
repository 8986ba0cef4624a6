/*
 * Proves that no barrier trusts a sync if the kernel reported the failure to
 * another barrier. Two repositories on separate file systems share the objects
 * of one repository. The sync of these objects fails, and the transactions of
 * both repositories that need the objects are refused.
 */
#include <errno.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tests/lib/store_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

/* Time for which the failing sync waits to be passed by another sync. */
#define PASS_NS 300000000

static struct sys disk;
static _Atomic bool is_lost; /* data written to the other disk */
static _Atomic bool is_told; /* the barrier's descriptor got the error */
static sem_t has_failed, has_passed;

/* As in the kernel: an error is reported once to a descriptor. */
static int disk_syncfs(const struct sys *sys, int fd)
{
	struct timespec until;

	if (!is_lost || !sr_is_on_other(sys, fd))
		return sys_kernel.syncfs(sys, fd);
	if (atomic_exchange(&is_told, true)) {
		sem_post(&has_passed);
		return 0;
	}
	sem_post(&has_failed);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += PASS_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	sem_timedwait(&has_passed, &until);
	return -EIO;
}

static void setup(void)
{
	disk = sys_kernel;
	disk.mount_id = sr_disk_mount_id;
	disk.syncfs = disk_syncfs;
	disk.fs_type = sr_other_fs_type;
	is_lost = is_told = false;
	sem_init(&has_failed, 0, 0);
	sem_init(&has_passed, 0, 0);
	sr_sys = &disk;
	sr_interval_ns = INT64_C(3600) * 1000000000;
	sr_setup();
	sr_make_other();
	tmp_run("echo %s/objects >r.git/objects/info/alternates", sr_other);
}

static struct txn *make_at(const char *path, const char *hex)
{
	struct refd_txid id;

	refd_txid_make(&id);
	return sr_make_txn(&id, path, "refs/heads/a", hex);
}

static void is_admitted(const char *path)
{
	struct txn *txn = make_at(path, sr_commit);

	store_admit(sr_store, txn);
	ck_assert_ptr_eq(sr_wait_done().admitted, txn);
	ck_assert_int_eq(txn->refused, REFD_OK);
	ck_assert_int_eq(txn->updates[0].status, REFD_PENDING);
	sr_done_with(txn);
}

CASE(.setup = setup, .teardown = sr_teardown, .seconds = 60);

TEST(a_failed_sync_is_known_to_both)
{
	char hex[REFD_OID_MAX_HEX + 1];
	struct txn *txn;
	int i;

	is_admitted(sr_other);
	is_admitted(sr_repo);
	sr_make_commit("lost", hex);
	tmp_run("cp -r r.git/objects/%.2s other/s.git/objects/ && rm -r "
		"r.git/objects/%.2s",
	    hex, hex);
	is_lost = true;
	store_admit(sr_store, make_at(sr_other, hex));
	sem_wait(&has_failed);
	store_admit(sr_store, make_at(sr_repo, hex));
	for (i = 0; i < 2; i++) {
		txn = sr_wait_done().admitted;
		ck_assert_int_eq(txn->updates[0].status, REFD_IO);
		sr_done_with(txn);
	}
	is_lost = false;
}
