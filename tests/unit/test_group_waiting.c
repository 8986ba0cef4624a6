/*
 * Proves that a node never counts a row as applied that it puts off: no batch
 * ends so early that it counts the row of the journal before the group knows
 * that the row waits. The leader would not take the number back, so updates
 * would go on as if this node had the row. If the journal does not take the
 * row, nothing waits. With a doubt about the journal, the row waits.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/group/follower_internal.h"
#include "daemon/group/group_internal.h"
#include "tests/lib/suite.h"
#include "tests/lib/world_rig.h"

static struct follower f; /* without a thread */
static struct group *g;

static void count_nothing(void *store, size_t nr)
{
	(void)store;
	(void)nr;
}

static void setup(void)
{
	struct replica *r;

	wr_setup();
	r = group_replica_new("b", INT64_C(10000000000));
	ck_assert_ptr_nonnull(r);
	r->host = &w->store.parts;
	w->store.parts.replica = r;
	w->store.parts.committed = count_nothing;
	g = group_of(r);
	ck_assert_int_eq(group_open(g), 0);
	f = (struct follower){ .host = r->host, .group = g };
	LIST_INIT(&f.waiting);
	journal_set_shared(w->store.journal,
	    (const uint8_t *)"a group of nodes");
}

static void teardown(void)
{
	waiting_free(&f);
	group_free(g);
	wr_teardown();
}

/* Puts off the first row of a new repository. */
static bool put_off(uint64_t lsn)
{
	static const uint8_t path[] = "r.git", bytes[] = "a row";
	struct group_input in = { .bytes = (uint8_t *)bytes,
		.len = sizeof(bytes) };
	struct attempt a;

	in.frame.row.lsn = lsn;
	in.frame.row.row.path = (struct group_bytes){ path, sizeof(path) - 1 };
	memcpy(in.frame.row.row.repo, &lsn, sizeof(lsn));
	attempt_init(&f, &a, &in);
	return waiting_put(&f, &in, &a);
}

static uint64_t applied(void)
{
	uint64_t lsn;

	mutex_lock(&g->mutex);
	lsn = group_applied_lsn(g);
	mutex_unlock(&g->mutex);
	return lsn;
}

/* Nothing waits any more. */
static void apply_all(void)
{
	waiting_free(&f);
	group_set_waiting(g, &(struct group_waiting){ .lsn = 0 });
}

/* A batch that changes nothing, as of a client that this node refuses. */
static void end_other_batch(struct memfs *fs, void *seen)
{
	static struct txn txn;
	struct txn_slice slice = { .txn = &txn };

	(void)fs;
	pipeline_apply_rows(w->store.pipeline, &slice, 1);
	*(uint64_t *)seen = applied();
}

START_TEST(a_row_is_never_applied_while_it_is_put_off)
{
	uint64_t seen, lsn = 0, nr_counted = 0;
	unsigned long n, calls = 1;

	for (n = 0; n < calls; n++) {
		seen = 0;
		memfs_between(w->fs, n, end_other_batch, &seen);
		calls = memfs_nr_calls(w->fs);
		ck_assert(put_off(++lsn));
		calls = memfs_nr_calls(w->fs) - calls;
		ck_assert_uint_lt(seen, lsn);
		ck_assert_uint_eq(applied(), lsn - 1);
		nr_counted += g->done_lsn == lsn;
		group_applied(g, lsn);
		apply_all();
		ck_assert_uint_eq(applied(), lsn);
	}
	/* Before its flush, as a row that waits. */
	ck_assert_uint_gt(nr_counted, 0);
}
END_TEST

START_TEST(nothing_waits_if_the_journal_takes_no_row)
{
	memfs_set_room(w->fs, 0, 0, 0);
	ck_assert(!put_off(1));
	ck_assert_uint_eq(journal_shared_lsn(w->store.journal), 0);
	ck_assert_uint_eq(g->waiting.lsn, 0);
	memfs_set_room(w->fs, 0, -1, -1);
	ck_assert(put_off(1));
	ck_assert_uint_eq(g->waiting.lsn, 1);
}
END_TEST

/* The journal may have the row then, and the daemon ends. */
START_TEST(a_doubtful_row_waits)
{
	bool is_put;

	memfs_die(w->fs, (unsigned long)_i, -EIO);
	is_put = put_off(1);
	if (memfs_was_hit(w->fs))
		ck_assert(!is_put);
	ck_assert_uint_ge(g->waiting.lsn, journal_shared_lsn(w->store.journal));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("group_waiting");
	TCase *tc = tcase_create("group_waiting");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_row_is_never_applied_while_it_is_put_off);
	tcase_add_test(tc, nothing_waits_if_the_journal_takes_no_row);
	tcase_add_loop_test(tc, a_doubtful_row_waits, 0, 20);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
