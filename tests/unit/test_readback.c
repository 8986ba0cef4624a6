/*
 * Proves that the read-back finds objects that a failed sync left in memory
 * alone: loose and packed, in full and in part. Only new objects are read. An
 * object that cannot be checked is not trusted.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "daemon/store/sync_failures/readback.h"
#include "proto/lib/sha.h"
#include "proto/oid.h"
#include "tests/lib/memfs.h"
#include "tests/lib/suite.h"

#define OBJECTS "/srv/r.git/objects"
#define LARGE   300000 /* several parts, and pages */

static struct memfs *fs;
static const struct sys *sys;
static int objects;
static char path[4096];
static char text[LARGE];

static void setup(void)
{
	size_t i;

	fs = memfs_new();
	memfs_mount(fs, "/srv");
	sys = memfs_sys(fs);
	memfs_mkdirs(fs, OBJECTS "/pack");
	objects =
	    SYS(sys, openat, AT_FDCWD, OBJECTS, O_RDONLY | O_DIRECTORY, 0);
	ck_assert_int_ge(objects, 0);
	path[0] = '\0';
	/* Random text does not compress. */
	srandom(1);
	for (i = 0; i < LARGE; i++)
		text[i] = (char)random();
}

static void teardown(void)
{
	SYS(sys, close, objects);
	ck_assert_uint_eq(memfs_open_fds(fs), 0);
	ck_assert_uint_eq(memfs_bad_fds(fs), 0);
	memfs_free(fs);
}

static void put(const char *name, const void *buf, size_t len)
{
	int fd;

	fd =
	    SYS(sys, openat, AT_FDCWD, name, O_WRONLY | O_CREAT | O_EXCL, 0444);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(SYS(sys, write_all, fd, buf, len), 0);
	SYS(sys, close, fd);
}

static enum refd_object_format format; /* SHA-1 unless a test says */

/* Writes a loose blob of the first LEN bytes of text. Returns its path. */
static const char *put_loose(size_t len)
{
	static char name[128];
	static unsigned char plain[LARGE + 64], out[2 * LARGE];
	char hex[REFD_OID_MAX_HEX + 1];
	uLongf out_len = sizeof(out);
	struct sha sum;
	struct refd_oid oid;
	size_t head;

	head = (size_t)snprintf((char *)plain, 64, "blob %zu", len) + 1;
	memcpy(plain + head, text, len);
	sha_init(&sum, format);
	sha_add(&sum, plain, head + len);
	sha_done(&sum, oid.bytes);
	refd_oid_hex(&oid, format, hex);
	ck_assert_int_eq(compress(out, &out_len, plain, head + len), Z_OK);
	snprintf(name, sizeof(name), OBJECTS "/%.2s", hex);
	if (!memfs_exists(fs, name))
		ck_assert_int_eq(SYS(sys, mkdirat, AT_FDCWD, name, 0777), 0);
	snprintf(name, sizeof(name), OBJECTS "/%.2s/%s", hex, hex + 2);
	put(name, out, out_len);
	return name;
}

/* Writes LEN bytes and their sum. */
static void put_pack(const char *name, size_t len)
{
	static unsigned char out[LARGE + REFD_OID_MAX_BYTES];
	const size_t bytes = refd_object_format_bytes(format);
	struct sha sum;
	struct refd_oid oid;

	memcpy(out, text, len);
	sha_init(&sum, format);
	sha_add(&sum, out, len);
	sha_done(&sum, oid.bytes);
	memcpy(out + len, oid.bytes, bytes);
	put(name, out, len + bytes);
}

static size_t nr_lost;

static void count_lost(void *arg, const char *which, const struct sys_stat *st)
{
	ck_assert(st->ino != 0);
	(void)arg;
	ck_assert_int_eq(strncmp(which, OBJECTS "/", sizeof(OBJECTS)), 0);
	nr_lost++;
}

static int prove_on(const struct sys *on, int fd, const char *name,
    int64_t limit)
{
	const struct readback readback = { on, format, count_lost, NULL };

	nr_lost = 0;
	return readback_objects(&readback, fd, name, limit, path, sizeof(path));
}

static int prove_since(int64_t limit)
{
	return prove_on(sys, objects, "", limit);
}

static int read_back(void)
{
	return prove_since(INT64_MIN);
}

static void sync_well(void)
{
	ck_assert_int_eq(SYS(sys, syncfs, objects), 0);
}

static void sync_badly(void)
{
	memfs_fail_call(fs, MEMFS_SYNCFS, 0, -EIO);
	ck_assert_int_eq(SYS(sys, syncfs, objects), -EIO);
	memfs_fail_none(fs);
	sync_well();
}

static void put_all(void)
{
	static const char *const others[] = { "pack-1.idx", "pack-1.rev",
		"pack-1.bitmap", "pack-1.mtimes", "multi-pack-index" };
	char name[128];
	size_t i;

	put_loose(0);
	put_loose(100);
	put_loose(LARGE);
	put_pack(OBJECTS "/pack/pack-1.pack", LARGE);
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		snprintf(name, sizeof(name), OBJECTS "/pack/%s", others[i]);
		put_pack(name, 1000);
	}
	/* These files have no sum. */
	put(OBJECTS "/pack/pack-1.keep", "", 0);
	put(OBJECTS "/pack/tmp_pack_1", "x", 1);
	put(OBJECTS "/00", "a file", 6);
}

CASE(.setup = setup, .teardown = teardown);

TEST(what_was_synced_is_there)
{
	put_all();
	sync_well();
	ck_assert_msg(read_back() == 0, "%s", path);
}

TEST(what_is_only_dirty_is_synced)
{
	put_all();
	ck_assert_msg(read_back() == 0, "%s", path);
}

static void lose_loose(size_t len)
{
	const char *name = put_loose(len);

	sync_badly();
	ck_assert_int_eq(read_back(), -EBADMSG);
	ck_assert_str_eq(path, name);
}

static void lose_pack(const char *name, size_t len)
{
	put_pack(name, len);
	sync_badly();
	ck_assert_int_eq(read_back(), -EBADMSG);
	ck_assert_str_eq(path, name);
}

TEST(loose_ones_that_were_lost, .times = 4)
{
	format = (enum refd_object_format)(_i / 2);
	put_all();
	sync_well();
	lose_loose(_i % 2 == 0 ? 5 : LARGE - 5);
}

TEST(packs_that_were_lost, .times = 6)
{
	static const char *const names[] = { OBJECTS "/pack/pack-2.pack",
		OBJECTS "/pack/pack-2.idx",
		OBJECTS "/pack/multi-pack-index-2.bitmap" };

	format = (enum refd_object_format)(_i / 3);
	put_all();
	sync_well();
	lose_pack(names[_i % 3], _i % 3 == 0 ? LARGE : 30);
}

/* Only a part of the file reached the disk. */
TEST(what_is_cut_short)
{
	static char buf[LARGE];
	const char *name = put_loose(LARGE);
	size_t len;
	char *all;

	all = memfs_read(fs, name, &len);
	ck_assert_uint_lt(len / 2, sizeof(buf));
	memcpy(buf, all, len / 2);
	free(all);
	memfs_write_bytes(fs, name, buf, len / 2);
	ck_assert_int_eq(read_back(), -EBADMSG);
	ck_assert_str_eq(path, name);
	memfs_write_bytes(fs, name, buf, 0);
	ck_assert_int_eq(read_back(), -EBADMSG);
	ck_assert_int_eq(SYS(sys, unlinkat, AT_FDCWD, name), 0);
	memfs_write_bytes(fs, OBJECTS "/pack/pack-1.pack", buf, 19);
	ck_assert_int_eq(read_back(), -EBADMSG);
}

/* The administrator needs the names of all lost objects. */
TEST(all_that_were_lost)
{
	put_all();
	sync_well();
	put_loose(5);
	put_loose(6);
	put_pack(OBJECTS "/pack/pack-2.pack", 1000);
	put_pack(OBJECTS "/pack/pack-2.idx", 1000);
	sync_badly();
	ck_assert_int_eq(read_back(), -EBADMSG);
	ck_assert_uint_eq(nr_lost, 4);
	ck_assert_int_eq(strncmp(path, OBJECTS "/pack/pack-2.",
			     sizeof(OBJECTS "/pack/pack-2.") - 1),
	    0);
}

/* Another object, complete, under the wrong name. */
TEST(what_has_anothers_name)
{
	const char *name = put_loose(100);
	size_t len;
	char *all = memfs_read(fs, name, &len);

	name = put_loose(200);
	memfs_write_bytes(fs, name, all, len);
	free(all);
	ck_assert_int_eq(read_back(), -EBADMSG);
	ck_assert_str_eq(path, name);
}

TEST(what_is_old_is_not_read)
{
	struct sys_stat st;
	const char *name;

	memfs_write(fs, OBJECTS "/pack/pack-1.pack", "nonsense");
	sync_well();
	memfs_advance(fs, 1000000000);
	name = put_loose(100);
	sync_well();
	ck_assert_int_eq(SYS(sys, lstatat, AT_FDCWD, name, &st), 0);
	ck_assert_msg(prove_since(st.ctime_ns) == 0, "%s", path);
	memfs_write(fs, name, "nonsense");
	ck_assert_msg(prove_since(st.ctime_ns + 2000000000) == 0, "%s", path);
	ck_assert_int_eq(read_back(), -EBADMSG);
}

/* A mapping keeps pages in memory that the disk lacks. */
TEST(what_is_mapped_is_read_from_the_disk)
{
	const char *name = put_loose(5000);

	put_pack(OBJECTS "/pack/pack-1.pack", 5000);
	memfs_map(fs, OBJECTS "/pack/pack-1.pack", true);
	memfs_map(fs, name, true);
	sync_badly();
	ck_assert_int_eq(read_back(), -EBADMSG);
	ck_assert_str_eq(path, OBJECTS "/pack/pack-1.pack");
	ck_assert_int_eq(SYS(sys, unlinkat, AT_FDCWD, path), 0);
	ck_assert_int_eq(read_back(), -EBADMSG);
	ck_assert_str_eq(path, name);
}

static int unknown_type(const struct sys *self, int fd, uint64_t *type)
{
	(void)self;
	(void)fd;
	*type = 1;
	return 0;
}

/* Without direct reads, a mapped file can't be checked. */
TEST(what_is_mapped_is_not_believed)
{
	struct sys plain = *sys;

	plain.fs_type = unknown_type;
	sys = &plain;
	put_all();
	ck_assert_msg(read_back() == 0, "%s", path);
	put_pack(OBJECTS "/pack/pack-2.pack", 5000);
	memfs_map(fs, OBJECTS "/pack/pack-2.pack", true);
	sync_badly();
	ck_assert_int_eq(read_back(), -EBUSY);
	ck_assert_str_eq(path, OBJECTS "/pack/pack-2.pack");
	memfs_map(fs, OBJECTS "/pack/pack-2.pack", false);
	ck_assert_int_eq(read_back(), -EBADMSG);
	sys = memfs_sys(fs);
}

static int in_memory(const struct sys *self, int fd, uint64_t *type)
{
	(void)self;
	(void)fd;
	*type = 0x01021994;
	return 0;
}

/* On tmpfs the pages are all there is, so nothing waits until they are gone. */
TEST(what_has_no_disk)
{
	struct sys plain = *sys;

	plain.fs_type = in_memory;
	sys = &plain;
	put_pack(OBJECTS "/pack/pack-1.pack", 5000);
	memfs_map(fs, OBJECTS "/pack/pack-1.pack", true);
	sync_well();
	ck_assert_msg(read_back() == 0, "%s", path);
	memfs_write(fs, OBJECTS "/pack/pack-1.pack", "nonsense");
	ck_assert_int_eq(read_back(), -EBADMSG);
	sys = memfs_sys(fs);
}

static const struct sys *below;

/* Replaces the file between the look and the opening. */
static int replaced_openat(const struct sys *self, int dirfd, const char *name,
    int flags, mode_t mode)
{
	if (strcmp(name, "multi-pack-index") == 0) {
		SYS(below, unlinkat, AT_FDCWD, OBJECTS "/pack/new");
		put_pack(OBJECTS "/pack/new", LARGE);
		ck_assert_int_eq(SYS(below, renameat, AT_FDCWD,
				     OBJECTS "/pack/new", AT_FDCWD,
				     OBJECTS "/pack/multi-pack-index"),
		    0);
	}
	(void)self;
	return SYS(below, openat, dirfd, name, flags, mode);
}

TEST(what_is_replaced_meanwhile)
{
	struct sys racing = *sys;

	below = sys;
	racing.openat = replaced_openat;
	put_pack(OBJECTS "/pack/multi-pack-index", 1000);
	sync_well();
	ck_assert_msg(prove_on(&racing, objects, "", INT64_MIN) == 0, "%s",
	    path);
}

/* Direct reads must be aligned, as in the kernel. Some kernels require this
 * also after the end of the file. */
static ssize_t aligned_pread(const struct sys *self, int fd, void *buf,
    size_t len, off_t offset)
{
	(void)self;
	return offset % 512 != 0 || len % 512 != 0 || (uintptr_t)buf % 512 ?
	    -EINVAL :
	    SYS(below, pread, fd, buf, len, offset);
}

TEST(reads_are_aligned)
{
	struct sys strict = *sys;
	const char *name;
	size_t len;
	char *all;

	below = sys;
	strict.pread = aligned_pread;
	put_all();
	sync_well();
	ck_assert_msg(prove_on(&strict, objects, "", INT64_MIN) == 0, "%s",
	    path);
	/* The end of the object is missing. */
	name = put_loose(LARGE - 9);
	all = memfs_read(fs, name, &len);
	memfs_write_bytes(fs, name, all, len - 1000);
	free(all);
	ck_assert_int_eq(prove_on(&strict, objects, "", INT64_MIN), -EBADMSG);
	ck_assert_str_eq(path, name);
}

/* A directory alone, as on a separate file system. */
TEST(a_part_of_a_store)
{
	int pack = SYS(sys, openat, objects, "pack", O_RDONLY | O_DIRECTORY, 0);

	put_all();
	sync_well();
	ck_assert_int_eq(prove_on(sys, pack, "pack", INT64_MIN), 0);
	put_pack(OBJECTS "/pack/pack-2.pack", 5000);
	sync_badly();
	ck_assert_int_eq(prove_on(sys, pack, "pack", INT64_MIN), -EBADMSG);
	SYS(sys, close, pack);
}

/* If any call fails, the object store does not count as read back. */
TEST(each_call_that_fails)
{
	bool hit = true;
	unsigned long i;
	int r;

	put_loose(100);
	put_pack(OBJECTS "/pack/pack-1.pack", 100);
	sync_well();
	for (i = 0; hit; i++) {
		memfs_fail(fs, i, -EIO);
		r = read_back();
		hit = memfs_was_hit(fs);
		/* Except closing a file after the read. */
		ck_assert(!hit || r == -EIO ||
		    strncmp(memfs_hit(fs), "close", 5) == 0);
		memfs_fail_none(fs);
	}
	ck_assert_int_eq(r, 0);
	ck_assert_uint_gt(i, 20);
}
