/*
 * Proves the states that the fake file system leaves after a power loss. For
 * every little script, many seeds give exactly the states that its syncs
 * permit.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/lib/memfs_rig.h"
#include "tests/lib/suite.h"

#define SEEDS 300
static void setup(void)
{
	mr_setup();
	memfs_mkdirs(mr_fs, "/e");
}

/* ---- small steps without failures ---- */

static void put(const char *path, int flags, const char *text)
{
	int fd = mr_open(path, O_WRONLY | flags);

	ck_assert_int_eq(SYS(mr_sys, write_all, fd, text, strlen(text)), 0);
	SYS(mr_sys, close, fd);
}

static void create(const char *path)
{
	put(path, O_CREAT | O_EXCL, MR_NEW);
}

static void datasync(const char *path)
{
	int fd = mr_open(path, O_RDONLY);

	ck_assert_int_eq(SYS(mr_sys, fdatasync, fd), 0);
	SYS(mr_sys, close, fd);
}

static void move(const char *from, const char *to)
{
	ck_assert_int_eq(SYS(mr_sys, renameat, AT_FDCWD, from, AT_FDCWD, to),
	    0);
}

/* ---- which states come about ---- */

enum {
	IS_ABSENT = 1,
	IS_OLD = 2,
	IS_NEW = 4,
	IS_EMPTY = 8,
	IS_NULS = 16,
	IS_BEGINNING = 32, /* of the new value, perhaps with NULs after */
	IS_OTHER = 64,
	IS_ANY_NEW = IS_NEW | IS_EMPTY | IS_NULS | IS_BEGINNING
};

static unsigned state_of(const char *path)
{
	static const char nuls[sizeof(MR_NEW)];
	size_t len, same = 0;
	char *text = memfs_read(mr_fs, path, &len);
	unsigned state = IS_OTHER;

	if (text == NULL)
		return IS_ABSENT;
	while (same < len && text[same] == MR_NEW[same])
		same++;
	if (len == 0)
		state = IS_EMPTY;
	else if (strcmp(text, MR_OLD) == 0)
		state = IS_OLD;
	else if (strcmp(text, MR_NEW) == 0)
		state = IS_NEW;
	else if (len <= strlen(MR_NEW) &&
	    memcmp(text + same, nuls, len - same) == 0)
		state = same == 0 ? IS_NULS : IS_BEGINNING;
	free(text);
	return state;
}

/* All states of PATH that power losses after SCRIPT have left. */
static unsigned states(enum memfs_mode mode, void (*script)(void),
    const char *path)
{
	unsigned seed, found = 0;

	for (seed = 0; seed < SEEDS; seed++) {
		mr_teardown();
		setup();
		memfs_set_mode(mr_fs, mode);
		script();
		mr_power_loss(seed);
		found |= state_of(path);
	}
	return found;
}

static void expect(enum memfs_mode mode, void (*script)(void), const char *path,
    unsigned expected)
{
	unsigned found = states(mode, script, path);

	ck_assert_msg(found == expected,
	    "mode %d, %s: states %#x instead of %#x", (int)mode, path, found,
	    expected);
}

static void expect_both(void (*script)(void), const char *path,
    unsigned expected)
{
	expect(MEMFS_STRICT, script, path, expected);
	expect(MEMFS_ORDERED, script, path, expected);
}

/* ---- replacing a file ---- */

static void replace_without_sync(void)
{
	create("/d/x.lock");
	move("/d/x.lock", "/d/x");
}

static void replace_with_file_synced(void)
{
	create("/d/x.lock");
	mr_sync("/d/x.lock");
	move("/d/x.lock", "/d/x");
}

static void replace_with_both_synced(void)
{
	replace_with_file_synced();
	mr_sync("/d");
}

static void replace_with_directory_synced(void)
{
	replace_without_sync();
	mr_sync("/d");
}

CASE(.setup = setup, .teardown = mr_teardown);

TEST(a_rename_without_sync_may_leave_anything)
{
	expect_both(replace_without_sync, "/d/x", IS_OLD | IS_ANY_NEW);
	expect_both(replace_without_sync, "/d/x.lock", IS_ABSENT | IS_ANY_NEW);
}

TEST(a_rename_of_a_synced_file_leaves_old_or_new)
{
	expect_both(replace_with_file_synced, "/d/x", IS_OLD | IS_NEW);
	expect(MEMFS_STRICT, replace_with_file_synced, "/d/x.lock",
	    IS_ABSENT | IS_NEW);
	/* The fsync of the file made its name durable. */
	expect(MEMFS_ORDERED, replace_with_file_synced, "/d/x.lock",
	    IS_ABSENT | IS_NEW);
}

TEST(a_rename_synced_twice_lasts)
{
	expect_both(replace_with_both_synced, "/d/x", IS_NEW);
	expect_both(replace_with_both_synced, "/d/x.lock", IS_ABSENT);
}

TEST(a_synced_directory_has_names_not_data)
{
	expect_both(replace_with_directory_synced, "/d/x", IS_ANY_NEW);
}

/* ---- names ---- */

static void create_and_sync(void)
{
	create("/d/y");
	mr_sync("/d/y");
}

static void create_and_datasync(void)
{
	create("/d/y");
	datasync("/d/y");
}

static void create_and_sync_another(void)
{
	create("/d/y");
	mr_sync("/d/x");
}

TEST(fsync_of_a_file_and_its_name)
{
	expect(MEMFS_STRICT, create_and_sync, "/d/y", IS_ABSENT | IS_NEW);
	expect(MEMFS_ORDERED, create_and_sync, "/d/y", IS_NEW);
	expect_both(create_and_datasync, "/d/y", IS_ABSENT | IS_NEW);
	expect(MEMFS_STRICT, create_and_sync_another, "/d/y",
	    IS_ABSENT | IS_ANY_NEW);
	expect(MEMFS_ORDERED, create_and_sync_another, "/d/y", IS_ANY_NEW);
}

static void unlink_it(void)
{
	ck_assert_int_eq(SYS(mr_sys, unlinkat, AT_FDCWD, "/d/x"), 0);
}

static void unlink_and_sync(void)
{
	unlink_it();
	mr_sync("/d");
}

TEST(an_unlink_lasts_with_its_directory)
{
	expect_both(unlink_it, "/d/x", IS_OLD | IS_ABSENT);
	expect_both(unlink_and_sync, "/d/x", IS_ABSENT);
}

static void deep_file(void)
{
	SYS(mr_sys, mkdirat, AT_FDCWD, "/d/new", 0777);
	create("/d/new/y");
	mr_sync("/d/new/y");
	mr_sync("/d/new");
}

TEST(a_name_needs_the_directories_above)
{
	expect(MEMFS_STRICT, deep_file, "/d/new/y", IS_ABSENT | IS_NEW);
	expect(MEMFS_ORDERED, deep_file, "/d/new/y", IS_NEW);
}

static void move_over(void)
{
	create("/e/stage");
	mr_sync("/e/stage");
	mr_sync("/e");
	move("/e/stage", "/d/x");
}

static void move_over_and_sync_old_directory(void)
{
	move_over();
	mr_sync("/e");
}

static void move_over_and_sync_new_directory(void)
{
	move_over();
	mr_sync("/d");
}

TEST(a_rename_between_directories_lasts_with_the_new_name)
{
	unsigned seed;

	expect_both(move_over, "/d/x", IS_OLD | IS_NEW);
	expect(MEMFS_STRICT, move_over_and_sync_old_directory, "/d/x",
	    IS_OLD | IS_NEW);
	expect(MEMFS_ORDERED, move_over_and_sync_old_directory, "/d/x", IS_NEW);
	expect_both(move_over_and_sync_new_directory, "/d/x", IS_NEW);
	expect_both(move_over_and_sync_new_directory, "/e/stage", IS_ABSENT);
	for (seed = 0; seed < SEEDS; seed++) {
		mr_teardown();
		setup();
		move_over();
		mr_power_loss(seed);
		ck_assert_int_ne(memfs_exists(mr_fs, "/e/stage"),
		    memfs_holds(mr_fs, "/d/x", MR_NEW));
	}
}

static void move_twice(void)
{
	move("/d/x", "/d/y");
	move("/d/y", "/e/z");
	mr_sync("/e");
}

TEST(two_renames_are_not_taken_out_of_order)
{
	expect_both(move_twice, "/e/z", IS_OLD);
	expect_both(move_twice, "/d/y", IS_ABSENT);
	expect_both(move_twice, "/d/x", IS_ABSENT);
}

TEST(names_survive_in_their_order)
{
	unsigned seed, k, last, kept[4] = { 0 };
	char path[32];

	for (seed = 0; seed < SEEDS; seed++) {
		mr_teardown();
		setup();
		create("/d/0");
		create("/e/1");
		create("/d/2");
		mr_power_loss(seed);
		for (last = 3, k = 3; k-- > 0;) {
			snprintf(path, sizeof(path), "/%c/%u",
			    k == 1 ? 'e' : 'd', k);
			if (!memfs_exists(mr_fs, path))
				last = k;
		}
		for (k = last; k < 3; k++) {
			snprintf(path, sizeof(path), "/%c/%u",
			    k == 1 ? 'e' : 'd', k);
			ck_assert(!memfs_exists(mr_fs, path));
		}
		kept[last]++;
	}
	for (k = 0; k < 4; k++)
		ck_assert_uint_gt(kept[k], 0);
}

TEST(a_prefix_can_be_chosen)
{
	struct memfs_choice choice = memfs_choose(0);

	create("/d/0");
	create("/d/1");
	ck_assert_uint_eq(memfs_nr_pending(mr_fs, 0), 2);
	choice.keep[0] = 1;
	choice.data = MEMFS_DATA_ALL;
	memfs_power_loss(mr_fs, &choice);
	ck_assert(memfs_holds(mr_fs, "/d/0", MR_NEW));
	ck_assert(!memfs_exists(mr_fs, "/d/1"));
	ck_assert_uint_eq(memfs_nr_pending(mr_fs, 0), 0);
}

static void change_mode_and_sync_another(void)
{
	int fd = mr_open("/d/x", O_RDONLY);

	SYS(mr_sys, fchmod, fd, 0600);
	SYS(mr_sys, close, fd);
}

TEST(a_mode_is_pending_too)
{
	struct sys_stat st;
	unsigned seed, found = 0;

	for (seed = 0; seed < SEEDS; seed++) {
		mr_teardown();
		setup();
		change_mode_and_sync_another();
		if (seed >= SEEDS / 2)
			mr_sync("/d/x");
		mr_power_loss(seed);
		SYS(mr_sys, lstatat, AT_FDCWD, "/d/x", &st);
		if (seed >= SEEDS / 2)
			ck_assert_uint_eq(st.mode & 07777, 0600);
		else
			found |= st.mode & 07777;
	}
	ck_assert_uint_eq(found, 0666);
}

/* ---- data ---- */

static void write_in_place(void)
{
	put("/d/x", O_TRUNC, MR_NEW);
}

static void write_in_place_synced(void)
{
	write_in_place();
	datasync("/d/x");
}

TEST(writing_in_place_may_lose_the_file)
{
	expect_both(write_in_place, "/d/x", IS_OLD | IS_ANY_NEW);
	expect_both(write_in_place_synced, "/d/x", IS_NEW);
}
