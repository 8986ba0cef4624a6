/*
 * Proves that a failed system call costs only the affected updates. A batch
 * with transactions of five clients meets EIO, ENOSPC and EDQUOT at every
 * system call in turn. A table gives the updates that may fail at each call.
 * Then the daemon is killed or the power is lost. The journal, the refs and the
 * logs must agree on every transaction, also after the answer `unknown`. No
 * lock is left, and no descriptor is synced again after a failed sync.
 */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/scripted_txn.h"
#include "tests/lib/suite.h"

static const struct {
	const char *spec;
	bool atomic;
} asked[] = {
	{ "a=2:1;n/x=2:0", false },
	{ "c=2:1", false },
	{ "d=2:1;e=2:0", true },
	{ "-p:1", false },
	{ "-q:1", false },
};
#define NR_TXNS (sizeof(asked) / sizeof(*asked))

static const struct {
	size_t txn;
	uint32_t index;
	const char *name;
	char old, new_c;
} refs[] = {
	{ 0, 0, "a", '1', '2' },
	{ 0, 1, "n/x", '0', '2' },
	{ 1, 0, "c", '1', '2' },
	{ 2, 0, "d", '1', '2' },
	{ 2, 1, "e", '0', '2' },
	{ 3, 0, "p", '1', '0' },
	{ 4, 0, "q", '1', '0' },
};
#define NR_REFS (sizeof(refs) / sizeof(*refs))

/* The updates that do not become `ok`. */
enum cost {
	NOBODY,
	ONE, /* update, or its whole atomic transaction */
	ONE_IF_ANY,
	UNKNOWN_ONE, /* recorded, and finished by the next start */
	DELETIONS,   /* all deletions share one packed-refs.new */
	/* The same; after EIO unknown, because it may have happened. */
	ONE_OR_UNKNOWN,
	DELETIONS_OR_UNKNOWN,
	EVERYONE, /* of the repository: a shared file is needed */
	AGAIN     /* given back: the repository is opened again */
};

/* By call and file. The first line that fits counts. */
static const struct stage {
	const char *at;
	enum cost cost;
} stages[] = {
	{ "lstatat /srv/r.git", AGAIN },
	{ "lstatat config", AGAIN },
	{ "lstatat packed-refs", EVERYONE },
	{ "lstatat [0-9a-f]*.0", EVERYONE },
	/* The lockfile: token, value, link, and reads under the lock. */
	{ "openat [0-9a-f]*.0", ONE },
	{ "openat [0-9a-f]*-[0-9]", ONE },
	{ "write_all [0-9a-f]*-[0-9]", ONE },
	{ "linkat refs/heads/*.lock", ONE },
	{ "*at packed-refs.lock", DELETIONS },
	{ "openat refs/heads/*", ONE },
	{ "fstat refs/heads/*", ONE },
	{ "pread refs/heads/*", ONE },
	{ "openat refs/heads", ONE },
	{ "openat logs/refs/heads", ONE_IF_ANY },
	/* The directories. */
	{ "mkdirat *", ONE },
	{ "dir_open refs/heads/*", ONE },
	{ "dir_next *", ONE },
	{ "rmdirat refs/heads/*", ONE },
	/* packed-refs: read, written, synced, renamed. */
	{ "* packed-refs.new", DELETIONS },
	{ "renameat packed-refs", DELETIONS_OR_UNKNOWN },
	{ "* packed-refs", DELETIONS },
	/* Logs: created before the commit point, deferred after it. */
	{ "unlinkat logs/refs/heads/*", UNKNOWN_ONE },
	{ "* logs/refs/heads/*", ONE_IF_ANY },
	/* The journal: each update is tried again alone, except deletions. */
	{ "pwrite */journal.db-wal", DELETIONS },
	{ "fdatasync */journal.db-wal", DELETIONS },
	{ "fstat */journal.db-wal", DELETIONS },
	{ "futimens* */journal.db-wal", DELETIONS },
	/* Published. */
	{ "linkat refs/heads/*", ONE },
	{ "renameat refs/heads/d", UNKNOWN_ONE },
	{ "renameat refs/heads/*", ONE_OR_UNKNOWN },
	/* Unlocked, and HEAD, which git would ignore, too. */
	{ "unlinkat *", NOBODY },
	{ "openat HEAD", NOBODY },
	{ "fstat HEAD", NOBODY },
	{ "pread HEAD", NOBODY },
};
#define NR_STAGES (sizeof(stages) / sizeof(*stages))

static struct world *w;
static struct txn *txns[NR_TXNS];
static struct refd_txid ids[NR_TXNS];
static enum refd_status said[NR_REFS];
static char at[128];
static char context[256];
static uint64_t disk_errors; /* before the call that fails */

static void start(void)
{
	size_t i;

	w = world_new(memfs_new(), true);
	/* Empty directories at the place of a new ref. */
	memfs_mkdirs(w->fs, WORLD_REPO "/refs/heads/e/e");
	memfs_write(w->fs, WORLD_REPO "/packed-refs",
	    "# pack-refs with: peeled fully-peeled sorted \n"
	    "3131313131313131313131313131313131313131 refs/heads/keep\n"
	    "3131313131313131313131313131313131313131 refs/heads/p\n"
	    "3131313131313131313131313131313131313131 refs/heads/q\n");
	ck_assert_int_eq(world_start(w), 0);
	world_done(w, world_apply(w, "a=1;c=1;d=1", false));
	/* An empty directory at the place of a new ref. */
	memfs_mkdirs(w->fs, WORLD_REPO "/refs/heads/e");
	ck_assert_int_eq(world_checkpoint(w), 0);
	for (i = 0; i < NR_TXNS; i++) {
		txns[i] = world_begin(w, asked[i].spec, asked[i].atomic);
		ck_assert_ptr_nonnull(txns[i]);
		ids[i] = txns[i]->req.txid;
	}
}

static const struct stage *stage_of(const char *call)
{
	size_t i;

	for (i = 0; i < NR_STAGES; i++)
		if (fnmatch(stages[i].at, call, 0) == 0)
			return &stages[i];
	ck_abort_msg("%s: what may this cost?", call);
}

/* Call N of the batch fails with ERR, or only call N of the kind AFTER once it
 * has taken effect. False: the batch made fewer calls. */
static bool run(unsigned long n, int err, enum memfs_call after)
{
	bool hit;
	size_t i;

	start();
	disk_errors = txn_disk_errors();
	if (after != MEMFS_NR_CALLS)
		memfs_fail_after(w->fs, after, n, err);
	else
		memfs_fail(w->fs, n, err);
	world_batch(w, txns, NR_TXNS);
	hit = memfs_was_hit(w->fs);
	snprintf(at, sizeof(at), "%s", memfs_hit(w->fs));
	snprintf(context, sizeof(context), "call %lu (%s), %s", n, at,
	    strerror(-err));
	memfs_fail_none(w->fs);
	for (i = 0; i < NR_REFS; i++)
		said[i] = txns[refs[i].txn]->updates[refs[i].index].status;
	for (i = 0; i < NR_TXNS; i++)
		world_done(w, txns[i]);
	return hit;
}

static bool is_deletion(size_t ref)
{
	return refs[ref].new_c == '0';
}

static bool is_unknown(const struct stage *stage, int err)
{
	return stage->cost == UNKNOWN_ONE ||
	    (err == -EIO &&
		(stage->cost == ONE_OR_UNKNOWN ||
		    stage->cost == DELETIONS_OR_UNKNOWN));
}

/* A failed journal reports the failure without the cause. */
static bool says_why(enum refd_status status, int err)
{
	if (strstr(at, "journal") != NULL)
		return status == REFD_IO || status == REFD_NOSPACE;
	return status == (err == -EIO ? REFD_IO : REFD_NOSPACE);
}

static void check_costs(const struct stage *stage, int err)
{
	size_t i, failed = 0, unknown = 0, given_back = 0, hit_txn = 0;

	for (i = 0; i < NR_REFS; i++) {
		if (said[i] == REFD_OK)
			continue;
		if (said[i] == REFD_PENDING) {
			given_back++;
			continue;
		}
		if (said[i] == REFD_UNKNOWN)
			unknown++;
		else if (said[i] != REFD_ABORTED)
			ck_assert_msg(says_why(said[i], err), "%s: %s is %s",
			    context, refs[i].name, refd_status_name(said[i]));
		/* refd status tells that a disk reported an error. */
		if (err == -EIO &&
		    (said[i] == REFD_IO || said[i] == REFD_UNKNOWN))
			ck_assert_msg(txn_disk_errors() > disk_errors,
			    "%s: not counted", context);
		if (stage->cost == DELETIONS ||
		    stage->cost == DELETIONS_OR_UNKNOWN)
			ck_assert_msg(is_deletion(i), "%s: costs %s", context,
			    refs[i].name);
		/* Both updates of the atomic transaction count as one. */
		failed += !(failed > 0 && asked[refs[i].txn].atomic &&
		    hit_txn == refs[i].txn);
		hit_txn = refs[i].txn;
	}
	ck_assert_msg((given_back > 0) == (stage->cost == AGAIN),
	    "%s: %zu given back", context, given_back);
	ck_assert_msg((unknown > 0) == is_unknown(stage, err),
	    "%s: %zu are unknown", context, unknown);
	if (stage->cost == NOBODY || stage->cost == AGAIN)
		ck_assert_msg(failed == 0, "%s: costs somebody", context);
	if (stage->cost == ONE || stage->cost == UNKNOWN_ONE ||
	    stage->cost == ONE_OR_UNKNOWN)
		ck_assert_msg(failed == 1, "%s: costs %zu", context, failed);
	if (stage->cost == ONE_IF_ANY)
		ck_assert_msg(failed <= 1, "%s: costs %zu", context, failed);
	ck_assert_msg(store_fatal(&w->store) == NULL, "%s: fatal", context);
}

static void check_litter(void)
{
	char *locks = memfs_list_locks(w->fs, WORLD_REPO);

	ck_assert_msg(locks[0] == '\0', "%s: locks: %s", context, locks);
	free(locks);
}

/* A log has lines of updates that happened, and no other lines. The deleted
 * refs here have no log. */
static void check_log(size_t ref, enum refd_status status)
{
	const char *name = refs[ref].name;
	int nr = world_log_count(w, name, refs[ref].old, refs[ref].new_c);

	ck_assert_msg(nr == (status == REFD_OK && !is_deletion(ref)),
	    "%s: %s is %s and its log has %d lines of it", context, name,
	    refd_status_name(status), nr);
	if (refs[ref].old != '0' && !is_deletion(ref))
		ck_assert_int_eq(world_log_count(w, name, '0', refs[ref].old),
		    1);
}

/* The answer, the look-up by id, the refs and the logs must agree. */
static void check_truth(void)
{
	enum refd_status status;
	struct scripted_txn h = { .w = w };
	char is;
	size_t i;

	for (i = 0; i < NR_REFS; i++) {
		h.txid = ids[refs[i].txn];
		status = scripted_status(&h, refs[i].index);
		is = world_ref(w, refs[i].name);
		ck_assert_msg(is ==
			(status == REFD_OK ? refs[i].new_c : refs[i].old),
		    "%s: %s is at '%c' and the journal says %s", context,
		    refs[i].name, is, refd_status_name(status));
		check_log(i, status);
		if (said[i] == REFD_OK)
			ck_assert_msg(status == REFD_OK, "%s: %s was ok",
			    context, refs[i].name);
		else if (said[i] != REFD_UNKNOWN)
			ck_assert_msg(status != REFD_OK, "%s: %s was %s",
			    context, refs[i].name, refd_status_name(said[i]));
	}
	ck_assert_int_eq(world_ref(w, "keep"), '1');
	check_litter();
}

static void come_back(bool after_cut)
{
	struct memfs_choice nothing = { .data = MEMFS_DATA_NONE };

	if (after_cut)
		memfs_power_loss(w->fs, &nothing);
	else
		memfs_crash(w->fs);
	world_crash(w);
	ck_assert_int_eq(world_start(w), 0);
}

CASE(.seconds = 120);

TEST(each_call_of_a_batch_fails, .times = 6)
{
	static const int errs[] = { -EIO, -ENOSPC, -EDQUOT };
	bool seen[NR_STAGES] = { false }, hit = true;
	const struct stage *stage;
	int err = errs[_i / 2];
	unsigned long n;
	size_t i;

	for (n = 0; hit; n++) {
		hit = run(n, err, MEMFS_NR_CALLS);
		if (hit) {
			stage = stage_of(at);
			seen[stage - stages] = true;
			check_costs(stage, err);
			if (strncmp(at, "unlinkat", 8) != 0 &&
			    !is_unknown(stage, err))
				check_litter();
		}
		come_back(_i % 2 == 1);
		check_truth();
		ck_assert_uint_eq(memfs_bad_fds(w->fs), 0);
		ck_assert_uint_eq(memfs_bad_syncs(w->fs), 0);
		world_free(w);
	}
	for (i = 0; i < NR_STAGES; i++)
		ck_assert_msg(seen[i], "nothing was '%s'", stages[i].at);
}

/* The answer must not deny what a failed call has done. */
TEST(a_failed_call_has_happened, .times = 4)
{
	const enum memfs_call call = _i < 2 ? MEMFS_RENAMEAT : MEMFS_LINKAT;
	bool hit = true;
	unsigned long n;

	for (n = 0; hit; n++) {
		hit = run(n, -EIO, call);
		ck_assert_msg(store_fatal(&w->store) == NULL, "%s: fatal",
		    context);
		come_back(_i % 2 == 1);
		check_truth();
		ck_assert_uint_eq(memfs_bad_fds(w->fs), 0);
		world_free(w);
	}
	ck_assert_uint_gt(n, 4);
}
