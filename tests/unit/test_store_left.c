/*
 * Proves the leftovers of a batch that may no longer rename, unlock or open a
 * log, as in a repository that was moved out of the roots. No line of a refused
 * update is left. Its locks go as soon as possible while the daemon runs, and
 * foreign locks stay. No other ref waits. If the line cannot be taken back, the
 * update is unknown, and the next start finishes it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/store_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define LOCK "r.git/refs/heads/x.lock"
#define LOG  "r.git/logs/refs/heads/x"

static struct sys disk;
static atomic_bool moves;   /* with the next rename to x */
static atomic_bool is_away; /* it has moved */
static atomic_bool cant_truncate;
static _Atomic uint64_t foreign_ino; /* inode of foreign.lock in the listing */
static char second[REFD_OID_MAX_HEX + 1];

static bool is_of_x(const char *path)
{
	const char *name = strrchr(path, '/');

	name = name != NULL ? name + 1 : path;
	return strcmp(name, "x") == 0 || strcmp(name, "x.lock") == 0;
}

static int disk_renameat(const struct sys *sys, int from_fd, const char *from,
    int to_fd, const char *to)
{
	if (moves && is_of_x(to)) {
		is_away = true;
		return -EXDEV;
	}
	return sys_kernel.renameat(sys, from_fd, from, to_fd, to);
}

static int disk_openat(const struct sys *sys, int dirfd, const char *path,
    int flags, mode_t mode)
{
	if (is_away && is_of_x(path))
		return -EACCES;
	return sys_kernel.openat(sys, dirfd, path, flags, mode);
}

static int disk_unlinkat(const struct sys *sys, int dirfd, const char *path)
{
	if (is_away && is_of_x(path))
		return -EACCES;
	return sys_kernel.unlinkat(sys, dirfd, path);
}

static int disk_ftruncate(const struct sys *sys, int fd, off_t size)
{
	if (cant_truncate)
		return -EIO;
	return sys_kernel.ftruncate(sys, fd, size);
}

/* As if a directory of refs were a separate mount: inode numbers belong to
 * another file system. */
static int disk_dir_next(const struct sys *sys, struct sys_dir *dir,
    struct sys_dirent *entry)
{
	int r = sys_kernel.dir_next(sys, dir, entry);

	if (r > 0 && foreign_ino != 0 &&
	    strcmp(entry->name, "foreign.lock") == 0)
		entry->ino = foreign_ino;
	return r;
}

static int disk_lstatat(const struct sys *sys, int dirfd, const char *path,
    struct sys_stat *st)
{
	int r = sys_kernel.lstatat(sys, dirfd, path, st);

	if (r == 0 && foreign_ino != 0 &&
	    strstr(path, "foreign.lock") != NULL) {
		st->ino = foreign_ino;
		st->dev++;
	}
	return r;
}

static void setup(void)
{
	disk = sys_kernel;
	disk.renameat = disk_renameat;
	disk.openat = disk_openat;
	disk.unlinkat = disk_unlinkat;
	disk.ftruncate = disk_ftruncate;
	disk.dir_next = disk_dir_next;
	disk.lstatat = disk_lstatat;
	foreign_ino = 0;
	moves = is_away = cant_truncate = false;
	sr_sys = &disk;
	sr_setup_closed();
	sr_make_commit("y", second);
	tmp_run("git -C r.git config core.logAllRefUpdates always");
	sr_open();
}

static void teardown(void)
{
	moves = is_away = cant_truncate = false;
	sr_teardown();
	sr_sys = &sys_kernel;
}

static enum refd_status apply(const char *name, const char *hex)
{
	enum refd_status status;
	struct refd_txid id;
	struct txn *txn;

	refd_txid_make(&id);
	txn = sr_admit(&id, sr_repo, name, hex);
	sr_apply(txn);
	status = txn->updates[0].status;
	if (txn->updates[0].again != TXN_AGAIN_NO)
		status = REFD_LOCKED;
	sr_done_with(txn);
	return status;
}

static bool exists(const char *path)
{
	return faccessat(tmp_fd, path, F_OK, 0) == 0;
}

static int nr_lines(void)
{
	char *out = tmp_output("wc -l <" LOG);
	int nr = atoi(out);

	free(out);
	return nr;
}

static void assert_x(const char *hex, int lines)
{
	char *out = tmp_output("git -C r.git rev-parse refs/heads/x");

	ck_assert_str_eq(strtok(out, "\n"), hex);
	free(out);
	ck_assert_int_eq(nr_lines(), lines);
}

static void await_unlocked(void)
{
	int tries;

	for (tries = 0; exists(LOCK); tries++) {
		ck_assert_int_lt(tries, 10000);
		poll(NULL, 0, 5);
	}
}

CASE(.setup = setup, .teardown = teardown, .seconds = 120);

TEST(locks_go_as_soon_as_they_can)
{
	char *out;

	ck_assert_int_eq(apply("refs/heads/x", sr_commit), REFD_OK);
	moves = true;
	ck_assert_int_eq(apply("refs/heads/x", second), REFD_IO);
	assert_x(sr_commit, 1);
	ck_assert(exists(LOCK));
	/* Other refs do not wait. */
	ck_assert_int_eq(apply("refs/heads/z", second), REFD_OK);
	ck_assert_int_eq(apply("refs/heads/x", second), REFD_LOCKED);
	moves = is_away = false;
	await_unlocked();
	tmp_run("git -C r.git update-ref refs/heads/x %s", second);
	ck_assert_int_eq(apply("refs/heads/x", sr_commit), REFD_OK);
	assert_x(sr_commit, 3);
	sr_close();
	out = tmp_output("find r.git/refd/stage -type f");
	ck_assert_str_eq(out, "");
	free(out);
	sr_open();
	assert_x(sr_commit, 3);
}

/* A session that holds a lock meanwhile keeps it. */
TEST(a_session_keeps_its_locks)
{
	struct refd_txid id;
	struct batch *b;
	struct txn *txn;

	ck_assert_int_eq(apply("refs/heads/x", sr_commit), REFD_OK);
	refd_txid_make(&id);
	txn = sr_admit(&id, sr_repo, "refs/heads/held", second);
	b = sr_make_batch(txn);
	b->session = BATCH_PREPARE;
	store_apply(sr_store, b);
	batch_free(sr_wait_done().applied);
	ck_assert(exists("r.git/refs/heads/held.lock"));
	moves = true;
	ck_assert_int_eq(apply("refs/heads/x", second), REFD_IO);
	moves = is_away = false;
	await_unlocked();
	ck_assert(exists("r.git/refs/heads/held.lock"));
	b = sr_make_batch(txn);
	b->session = BATCH_COMMIT;
	store_apply(sr_store, b);
	batch_free(sr_wait_done().applied);
	ck_assert_int_eq(txn->updates[0].status, REFD_OK);
	sr_done_with(txn);
	ck_assert(!exists("r.git/refs/heads/held.lock"));
}

TEST(a_lock_on_another_mount_stays)
{
	struct stat st;

	ck_assert_int_eq(apply("refs/heads/x", sr_commit), REFD_OK);
	tmp_put("r.git/refs/mount/foreign.lock", "");
	moves = true;
	ck_assert_int_eq(apply("refs/heads/x", second), REFD_IO);
	ck_assert_int_eq(fstatat(tmp_fd, LOCK, &st, 0), 0);
	foreign_ino = st.st_ino;
	moves = is_away = false;
	await_unlocked();
	sr_close();
	ck_assert(exists("r.git/refs/mount/foreign.lock"));
}

TEST(a_line_that_stays_makes_it_unknown)
{
	ck_assert_int_eq(apply("refs/heads/x", sr_commit), REFD_OK);
	moves = cant_truncate = true;
	ck_assert_int_eq(apply("refs/heads/x", second), REFD_UNKNOWN);
	moves = is_away = cant_truncate = false;
	ck_assert_int_eq(nr_lines(), 2);
	sr_close();
	sr_open();
	assert_x(second, 2);
	ck_assert(!exists(LOCK));
}
