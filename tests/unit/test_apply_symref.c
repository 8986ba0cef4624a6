/*
 * Proves the effects of a batch on symbolic refs that are refused, or lead
 * out of the repository, and that no lock is left.
 */
#include <fcntl.h>
#include <stdio.h>

#include "tests/lib/apply_rig.h"
#include "tests/lib/suite.h"

#define M                      "\1"
#define DETAIL1(word, a)       M word M a
#define DETAIL2(word, a, b)    DETAIL1(word, a) M b
#define DETAIL3(word, a, b, c) DETAIL2(word, a, b) M c

/* The detail of the first update that did not abort. */
static void expect_text(const char *spec, const char *text)
{
	struct txn *txn = world_apply(w, spec, true);
	size_t i = 0;

	while (
	    i + 1 < txn->nr_updates && txn->updates[i].status == REFD_ABORTED)
		i++;
	ck_assert_ptr_nonnull(txn->updates[i].text);
	ck_assert_str_eq(txn->updates[i].text, text);
	world_done(w, txn);
	wr_expect_locks("");
}

static void symref(const char *name, const char *target)
{
	char path[200], content[200];

	snprintf(path, sizeof(path), WORLD_REPO "/refs/heads/%s", name);
	snprintf(content, sizeof(content), "ref: refs/heads/%s\n", target);
	memfs_write(w->fs, path, content);
}

CASE(.setup = wr_setup, .teardown = wr_teardown);

TEST(one_ref_twice)
{
	symref("s", "a");
	symref("x", "y");
	symref("y", "x");
	expect_text("s=1;a=1",
	    DETAIL2("duplicate-symref", "refs/heads/a", "refs/heads/s"));
	/* The detail names the second of two symbolic refs, in the order of the
	 * request. */
	symref("b", "a");
	expect_text("b=1;s=1",
	    DETAIL2("duplicate-symref", "refs/heads/a", "refs/heads/s"));
	expect_text("s=1;b=1",
	    DETAIL2("duplicate-symref", "refs/heads/a", "refs/heads/b"));
	expect_text("@HEAD=1;main=1",
	    DETAIL2("duplicate-symref", "refs/heads/main", "HEAD"));
	expect_text("main=1;@HEAD=1",
	    DETAIL1("duplicate-head", "refs/heads/main"));
	expect_text("!@HEAD=1;main=1",
	    DETAIL1("duplicate-head", "refs/heads/main"));
	expect_text("x=1",
	    DETAIL2("duplicate-symref", "refs/heads/x", "refs/heads/y"));
	expect_text("@HEAD=1;@main-worktree/HEAD=1",
	    DETAIL1("duplicate", "HEAD"));
	apply_expect("s=1;a=1", false, 2, REFD_CONFLICT, REFD_OK);
}

TEST(what_a_symbolic_ref_has_to_be)
{
	symref("s", "a");
	expect_text("!-s:>b",
	    DETAIL3("symref-differs", "refs/heads/s", "refs/heads/a",
		"refs/heads/b"));
	expect_text("!-none:>b",
	    DETAIL2("unresolved", "refs/heads/none", "refs/heads/none"));
	OK("r=1");
	expect_text("!r>a:>b",
	    DETAIL2("not-symref", "refs/heads/r", "refs/heads/b"));
	symref("s", "broken");
	memfs_write(w->fs, WORLD_REPO "/refs/heads/broken", "gobbledigook\n");
	expect_text("!s=1:2", DETAIL1("unreadable", "refs/heads/s"));
	OK("!s>r");
	OK("!-s:>r");
}

TEST(targets_that_are_no_names)
{
	memfs_write(w->fs, WORLD_REPO "/refs/heads/e", "ref: ../../etc/x\n");
	apply_expect("e=1", false, 1, REFD_BROKEN);
	memfs_write(w->fs, WORLD_REPO "/refs/heads/e", "ref: refs/../../x\n");
	apply_expect("e=1", false, 1, REFD_BROKEN);
	apply_expect("-e", false, 1, REFD_BROKEN);
	memfs_write(w->fs, WORLD_REPO "/refs/heads/e",
	    "ref: refs/heads/b..d\n");
	memfs_write(w->fs, WORLD_REPO "/refs/heads/b..d",
	    "0000000000000000000000000000000000000001\n");
	apply_expect("e=1", false, 1, REFD_BROKEN);
	OK("-e");
	ck_assert(!memfs_exists(w->fs, WORLD_REPO "/refs/heads/b..d"));
	memfs_write(w->fs, WORLD_REPO "/refs/heads/e", "ref:refs/heads/a\r\n");
	OK("e=1");
	ck_assert_int_eq(world_ref(w, "a"), '1');
}

/* Only git can write the ref at the end. */
TEST(a_target_that_is_too_long)
{
	char content[REFD_COMPONENT_MAX + 64];

	snprintf(content, sizeof(content), "ref: refs/heads/%0*d\n",
	    REFD_COMPONENT_MAX + 1, 0);
	memfs_write(w->fs, WORLD_REPO "/refs/heads/e", content);
	apply_expect("e=1", false, 1, REFD_UNSUPPORTED);
	apply_expect("-e", false, 1, REFD_UNSUPPORTED);
	wr_expect_locks("");
	OK("!e=1");
}

TEST(links_to_directories)
{
	memfs_mkdirs(w->fs, "/elsewhere");
	memfs_mkdirs(w->fs, WORLD_REPO "/refs/heads/in");
	memfs_symlink(w->fs, "/elsewhere", WORLD_REPO "/refs/heads/out");
	memfs_symlink(w->fs, "in", WORLD_REPO "/refs/heads/also-in");
	apply_expect("out/x=1", false, 1, REFD_DENIED);
	apply_expect("out/x/y=1;a=1", false, 2, REFD_DENIED, REFD_OK);
	ck_assert(!memfs_exists(w->fs, "/elsewhere/x"));
	/* After a crash, recovery would not look for the lock there. */
	apply_expect("also-in/x=1", false, 1, REFD_UNSUPPORTED);
	ck_assert_int_eq(world_ref(w, "in/x"), '0');
	memfs_mkdirs(w->fs, WORLD_REPO "/logs/refs/heads");
	memfs_symlink(w->fs, "/elsewhere", WORLD_REPO "/logs/refs/heads/l");
	apply_expect("l/x=1", false, 1, REFD_DENIED);
	ck_assert(!memfs_exists(w->fs, "/elsewhere/x"));
	/* A foreign log is not removed either. */
	memfs_mkdirs(w->fs, WORLD_REPO "/refs/heads/l");
	memfs_write(w->fs, WORLD_REPO "/refs/heads/l/x",
	    "3131313131313131313131313131313131313131\n");
	memfs_write(w->fs, "/elsewhere/x", "");
	apply_expect("-l/x", false, 1, REFD_DENIED);
	ck_assert(memfs_exists(w->fs, "/elsewhere/x"));
	ck_assert_int_eq(world_ref(w, "l/x"), '1');
}

TEST(a_worktree_is_no_link)
{
	memfs_mkdirs(w->fs, "/srv/other.git");
	memfs_write(w->fs, "/srv/other.git/HEAD", "ref: refs/heads/a\n");
	memfs_symlink(w->fs, "/srv", WORLD_REPO "/worktrees");
	apply_expect("!@worktrees/other.git/HEAD=1", false, 1, REFD_MISSING);
	SYS(memfs_other(w->fs), unlinkat, AT_FDCWD, WORLD_REPO "/worktrees");
	memfs_mkdirs(w->fs, WORLD_REPO "/worktrees/wt");
	memfs_symlink(w->fs, "/srv/other.git", WORLD_REPO "/worktrees/l");
	apply_expect("!@worktrees/l/HEAD=1", false, 1, REFD_MISSING);
	ck_assert_int_eq(world_ref(w, "@worktrees/l/HEAD"), '>');
	OK("!@worktrees/wt/HEAD=1");
	ck_assert_int_eq(world_ref(w, "@worktrees/wt/HEAD"), '1');
}

TEST(names_of_one_transaction_at_odds)
{
	expect_text("q=1;q/r=1",
	    DETAIL3("names-clash", "refs/heads/q", "refs/heads/q",
		"refs/heads/q/r"));
	expect_text("q/r=1;q=1",
	    DETAIL3("names-clash-early", "refs/heads/q", "refs/heads/q",
		"refs/heads/q/r"));
	apply_expect("q=1;q-x=1;q/r=1", false, 3, REFD_CONFLICT, REFD_OK,
	    REFD_OK);
	expect_text("-q/r;q=1",
	    DETAIL3("name-taken-early", "refs/heads/q", "refs/heads/q/r",
		"refs/heads/q"));
}

/* Both the packed ref and the file below the directory are in the way. */
TEST(a_packed_ref_and_a_directory)
{
	memfs_write(w->fs, WORLD_REPO "/packed-refs",
	    "# pack-refs with: peeled fully-peeled sorted \n"
	    "3131313131313131313131313131313131313131 refs/heads/d/f\n");
	expect_text("d=1",
	    DETAIL3("name-taken", "refs/heads/d", "refs/heads/d/f",
		"refs/heads/d"));
	memfs_mkdirs(w->fs, WORLD_REPO "/refs/heads/d");
	memfs_write(w->fs, WORLD_REPO "/refs/heads/d/.junk", "");
	expect_text("d=1",
	    DETAIL3("name-taken-early", "refs/heads/d", "refs/heads/d/f",
		"refs/heads/d"));
	memfs_mkdirs(w->fs, WORLD_REPO "/refs/heads/d/f/g");
	memfs_write(w->fs, WORLD_REPO "/refs/heads/d/f/g/.junk", "");
	expect_text("d/f/g=1",
	    DETAIL3("name-taken-early", "refs/heads/d/f/g", "refs/heads/d/f",
		"refs/heads/d/f/g"));
}
