/*
 * Proves that a checkpoint merges the tables of a stack, and removes replaced
 * tables only after a sync that began later. If anything fails, the refs stay,
 * and the next checkpoint continues. Only a failed flush of what others may
 * have written costs the file system. A merge keeps the tombstones that a row
 * may need.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/deferred/deferred_internal.h"
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

static void set_up_mode(enum refd_durability mode)
{
	const struct sys *other;
	struct stack *stack;
	uint64_t i;

	w = world_new(memfs_new(), true);
	other = memfs_other(w->fs);
	w->mode = mode;
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

static void set_up(void)
{
	set_up_mode(REFD_DURABILITY_JOURNAL);
}

/* A round syncs although no row can be forgotten: rows await their flush. */
static void set_up_periodic(void)
{
	set_up_mode(REFD_DURABILITY_PERIODIC);
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

CASE(.name = "checkpoint_tidy", .setup = set_up, .teardown = tear_down,
    .seconds = 60);

TEST(merges_and_tidies)
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

TEST(a_batch_has_the_turn)
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

TEST(git_has_the_lock)
{
	size_t nr_files;

	rh_put(memfs_other(w->fs), dirfd, "tables.list.lock", "", 0);
	ck_assert_int_eq(checkpoint(), 0);
	ck_assert_uint_eq(look(&nr_files), TABLES);
	ck_assert_uint_eq(nr_files, TABLES + 2);
}

static int (*fast_fsync)(const struct sys *sys, int fd);

static int slow_fsync(const struct sys *sys, int fd)
{
	memfs_advance(w->fs, INT64_C(1000000000));
	return fast_fsync(sys, fd);
}

/* Git has the lock each time. No merge is tried for twenty times as long. */
TEST(a_slow_merge)
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

/* Each call of a merge fails once. */
TEST(every_failure)
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

static int (*plain_syncfs)(const struct sys *sys, int fd);
static int (*plain_fsync)(const struct sys *sys, int fd);
static unsigned nr_fsyncs; /* since the syncfs */

/* Git's table is younger than the sync. */
static int syncfs_then_git(const struct sys *sys, int fd)
{
	int r = plain_syncfs(sys, fd);

	add_table(TABLES + 1);
	nr_fsyncs = 0;
	return r;
}

/* Is it a file in refd/stage/, for example "fsync 0000010000000004-0"? */
static bool is_own(const char *text)
{
	const char *name = text + strcspn(text, " ");

	return strspn(name, " 0123456789abcdef") == 17 && name[17] == '-';
}

/* A checkpoint in which git adds a table after the sync. Does refd go on with
 * the file system? */
static bool is_trusted_after_checkpoint(void)
{
	struct sys *sys = (struct sys *)(uintptr_t)w->sys;
	const struct fs *fs = repo->fs;

	plain_syncfs = sys->syncfs;
	sys->syncfs = syncfs_then_git;
	checkpoint();
	sys->syncfs = plain_syncfs;
	return atomic_load(&fs->state) == FS_OPEN;
}

/* The list becomes another file, as after each update by git. */
static void replace_list(void)
{
	const struct sys *other = memfs_other(w->fs);
	char *list;
	size_t len;

	ck_assert_int_eq(sys_read_file(other, dirfd, REFTABLE_LIST,
			     REFTABLE_LIST_MAX, &list, &len),
	    0);
	rh_put(other, dirfd, REFTABLE_LIST ".lock", list, len);
	free(list);
	ck_assert_int_eq(SYS(other, renameat, dirfd, REFTABLE_LIST ".lock",
			     dirfd, REFTABLE_LIST),
	    0);
}

/* The merged table is flushed first, after the marker, and without the lock.
 * Git adds a table again, and has the lock for the next table. */
static int fsync_then_git(const struct sys *sys, int fd)
{
	int r = plain_fsync(sys, fd);

	if (++nr_fsyncs == 2) {
		add_table(TABLES + 2);
		replace_list();
		rh_put(memfs_other(w->fs), dirfd, "tables.list.lock", "", 0);
	}
	return r;
}

static const struct {
	enum memfs_call call;
	int err;
} failures[] = {
	{ MEMFS_OPENAT, -EMFILE },
	{ MEMFS_OPENAT, -EIO },
	{ MEMFS_FSYNC, -EIO },
	{ MEMFS_FSYNC, -ENOSPC },
	{ MEMFS_WRITE_OUT_WAIT, -EIO },
};
#define NR_FAILURES ((int)(sizeof(failures) / sizeof(*failures)))

/* A failed flush of what others have written costs the file system. Nothing
 * else does: no descriptor is left, or the flush is of the new table. */
TEST(what_costs_the_file_system, .times = NR_FAILURES)
{
	const enum memfs_call call = failures[_i].call;
	bool is_trusted, is_hit = true, is_flush = call != MEMFS_OPENAT;
	unsigned long n;

	for (n = 0; is_hit; n++) {
		if (n > 0)
			set_up();
		memfs_fail_call(w->fs, call, n, failures[_i].err);
		is_trusted = is_trusted_after_checkpoint();
		is_hit = memfs_was_hit(w->fs);
		ck_assert_msg(is_trusted ==
			(!is_hit || !is_flush || is_own(memfs_hit(w->fs))),
		    "%lu %s: %s", n, memfs_hit(w->fs),
		    is_trusted ? "trusted" : "not trusted");
		memfs_fail_none(w->fs);
		ck_assert_uint_eq(memfs_bad_syncs(w->fs), 0);
		if (is_hit)
			tear_down();
	}
	ck_assert_uint_gt(n, 2);
}

/* Git has replaced the list, and already has the lock for the next change. */
TEST(git_replaces_the_list)
{
	struct sys *sys = (struct sys *)(uintptr_t)w->sys;
	size_t nr_files;

	plain_fsync = sys->fsync;
	sys->fsync = fsync_then_git;
	ck_assert(is_trusted_after_checkpoint());
	sys->fsync = plain_fsync;
	ck_assert_uint_eq(look(&nr_files), TABLES + 2);
	SYS(memfs_other(w->fs), unlinkat, dirfd, "tables.list.lock");
	ck_assert_int_eq(checkpoint(), 0);
	ck_assert_uint_eq(look(&nr_files), 1);
}

/* ---- tombstones ---- */

static void add_tombstone(uint64_t index)
{
	const struct reftable_record rec = rh_deleted("refs/heads/05", index);
	struct rh_bytes table = rh_table(world_format(), index, index, &rec, 1);

	rh_add(memfs_other(w->fs), dirfd, &table, index, index,
	    (uint32_t)index);
	rh_free(&table);
}

static bool has_tombstone(void)
{
	struct reftable_stack stack;
	struct reftable_fault fault;
	bool has;

	ck_assert_int_eq(reftable_stack_open(memfs_other(w->fs), dirfd,
			     world_format(), NULL, &stack, &fault),
	    0);
	has = strstr(rr_list(&stack, REFTABLE_REFS, true), "refs/heads/05-") !=
	    NULL;
	reftable_stack_close(&stack);
	return has;
}

/* Rounds in which all tables are merged, because git adds many. */
static void rounds(unsigned nr)
{
	static uint64_t index;
	unsigned i;

	if (index < TABLES + 1)
		index = TABLES + 1;
	while (nr-- > 0) {
		for (i = 0; i < 3 * TABLES; i++)
			add_table(++index);
		ck_assert_int_eq(checkpoint(), 0);
		memfs_advance(w->fs, INT64_C(100000000000));
	}
}

CASE(.name = "tombstones", .setup = set_up_periodic, .teardown = tear_down,
    .seconds = 60);

/* A row may be replayed after any number of syncs: until it is not deferred any
 * more, or until the next start after an answer `unknown`. */
TEST(tombstones_outlive_deferred_rows, .times = 3)
{
	struct deferred *d = w->store.deferred;
	struct journal_repo known = { .id = repo->id, .path = repo->path };

	if (_i == 1)
		deferred_note(d, &known, 1, 0);
	ck_assert_int_eq(checkpoint(), 0);
	if (_i == 2)
		deferred_add_update(d, journal_last_lsn(w->store.journal), 0);
	add_tombstone(TABLES + 1);
	rounds(6);
	ck_assert_int_eq(has_tombstone(), _i > 0);
	if (_i == 1)
		deferred_end_retry(d, repo->id, 1, 0);
	rounds(4);
	ck_assert_int_eq(has_tombstone(), _i == 2);
}
