/*
 * Proves which new objects of a repository go into the record of a push: all
 * loose objects since the last sync, of any program, with the right bytes. If
 * anything else is new, or the objects are many or large, or a file is not
 * exactly the object of its name, the barrier serves.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "daemon/store/objects/new_objects.h"
#include "tests/lib/loose_help.h"
#include "tests/lib/suite.h"
#include "tests/lib/world.h"

#define OBJECTS WORLD_REPO "/objects"
#define OTHER   "/srv/other/objects"
#define MS      (1000 * 1000)

static struct world *w;
static struct repo *repo;

static void setup(void)
{
	enum refd_status status;
	char *why;

	w = world_new(memfs_new(), true);
	memfs_mkdirs(w->fs, OBJECTS "/pack");
	memfs_mkdirs(w->fs, OTHER "/pack");
	memfs_write(w->fs, OBJECTS "/info/alternates", OTHER "\n");
	ck_assert_int_eq(world_start(w), 0);
	repo = repos_get(&w->store.repos, WORLD_REPO, NULL, &status, &why);
	ck_assert_ptr_nonnull(repo);
	memfs_advance(w->fs, 1000 * MS);
}

static void teardown(void)
{
	repo_put(&w->store.repos, repo);
	world_free(w);
}

static void sync_all(void)
{
	memfs_advance(w->fs, 1000 * MS);
	ck_assert_int_eq(fs_sync(&w->store.repos, repo->fs, repo->fs->fd), 0);
	memfs_advance(w->fs, 1000 * MS);
}

static bool copy(struct new_objects **objects)
{
	*objects = NULL;
	if (odb_refresh(repo->odb) < 0)
		return false;
	return barrier_copy(&w->store.barriers, repo, objects);
}

static void barrier_serves(void)
{
	struct new_objects *objects;

	ck_assert(!copy(&objects));
	ck_assert_ptr_null(objects);
}

/* ---- what is copied ---- */

struct wanted {
	const struct loose_help *objects;
	size_t nr, seen;
};

static int compare(void *arg, const struct new_object *object)
{
	struct wanted *wanted = arg;
	size_t i;

	ck_assert_uint_eq(object->mode, 0444);
	ck_assert_uint_eq(object->dir_mode, 0777);
	for (i = 0; i < wanted->nr; i++)
		if (refd_oid_eq(&wanted->objects[i].oid, &object->oid)) {
			ck_assert_uint_eq(object->len, wanted->objects[i].len);
			ck_assert_mem_eq(object->data, wanted->objects[i].file,
			    object->len);
			wanted->seen++;
			return 0;
		}
	return -ENOENT;
}

static void copies(const struct loose_help *objects, size_t nr)
{
	struct wanted wanted = { objects, nr, 0 };
	struct new_objects *copied;

	ck_assert(copy(&copied));
	if (nr == 0) {
		ck_assert_ptr_null(copied);
		return;
	}
	ck_assert_ptr_nonnull(copied);
	ck_assert_int_eq(new_objects_each(copied->bytes, copied->len,
			     REFD_FORMAT_SHA1, compare, &wanted),
	    0);
	ck_assert_uint_eq(wanted.seen, nr);
	/* No part of the bytes passes for the whole. */
	ck_assert_int_eq(new_objects_each(copied->bytes, copied->len - 1,
			     REFD_FORMAT_SHA1, compare, &wanted),
	    -EBADMSG);
	new_objects_free(copied);
}

CASE(.setup = setup, .teardown = teardown);

TEST(all_since_the_last_sync)
{
	struct loose_help old = loose_help_text(OBJECTS, "old");
	struct loose_help new[3] = { loose_help_text(OBJECTS, "one"),
		loose_help_text(OBJECTS, "two"), loose_help_text(OBJECTS, "") };
	size_t i;

	loose_help_write(w->fs, &old);
	sync_all();
	copies(NULL, 0);
	for (i = 0; i < 3; i++) {
		loose_help_write(w->fs, &new[i]);
		copies(new, i + 1);
		memfs_advance(w->fs, 1000 * MS);
	}
	sync_all();
	copies(NULL, 0);
	for (i = 0; i < 3; i++)
		loose_help_done(&new[i]);
	loose_help_done(&old);
}

TEST(a_deletion_needs_no_copy)
{
	struct loose_help old = loose_help_text(OBJECTS, "old");

	loose_help_write(w->fs, &old);
	sync_all();
	SYS(memfs_other(w->fs), unlinkat, AT_FDCWD, old.path);
	copies(NULL, 0);
	loose_help_done(&old);
}

/* Files that git does not take for objects. */
TEST(other_names_are_no_objects)
{
	struct loose_help one = loose_help_text(OBJECTS, "one");
	const struct sys *sys = memfs_other(w->fs);
	char path[300];

	sync_all();
	loose_help_write(w->fs, &one);
	snprintf(path, sizeof(path), OBJECTS "/%s/tmp_obj_x", one.fanout);
	memfs_write(w->fs, path, "x");
	snprintf(path, sizeof(path), OBJECTS "/%s/x", one.fanout);
	ck_assert_int_eq(SYS(sys, mkdirat, AT_FDCWD, path, 0777), 0);
	copies(&one, 1);
	loose_help_done(&one);
}

/* ---- bounds ---- */

static void write_many(size_t nr)
{
	struct loose_help one;
	char text[32];

	while (nr > 0) {
		snprintf(text, sizeof(text), "many %zu", nr--);
		one = loose_help_text(OBJECTS, text);
		loose_help_write(w->fs, &one);
		loose_help_done(&one);
	}
}

TEST(many_files)
{
	struct new_objects *objects;

	sync_all();
	write_many(NEW_OBJECTS_FILES);
	ck_assert(copy(&objects));
	new_objects_free(objects);
	write_many(NEW_OBJECTS_FILES + 1);
	barrier_serves();
}

/* LEN bytes which do not become shorter by compression. */
static struct loose_help noise(size_t len)
{
	struct loose_help object;
	uint8_t *data = malloc(len);
	uint32_t x = 1;
	size_t i;

	ck_assert_ptr_nonnull(data);
	for (i = 0; i < len; i++) {
		x = x * 1664525 + 1013904223;
		data[i] = (uint8_t)(x >> 24);
	}
	object = loose_help_make(OBJECTS, "blob", data, len, 0);
	free(data);
	return object;
}

TEST(large_files)
{
	struct loose_help half = noise(NEW_OBJECTS_BYTES / 2),
			  rest = noise(NEW_OBJECTS_BYTES / 2 - 100),
			  more = loose_help_text(OBJECTS, "more");
	struct new_objects *objects;

	sync_all();
	loose_help_write(w->fs, &half);
	loose_help_write(w->fs, &rest);
	ck_assert(copy(&objects));
	new_objects_free(objects);
	loose_help_write(w->fs, &more);
	loose_help_write(w->fs, &more);
	write_many(4);
	barrier_serves();
	loose_help_done(&half);
	loose_help_done(&rest);
	loose_help_done(&more);
}

TEST(large_contents, .times = 2)
{
	const size_t len = NEW_OBJECTS_CONTENT - 32 + (_i == 1 ? 64 : 0);
	struct new_objects *objects;
	uint8_t *zeros = calloc(1, len);
	struct loose_help bomb =
	    loose_help_make(OBJECTS, "blob", zeros, len, 9);

	sync_all();
	loose_help_write(w->fs, &bomb);
	ck_assert_uint_lt(bomb.len, NEW_OBJECTS_BYTES);
	ck_assert_int_eq(copy(&objects), _i == 0);
	new_objects_free(objects);
	loose_help_done(&bomb);
	free(zeros);
}

TEST(many_names)
{
	struct loose_help one = loose_help_text(OBJECTS, "one");
	struct new_objects *objects;
	char path[300];
	unsigned long calls;
	size_t i;

	sync_all();
	loose_help_write(w->fs, &one);
	for (i = 1; i < 10 * NEW_OBJECTS_NAMES; i++) {
		if (i == NEW_OBJECTS_NAMES) {
			ck_assert(copy(&objects));
			new_objects_free(objects);
		}
		snprintf(path, sizeof(path), OBJECTS "/%s/%038zu", one.fanout,
		    i);
		memfs_write(w->fs, path, "");
		/* The files are old, so only their names count. */
		if (i < NEW_OBJECTS_NAMES)
			SYS(memfs_other(w->fs), unlinkat, AT_FDCWD, path);
	}
	calls = memfs_nr_calls(w->fs);
	barrier_serves();
	ck_assert_uint_lt(memfs_nr_calls(w->fs) - calls, 4000);
	loose_help_done(&one);
}

TEST(memory)
{
	struct loose_help half = noise(NEW_OBJECTS_BYTES / 2);
	struct new_objects *copied[2 * NEW_OBJECTS_HELD / NEW_OBJECTS_BYTES];
	size_t nr = 0;

	sync_all();
	loose_help_write(w->fs, &half);
	while (copy(&copied[nr]))
		ck_assert_uint_lt(++nr, sizeof(copied) / sizeof(*copied));
	ck_assert_uint_gt(nr, 100);
	ck_assert_ptr_null(new_objects_copy(copied[0]));
	new_objects_free(copied[--nr]);
	ck_assert(copy(&copied[nr++]));
	while (nr > 0)
		new_objects_free(copied[--nr]);
	loose_help_done(&half);
}

/* ---- what the barrier serves ---- */

TEST(objects_before_the_first_sync)
{
	struct loose_help one = loose_help_text(OBJECTS, "one");

	repo->fs->synced_ns = 0;
	barrier_serves();
	loose_help_write(w->fs, &one);
	barrier_serves();
	sync_all();
	copies(NULL, 0);
	memfs_shift_wall(w->fs, -INT64_C(3600000) * MS);
	barrier_serves();
	loose_help_done(&one);
}

/* Whatever else is new: packs, alternates, objects in alternates. */
TEST(other_new_files, .times = 5)
{
	static const char *const paths[] = { OBJECTS "/pack/x",
		WORLD_REPO "/shallow", OTHER "/pack/x", OTHER "/11/x",
		OBJECTS "/info/alternates" };
	struct loose_help one = loose_help_text(OBJECTS, "one");

	sync_all();
	loose_help_write(w->fs, &one);
	copies(&one, 1);
	memfs_write(w->fs, paths[_i], _i == 4 ? OTHER "\n#\n" : "x");
	barrier_serves();
	loose_help_done(&one);
}

/* The objects are durable, and git then wrote shallow. */
TEST(shallow_alone)
{
	sync_all();
	copies(NULL, 0);
	memfs_write(w->fs, WORLD_REPO "/shallow", "x");
	barrier_serves();
}

/* A file that is not the object of its name. */
TEST(wrong_files, .times = 7)
{
	struct loose_help one = loose_help_text(OBJECTS, "one"),
			  two = loose_help_text(OBJECTS, "two");
	const struct sys *sys = memfs_other(w->fs);
	uint8_t longer[200] = { 0 };

	ck_assert_uint_lt(one.len, sizeof(longer));
	memcpy(longer, one.file, one.len);
	sync_all();
	loose_help_write(w->fs, &one);
	copies(&one, 1);
	switch (_i) {
	case 0:
		loose_help_put(w->fs, &one, "", 0);
		break;
	case 1:
		loose_help_put(w->fs, &one, one.file, one.len - 1);
		break;
	case 2:
		loose_help_put(w->fs, &one, longer, one.len + 1);
		break;
	case 3:
		loose_help_put(w->fs, &one, two.file, two.len);
		break;
	case 4:
		longer[one.len / 2] ^= 1;
		loose_help_put(w->fs, &one, longer, one.len);
		break;
	case 5:
		SYS(sys, unlinkat, AT_FDCWD, one.path);
		memfs_symlink(w->fs, "/srv/r.git/config", one.path);
		break;
	case 6:
		SYS(sys, unlinkat, AT_FDCWD, one.path);
		SYS(sys, mkdirat, AT_FDCWD, one.path, 0777);
		break;
	}
	barrier_serves();
	loose_help_done(&one);
	loose_help_done(&two);
}

/* Old files with new names: nothing tells which of them are new. */
TEST(a_fanout_that_was_moved)
{
	struct loose_help one = loose_help_text(OBJECTS, "one");
	const struct sys *sys = memfs_other(w->fs);
	char path[300];

	loose_help_write(w->fs, &one);
	sync_all();
	snprintf(path, sizeof(path), OBJECTS "/%s", one.fanout);
	ck_assert_int_eq(
	    SYS(sys, renameat, AT_FDCWD, path, AT_FDCWD, OBJECTS "/away"), 0);
	ck_assert_int_eq(
	    SYS(sys, renameat, AT_FDCWD, OBJECTS "/away", AT_FDCWD, path), 0);
	barrier_serves();
	loose_help_done(&one);
}

/* Any failing call: either the copy is complete, or the barrier serves. */
TEST(failing_calls, .times = 2)
{
	struct loose_help one = loose_help_text(OBJECTS, "one");
	unsigned long n, fds = memfs_open_fds(w->fs);
	struct new_objects *objects;
	bool hit = true;

	sync_all();
	loose_help_write(w->fs, &one);
	for (n = 0; hit; n++) {
		ck_assert_int_eq(odb_refresh(repo->odb), 0);
		fds = memfs_open_fds(w->fs);
		memfs_fail(w->fs, n, _i == 0 ? -EIO : -EMFILE);
		if (barrier_copy(&w->store.barriers, repo, &objects))
			ck_assert(objects != NULL);
		new_objects_free(objects);
		hit = memfs_was_hit(w->fs);
		memfs_fail_none(w->fs);
		ck_assert_uint_eq(memfs_open_fds(w->fs), fds);
	}
	ck_assert_uint_gt(n, 260);
	copies(&one, 1);
	loose_help_done(&one);
}
