/*
 * Proves that refd survives a failure of any allocation of the store, including
 * SQLite's: in a batch, in a recovery, in a checkpoint. A batch answers every
 * update, and after the next start the refs agree with the journal. A start may
 * fail, and the next start finds everything. No acknowledged update is lost, no
 * lock is left, and with memory all work goes on.
 *
 * The everyday run tries every thirteenth allocation. With REFD_TEST_LONG every
 * allocation is tried.
 *
 * malloc(3) and its relatives belong to this program and call libc's.
 * Allocations of the model of the disk do not count, because the model holds
 * its lock at that time. The sanitizers have their own allocator, and the
 * allocator of musl has no second name, so nothing fails there.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/failing_malloc.h"
#include "tests/lib/memfs_internal.h"
#include "tests/lib/scripted_txn.h"
#include "tests/lib/suite.h"

static struct world *w;
static long step;
static long allocations, fail_at = -1;
static bool was_hit, all_fail; /* ALL_FAIL: also all after the first */

static void begin_failing(long at)
{
	allocations = 0;
	was_hit = false;
	fail_at = at;
}

static void end_failing(void)
{
	fail_at = -1;
	all_fail = false;
}

#if CAN_FAIL

/* Does a thread hold the lock of the disk? */
static bool is_in_disk(void)
{
	if (pthread_mutex_trylock(&w->fs->lock) != 0)
		return true;
	pthread_mutex_unlock(&w->fs->lock);
	return false;
}

static bool may_allocate(void)
{
	if (fail_at < 0 || w == NULL || is_in_disk())
		return true;
	if (allocations++ != fail_at && !all_fail)
		return true;
	was_hit = true;
	return false;
}

#endif

/* ---- the world ---- */

#define PACKED                                                                 \
	"# pack-refs with: peeled fully-peeled sorted \n"                      \
	"3131313131313131313131313131313131313131 refs/heads/keep\n"           \
	"3131313131313131313131313131313131313131 refs/heads/p\n"

static const struct {
	const char *spec;
	bool atomic;
} asked[] = {
	{ "a=2:1;n/x=2:0", false },
	{ "d=2:1;s>d", true },
	{ "@HEAD=2", false },
	{ "-p:1", false },
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
	{ 1, 0, "d", '1', '2' },
	{ 1, 1, "s", '0', '>' },
	{ 2, 0, "main", '1', '2' },
	{ 3, 0, "p", '1', '0' },
};
#define NR_REFS (sizeof(refs) / sizeof(*refs))

static struct txn *txns[NR_TXNS];
static struct refd_txid ids[NR_TXNS];

static void start(void)
{
	w = world_new(memfs_new(), true);
	memfs_write(w->fs, WORLD_REPO "/packed-refs", PACKED);
	ck_assert_int_eq(world_start(w), 0);
	world_done(w, world_apply(w, "a=1;d=1;main=1", false));
	ck_assert_int_eq(world_checkpoint(w), 0);
}

static void stop(void)
{
	world_free(w);
	w = NULL;
}

/* Applies all of ASKED as one batch, in which allocation N fails. */
static void apply(long n)
{
	struct txn_update *updates[NR_TXNS][2];
	struct txn_slice slices[NR_TXNS];
	struct batch win = { .slices = slices, .nr_slices = NR_TXNS };
	size_t i, k;

	for (i = 0; i < NR_TXNS; i++) {
		txns[i] = world_begin(w, asked[i].spec, asked[i].atomic);
		ids[i] = txns[i]->req.txid;
		for (k = 0; k < txns[i]->nr_updates; k++)
			updates[i][k] = &txns[i]->updates[k];
		slices[i] = (struct txn_slice){ .txn = txns[i],
			.updates = updates[i],
			.nr = txns[i]->nr_updates };
	}
	begin_failing(n);
	apply_batch(&w->store.pipeline->applier, &win);
	end_failing();
}

static void check_refs(const enum refd_status *said, long n)
{
	struct scripted_txn h = { .w = w };
	enum refd_status status;
	char *locks, is;
	size_t i;

	for (i = 0; i < NR_REFS; i++) {
		h.txid = ids[refs[i].txn];
		status = scripted_status(&h, refs[i].index);
		is = world_ref(w, refs[i].name);
		ck_assert_msg(is ==
			(status == REFD_OK ? refs[i].new_c : refs[i].old),
		    "allocation %ld: %s is at '%c', its record says %s", n,
		    refs[i].name, is, refd_status_name(status));
		if (said == NULL)
			continue;
		if (said[i] != REFD_UNKNOWN)
			ck_assert_msg((said[i] == REFD_OK) ==
				(status == REFD_OK),
			    "allocation %ld: %s was %s, its record says %s", n,
			    refs[i].name, refd_status_name(said[i]),
			    refd_status_name(status));
	}
	ck_assert_int_eq(world_ref(w, "keep"), '1');
	locks = memfs_list_locks(w->fs, WORLD_REPO);
	ck_assert_msg(locks[0] == '\0', "allocation %ld: locks: %s", n, locks);
	free(locks);
}

static void setup(void)
{
	step = getenv("REFD_TEST_LONG") != NULL ? 1 : 13;
}

CASE(.setup = setup, .seconds = 300);

TEST(a_batch, .times = 2)
{
	enum refd_status said[NR_REFS];
	struct memfs_choice nothing = { .data = MEMFS_DATA_NONE };
	bool hit = CAN_FAIL;
	size_t i;
	long n;

	for (n = 0; hit; n += step) {
		start();
		apply(n);
		hit = was_hit;
		for (i = 0; i < NR_REFS; i++)
			said[i] =
			    txns[refs[i].txn]->updates[refs[i].index].status;
		for (i = 0; i < NR_TXNS; i++)
			world_done(w, txns[i]);
		if (_i == 0)
			memfs_crash(w->fs);
		else
			memfs_power_loss(w->fs, &nothing);
		world_crash(w);
		ck_assert_int_eq(world_start(w), 0);
		check_refs(said, n);
		world_done(w, world_apply(w, "a=3", false));
		ck_assert_int_eq(world_ref(w, "a"), '3');
		stop();
	}
	ck_assert(!CAN_FAIL || n > 50);
}

/* A start after a crash in the middle, or after a power loss at the end. */
TEST(a_recovery, .times = 2)
{
	struct memfs_choice nothing = { .data = MEMFS_DATA_NONE };
	bool hit = CAN_FAIL;
	size_t i;
	long n;

	for (n = 0; hit; n += step) {
		start();
		if (_i == 0)
			memfs_crash_at(w->fs, 60);
		apply(-1);
		for (i = 0; i < NR_TXNS; i++)
			world_done(w, txns[i]);
		if (_i == 0)
			memfs_crash(w->fs);
		else
			memfs_power_loss(w->fs, &nothing);
		world_crash(w);
		begin_failing(n);
		world_start(w);
		end_failing();
		hit = was_hit;
		memfs_crash(w->fs);
		world_crash(w);
		ck_assert_int_eq(world_start(w), 0);
		ck_assert_uint_eq(w->deferred, 0);
		check_refs(NULL, n);
		stop();
	}
	ck_assert(!CAN_FAIL || n > 50);
}

TEST(a_checkpoint)
{
	struct memfs_choice nothing = { .data = MEMFS_DATA_NONE };
	bool hit = CAN_FAIL;
	size_t i;
	long n;

	for (n = 0; hit; n += step) {
		start();
		apply(-1);
		for (i = 0; i < NR_TXNS; i++)
			world_done(w, txns[i]);
		begin_failing(n);
		world_tick(w);
		world_checkpoint(w);
		end_failing();
		hit = was_hit;
		ck_assert_msg(store_fatal(&w->store) == NULL, "allocation %ld",
		    n);
		world_done(w, world_apply(w, "later=1", false));
		memfs_power_loss(w->fs, &nothing);
		world_crash(w);
		ck_assert_int_eq(world_start(w), 0);
		check_refs(NULL, n);
		ck_assert_int_eq(world_ref(w, "later"), '1');
		stop();
	}
}

/* Only this entry shows that the next start needs the record. So the store must
 * stop with a reason, even without memory for the text. */
TEST(an_update_that_cannot_be_deferred)
{
	start();
	all_fail = CAN_FAIL;
	begin_failing(0);
	deferred_add_update(w->store.deferred, 1, 0);
	end_failing();
	ck_assert(!CAN_FAIL || store_fatal(&w->store) != NULL);
	ck_assert_int_eq(world_checkpoint(w), CAN_FAIL ? -EIO : 0);
	stop();
}
