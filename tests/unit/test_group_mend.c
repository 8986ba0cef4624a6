/*
 * Proves that refs which another program has written hold up the rows of all
 * repositories for a moment only: an attempt at a row, or at a single ref,
 * mends a part, and the next attempts do the rest. A row that needs long before
 * it is mended is mended for as long. In the end all refs have the values of
 * the group, and all other values are kept.
 *
 * Admission finds every object, and each mending takes 10 ms.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/time.h"
#include "daemon/group/follower_internal.h"
#include "daemon/group/group_internal.h"
#include "daemon/group/mend.h"
#include "daemon/store/admission/admissions_internal.h"
#include "proto/refname.h"
#include "tests/lib/suite.h"
#include "tests/lib/world_rig.h"

#define NR           50
#define MS           (NS_PER_S / 1000)
#define MENDING_NS   (10 * MS)
#define ATTEMPTS_MAX 10

static struct follower f; /* without a thread */
static struct admissions admission;
static struct store_parts parts; /* of admission */

static struct group_input row;
static struct record_member members[NR];
static char foreign[NR][32]; /* names */

/* ---- admission ---- */

static void take_repo(struct txn *txn)
{
	size_t i;

	txn->repo = world_repo(w, WORLD_REPO);
	ck_assert_ptr_nonnull(txn->repo);
	for (i = 0; i < txn->nr_updates; i++)
		txn->updates[i].object = TXN_OBJECT_COMMIT;
}

/* work_source.work */
static bool admit(void *arg)
{
	struct txn_fifo txns = { .head = NULL };
	struct txn *txn;
	bool is_work;

	(void)arg;
	mutex_lock(&admission.mutex);
	txn_fifo_move(&txns, &admission.to_sort);
	mutex_unlock(&admission.mutex);
	is_work = txns.head != NULL;
	while ((txn = txn_fifo_take(&txns)) != NULL) {
		take_repo(txn);
		memfs_advance(w->fs, MENDING_NS);
		ck_assert(follower_take(&f, txn));
	}
	return is_work;
}

/* ---- fixtures ---- */

static void count_nothing(void *store, size_t nr)
{
	(void)store;
	(void)nr;
}

static void setup(void)
{
	struct replica *r;

	wr_setup();
	w->store.parts.committed = count_nothing;
	w->store.parts.admissions = &admission;
	r = group_replica_new("b", 10 * NS_PER_S);
	ck_assert_ptr_nonnull(r);
	r->host = &w->store.parts;
	w->store.pipeline->applier.replica = r;
	journal_set_shared(w->store.journal,
	    (const uint8_t *)"a group of nodes");
	parts = w->store.parts;
	parts.workers = workers_new(1);
	ck_assert_ptr_nonnull(parts.workers);
	admission = (struct admissions){ .cfg = &parts,
		.source = { .work = admit, .most = 1 } };
	mutex_init(&admission.mutex, MUTEX_QUEUES);
	workers_add(parts.workers, &admission.source);
	ck_assert_int_eq(workers_start(parts.workers), 0);
	f = (struct follower){ .host = &w->store.parts, .group = group_of(r) };
	LIST_INIT(&f.waiting);
	LIST_INIT(&f.mends);
	mutex_init(&f.mutex, MUTEX_INNER);
	pthread_cond_init(&f.back, NULL);
}

static void teardown(void)
{
	workers_stop(parts.workers);
	workers_free(parts.workers);
	mutex_destroy(&admission.mutex);
	free((void *)(uintptr_t)row.frame.row.row.record.data);
	mends_free(&f);
	pthread_cond_destroy(&f.back);
	mutex_destroy(&f.mutex);
	group_free(f.group);
	wr_teardown();
}

/* ---- the row, and the refs of another program ---- */

/* Row 1 makes the ref NAME; NULL: NR_NAMES refs with the names FOREIGN. */
static void make_row(const char *name, size_t nr_names)
{
	struct group_row *to = &row.frame.row.row;
	struct record rec = { .committer = "A <a@example.org> 1700000000 +0000",
		.message = "test",
		.file_mode = 0644,
		.dir_mode = 0755,
		.nr_updates = (uint32_t)nr_names,
		.object_format = world_format(),
		.members = members,
		.nr_members = nr_names };
	size_t i;

	for (i = 0; i < nr_names; i++)
		members[i] = (struct record_member){ .index = (uint32_t)i,
			.status = REFD_OK,
			.answers = true,
			.name = name != NULL ? name : foreign[i],
			.worktree = "",
			.action = RECORD_WRITE,
			.old_oid = world_oid('0'),
			.new_oid = world_oid('1') };
	memset(&row, 0, sizeof(row));
	row.frame.row.lsn = 1;
	to->is_final = true;
	to->record.data = record_encode(&rec, &to->record.len);
	ck_assert_ptr_nonnull(to->record.data);
}

/* Gives NR refs with names below PREFIX the value 2. */
static void write_beside(const char *prefix)
{
	char path[128];
	size_t i;

	for (i = 0; i < NR; i++) {
		snprintf(foreign[i], sizeof(foreign[i]), "%s%02zu", prefix, i);
		snprintf(path, sizeof(path), WORLD_REPO "/%s", foreign[i]);
		world_write(w->fs, path, "@2\n");
	}
}

static char value_of(const char *name)
{
	char at[160];

	snprintf(at, sizeof(at), "@%s", name);
	return world_ref(w, at);
}

/* The number of values that have a second name. */
static unsigned nr_kept(void)
{
	char name[128];
	unsigned nr = 0;
	size_t i;

	for (i = 0; i < NR; i++) {
		snprintf(name, sizeof(name), REFD_DIVERGED "1/%s",
		    foreign[i] + strlen("refs/"));
		nr += value_of(name) == '2';
	}
	return nr;
}

static void expect_some_kept(void)
{
	ck_assert_uint_gt(nr_kept(), 0);
	ck_assert_uint_lt(nr_kept(), NR);
}

/* An attempt, as of the follower, which takes PREPARE_NS before it mends. */
static enum result try_row(struct attempt *a, int64_t prepare_ns)
{
	enum result result = RESULT_DONE;
	struct own_txn rt;

	a->began_ns = SYS(w->sys, now_mono);
	ck_assert_int_eq(own_txn_of_row(&rt, a->row, a->lsn, WORLD_REPO), 0);
	take_repo(rt.txn);
	pipeline_apply_rows(w->store.pipeline, &rt.slice, 1);
	memfs_advance(w->fs, prepare_ns);
	if (rt.slice.lsn == 0)
		result = mend_row(&f, a, &rt);
	follower_put_repo(&f, rt.txn);
	own_txn_done(&rt);
	return result;
}

/* The first attempt mends a part, and later ones apply the row. */
static void apply_in_parts(void)
{
	enum result result;
	struct attempt a;
	unsigned nr;

	attempt_init(&f, &a, &row);
	result = try_row(&a, 0);
	ck_assert_int_eq(result, RESULT_AGAIN);
	expect_some_kept();
	for (nr = 1; nr < ATTEMPTS_MAX && result == RESULT_AGAIN; nr++)
		result = try_row(&a, 0);
	ck_assert_int_eq(result, RESULT_DONE);
	ck_assert_uint_gt(nr, 2);
	ck_assert_uint_eq(nr_kept(), NR);
}

START_TEST(a_row_with_many_foreign_refs_is_mended_in_parts)
{
	size_t i;

	write_beside("refs/heads/m");
	make_row(NULL, NR);
	apply_in_parts();
	for (i = 0; i < NR; i++)
		ck_assert_int_eq(value_of(foreign[i]), '1');
}
END_TEST

START_TEST(many_refs_in_the_way_go_in_parts)
{
	write_beside("refs/heads/a/m");
	make_row("refs/heads/a", 1);
	apply_in_parts();
	ck_assert_int_eq(value_of("refs/heads/a"), '1');
}
END_TEST

START_TEST(a_slow_attempt_mends_for_as_long)
{
	struct attempt a;

	write_beside("refs/heads/m");
	make_row(NULL, NR);
	attempt_init(&f, &a, &row);
	ck_assert_int_eq(try_row(&a, NS_PER_S), RESULT_AGAIN);
	ck_assert_uint_eq(nr_kept(), NR);
	ck_assert_int_eq(try_row(&a, NS_PER_S), RESULT_DONE);
}
END_TEST

/* As on the leader, without a row. */
START_TEST(a_ref_is_mended_in_parts)
{
	struct attempt a;
	struct repo *repo;
	unsigned nr;

	make_row("refs/heads/a", 1);
	attempt_init(&f, &a, &row);
	ck_assert_int_eq(try_row(&a, 0), RESULT_DONE);
	wr_unlink(WORLD_REPO "/refs/heads/a");
	write_beside("refs/heads/a/m");
	repo = world_repo(w, WORLD_REPO);
	ck_assert_ptr_nonnull(repo);
	follower_mend(&f, repo, "refs/heads/a");
	repo_put(&w->store.repos, repo);
	mends_try(&f);
	expect_some_kept();
	for (nr = 0; nr < 2 * ATTEMPTS_MAX && !LIST_EMPTY(&f.mends); nr++)
		memfs_advance(w->fs, mends_try(&f));
	ck_assert(LIST_EMPTY(&f.mends));
	ck_assert_uint_eq(nr_kept(), NR);
	ck_assert_int_eq(value_of("refs/heads/a"), '1');
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("group_mend");
	TCase *tc = tcase_create("group_mend");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_row_with_many_foreign_refs_is_mended_in_parts);
	tcase_add_test(tc, many_refs_in_the_way_go_in_parts);
	tcase_add_test(tc, a_slow_attempt_mends_for_as_long);
	tcase_add_test(tc, a_ref_is_mended_in_parts);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
