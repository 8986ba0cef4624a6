/*
 * Proves that refd writes loose objects as git reads them, in both formats, in
 * the place of a torn file too, and that a failed call changes no object and
 * leaves no temporary file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/store/objects/loose_object.h"
#include "tests/lib/memfs_rig.h"
#include "tests/lib/odb_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define TEMPORARY "tmp_obj_x"

/* ---- beside git ---- */

static const char *const words[] = { "", "commit", "tree", "blob", "tag" };

/* Writes REVISION of r into the repository s. */
static void copy_object(const char *revision, uint32_t dir_mode)
{
	const struct refd_oid oid = odb_rig_named(revision);
	struct object_content c;
	struct row_object object;
	int fd = openat(tmp_fd, "s/objects", O_RDONLY | O_DIRECTORY);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(odb_read(odb_rig, &oid, SIZE_MAX / 2, &c), 0);
	object = (struct row_object){ c.type, c.data, c.len };
	ck_assert_int_eq(loose_object_write(&sys_kernel, fd, TEMPORARY,
			     odb_rig_format, &object, dir_mode),
	    0);
	tmp_run("test $(git -C s cat-file -t $(git -C r rev-parse %s)) = %s",
	    revision, words[c.type]);
	free(c.data);
	close(fd);
}

static struct suite_case sha256 = { .name = "sha256",
	.setup = odb_rig_setup_sha256,
	.teardown = odb_rig_teardown };

CASE(.name = "sha1", .setup = odb_rig_setup, .teardown = odb_rig_teardown);

TEST(git_reads_each_type, .also = &sha256)
{
	static const char *const revisions[] = { "t", "b", "b^{tree}", "b:d",
		"b:empty", "b:d/large" };
	size_t i;

	tmp_run("git init -q r && git init -q --bare s && cd r && mkdir d && "
		": >empty && seq 30000 >d/large && git add . && git commit -q "
		"-m b && git tag b && git tag -m t t");
	odb_rig_open("r/.git");
	for (i = 0; i < sizeof(revisions) / sizeof(revisions[0]); i++)
		copy_object(revisions[i], 0777);
	tmp_run("cd s && git update-ref refs/tags/t $(git -C ../r rev-parse t) "
		"&& git fsck --full --strict && git cat-file "
		"--batch-all-objects --batch-check >../s.list && git -C ../r "
		"cat-file --batch-all-objects --batch-check | cmp - ../s.list "
		"&& git cat-file blob t:d/large | cmp - ../r/d/large && test "
		"-z \"$(find . -name '" TEMPORARY "')\"");
}

/* The bits of the fan-out decide who may read. */
TEST(modes, .times = 4)
{
	static const uint32_t dir_modes[] = { 0777, 02770, 0700, 0755 };
	static const unsigned wanted[] = { 0444, 0440, 0400, 0444 };
	char path[512], *hex;
	mode_t mask = umask(0);

	tmp_run("git init -q r && git init -q --bare s && cd r && echo x >x && "
		"git add . && git commit -q -m b");
	odb_rig_open("r/.git");
	copy_object("HEAD:x", dir_modes[_i]);
	hex = tmp_output("git -C r rev-parse HEAD:x | tr -d '\\n'");
	snprintf(path, sizeof(path), "s/objects/%.2s", hex);
	ck_assert_uint_eq(tmp_mode(path) & 0777, dir_modes[_i] & 0777);
	snprintf(path, sizeof(path), "s/objects/%.2s/%s", hex, hex + 2);
	ck_assert_uint_eq(tmp_mode(path), wanted[_i]);
	free(hex);
	umask(mask);
}

/* ---- failures ---- */

/* The blob "hello\n". */
#define OBJECTS  "/d"
#define FANOUT   OBJECTS "/ce"
#define NAME     "013625030ba8dba906f756967f9e9ca394464a"
#define FILE_OF  FANOUT "/" NAME
#define LEFTOVER FANOUT "/" TEMPORARY

static int objects_fd;

static void setup_memfs(void)
{
	mr_setup();
	objects_fd = mr_open(OBJECTS, O_RDONLY);
}

static void teardown_memfs(void)
{
	SYS(mr_sys, close, objects_fd);
	ck_assert_uint_eq(memfs_open_fds(mr_fs), 0);
	ck_assert_uint_eq(memfs_bad_fds(mr_fs), 0);
	mr_teardown();
}

static int write_hello(void)
{
	const struct row_object hello = { OBJECT_BLOB,
		(const uint8_t *)"hello\n", 6 };

	return loose_object_write(mr_sys, objects_fd, TEMPORARY,
	    REFD_FORMAT_SHA1, &hello, 0755);
}

static void is_hello(void)
{
	struct object_content c;
	struct refd_oid oid;

	ck_assert_int_eq(refd_oid_parse("ce" NAME, REFD_FORMAT_SHA1, &oid), 0);
	ck_assert_int_eq(loose_object_read(mr_sys, objects_fd, &oid,
			     REFD_FORMAT_SHA1, 6, &c),
	    0);
	ck_assert_int_eq(c.type, OBJECT_BLOB);
	ck_assert_uint_eq(c.len, 6);
	ck_assert_mem_eq(c.data, "hello\n", 6);
	free(c.data);
	ck_assert(!memfs_exists(mr_fs, LEFTOVER));
}

CASE(.name = "failures", .setup = setup_memfs, .teardown = teardown_memfs);

/* A crash has left a torn object, and a temporary file. */
TEST(torn_files_are_replaced)
{
	memfs_write(mr_fs, FILE_OF, "");
	memfs_write(mr_fs, LEFTOVER, "of a crash");
	ck_assert_int_eq(write_hello(), 0);
	is_hello();
	ck_assert_int_eq(write_hello(), 0);
	is_hello();
}

TEST(a_link_is_not_followed)
{
	memfs_mkdirs(mr_fs, "/e");
	memfs_symlink(mr_fs, "/e", FANOUT);
	ck_assert_int_lt(write_hello(), 0);
	ck_assert(!memfs_exists(mr_fs, "/e/" TEMPORARY));
	ck_assert(!memfs_exists(mr_fs, "/e/" NAME));
}

/* Each call fails once, with and without an object and a leftover there. */
TEST(each_call_fails, .times = 2)
{
	unsigned long n;
	int r;

	for (n = 0;; n++) {
		teardown_memfs();
		setup_memfs();
		if (_i > 0) {
			memfs_write(mr_fs, FILE_OF, "old");
			memfs_write(mr_fs, LEFTOVER, "of a crash");
		}
		memfs_fail(mr_fs, n, -ENOSPC);
		r = write_hello();
		if (!memfs_was_hit(mr_fs))
			break;
		ck_assert_msg(r == -ENOSPC, "%s: %d", memfs_hit(mr_fs), r);
		ck_assert_msg(memfs_holds(mr_fs, FILE_OF,
				  _i > 0 ? "old" : NULL),
		    "%s", memfs_hit(mr_fs));
		/* An earlier leftover may stay, but nothing new. */
		ck_assert_msg(!memfs_exists(mr_fs, LEFTOVER) ||
			(_i > 0 && memfs_holds(mr_fs, LEFTOVER, "of a crash")),
		    "%s", memfs_hit(mr_fs));
		memfs_fail_none(mr_fs);
		ck_assert_int_eq(write_hello(), 0);
		is_hello();
	}
	memfs_fail_none(mr_fs);
	ck_assert_int_eq(r, 0);
	is_hello();
	ck_assert_uint_ge(n, 5);
}
