/*
 * Proves that the stand-in for stock git changes refs as the installed git
 * does. Both treat a copy of a repository, and the copies are equal byte for
 * byte. The stand-in also respects git's locks in memfs.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/sys.h"
#include "tests/lib/memfs.h"
#include "tests/lib/plaingit.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define ONE "1111111111111111111111111111111111111111"
#define TWO "2222222222222222222222222222222222222222"

static struct plaingit git;
static char *first, *second; /* commits */

static char *output_line(const char *cmd)
{
	char *text = tmp_output("%s", cmd);

	text[strcspn(text, "\n")] = '\0';
	return text;
}

static void setup(void)
{
	tmp_setup();
	tmp_run("git init -q --bare a && cd a && "
		"git config user.name n && git config user.email e && "
		"t=$(git mktree </dev/null) && "
		"c=$(echo 1 | git commit-tree $t) && "
		"git update-ref refs/heads/main $c && "
		"git update-ref refs/heads/d/one $c && "
		"git update-ref refs/heads/d/two $c && "
		"git tag -a -m t v1 $c && "
		"git pack-refs --all --prune && "
		"d=$(echo 2 | git commit-tree -p $c $t) && "
		"git update-ref refs/heads/main $d && "
		"git update-ref refs/heads/new/x $d");
	first = output_line("git -C a rev-parse refs/heads/main^");
	second = output_line("git -C a rev-parse refs/heads/main");
	tmp_run("cp -a a b");
	git = (struct plaingit){ .sys = &sys_kernel };
	git.dirfd = openat(tmp_fd, "b", O_RDONLY | O_DIRECTORY);
}

static void teardown(void)
{
	free(first);
	free(second);
	tmp_teardown();
}

static void same(void)
{
	char *diff = tmp_output("diff -r a/refs b/refs; "
				"diff a/packed-refs b/packed-refs; "
				"cd b && find . -name '*.lock'");

	ck_assert_str_eq(diff, "");
	free(diff);
}

CASE(.name = "as git", .setup = setup, .teardown = teardown, .seconds = 60);

TEST(updates_as_git)
{
	tmp_run("git -C a update-ref refs/heads/d/one %s", second);
	tmp_run("git -C a update-ref refs/heads/e/f/g %s", first);
	ck_assert_int_eq(plaingit_update(&git, "refs/heads/d/one", second), 0);
	ck_assert_int_eq(plaingit_update(&git, "refs/heads/e/f/g", first), 0);
	same();
}

TEST(deletes_as_git)
{
	tmp_run("git -C a update-ref -d refs/heads/d/one");
	tmp_run("git -C a update-ref -d refs/heads/main");
	tmp_run("git -C a update-ref -d refs/heads/new/x");
	ck_assert_int_eq(plaingit_delete(&git, "refs/heads/d/one"), 0);
	ck_assert_int_eq(plaingit_delete(&git, "refs/heads/main"), 0);
	ck_assert_int_eq(plaingit_delete(&git, "refs/heads/new/x"), 0);
	ck_assert_int_eq(plaingit_delete(&git, "refs/heads/new/x"), -ENOENT);
	same();
}

TEST(packs_as_git)
{
	tmp_run("git -C a pack-refs --all --prune");
	ck_assert_int_eq(plaingit_pack_refs(&git), 0);
	same();
}

TEST(reads_as_git)
{
	char hex[PLAINGIT_HEX + 1];

	ck_assert_int_eq(plaingit_read(&git, "refs/heads/main", hex), 0);
	ck_assert_str_eq(hex, second);
	ck_assert_int_eq(plaingit_read(&git, "refs/heads/d/two", hex), 0);
	ck_assert_str_eq(hex, first);
	ck_assert_int_eq(plaingit_read(&git, "refs/heads/d", hex), -ENOENT);
	tmp_put("b/refs/heads/bad", "");
	ck_assert_int_eq(plaingit_read(&git, "refs/heads/bad", hex), -EBADMSG);
}

CASE(.name = "in memfs");

TEST(locks_are_kept_in_memfs)
{
	struct memfs *fs = memfs_new();
	struct plaingit other = { .sys = memfs_other(fs) };
	char *locks;

	memfs_write(fs, "/r/refs/heads/x", ONE "\n");
	other.dirfd = SYS(other.sys, openat, AT_FDCWD, "/r", O_RDONLY, 0);
	ck_assert_int_eq(plaingit_lock(&other, "refs/heads/x"), 0);
	ck_assert_int_eq(plaingit_update(&other, "refs/heads/x", TWO), -EEXIST);
	ck_assert_int_eq(plaingit_delete(&other, "refs/heads/x"), -EEXIST);
	ck_assert_int_eq(plaingit_pack_refs(&other), 0);
	ck_assert(memfs_holds(fs, "/r/refs/heads/x", ONE "\n"));
	ck_assert_int_eq(plaingit_unlock(&other, "refs/heads/x"), 0);
	ck_assert_int_eq(plaingit_pack_refs(&other), 0);
	ck_assert(!memfs_exists(fs, "/r/refs/heads/x"));
	locks = memfs_list_locks(fs, "/r");
	ck_assert_str_eq(locks, "");
	free(locks);
	memfs_free(fs);
}

/* The effect of `pack-refs` without "reference" in core.fsync on durable
 * refs. */
TEST(an_unsynced_pack_refs_may_lose_them, .times = 2)
{
	struct memfs_choice choice = memfs_choose(0);
	struct memfs *fs = memfs_new();
	struct plaingit other = { .sys = memfs_other(fs), .syncs = _i == 1 };
	char hex[PLAINGIT_HEX + 1];

	memfs_write(fs, "/r/refs/heads/x", ONE "\n");
	other.dirfd = SYS(other.sys, openat, AT_FDCWD, "/r", O_RDONLY, 0);
	ck_assert_int_eq(plaingit_pack_refs(&other), 0);
	choice.keep[0] = 1000;
	choice.data = MEMFS_DATA_NONE;
	memfs_power_loss(fs, &choice);
	other.dirfd = SYS(other.sys, openat, AT_FDCWD, "/r", O_RDONLY, 0);
	ck_assert_int_eq(plaingit_read(&other, "refs/heads/x", hex),
	    other.syncs ? 0 : -ENOENT);
	memfs_free(fs);
}
