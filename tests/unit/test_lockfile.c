/*
 * Proves that locks made of links work: git accepts these files as locks and
 * gives up on the ref. A lock shares the token's inode, so refd can tell its
 * own locks from foreign locks. Pruned directories, full tokens and parents
 * that are files end as the header says.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/store/refs/token.h"
#include "proto/limits.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

static int stage_fd;

/* A separate table of calls, so that a test may change link(2). */
static struct sys faulty;
static int fail_with;       /* result of linkat */
static unsigned fail_times; /* number of failing calls */
static unsigned nr_links;
static int open_fails_with; /* one-time result of openat; 0: none */

static int faulty_openat(const struct sys *sys, int dirfd, const char *path,
    int flags, mode_t mode)
{
	int r = open_fails_with;

	open_fails_with = 0;
	return r < 0 ? r : sys_kernel.openat(sys, dirfd, path, flags, mode);
}

static int faulty_linkat(const struct sys *sys, int olddirfd,
    const char *oldpath, int newdirfd, const char *newpath)
{
	nr_links++;
	if (fail_times > 0) {
		fail_times--;
		return fail_with;
	}
	return sys_kernel.linkat(sys, olddirfd, oldpath, newdirfd, newpath);
}

static void setup(void)
{
	tmp_setup();
	tmp_mkdir("stage");
	tmp_mkdir("r");
	stage_fd = openat(tmp_fd, "stage", O_RDONLY | O_DIRECTORY);
	ck_assert_int_ge(stage_fd, 0);
	faulty = sys_kernel;
	faulty.linkat = faulty_linkat;
	faulty.openat = faulty_openat;
	open_fails_with = 0;
	fail_times = nr_links = 0;
}

static void teardown(void)
{
	close(stage_fd);
	tmp_teardown();
}

static ino_t inode(const char *path)
{
	struct stat st;

	ck_assert_int_eq(fstatat(tmp_fd, path, &st, 0), 0);
	return st.st_ino;
}

CASE(.setup = setup, .teardown = teardown);

TEST(names_are_made_and_parsed_back)
{
	static const char *const bad[] = {
		"",
		"0",
		"0000000000000001",
		"0000000000000001.",
		"0000000000000001.00",
		"0000000000000001.-1",
		"0000000000000001.+1",
		"0000000000000001. 1",
		"0000000000000001.1x",
		"0000000000000001.4294967296",
		"000000000000000A.1",
		"00000000000000001.1",
		"0000000000000001x1",
		"0000000000000001.1.lock",
		"0000000000000001.99999999999999999999",
	};
	char name[TOKEN_NAME_MAX];
	uint64_t id = 7;
	unsigned k = 7;
	size_t i;

	token_name(name, 0xfedcba9876543210, 4294967295U);
	ck_assert_str_eq(name, "fedcba9876543210.4294967295");
	ck_assert_int_eq(token_parse_name(name, &id, &k), 0);
	ck_assert(id == 0xfedcba9876543210);
	ck_assert_uint_eq(k, 4294967295U);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_int_eq(token_parse_name(bad[i], &id, &k), -1);
	token_value_name(name, 0xab, 12);
	ck_assert_str_eq(name, "00000000000000ab-12");
	ck_assert_int_eq(token_parse_name(name, &id, &k), -1);
	ck_assert_uint_eq(k, 4294967295U);
}

TEST(a_lock_is_a_link_of_the_token)
{
	struct token tok;

	ck_assert_int_eq(token_init(&tok, &sys_kernel, stage_fd, 0xab), 0);
	ck_assert(tmp_exists("stage/00000000000000ab.0"));
	ck_assert_int_eq(token_lock(&tok, tmp_fd, "r/x", 0777), 0);
	ck_assert_int_eq(token_lock(&tok, tmp_fd, "r/x", 0777), -EEXIST);
	ck_assert(inode("r/x.lock") == inode("stage/00000000000000ab.0"));
	ck_assert_int_eq(token_unlock(&tok, tmp_fd, "r/x"), 0);
	ck_assert(!tmp_exists("r/x.lock"));
	ck_assert_int_eq(token_unlock(&tok, tmp_fd, "r/x"), 0);
	ck_assert_int_eq(token_unlock(&tok, tmp_fd, "no/x"), 0);
	token_done(&tok);
	ck_assert(!tmp_exists("stage/00000000000000ab.0"));
	token_done(&tok);
}

TEST(an_id_is_never_used_twice)
{
	struct token a, b;

	ck_assert_int_eq(token_init(&a, &sys_kernel, stage_fd, 1), 0);
	ck_assert_int_eq(token_init(&b, &sys_kernel, stage_fd, 1), -EEXIST);
	token_done(&b);
	ck_assert(tmp_exists("stage/0000000000000001.0"));
	token_done(&a);
}

TEST(git_respects_the_lock)
{
	struct token tok;
	char *out;
	int repo;

	tmp_run("git init -q --bare repo && cd repo && "
		"git update-ref refs/heads/x $(git commit-tree -m m "
		"$(git hash-object -w -t tree /dev/null))");
	repo = openat(tmp_fd, "repo", O_RDONLY | O_DIRECTORY);
	ck_assert_int_eq(token_init(&tok, &sys_kernel, stage_fd, 1), 0);
	ck_assert_int_eq(token_lock(&tok, repo, "refs/heads/x", 0777), 0);
	out = tmp_output("git -C repo update-ref -d refs/heads/x");
	ck_assert_ptr_nonnull(strstr(out, "x.lock': File exists"));
	free(out);
	ck_assert_int_eq(token_unlock(&tok, repo, "refs/heads/x"), 0);
	tmp_run("git -C repo update-ref -d refs/heads/x");
	token_done(&tok);
	close(repo);
}

TEST(a_foreign_lock_is_left_alone)
{
	struct token tok;

	tmp_put("r/x.lock", "git's");
	ck_assert_int_eq(token_init(&tok, &sys_kernel, stage_fd, 1), 0);
	ck_assert_int_eq(token_lock(&tok, tmp_fd, "r/x", 0777), -EEXIST);
	token_done(&tok);
	ck_assert(tmp_exists("r/x.lock"));
}

TEST(missing_parents_are_made)
{
	struct token tok;

	ck_assert_int_eq(token_init(&tok, &sys_kernel, stage_fd, 1), 0);
	ck_assert_int_eq(token_lock(&tok, tmp_fd, "r/a/b/c", 02750), 0);
	ck_assert_uint_eq(tmp_mode("r/a"), 02750);
	ck_assert_uint_eq(tmp_mode("r/a/b"), 02750);
	ck_assert(tmp_exists("r/a/b/c.lock"));
	token_done(&tok);
}

TEST(a_pruned_parent_is_tried_three_times)
{
	struct token tok;

	ck_assert_int_eq(token_init(&tok, &faulty, stage_fd, 1), 0);
	fail_with = -ENOENT;
	fail_times = 3;
	ck_assert_int_eq(token_lock(&tok, tmp_fd, "r/a/b", 0777), 0);
	fail_times = 100;
	nr_links = 0;
	ck_assert_int_eq(token_lock(&tok, tmp_fd, "r/c/d", 0777), -ENOENT);
	ck_assert_uint_eq(nr_links, 4);
	ck_assert(!tmp_exists("r/c/d.lock"));
	token_done(&tok);
}

TEST(a_parent_that_is_a_file_is_enotdir)
{
	struct token tok;

	tmp_put("r/a", "x");
	ck_assert_int_eq(token_init(&tok, &sys_kernel, stage_fd, 1), 0);
	ck_assert_int_eq(token_lock(&tok, tmp_fd, "r/a/b", 0777), -ENOTDIR);
	ck_assert_int_eq(token_lock(&tok, tmp_fd, "r/a/b/c", 0777), -ENOTDIR);
	token_done(&tok);
}

TEST(a_full_token_is_followed_by_the_next)
{
	struct token tok;
	int64_t when;

	ck_assert_int_eq(token_init(&tok, &faulty, stage_fd, 1), 0);
	ck_assert_int_eq(token_lock(&tok, tmp_fd, "r/a", 0777), 0);
	fail_with = -EMLINK;
	fail_times = 1;
	ck_assert_int_eq(token_lock(&tok, tmp_fd, "r/b", 0777), 0);
	ck_assert_uint_eq(tok.nr_files, 2);
	tok.links = TOKEN_LINKS_MAX;
	ck_assert_int_eq(token_lock(&tok, tmp_fd, "r/c", 0777), 0);
	ck_assert_uint_eq(tok.nr_files, 3);
	ck_assert(inode("r/a.lock") == inode("stage/0000000000000001.0"));
	ck_assert(inode("r/b.lock") == inode("stage/0000000000000001.1"));
	ck_assert(inode("r/c.lock") == inode("stage/0000000000000001.2"));
	ck_assert_int_eq(token_locked_at(&tok, &when), 0);
	token_done(&tok);
	ck_assert_int_eq(tmp_status("rmdir stage"), 0);
}

/* Locked refs stay locked, and further refs can be locked. */
TEST(a_next_file_that_cannot_be_made_changes_nothing)
{
	struct token tok;
	int64_t when;

	ck_assert_int_eq(token_init(&tok, &faulty, stage_fd, 1), 0);
	ck_assert_int_eq(token_lock(&tok, tmp_fd, "r/a", 0777), 0);
	fail_with = -EMLINK;
	fail_times = 1;
	open_fails_with = -ENOSPC;
	ck_assert_int_eq(token_lock(&tok, tmp_fd, "r/b", 0777), -ENOSPC);
	ck_assert_int_eq(token_locked_at(&tok, &when), 0);
	ck_assert_int_eq(token_lock(&tok, tmp_fd, "r/b", 0777), 0);
	ck_assert(inode("r/b.lock") == inode("stage/0000000000000001.0"));
	token_done(&tok);
}

/* On a file system with a limit of zero links, refd must not try for ever. */
TEST(a_token_that_takes_no_link_at_all_is_emlink)
{
	struct token tok;

	ck_assert_int_eq(token_init(&tok, &faulty, stage_fd, 1), 0);
	fail_with = -EMLINK;
	fail_times = 100;
	ck_assert_int_eq(token_lock(&tok, tmp_fd, "r/a", 0777), -EMLINK);
	ck_assert_uint_eq(nr_links, 1);
	token_done(&tok);
}

TEST(other_failures_are_told_at_once)
{
	static const int errors[] = { -EXDEV, -EPERM, -ENOSPC, -EIO };
	struct token tok;
	size_t i;

	ck_assert_int_eq(token_init(&tok, &faulty, stage_fd, 1), 0);
	for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		fail_with = errors[i];
		fail_times = 1;
		ck_assert_int_eq(token_lock(&tok, tmp_fd, "r/a", 0777),
		    errors[i]);
	}
	ck_assert_uint_eq(nr_links, 4);
	token_done(&tok);
	ck_assert_int_eq(token_init(&tok, &faulty, -1, 1), -EBADF);
	token_done(&tok);
}

TEST(a_path_that_is_too_long_is_told)
{
	char path[REFD_PATH_MAX + 1];
	struct token tok;

	memset(path, 'a', sizeof(path));
	path[1] = '/';
	path[REFD_PATH_MAX - 5] = '\0';
	ck_assert_int_eq(token_init(&tok, &faulty, stage_fd, 1), 0);
	ck_assert_int_eq(token_lock(&tok, tmp_fd, path, 0777), -ENAMETOOLONG);
	ck_assert_int_eq(token_unlock(&tok, tmp_fd, path), -ENAMETOOLONG);
	ck_assert_uint_eq(nr_links, 0);
	memset(path, 'a', 252);
	path[252] = '\0';
	ck_assert_int_eq(token_lock(&tok, tmp_fd, path, 0777), -ENAMETOOLONG);
	token_done(&tok);
}

/* The time comes from the file system's clock: compared with a new file. */
TEST(the_time_of_locking_is_the_file_systems)
{
	struct sys_stat before, after;
	struct token tok;
	int64_t when;

	ck_assert_int_eq(token_init(&tok, &sys_kernel, stage_fd, 1), 0);
	tmp_put("before", "");
	ck_assert_int_eq(token_lock(&tok, tmp_fd, "r/a", 0777), 0);
	tmp_put("after", "");
	ck_assert_int_eq(token_locked_at(&tok, &when), 0);
	SYS(&sys_kernel, lstatat, tmp_fd, "before", &before);
	SYS(&sys_kernel, lstatat, tmp_fd, "after", &after);
	ck_assert_int_ge(when, before.ctime_ns);
	ck_assert_int_le(when, after.ctime_ns);
	token_done(&tok);
	ck_assert_int_eq(token_locked_at(&tok, &when), -ENOENT);
}
