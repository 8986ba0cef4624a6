/*
 * Proves that a hanging disk during the redo of deferred records delays no
 * other repository. Meanwhile the journal fails, is opened again, and takes the
 * updates of other repositories. Once the disk comes back, the retry writes its
 * notes to the reopened journal, and nothing is redone twice.
 */
#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/lib/store_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/sysvfs.h"
#include "tests/lib/tmp.h"

#define WAIT_S 30

static struct sys disk;
static struct sysvfs *vfs;
static _Atomic bool holds, journal_fails;
static sem_t is_held, let_go;
static char second[REFD_OID_MAX_HEX + 1];

static int disk_syncfs(const struct sys *sys, int fd)
{
	if (holds && sr_is_on_other(sys, fd)) {
		sem_post(&is_held);
		sem_wait(&let_go);
	}
	return sys_kernel.syncfs(sys, fd);
}

static int disk_fdatasync(const struct sys *sys, int fd)
{
	char path[4096];

	if (journal_fails &&
	    sys_kernel.fd_path(sys, fd, path, sizeof(path)) == 0 &&
	    strstr(path, "/journal.db-wal") != NULL) {
		journal_fails = false;
		return -EIO;
	}
	return sys_kernel.fdatasync(sys, fd);
}

static void setup(void)
{
	disk = sys_kernel;
	disk.mount_id = sr_disk_mount_id;
	disk.syncfs = disk_syncfs;
	disk.fs_type = sr_other_fs_type;
	disk.fdatasync = disk_fdatasync;
	holds = journal_fails = false;
	sem_init(&is_held, 0, 0);
	sem_init(&let_go, 0, 0);
	/* In place of SQLite's own, which the store names. */
	vfs = sysvfs_new("unix-excl", &disk);
	ck_assert_ptr_nonnull(vfs);
	sr_sys = &disk;
	/* Only an admission tries again. */
	sr_interval_ns = INT64_C(3600) * 1000000000;
	sr_setup();
	sr_make_commit("y", second);
	sr_make_other();
}

static void teardown(void)
{
	sr_teardown();
	sysvfs_free(vfs);
}

static enum refd_status update(const char *repo, const char *name)
{
	enum refd_status status;
	struct refd_txid id;
	struct txn *txn;

	refd_txid_make(&id);
	txn = sr_admit(&id, repo, name, sr_commit);
	sr_apply(txn);
	status = txn->updates[0].status;
	sr_done_with(txn);
	return status;
}

static void assert_redone(void)
{
	char *out = tmp_output("git -C other/s.git rev-parse refs/heads/a");

	ck_assert_str_eq(strtok(out, "\n"), second);
	free(out);
}

CASE(.setup = setup, .teardown = teardown, .seconds = 4 * WAIT_S);

TEST(the_journal_is_mended_while_a_retry_hangs)
{
	struct store_stats stats;
	struct refd_txid id;
	struct txn *txn;

	ck_assert_int_eq(update(sr_other, "refs/heads/b"), REFD_OK);
	sr_close();
	sr_park(sr_other, "", "refs/heads/a", second);
	tmp_run(": >other/s.git/refs/heads/a.lock");
	ck_assert_uint_eq(sr_open_deferred(), 1);
	ck_assert_int_eq(update(sr_repo, "refs/heads/a"), REFD_OK);
	tmp_run("rm other/s.git/refs/heads/a.lock");
	holds = true;
	refd_txid_make(&id);
	txn = sr_make_txn(&id, sr_other, "refs/heads/c", sr_commit);
	store_admit(sr_store, txn);
	sr_await(&is_held);
	holds = false;
	journal_fails = true;
	/* The kernel of this test has lost no page. */
	ck_assert_int_eq(update(sr_repo, "refs/heads/b"), REFD_OK);
	ck_assert(!journal_fails);
	ck_assert_int_eq(update(sr_repo, "refs/heads/c"), REFD_OK);
	sem_post(&let_go);
	ck_assert_ptr_eq(sr_wait_done().admitted, txn);
	/* The update itself may be refused: the repository was registered
	 * before the journal was opened again. */
	sr_done_with(txn);
	assert_redone();
	store_stats(sr_store, &stats);
	ck_assert_uint_eq(stats.awaiting_refs, 0);
	ck_assert_int_eq(update(sr_other, "refs/heads/d"), REFD_OK);
	sr_close();
	sr_found_count = 0;
	sr_open();
	ck_assert_uint_eq(sr_found_count, 0);
	assert_redone();
}
