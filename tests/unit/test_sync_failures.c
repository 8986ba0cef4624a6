/*
 * Proves that refd remembers a failed sync for as long as the file system is in
 * memory: through a crash at any moment, and whatever else was synced since.
 * After a reboot nothing is remembered. Unreadable parts of the list count as
 * unknown. No sync begins without a mark on disk.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/sync_failures/sync_failures.h"
#include "tests/lib/memfs.h"
#include "tests/lib/suite.h"

#define STATE "/state"
#define A     7
#define B     (UINT64_C(1) << 63 | 9)

static struct memfs *fs;
static const struct sys *sys;
static struct sync_failures *d;
static unsigned nth;

static int open_state(void)
{
	int fd = SYS(sys, openat, AT_FDCWD, STATE, O_RDONLY | O_DIRECTORY, 0);

	ck_assert_int_ge(fd, 0);
	return fd;
}

static void start_as(bool is_first)
{
	int fd = open_state();

	d = NULL;
	ck_assert_int_eq(
	    sync_failures_open(sys, fd, memfs_boot_id(fs), is_first, &d), 0);
	SYS(sys, close, fd);
}

static void start(void)
{
	start_as(false);
}

static void kill_it(void)
{
	memfs_crash(fs);
	sync_failures_free(d);
	start();
}

static void setup(void)
{
	fs = memfs_new();
	sys = memfs_sys(fs);
	memfs_mkdirs(fs, STATE);
	start();
}

static void teardown(void)
{
	sync_failures_free(d);
	memfs_free(fs);
}

static void sync_of(uint64_t life, int64_t since_ns, bool fails)
{
	ck_assert_int_eq(sync_failures_begin(d, life, since_ns), 0);
	if (fails)
		sync_failures_add(d, life);
	sync_failures_end(d, life);
}

static int64_t since(uint64_t life)
{
	return sync_failures_since(d, life, 1, 2, &nth);
}

CASE(.setup = setup, .teardown = teardown);

TEST(what_went_well)
{
	sync_of(A, 0, false);
	sync_of(A, 50, false);
	sync_of(B, 50, false);
	kill_it();
	ck_assert(!sync_failures_any(d));
	ck_assert(!sync_failures_has_rows(d, A));
	ck_assert_int_eq(since(A), SYNC_FAILURES_NONE);
}

TEST(what_failed)
{
	int i;

	sync_of(B, 10, false);
	sync_of(A, 50, true);
	/* A later successful sync says nothing about the earlier loss. */
	sync_of(A, 60, false);
	for (i = 0; i < 3; i++) {
		ck_assert_uint_eq(sync_failures_count(d), 1);
		ck_assert(sync_failures_has_rows(d, A));
		ck_assert_int_eq(since(A), 50);
		ck_assert(!sync_failures_has_rows(d, B));
		ck_assert_int_eq(since(B), SYNC_FAILURES_NONE);
		kill_it();
	}
}

/* A flush of one file failed, and nothing was synced before. */
TEST(what_failed_outside_of_a_sync)
{
	sync_failures_add(d, A);
	kill_it();
	ck_assert(sync_failures_has_rows(d, A));
	ck_assert_int_eq(since(A), 0);
	ck_assert(!sync_failures_has_rows(d, B));
}

/* The daemon crashed before anybody knew the result. */
TEST(crashed_in_a_sync)
{
	ck_assert_int_eq(sync_failures_begin(d, A, 50), 0);
	/* Two syncs at once: the later sync says more. */
	ck_assert_int_eq(sync_failures_begin(d, A, 60), 0);
	sync_failures_end(d, A);
	kill_it();
	ck_assert(sync_failures_has_rows(d, A));
	ck_assert_int_eq(since(A), 60);
}

TEST(deferred_and_recovered)
{
	sync_of(A, 50, true);
	sync_of(B, 51, true);
	sync_failures_deferred(d, A);
	kill_it();
	ck_assert(!sync_failures_has_rows(d, A));
	ck_assert_int_eq(since(A), 50);
	ck_assert(sync_failures_has_rows(d, B));
	sync_failures_recovered(d);
	kill_it();
	ck_assert(!sync_failures_has_rows(d, B));
	ck_assert_int_eq(since(B), 51);
	/* A second failure: the objects count from the first failure on. */
	sync_of(A, 90, true);
	kill_it();
	ck_assert(sync_failures_has_rows(d, A));
	ck_assert_int_eq(since(A), 50);
}

TEST(read_back)
{
	unsigned before;

	sync_of(A, 50, true);
	ck_assert_int_eq(since(A), 50);
	before = nth;
	sync_failures_read_back(d, A, 1, 2, before);
	ck_assert_int_eq(since(A), SYNC_FAILURES_NONE);
	ck_assert_int_eq(sync_failures_since(d, A, 1, 3, &nth), 50);
	ck_assert_uint_eq(sync_failures_count(d), 1);
	/* A read-back from before the second failure does not count. */
	sync_of(A, 60, true);
	ck_assert_int_eq(since(A), 50);
	sync_failures_read_back(d, A, 1, 2, before);
	ck_assert_int_eq(since(A), 50);
	sync_failures_read_back(d, A, 1, 2, nth);
	ck_assert_int_eq(since(A), SYNC_FAILURES_NONE);
	kill_it();
	ck_assert_int_eq(since(A), 50);
}

TEST(another_boot, .times = 5)
{
	struct memfs_choice choice = memfs_choose((uint64_t)_i);

	sync_of(A, 50, true);
	memfs_power_loss(fs, &choice);
	sync_failures_free(d);
	start_as(true);
	ck_assert(!sync_failures_any(d));
	sync_of(A, 50, true);
	kill_it();
	ck_assert(sync_failures_has_rows(d, A));
}

static void every_life_has_failed(void)
{
	ck_assert(sync_failures_any(d));
	ck_assert_int_eq(since(A), 0);
	/* The line of B may have survived. */
	ck_assert_int_le(since(B), 10);
	ck_assert_int_eq(since(4711), 0);
	ck_assert(sync_failures_has_rows(d, 4712));
}

/* After damage to the list, any file system may have failed, until the next
 * boot. A damaged list of an earlier boot does not matter. */
static void none_is_forgotten(int err)
{
	struct memfs_choice choice = memfs_choose(0);
	int i;

	sync_failures_free(d);
	start_as(false);
	ck_assert_int_eq(sync_failures_unread(d), err);
	for (i = 0; i < 3; i++) {
		every_life_has_failed();
		kill_it();
		ck_assert_int_eq(sync_failures_unread(d), 0);
	}
	sync_failures_recovered(d);
	sync_failures_read_back(d, A, 1, 2, (since(A), nth));
	ck_assert_int_eq(since(A), SYNC_FAILURES_NONE);
	kill_it();
	ck_assert(!sync_failures_has_rows(d, A));
	ck_assert(!sync_failures_has_rows(d, 4711));
	ck_assert_int_eq(since(4711), 0);
	memfs_power_loss(fs, &choice);
	sync_failures_free(d);
	start_as(true);
	ck_assert(!sync_failures_any(d));
}

static void put_file(const char *buf, size_t len)
{
	sync_failures_free(d);
	memfs_crash(fs);
	d = NULL;
	memfs_write_bytes(fs, STATE "/syncs", buf, len);
}

/* The disk of the state directory was cut off and came back within one boot, or
 * a person changed the file. */
TEST(what_is_odd, .times = 10)
{
	static const char *const odd[] = { "", "nonsense", "s", "-", " 12" };
	static char zeroes[10000];
	size_t len;
	char *all;

	sync_of(A, 50, true);
	sync_of(B, 10, true);
	all = memfs_read(fs, STATE "/syncs", &len);
	ck_assert_uint_eq(len, 192);
	switch (_i) {
	case 0:
	case 1:
	case 2:
	case 3:
	case 4:
		put_file(odd[_i], strlen(odd[_i]));
		break;
	case 5:
		put_file(zeroes, sizeof(zeroes));
		break;
	case 6: /* a line */
		memset(all + 64, 0, 64);
		put_file(all, len);
		break;
	case 7: /* damage in a line */
		all[70] = '\0';
		put_file(all, len);
		break;
	case 8:
		all[64] = 'x';
		put_file(all, len);
		break;
	case 9: /* damage in the head */
		memset(all, ' ', 63);
		put_file(all, len);
		break;
	}
	free(all);
	none_is_forgotten(-EBADMSG);
}

TEST(what_is_no_file_of_ours, .times = 2)
{
	static char large[17 * 1024 * 1024];
	int dir;

	sync_of(A, 50, true);
	put_file(large, sizeof(large));
	dir = open_state();
	if (_i == 1) {
		ck_assert_int_eq(SYS(sys, unlinkat, dir, "syncs"), 0);
		memfs_symlink(fs, "syncs", STATE "/syncs");
	}
	SYS(sys, close, dir);
	none_is_forgotten(_i == 0 ? -EFBIG : -ELOOP);
}

/* refd does not report "no failure", and does not overwrite the file. */
TEST(what_is_a_directory)
{
	int dir = open_state();

	sync_failures_free(d);
	d = NULL;
	ck_assert_int_eq(SYS(sys, unlinkat, dir, "syncs"), 0);
	ck_assert_int_eq(SYS(sys, mkdirat, dir, "syncs", 0700), 0);
	ck_assert_int_eq(sync_failures_open(sys, dir, memfs_boot_id(fs), false,
			     &d),
	    -EISDIR);
	ck_assert_ptr_null(d);
	SYS(sys, close, dir);
}

/* A person or another program added a second line. Both lines count. */
TEST(lines_of_the_same_life)
{
	size_t len;
	char *all;

	sync_of(A, 50, true);
	sync_of(B, 60, true);
	sync_failures_deferred(d, B);
	all = memfs_read(fs, STATE "/syncs", &len);
	memcpy(all + 128 + 4, all + 64 + 4, 20);
	put_file(all, len);
	free(all);
	start();
	ck_assert_int_eq(sync_failures_unread(d), 0);
	ck_assert_uint_eq(sync_failures_count(d), 1);
	ck_assert(sync_failures_has_rows(d, A));
	ck_assert_int_eq(since(A), 50);
}

/* A refused begin leaves no line in the file. */
TEST(a_line_that_was_never_written)
{
	memfs_fail_call(fs, MEMFS_PWRITE, 0, -ENOSPC);
	ck_assert_int_eq(sync_failures_begin(d, A, 50), -ENOSPC);
	memfs_fail_none(fs);
	sync_of(B, 60, false);
	kill_it();
	ck_assert_int_eq(sync_failures_unread(d), 0);
	ck_assert(!sync_failures_any(d));
}

TEST(nowhere_to_mark_it)
{
	memfs_fail_call(fs, MEMFS_PWRITE, 0, -ENOSPC);
	ck_assert_int_eq(sync_failures_begin(d, A, 50), -ENOSPC);
	memfs_fail_none(fs);
	sync_of(A, 60, true);
	ck_assert_int_eq(since(A), 60);
	/* The end can't be written. Then the mark stays. */
	sync_failures_deferred(d, A);
	ck_assert_int_eq(sync_failures_begin(d, B, 70), 0);
	memfs_fail_call(fs, MEMFS_PWRITE, 0, -EIO);
	sync_failures_end(d, B);
	ck_assert(memfs_was_hit(fs));
	memfs_fail_none(fs);
	kill_it();
	ck_assert(!sync_failures_has_rows(d, A));
	ck_assert(sync_failures_has_rows(d, B));
}

/* A start that ends at any point loses no mark. */
TEST(a_start_that_fails_or_crashes, .times = 2)
{
	unsigned long i;
	bool hit = true;
	int fd;

	sync_of(A, 50, true);
	for (i = 0; hit; i++) {
		sync_failures_free(d);
		memfs_crash(fs);
		fd = open_state();
		d = NULL;
		if (_i == 0)
			memfs_fail(fs, i, -EIO);
		else
			memfs_crash_at(fs, i);
		sync_failures_open(sys, fd, memfs_boot_id(fs), false, &d);
		hit = memfs_was_hit(fs);
		memfs_fail_none(fs);
		memfs_crash(fs);
		sync_failures_free(d);
		start();
		ck_assert(sync_failures_has_rows(d, A));
		ck_assert_int_le(since(A), 50);
	}
	ck_assert_uint_gt(i, 3);
}
