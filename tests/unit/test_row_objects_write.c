/*
 * Proves that the objects of a row are written only into the repository of the
 * row, and that a full disk makes no torn object: when there is room again, the
 * same row writes all of them. An object that is there stays only if the
 * barrier knows that it is durable.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/group/row_objects_write.h"
#include "daemon/store/objects/loose_object.h"
#include "daemon/store/objects/row_objects.h"
#include "tests/lib/suite.h"
#include "tests/lib/world_rig.h"

#define NR    3
#define LARGE 9000

static uint8_t bytes[NR * (ROW_OBJECTS_HEAD + LARGE)];
static struct group_row row;
static struct record rec;
static struct refd_oid oids[NR];

static void add(size_t i, size_t len)
{
	uint8_t *at = bytes + row.objects.len;
	uint32_t seed = (uint32_t)i + 1;
	size_t k;

	at[0] = OBJECT_BLOB;
	at[1] = (uint8_t)len;
	at[2] = (uint8_t)(len >> 8);
	for (k = 0; k < len; k++) {
		seed = seed * 1103515245 + 12345;
		at[ROW_OBJECTS_HEAD + k] = (uint8_t)(seed >> 16);
	}
	object_id(OBJECT_BLOB, at + ROW_OBJECTS_HEAD, len, rec.object_format,
	    &oids[i]);
	row.objects.len += ROW_OBJECTS_HEAD + len;
}

static void setup(void)
{
	struct repo *repo;

	wr_setup();
	repo = world_repo(w, WORLD_REPO);
	ck_assert_ptr_nonnull(repo);
	rec = (struct record){ .object_format = world_format(),
		.dir_mode = 0755 };
	row = (struct group_row){ .objects = { .data = bytes } };
	memcpy(row.repo, repo->uuid, sizeof(row.repo));
	repo_put(&w->store.repos, repo);
	add(0, 10);
	add(1, LARGE);
	add(2, 0);
}

static int write_at(const char *path)
{
	struct repos *repos = &w->store.repos;
	struct repo *repo = NULL;
	int r = row_objects_write(repos, &repo, path, &row, &rec);

	if (repo != NULL)
		repo_put(repos, repo);
	return r;
}

static int write_all(void)
{
	return write_at(WORLD_REPO);
}

/* The number of whole objects. An object that can be opened is whole. */
static size_t nr_whole(void)
{
	int fd = SYS(w->sys, openat, AT_FDCWD, WORLD_REPO "/objects",
	    O_RDONLY | O_DIRECTORY, 0);
	struct object_content c;
	size_t i, nr = 0;
	int r;

	ck_assert_int_ge(fd, 0);
	for (i = 0; i < NR; i++) {
		r = loose_object_read(w->sys, fd, &oids[i], rec.object_format,
		    LARGE, &c);
		ck_assert(r == 0 || r == -ENOENT);
		if (r == 0)
			free(c.data);
		nr += r == 0;
	}
	SYS(w->sys, close, fd);
	return nr;
}

CASE(.setup = setup, .teardown = wr_teardown);

TEST(the_repository_of_the_row)
{
	ck_assert_int_eq(write_all(), 0);
	ck_assert_uint_eq(nr_whole(), NR);
	row.objects.len = 0;
	ck_assert_int_eq(write_at("/srv/none"), 0);
}

/* The file of the object NTH. */
static const char *file_of(size_t nth)
{
	static char path[sizeof(WORLD_REPO "/objects//") + REFD_OID_MAX_HEX];
	char hex[REFD_OID_MAX_HEX + 1];

	refd_oid_hex(&oids[nth], rec.object_format, hex);
	snprintf(path, sizeof(path), WORLD_REPO "/objects/%.2s/%s", hex,
	    hex + 2);
	return path;
}

/* The inodes of the files of the objects. */
static void inodes(uint64_t ino[NR])
{
	struct sys_stat st;
	size_t i;

	for (i = 0; i < NR; i++) {
		ck_assert_int_eq(
		    SYS(w->sys, lstatat, AT_FDCWD, file_of(i), &st), 0);
		ino[i] = st.ino;
	}
}

/* So its directory counts as synced. But git removes old objects. */
TEST(a_young_object_stays)
{
	uint64_t before[NR], after[NR];

	ck_assert_int_eq(write_all(), 0);
	inodes(before);
	ck_assert_int_eq(write_all(), 0);
	inodes(after);
	ck_assert_mem_eq(before, after, sizeof(before));
	memfs_advance(w->fs, 2 * 3600 * 1000000000LL);
	ck_assert_int_eq(write_all(), 0);
	inodes(after);
	ck_assert_uint_ne(before[0], after[0]);
	ck_assert_uint_eq(nr_whole(), NR);
}

static void mark_suspect(void)
{
	struct sync_failures *d = w->store.repos.sync_failures;
	struct fs *fs;

	for (fs = w->store.repos.fs; fs != NULL; fs = fs->next) {
		ck_assert_int_eq(sync_failures_begin(d, fs->mount, 0), 0);
		sync_failures_add(d, fs->mount);
		sync_failures_end(d, fs->mount);
	}
}

/* Its content was written in place, or a sync has failed. The barrier does not
 * see the first, and the second left the content in memory only. */
TEST(an_object_in_memory_is_replaced, .times = 2)
{
	uint64_t before[NR], after[NR];
	size_t len;
	char *content;

	ck_assert_int_eq(write_all(), 0);
	inodes(before);
	if (_i == 0) {
		memfs_advance(w->fs, 1000000000);
		content = memfs_read(w->fs, file_of(1), &len);
		memfs_write_bytes(w->fs, file_of(1), content, len);
		free(content);
	} else {
		mark_suspect();
	}
	ck_assert_int_eq(write_all(), 0);
	inodes(after);
	ck_assert_uint_eq(before[0] == after[0], _i == 0);
	ck_assert_uint_ne(before[1], after[1]);
	ck_assert_uint_eq(nr_whole(), NR);
}

/* A crash may leave a file without its content. */
TEST(a_torn_object, .times = 2)
{
	size_t i;

	ck_assert_int_eq(write_all(), 0);
	for (i = 0; i < NR; i++)
		memfs_write(w->fs, file_of(i), _i == 0 ? "" : "x");
	ck_assert_int_eq(write_all(), 0);
	ck_assert_uint_eq(nr_whole(), NR);
}

/* The repository of the row before is at another path. */
TEST(another_row_before)
{
	struct repos *repos = &w->store.repos;
	struct repo *repo = NULL, *first;

	ck_assert_int_eq(
	    row_objects_write(repos, &repo, WORLD_REPO, &row, &rec), 0);
	first = repo;
	ck_assert_int_eq(
	    row_objects_write(repos, &repo, WORLD_REPO, &row, &rec), 0);
	ck_assert_ptr_eq(repo, first);
	ck_assert_int_eq(
	    row_objects_write(repos, &repo, "/srv/none", &row, &rec), 1);
	ck_assert_ptr_null(repo);
}

TEST(a_different_repository, .times = 2)
{
	row.repo[_i * 15] ^= 1;
	ck_assert_int_eq(write_all(), 1);
	ck_assert_uint_eq(nr_whole(), 0);
	row.repo[_i * 15] ^= 1;
	ck_assert_int_eq(write_at("/srv/none"), 1);
	rec.object_format = rec.object_format == REFD_FORMAT_SHA1 ?
	    REFD_FORMAT_SHA256 :
	    REFD_FORMAT_SHA1;
	ck_assert_int_eq(write_all(), 1);
	rec.object_format = world_format();
	ck_assert_uint_eq(nr_whole(), 0);
}

/* ROOM blocks or inodes are left. */
TEST(a_full_disk, .times = 2)
{
	int64_t room;
	int r = -ENOSPC;

	for (room = 0; r != 0; room++) {
		ck_assert_int_lt(room, 20);
		if (_i == 0)
			memfs_set_room(w->fs, wr_home, room * 4096, -1);
		else
			memfs_set_room(w->fs, wr_home, -1, room);
		r = write_all();
		ck_assert_msg(r == 0 || r == -ENOSPC, "%d", r);
		ck_assert_uint_ge(nr_whole(), r == 0 ? NR : 0);
	}
	ck_assert_int_gt(room, 2);
}

/* And any call fails once. */
TEST(a_failing_call, .times = 2)
{
	static const int errs[] = { -EIO, -ENOSPC };
	unsigned long n;
	bool was_hit = true;
	int r;

	for (n = 0; was_hit; n++) {
		memfs_fail(w->fs, n, errs[_i]);
		r = write_all();
		was_hit = memfs_was_hit(w->fs);
		memfs_fail_none(w->fs);
		if (r == 0)
			ck_assert_uint_eq(nr_whole(), NR);
		ck_assert_int_eq(write_all(), 0);
		ck_assert_uint_eq(nr_whole(), NR);
	}
	ck_assert_uint_gt(n, 5);
}
