/*
 * Proves that a round of packing moves exactly the refs that may be packed, and
 * leaves alone a ref that another writer changes, locks, deletes, or deletes
 * and makes again between the steps. Symbolic, broken and per-worktree refs,
 * and refs without an object, stay loose. A foreign packed-refs.lock costs a
 * second. A failed sync of packed-refs.new does not cost the file system.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/packing/pack_names.h"
#include "tests/lib/pack_rig.h"
#include "tests/lib/suite.h"

#define R      WORLD_REPO
#define HEADER "# pack-refs with: peeled fully-peeled sorted \n"

static struct world *w;
static struct pack_round pr;

static void set_up(void)
{
	w = world_new(memfs_new(), true);
	world_write(w->fs, R "/packed-refs",
	    HEADER "@1 refs/heads/a\n@1 refs/heads/keep\n");
	world_write(w->fs, R "/refs/heads/a", "@2\n");
	world_write(w->fs, R "/refs/heads/d/e/f", "@3\n");
	world_write(w->fs, R "/refs/tags/t", "@T\n");
	ck_assert_int_eq(world_start(w), 0);
}

static void tear_down(void)
{
	ck_assert_ptr_null(world_litter(w));
	ck_assert_uint_eq(memfs_bad_fds(w->fs), 0);
	ck_assert_uint_eq(memfs_bad_syncs(w->fs), 0);
	world_stop(w);
	world_free(w);
}

static bool is_loose(const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), R "/refs/%s", name);
	return memfs_exists(w->fs, path);
}

static void check_packed(const char *text)
{
	char *want = world_text(text);

	ck_assert(memfs_holds(w->fs, R "/packed-refs", want));
	free(want);
}

CASE(.setup = set_up, .teardown = tear_down, .seconds = 60);

TEST(packs_every_plain_ref)
{
	ck_assert_int_eq(pack_rig_round(w, &pr), 0);
	check_packed(
	    HEADER "@2 refs/heads/a\n@3 refs/heads/d/e/f\n@1 refs/heads/keep\n"
		   "@T refs/tags/t\n^@P\n");
	ck_assert_uint_eq(pr.nr_packed, 3);
	ck_assert_uint_eq(pr.nr_left, 0);
	ck_assert(!pr.is_full);
	ck_assert(!is_loose("heads/a") && !is_loose("heads/d") &&
	    !is_loose("tags/t"));
	ck_assert(is_loose("heads") && is_loose("tags"));
	/* Nothing is left to do, and nothing is written. */
	ck_assert_int_eq(pack_rig_round(w, &pr), 0);
	ck_assert_uint_eq(pr.nr_packed, 0);
}

TEST(other_refs_stay_loose)
{
	world_write(w->fs, R "/refs/heads/s", "ref: refs/heads/a\n");
	world_write(w->fs, R "/refs/heads/torn", "@2");
	world_write(w->fs, R "/refs/heads/empty", "");
	world_write(w->fs, R "/refs/heads/gone", "@p\n");
	world_write(w->fs, R "/refs/heads/x.lock", "@2\n");
	world_write(w->fs, R "/refs/heads/~bad", "@2\n");
	world_write(w->fs, R "/refs/bisect/b", "@2\n");
	world_write(w->fs, R "/refs/worktree/w", "@2\n");
	world_write(w->fs, R "/refs/rewritten/r", "@2\n");
	memfs_symlink(w->fs, "refs/heads/a", R "/refs/heads/link");
	memfs_symlink(w->fs, "heads", R "/refs/linked");
	ck_assert_int_eq(pack_rig_round(w, &pr), 0);
	ck_assert_uint_eq(pr.nr_packed, 3);
	check_packed(
	    HEADER "@2 refs/heads/a\n@3 refs/heads/d/e/f\n@1 refs/heads/keep\n"
		   "@T refs/tags/t\n^@P\n");
	ck_assert(is_loose("heads/s") && is_loose("heads/torn") &&
	    is_loose("heads/empty") && is_loose("heads/gone") &&
	    is_loose("heads/x.lock") && is_loose("bisect/b") &&
	    is_loose("worktree/w") && is_loose("rewritten/r"));
	ck_assert_int_eq(SYS(memfs_other(w->fs), unlinkat, AT_FDCWD,
			     R "/refs/heads/x.lock"),
	    0);
}

TEST(unknown_types_are_looked_up)
{
	memfs_hide_types(w->fs, true);
	ck_assert_int_eq(pack_rig_round(w, &pr), 0);
	ck_assert_uint_eq(pr.nr_packed, 3);
}

/* Deeper directories cost descriptors. */
TEST(deep_directories_are_left)
{
	char path[REFD_PATH_MAX] = R "/refs/heads";
	size_t i;

	for (i = 0; i < PACK_DEPTH; i++)
		strcat(path, "/d");
	world_write(w->fs, path, "@2\n");
	ck_assert_int_eq(pack_rig_round(w, &pr), 0);
	ck_assert_uint_eq(pr.nr_packed, 3);
	ck_assert(memfs_exists(w->fs, path));
}

TEST(a_round_is_bounded)
{
	char path[128];
	size_t i;

	for (i = 0; i < PACK_REFS; i++) {
		snprintf(path, sizeof(path), R "/refs/heads/n%zu", i);
		world_write(w->fs, path, "@2\n");
	}
	ck_assert_int_eq(pack_rig_round(w, &pr), 0);
	ck_assert(pr.is_full);
	ck_assert_uint_eq(pr.nr_packed, PACK_REFS);
	ck_assert_int_eq(pack_rig_round(w, &pr), 0);
	ck_assert(!pr.is_full);
	ck_assert_uint_eq(pr.nr_packed, 3);
}

/* ---- locks ---- */

TEST(a_locked_ref_stays)
{
	memfs_write(w->fs, R "/refs/heads/a.lock", "");
	ck_assert_int_eq(pack_rig_round(w, &pr), 0);
	ck_assert_uint_eq(pr.nr_packed, 2);
	ck_assert_uint_eq(pr.nr_left, 1);
	ck_assert(is_loose("heads/a"));
	/* The value under the lock may be taken back. */
	check_packed(
	    HEADER "@1 refs/heads/a\n@3 refs/heads/d/e/f\n@1 refs/heads/keep\n"
		   "@T refs/tags/t\n^@P\n");
	SYS(memfs_other(w->fs), unlinkat, AT_FDCWD, R "/refs/heads/a.lock");
}

TEST(a_foreign_lock_of_packed_refs)
{
	int64_t begin_ns = SYS(w->sys, now_mono);

	memfs_write(w->fs, R "/packed-refs.lock", "");
	ck_assert_int_eq(pack_rig_round(w, &pr), -EEXIST);
	ck_assert_int_ge(SYS(w->sys, now_mono) - begin_ns, 900000000);
	ck_assert_uint_eq(pr.nr_packed, 0);
	ck_assert(is_loose("heads/a"));
	ck_assert(memfs_exists(w->fs, R "/packed-refs.lock"));
	SYS(memfs_other(w->fs), unlinkat, AT_FDCWD, R "/packed-refs.lock");
}

TEST(a_link_named_packed_refs)
{
	SYS(memfs_other(w->fs), unlinkat, AT_FDCWD, R "/packed-refs");
	world_write(w->fs, R "/elsewhere", HEADER);
	memfs_symlink(w->fs, "elsewhere", R "/packed-refs");
	ck_assert_int_eq(pack_rig_round(w, &pr), -ELOOP);
	ck_assert(is_loose("heads/a"));
}

TEST(a_malformed_packed_refs)
{
	memfs_write(w->fs, R "/packed-refs", HEADER "nonsense\n");
	ck_assert_int_eq(pack_rig_round(w, &pr), -EBADMSG);
	ck_assert(is_loose("heads/a"));
}

/* A failed sync costs no ref. It costs the file system only if others may have
 * written the file: packed-refs.new is thrown away. */
TEST(a_sync_fails, .times = 2)
{
	const int err = _i == 0 ? -EIO : -ENOSPC;
	unsigned long n, nr_own = 0, nr_shared = 0;
	bool is_own;

	for (n = 0; nr_shared < 2; n++) {
		memfs_fail_call(w->fs, MEMFS_FSYNC, n, err);
		ck_assert_int_eq(pack_rig_round(w, &pr), err);
		ck_assert(memfs_was_hit(w->fs));
		is_own = strstr(memfs_hit(w->fs), "packed-refs.new") != NULL;
		memfs_fail_none(w->fs);
		ck_assert_int_eq(pr.sync_err, is_own ? 0 : err);
		ck_assert_uint_eq(pr.nr_packed, 0);
		ck_assert(is_loose("heads/a") && is_loose("tags/t"));
		ck_assert_uint_eq(memfs_bad_syncs(w->fs), 0);
		nr_own += is_own;
		nr_shared += !is_own;
		tear_down();
		set_up();
	}
	ck_assert_uint_eq(nr_own, 1);
}

/* ---- other writers between all calls ---- */

enum deed { CHANGES, DELETES, MAKES_AGAIN, LOCKS, REPLACES_PACKED, DEEDS };

static void rename_into(struct memfs *fs, const char *path, const char *text)
{
	char *whole = world_text(text);
	const struct sys *other = memfs_other(fs);
	int fd = SYS(other, openat, AT_FDCWD, R "/foreign", O_CREAT | O_WRONLY,
	    0666);

	SYS(other, write_all, fd, whole, strlen(whole));
	SYS(other, close, fd);
	SYS(other, renameat, AT_FDCWD, R "/foreign", AT_FDCWD, path);
	free(whole);
}

/* A deletion by git: both locks stand, packed-refs goes first. */
static bool delete_a(struct memfs *fs)
{
	const struct sys *other = memfs_other(fs);
	char *text, *line, *want = world_text(" refs/heads/a\n");
	size_t len;

	if (memfs_exists(fs, R "/refs/heads/a.lock") ||
	    memfs_exists(fs, R "/packed-refs.lock")) {
		free(want);
		return false;
	}
	text = memfs_read(fs, R "/packed-refs", &len);
	line = strstr(text, want);
	if (line != NULL) {
		char *start = line;

		while (start[-1] != '\n')
			start--;
		memmove(start, line + strlen(want),
		    strlen(line + strlen(want)) + 1);
		rename_into(fs, R "/packed-refs", text);
	}
	SYS(other, unlinkat, AT_FDCWD, R "/refs/heads/a");
	free(text);
	free(want);
	return true;
}

static struct {
	enum deed deed;
	bool done;
	bool loose_a, loose_f; /* when packed-refs was replaced */
} act;

static void acts(struct memfs *fs, void *arg)
{
	char *text;

	(void)arg;
	if (act.deed != REPLACES_PACKED &&
	    memfs_exists(fs, R "/refs/heads/a.lock"))
		return;
	switch (act.deed) {
	case CHANGES:
		rename_into(fs, R "/refs/heads/a", "@9\n");
		act.done = true;
		break;
	case DELETES:
		act.done = delete_a(fs);
		break;
	case MAKES_AGAIN:
		act.done = delete_a(fs);
		if (act.done)
			rename_into(fs, R "/refs/heads/a", "@2\n");
		break;
	case LOCKS:
		memfs_write(fs, R "/refs/heads/a.lock", "");
		act.done = true;
		break;
	case REPLACES_PACKED:
		if (memfs_exists(fs, R "/packed-refs.lock"))
			break;
		text = memfs_read(fs, R "/packed-refs", NULL);
		rename_into(fs, R "/packed-refs", text);
		free(text);
		act.loose_a = memfs_exists(fs, R "/refs/heads/a");
		act.loose_f = memfs_exists(fs, R "/refs/heads/d/e/f");
		act.done = true;
		break;
	case DEEDS:
		break;
	}
}

static char expected(void)
{
	if (!act.done)
		return '2';
	return act.deed == CHANGES ? '9' : act.deed == DELETES ? '0' : '2';
}

/* A power loss right after the round keeps all names and no unsynced data. A
 * ref that was still loose when the other writer replaced packed-refs, without
 * a sync, must not be lost. */
TEST(another_writer_between_two_calls, .times = DEEDS)
{
	const struct memfs_choice all_names = { .data = MEMFS_DATA_NONE,
		.keep = { LONG_MAX, LONG_MAX, LONG_MAX, LONG_MAX } };
	unsigned long n, nr_calls, nr_done = 0;
	bool more = true;
	char c;

	for (n = 0; more; n++) {
		if (n > 0) {
			tear_down();
			set_up();
		}
		act.deed = (enum deed)_i;
		act.done = act.loose_a = act.loose_f = false;
		memfs_between(w->fs, n, acts, NULL);
		nr_calls = memfs_nr_calls(w->fs);
		ck_assert_int_eq(pack_rig_round(w, &pr), 0);
		more = n < memfs_nr_calls(w->fs) - nr_calls;
		nr_done += act.done;
		c = world_ref(w, "a");
		ck_assert_msg(c == expected(), "before call %lu: '%c'", n, c);
		ck_assert_int_eq(world_ref(w, "d/e/f"), '3');
		ck_assert_int_eq(world_ref(w, "keep"), '1');
		if (act.deed == LOCKS)
			SYS(memfs_other(w->fs), unlinkat, AT_FDCWD,
			    R "/refs/heads/a.lock");
		if (act.deed != REPLACES_PACKED)
			continue;
		memfs_power_loss(w->fs, &all_names);
		world_crash(w);
		ck_assert_int_eq(world_start(w), 0);
		ck_assert_msg((!act.loose_a || world_ref(w, "a") == '2') &&
			(!act.loose_f || world_ref(w, "d/e/f") == '3'),
		    "before call %lu: lost", n);
	}
	ck_assert_uint_gt(nr_done, 20);
}
