/*
 * Proves that recovery saves and reports malformed files before it replaces
 * them, under a name that shows the ref. The number of saved files is limited.
 * A ref is redone also if its old file could not be saved.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/recovery/saved.h"
#include "tests/lib/scripted_txn.h"
#include "tests/lib/suite.h"
#include "tests/lib/world_rig.h"

#define REF     WORLD_REPO "/refs/heads/a/x"
#define SAVED   WORLD_REPO "/refd/saved"
#define ONES    "3131313131313131313131313131313131313131\n"
#define GARBAGE "ref: \n\n and more of it"

static unsigned count_files(const char *path)
{
	const struct sys *sys = memfs_other(w->fs);
	struct sys_dirent entry;
	struct sys_dir *dir;
	unsigned nr = 0;

	if (SYS(sys, dir_open, AT_FDCWD, path, &dir) < 0)
		return 0;
	while (SYS(sys, dir_next, dir, &entry) > 0)
		nr++;
	SYS(sys, dir_close, dir);
	return nr;
}

static unsigned count_saved(void)
{
	return count_files(SAVED);
}

CASE(.setup = wr_setup_apart, .teardown = wr_teardown);

TEST(an_empty_ref_is_saved)
{
	const char *name;

	wr_ok("a/x=1");
	wr_power_loss(MEMFS_DATA_NONE, 1000);
	ck_assert(memfs_holds(w->fs, REF, ""));
	ck_assert_int_eq(world_start(w), 0);
	ck_assert(memfs_holds(w->fs, REF, ONES));
	ck_assert(memfs_holds(w->fs, w->evidence, ""));
	name = strrchr(w->evidence, '/');
	ck_assert(strncmp(w->evidence, SAVED "/", strlen(SAVED "/")) == 0);
	ck_assert_str_eq(name + strlen(name) - strlen("-refs%2Fheads%2Fa%2Fx"),
	    "-refs%2Fheads%2Fa%2Fx");
	/* A second start has nothing to report. */
	ck_assert_int_eq(scripted_power_loss(w, MEMFS_DATA_NONE, 1000), 0);
	ck_assert_uint_eq(count_saved(), 1);
}

TEST(a_broken_ref_is_saved)
{
	wr_ok("a/x=1");
	wr_power_loss(MEMFS_DATA_NONE, 1000);
	memfs_write(w->fs, REF, GARBAGE);
	ck_assert_int_eq(world_start(w), 0);
	ck_assert(memfs_holds(w->fs, REF, ONES));
	ck_assert(memfs_holds(w->fs, w->evidence, GARBAGE));
}

TEST(a_deleted_ref_is_saved)
{
	wr_ok("a/x=1");
	ck_assert_int_eq(world_checkpoint(w), 0);
	wr_ok("-a/x");
	wr_power_loss(MEMFS_DATA_NONE, 1000);
	memfs_write(w->fs, REF, GARBAGE);
	ck_assert_int_eq(world_start(w), 0);
	ck_assert(!memfs_exists(w->fs, REF));
	ck_assert(memfs_holds(w->fs, w->evidence, GARBAGE));
}

TEST(an_older_value_is_not_saved)
{
	wr_ok("a/x=1");
	ck_assert_int_eq(world_checkpoint(w), 0);
	wr_ok("a/x=2");
	ck_assert_int_eq(scripted_power_loss(w, MEMFS_DATA_NONE, 0), 0);
	ck_assert_uint_eq(w->found[STORE_REDONE], 1);
	ck_assert_uint_eq(count_saved(), 0);
}

TEST(two_files_of_a_second_have_two_names)
{
	wr_ok("a/x=1");
	wr_power_loss(MEMFS_DATA_NONE, 1000);
	ck_assert_int_eq(world_start(w), 0);
	wr_ok("a/x=2");
	wr_power_loss(MEMFS_DATA_NONE, 1000);
	memfs_write(w->fs, REF, "");
	ck_assert_int_eq(world_start(w), 0);
	ck_assert_uint_eq(count_saved(), 2);
}

TEST(the_number_of_files_is_limited)
{
	const char *name;
	char path[128], *big = calloc(1, SAVED_LINK_BYTES + 2);
	int i;

	ck_assert_ptr_nonnull(big);
	memset(big, 'x', SAVED_LINK_BYTES + 1);
	wr_ok("a/x=1");
	wr_power_loss(MEMFS_DATA_NONE, 1000);
	memfs_write(w->fs, REF, big);
	ck_assert_int_eq(world_start(w), 0);
	ck_assert_uint_eq(w->found[STORE_REDONE], 1);
	ck_assert_uint_eq(count_saved(), 0);
	free(big);
	for (i = 0; i < SAVED_FILES; i++) {
		snprintf(path, sizeof(path), SAVED "/%d", i);
		memfs_write(w->fs, path, "");
	}
	wr_ok("a/x=2");
	wr_power_loss(MEMFS_DATA_NONE, 1000);
	memfs_write(w->fs, REF, "");
	memfs_write(w->fs, WORLD_REPO "/packed-refs", "garbage\n");
	ck_assert_int_eq(world_start(w), 0);
	ck_assert_int_eq(world_ref(w, "a/x"), '2');
	ck_assert_uint_eq(w->found[STORE_REDONE], 1);
	/* Except packed-refs: this file may have the only copy of many refs. */
	name = strrchr(w->evidence, '/');
	ck_assert_str_eq(name + strlen(name) - strlen("-0-packed-refs"),
	    "-0-packed-refs");
	ck_assert(memfs_holds(w->fs, w->evidence, "garbage\n"));
	ck_assert_uint_eq(count_saved(), SAVED_FILES + 1);
}

TEST(a_ref_is_redone_without_a_saved_file)
{
	wr_ok("a/x=1");
	wr_power_loss(MEMFS_DATA_NONE, 1000);
	memfs_write(w->fs, SAVED, "no directory\n");
	ck_assert_int_eq(world_start(w), 0);
	ck_assert(memfs_holds(w->fs, REF, ONES));
	ck_assert_uint_eq(w->found[STORE_REDONE], 1);
	ck_assert_str_eq(w->evidence, "");
}

/* The directory is a link. Nothing is written behind the link. */
TEST(a_link_is_not_followed)
{
	wr_ok("a/x=1");
	wr_power_loss(MEMFS_DATA_NONE, 1000);
	memfs_write(w->fs, WORLD_REPO "/prey/file", "");
	memfs_symlink(w->fs, "../prey", SAVED);
	ck_assert_int_eq(world_start(w), 0);
	ck_assert(memfs_holds(w->fs, REF, ONES));
	ck_assert_str_eq(w->evidence, "");
	ck_assert_uint_eq(count_files(WORLD_REPO "/prey"), 1);
}

/* Only a malformed packed-refs, saved as a whole, shows lost contents. */
TEST(the_time_of_packed_refs)
{
	const struct sys *sys = memfs_other(w->fs);
	struct repo repo = { .mode = 0755 };
	char path[SAVED_PATH_MAX];

	repo.fd =
	    SYS(sys, openat, AT_FDCWD, WORLD_REPO, O_RDONLY | O_DIRECTORY, 0);
	ck_assert_int_ge(repo.fd, 0);
	ck_assert(saved_packed_ns(sys, &repo) == INT64_MIN);
	memfs_write(w->fs, WORLD_REPO "/refs/heads/x-packed-refs", "");
	memfs_write(w->fs, WORLD_REPO "/packed-refs.new", "");
	memfs_write(w->fs, WORLD_REPO "/packed-refs", "garbage\n");
	ck_assert_int_eq(saved_link(sys, &repo, repo.fd, "",
			     "refs/heads/x-packed-refs", path),
	    0);
	ck_assert_int_eq(saved_move(sys, &repo, "packed-refs.new", path), 0);
	ck_assert(saved_packed_ns(sys, &repo) == INT64_MIN);
	ck_assert_int_eq(saved_move(sys, &repo, "packed-refs", path), 0);
	ck_assert(saved_packed_ns(sys, &repo) > INT64_MIN);
	ck_assert_uint_eq(count_saved(), 3);
	SYS(sys, close, repo.fd);
}
