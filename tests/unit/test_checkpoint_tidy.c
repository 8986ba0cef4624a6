/*
 * Proves that a checkpoint merges the tables of a stack, and removes replaced
 * tables only after a sync that began later. If anything fails, the refs stay,
 * and the next checkpoint continues.
 */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/tables/stack/stack_set.h"
#include "tests/lib/reftable_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/world.h"

#define TABLES 20

static struct world *w;
static struct repo *repo;
static int dirfd;

static void add_table(uint64_t index)
{
	char name[32];
	const struct reftable_record rec = { .section = REFTABLE_REFS,
		.name = name,
		.update_index = index,
		.ref = { .kind = REFTABLE_REF_OID, .oid = { { 7 } } } };
	struct rh_bytes table;

	snprintf(name, sizeof(name), "refs/heads/%02u", (unsigned)index);
	table = rh_table(world_format(), index, index, &rec, 1);
	rh_add(memfs_other(w->fs), dirfd, &table, index, index,
	    (uint32_t)index);
	rh_free(&table);
}

static void set_up(void)
{
	const struct sys *other;
	struct stack *stack;
	uint64_t i;

	w = world_new(memfs_new(), true);
	other = memfs_other(w->fs);
	ck_assert_int_eq(world_start(w), 0);
	world_done(w, world_apply(w, "a=1", false));
	repo = w->store.repos.open;
	SYS(other, mkdirat, AT_FDCWD, WORLD_REPO "/reftable", 0777);
	dirfd = SYS(other, openat, AT_FDCWD, WORLD_REPO "/reftable",
	    O_RDONLY | O_DIRECTORY, 0);
	for (i = 1; i <= TABLES; i++)
		add_table(i);
	ck_assert_int_eq(stack_set_get(repo->stacks, "", repo->fd, &stack), 0);
	stack_put(stack);
}

static void tear_down(void)
{
	SYS(memfs_other(w->fs), close, dirfd);
	world_stop(w);
	world_free(w);
}

/* A checkpoint after a publication, which made the repository touched. */
static int checkpoint(void)
{
	int r;

	repo->format = REPO_FILES;
	world_done(w, world_apply(w, "a=1", false));
	/* The stack has rested after the last merge. */
	memfs_advance(w->fs, INT64_C(1000000000));
	repo->format = REPO_REFTABLE;
	r = world_checkpoint(w);
	repo->format = REPO_FILES;
	return r;
}

static size_t look(size_t *nr_files)
{
	const struct sys *other = memfs_other(w->fs);
	struct reftable_stack stack;
	struct reftable_fault fault;
	struct sys_dirent entry;
	struct sys_dir *dir;
	size_t nr;

	ck_assert_int_eq(reftable_stack_open(other, dirfd, world_format(), NULL,
			     &stack, &fault),
	    0);
	nr = stack.nr;
	ck_assert_ptr_nonnull(strstr(rr_list(&stack, REFTABLE_REFS, false),
	    "refs/heads/01=7 refs/heads/02=7 refs/heads/03=7 "));
	ck_assert_ptr_nonnull(strstr(rr_list(&stack, REFTABLE_REFS, false),
	    "refs/heads/19=7 refs/heads/20=7 "));
	reftable_stack_close(&stack);
	ck_assert_int_eq(SYS(other, dir_open, dirfd, ".", &dir), 0);
	for (*nr_files = 0; SYS(other, dir_next, dir, &entry) > 0; ++*nr_files)
		;
	SYS(other, dir_close, dir);
	return nr;
}

START_TEST(merges_and_tidies)
{
	size_t nr_files;

	ck_assert_int_eq(checkpoint(), 0);
	ck_assert_uint_eq(look(&nr_files), 1);
	/* All replaced tables, the new table and the list. */
	ck_assert_uint_eq(nr_files, TABLES + 2);
	ck_assert_int_eq(checkpoint(), 0);
	ck_assert_uint_eq(look(&nr_files), 1);
	ck_assert_uint_eq(nr_files, 2);
}
END_TEST

START_TEST(a_batch_has_the_turn)
{
	struct stack *stack;
	size_t nr_files;

	ck_assert_int_eq(stack_set_get(repo->stacks, "", repo->fd, &stack), 0);
	ck_assert(stack_turn_take(stack, 0));
	ck_assert_int_eq(checkpoint(), 0);
	ck_assert_uint_eq(look(&nr_files), TABLES);
	ck_assert_uint_eq(nr_files, TABLES + 1);
	stack_turn_give(stack);
	stack_put(stack);
	ck_assert_int_eq(checkpoint(), 0);
	ck_assert_uint_eq(look(&nr_files), 1);
}
END_TEST

START_TEST(git_has_the_lock)
{
	size_t nr_files;

	rh_put(memfs_other(w->fs), dirfd, "tables.list.lock", "", 0);
	ck_assert_int_eq(checkpoint(), 0);
	ck_assert_uint_eq(look(&nr_files), TABLES);
	ck_assert_uint_eq(nr_files, TABLES + 2);
}
END_TEST

static int (*fast_fsync)(const struct sys *sys, int fd);

static int slow_fsync(const struct sys *sys, int fd)
{
	memfs_advance(w->fs, INT64_C(1000000000));
	return fast_fsync(sys, fd);
}

/* Git has the lock each time. No merge is tried for twenty times as long. */
START_TEST(a_slow_merge)
{
	struct sys *sys = (struct sys *)(uintptr_t)w->sys;
	size_t nr_files;

	rh_put(memfs_other(w->fs), dirfd, "tables.list.lock", "", 0);
	fast_fsync = sys->fsync;
	sys->fsync = slow_fsync;
	ck_assert_int_eq(checkpoint(), 0);
	sys->fsync = fast_fsync;
	SYS(memfs_other(w->fs), unlinkat, dirfd, "tables.list.lock");
	memfs_advance(w->fs, INT64_C(10000000000));
	ck_assert_int_eq(checkpoint(), 0);
	ck_assert_uint_eq(look(&nr_files), TABLES);
	memfs_advance(w->fs, INT64_C(100000000000));
	ck_assert_int_eq(checkpoint(), 0);
	ck_assert_uint_eq(look(&nr_files), 1);
}
END_TEST

/* Each call of a merge fails once. */
START_TEST(every_failure)
{
	unsigned long calls, n;
	size_t nr_files;
	bool is_failed = false;

	for (n = 0; n < 2000 && !is_failed; n++) {
		if (n > 0)
			set_up();
		repo->format = REPO_REFTABLE;
		calls = memfs_nr_calls(w->fs);
		memfs_fail(w->fs, n, -EIO);
		world_checkpoint(w);
		memfs_fail_none(w->fs);
		repo->format = REPO_FILES;
		is_failed = memfs_nr_calls(w->fs) - calls < n;
		ck_assert_uint_le(look(&nr_files), TABLES);
		ck_assert_uint_eq(memfs_bad_syncs(w->fs), 0);
		ck_assert_uint_eq(memfs_bad_fds(w->fs), 0);
		if (!is_failed)
			tear_down();
	}
	ck_assert_uint_gt(n, 50);
	ck_assert(is_failed);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("checkpoint_tidy");
	TCase *tc = tcase_create("checkpoint_tidy");

	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, merges_and_tidies);
	tcase_add_test(tc, a_batch_has_the_turn);
	tcase_add_test(tc, git_has_the_lock);
	tcase_add_test(tc, a_slow_merge);
	tcase_add_test(tc, every_failure);
	tcase_set_timeout(tc, 60);
	suite_add_tcase(s, tc);
	return suite_run(s);
}
