/*
 * Proves that a transaction gets the answer norepo if its repository is moved
 * away or removed during admission. The failing call may belong to the opening,
 * the list of object stores, an object, or the barrier. The same errors without
 * a move keep their own status. A directory that was moved out of the roots is
 * not opened.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/store_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

static struct sys disk;
/* All threads of the store read these. MOMENT: the name whose opening runs
 * COMMAND. COMMAND is NULL after its run. */
static const char *_Atomic moment;
static const char *_Atomic command;

static void happen(void)
{
	const char *once = atomic_exchange(&command, NULL);

	if (once != NULL)
		tmp_run("%s", once);
}

static bool ends_in(const char *path, const char *end)
{
	size_t len = strlen(path), end_len = strlen(end);

	return len >= end_len && strcmp(path + len - end_len, end) == 0;
}

static bool is_away(const struct sys *sys, int dirfd)
{
	char path[4096];

	return dirfd != SYS_TRUSTED &&
	    sys_kernel.fd_path(sys, dirfd, path, sizeof(path)) == 0 &&
	    strstr(path, "/away.git") != NULL;
}

/* A sandbox lets the daemon open nothing in a directory outside of the roots,
 * also below a descriptor from before the move. */
static int disk_openat(const struct sys *sys, int dirfd, const char *path,
    int flags, mode_t mode)
{
	const char *when = moment;

	if (when != NULL && ends_in(path, when))
		happen();
	if (is_away(sys, dirfd))
		return -EACCES;
	return sys_kernel.openat(sys, dirfd, path, flags, mode);
}

static int disk_syncfs(const struct sys *sys, int fd)
{
	const char *when = moment;

	if (when == NULL || strcmp(when, "syncfs") != 0)
		return sys_kernel.syncfs(sys, fd);
	happen();
	return -EIO;
}

static void setup(void)
{
	sr_setup_closed();
	disk = sys_kernel;
	disk.openat = disk_openat;
	disk.syncfs = disk_syncfs;
	moment = NULL;
	sr_sys = &disk;
	/* Records contain no objects. */
	sr_mode = REFD_DURABILITY_BATCH;
	/* No checkpoint syncs. */
	sr_interval_ns = 3600LL * 1000000000;
	sr_open();
}

static void teardown(void)
{
	moment = NULL;
	sr_teardown();
	sr_sys = &sys_kernel;
}

/* The answer to a transaction for OID. COMMAND runs during its admission, when
 * WHEN is opened, or synced. */
static enum refd_status admit_while(const char *when, const char *run,
    const char *oid)
{
	enum refd_status status;
	struct refd_txid id;
	struct txn *txn;

	refd_txid_make(&id);
	command = run;
	moment = when;
	txn = sr_admit(&id, sr_repo, "refs/heads/x", oid);
	moment = NULL;
	ck_assert_ptr_null(command);
	status = txn->updates[0].status;
	if (txn->refused != REFD_OK) {
		ck_assert_int_eq(status, REFD_PENDING);
		ck_assert_uint_eq(txn->nr_decided, 0);
		status = txn->refused;
	}
	if (status == REFD_NOREPO)
		ck_assert_ptr_nonnull(strstr(txn->why, "meanwhile"));
	sr_done_with(txn);
	return status;
}

/* NULL: the object's file. */
static const char *const moments[] = { "config", "refd", "objects", NULL,
	"syncfs" };
static const char *const moves[] = { "mv r.git away.git",
	"mv r.git away.git && git init -q --bare r.git", "rm -rf r.git" };

enum { NR_MOMENTS = 5, NR_MOVES = 3, FIRST_OF_OPEN = 3 };

static void norepo_after(int nth)
{
	const char *when = moments[nth / NR_MOVES];
	const char *move = moves[nth % NR_MOVES];
	char hex[REFD_OID_MAX_HEX + 1];

	sr_make_commit("y", hex);
	ck_assert_msg(admit_while(when != NULL ? when : hex + 2, move, hex) ==
		REFD_NOREPO,
	    "%s at %s", move, when);
}

CASE(.setup = setup, .teardown = teardown, .seconds = 60);

TEST(norepo_of_one_that_is_opened, .times = NR_MOMENTS * NR_MOVES)
{
	norepo_after(_i);
}

TEST(norepo_of_one_that_is_open, .from = FIRST_OF_OPEN * NR_MOVES,
    .times = NR_MOMENTS * NR_MOVES - FIRST_OF_OPEN * NR_MOVES)
{
	struct refd_txid id;
	struct txn *txn;

	refd_txid_make(&id);
	txn = sr_admit(&id, sr_repo, "refs/heads/first", sr_commit);
	ck_assert_int_eq(txn->refused, REFD_OK);
	sr_done_with(txn);
	norepo_after(_i);
}

/* The same errors without a move. */
TEST(others_keep_their_status)
{
	static const char absent[] = "1111111111111111111111111111111111111111";
	char hex[REFD_OID_MAX_HEX + 1], name[96], spoil[256];

	sr_make_commit("y", hex);
	snprintf(name, sizeof(name), "r.git/objects/%.2s/%s", hex, hex + 2);
	snprintf(spoil, sizeof(spoil), "chmod u+w %s && printf x >%s", name,
	    name);
	ck_assert_int_eq(admit_while(hex + 2, spoil, hex), REFD_IO);
	ck_assert_int_eq(admit_while("11", "true", absent), REFD_NOOBJECT);
	sr_make_commit("z", hex);
	ck_assert_int_eq(admit_while("syncfs", "true", hex), REFD_IO);
}
