/*
 * Proves that trimming closes a replaced packed-refs without the mutex of the
 * repositories. The last close of a removed file may block on a frozen or
 * hanging file system, and the loop thread takes this mutex.
 */
#include <sys/stat.h>

#include "daemon/base/mutex.h"
#include "daemon/store/store_internal.h"
#include "tests/lib/store_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

static struct sys disk;
static _Atomic int64_t passed_ns;
static _Atomic int nr_closed, nr_closed_locked;

static int64_t disk_now_mono(const struct sys *sys)
{
	return sys_kernel.now_mono(sys) + passed_ns;
}

static int disk_close(const struct sys *sys, int fd)
{
	struct mutex *mutex;
	struct stat st;

	/* A removed file. */
	if (sr_store != NULL && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    st.st_nlink == 0) {
		mutex = &sr_store->repos.mutex;
		nr_closed++;
		if (mutex_trylock(mutex) == 0)
			mutex_unlock(mutex);
		else
			nr_closed_locked++;
	}
	return sys_kernel.close(sys, fd);
}

static void setup(void)
{
	disk = sys_kernel;
	disk.now_mono = disk_now_mono;
	disk.close = disk_close;
	passed_ns = 0;
	sr_sys = &disk;
	sr_interval_ns = INT64_C(3600) * 1000000000;
	sr_setup();
}

CASE(.setup = setup, .teardown = sr_teardown, .seconds = 60);

/* The deletion of a packed ref replaces packed-refs. */
TEST(a_replaced_packed_refs)
{
	static const char none[] = "0000000000000000000000000000000000000000";
	struct refd_txid id;
	struct txn *txn;

	tmp_run("git -C r.git update-ref refs/heads/a %s && "
		"git -C r.git pack-refs --all",
	    sr_commit);
	refd_txid_make(&id);
	txn = sr_admit(&id, sr_repo, "refs/heads/a", none);
	sr_apply(txn);
	ck_assert_int_eq(txn->updates[0].status, REFD_OK);
	sr_done_with(txn);
	passed_ns = INT64_C(5) * 1000000000;
	nr_closed = nr_closed_locked = 0;
	repos_trim(&sr_store->repos, INT64_MAX / 2);
	ck_assert_int_eq(nr_closed, 1);
	ck_assert_int_eq(nr_closed_locked, 0);
}
