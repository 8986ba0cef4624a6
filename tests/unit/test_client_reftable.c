/*
 * Proves the client's answers in repositories whose refs are in reftables,
 * where no file shows a ref: the branches that are checked out, HEAD, symbolic
 * refs, deletions of unreadable values, the ref store of the environment, and
 * the words about a held lock. Git 2.45 or later makes the repositories. So
 * only the last test is for every machine. With REFD_TEST_REFS=reftable, as in
 * tests/long/reftable.sh, all tests run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/git/gitconfig.h"
#include "client/git/heads.h"
#include "client/git/symref.h"
#include "client/push/push_fallback.h"
#include "client/request/git_messages.h"
#include "client/request/unserved.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

static struct gitconfig config;
static struct gitdir gd;

/* A git that makes reftables: in PATH, or unpacked by scripts/git-new. */
static bool find_git(void)
{
	char self[2048], path[8192];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *end;

	if (tmp_status("git init -q --bare --ref-format=reftable try") == 0)
		return true;
	self[n > 0 ? n : 0] = '\0';
	end = strstr(self, "/tests/unit/");
	if (!end)
		return false;
	*end = '\0';
	snprintf(path, sizeof(path), "%s/git-experimental:%s", self,
	    getenv("PATH"));
	setenv("PATH", path, 1);
	return tmp_status("git init -q --bare --ref-format=reftable try") == 0;
}

/* w has main, which is checked out, and l, a symbolic ref to main. */
static void begin(void)
{
	tmp_setup();
	ck_assert_msg(find_git(), "no git with reftables");
	ck_assert_int_eq(fchdir(tmp_fd), 0);
	tmp_run("git config --global user.name a && "
		"git config --global user.email a@b && "
		"git init -q -b main --ref-format=reftable w && cd w && "
		"git commit -q --allow-empty -m m && "
		"git symbolic-ref refs/heads/l refs/heads/main");
}

static void open_gd(const char *dir)
{
	struct text why = { 0 };

	gitconfig_done(&config);
	gitdir_done(&gd);
	ck_assert(gitdir_find(&gd, dir, &why));
	ck_assert_int_eq(gitconfig_try(&config, &gd), 0);
	gd.is_reftable = gitconfig_is_reftable(&config);
	text_done(&why);
}

static void end(void)
{
	symref_forget();
	gitconfig_done(&config);
	gitdir_done(&gd);
	ck_assert_int_eq(chdir("/"), 0);
	tmp_teardown();
}

CASE(.seconds = 60, .is_left_out = getenv("REFD_TEST_REFS") == NULL);

TEST(test_format)
{
	begin();
	open_gd("w/.git");
	ck_assert(gd.is_reftable);
	tmp_run("git init -q --ref-format=files f");
	open_gd("f/.git");
	ck_assert(!gd.is_reftable);
	end();
}

static void has_heads(const char *dir, bool is_bare, const char *own,
    const char *names)
{
	struct text t = { 0 };
	struct heads h;
	size_t i;

	open_gd(dir);
	heads_find(&h, &gd, is_bare);
	for (i = 0; i < h.nr; i++)
		text_addf(&t, "%s ", h.names[i]);
	ck_assert_str_eq(t.data ? t.data : "", names);
	ck_assert_pstr_eq(heads_own(&h), own);
	heads_done(&h);
	text_done(&t);
}

TEST(test_heads)
{
	begin();
	has_heads("w/.git", false, "refs/heads/main", "refs/heads/main ");
	has_heads("w/.git", true, "refs/heads/main", "");
	tmp_run("cd w && git worktree add -q -b side ../linked");
	has_heads("w/.git", false, "refs/heads/main",
	    "refs/heads/main refs/heads/side ");
	has_heads("w/.git/worktrees/linked", true, "refs/heads/side",
	    "refs/heads/side ");
	tmp_run("git -C w symbolic-ref HEAD refs/heads/l");
	has_heads("w/.git", true, "refs/heads/main", "refs/heads/side ");
	tmp_run("git -C w checkout -q --detach");
	has_heads("w/.git", false, "HEAD", "refs/heads/side ");
	tmp_run("git -C w symbolic-ref HEAD refs/heads/unborn");
	has_heads("w/.git", false, "refs/heads/unborn",
	    "refs/heads/unborn refs/heads/side ");
	end();
}

static void leads(const char *name, const char *to)
{
	char *target = symref_target(&gd, name);

	ck_assert_pstr_eq(target, to);
	free(target);
}

TEST(test_symrefs)
{
	begin();
	open_gd("w/.git");
	leads("HEAD", "refs/heads/main");
	leads("refs/heads/l", "refs/heads/main");
	leads("refs/heads/main", NULL);
	leads("refs/heads", NULL);
	leads("refs/heads/absent", NULL);
	tmp_run("git -C w symbolic-ref refs/heads/new refs/heads/l");
	symref_forget();
	leads("refs/heads/new", "refs/heads/l");
	tmp_run("git -C w symbolic-ref HEAD refs/heads/unborn");
	symref_forget();
	leads("HEAD", "refs/heads/unborn");
	tmp_run("cd w && git worktree add -q -b side ../linked main");
	open_gd("w/.git/worktrees/linked");
	symref_forget();
	leads("HEAD", "refs/heads/side");
	leads("main-worktree/HEAD", NULL);
	end();
}

static const char *reason_to_delete(const char *old)
{
	static const char z[] = "0000000000000000000000000000000000000000";
	struct push_command command = { .name = (char *)"refs/heads/main",
		.ref = (char *)"refs/heads/main" };
	struct push push = { .commands = &command, .nr = 1 };
	struct rules rules = { .gd = &gd };

	ck_assert_int_eq(
	    refd_oid_parse(old, REFD_FORMAT_SHA1, &command.old_oid), 0);
	ck_assert_int_eq(refd_oid_parse(z, REFD_FORMAT_SHA1, &command.new_oid),
	    0);
	return push_fallback_reason(&push, &config, &gd, &rules);
}

/* Until the table of proto/format.c has reftables, the format is the reason. */
TEST(test_deletions)
{
	static const char absent[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
	char *main;

	begin();
	open_gd("w/.git");
	setenv("GIT_DIR", gd.path, 1);
	main = tmp_output("git -C w rev-parse main");
	main[40] = '\0';
	if (!unserved_format(&config)) {
		ck_assert_ptr_null(reason_to_delete(main));
		ck_assert_ptr_nonnull(reason_to_delete(absent));
	}
	free(main);
	unsetenv("GIT_DIR");
	end();
}

TEST(test_other_store)
{
	const char *why;

	begin();
	open_gd("w/.git");
	setenv("GIT_REF_STORAGE_FORMAT", "reftable", 1);
	why = unserved_reason(&gd, &config);
	ck_assert(!why || !strstr(why, "GIT_REF_STORAGE_FORMAT"));
	setenv("GIT_REF_STORAGE_FORMAT", "files", 1);
	why = unserved_reason(&gd, &config);
	ck_assert_ptr_nonnull(strstr(why, "GIT_REF_STORAGE_FORMAT"));
	unsetenv("GIT_REF_STORAGE_FORMAT");
	end();
}

CASE(.seconds = 60);

TEST(test_lock)
{
	struct refd_update update = { .name = "refs/heads/x" };
	struct refd_result result = { .name = "refs/heads/x",
		.status = REFD_LOCKED,
		.text =
		    "\1locked\1refs/heads/x\1/r/reftable/tables.list.lock" };
	struct text said = { 0 };

	git_messages_detail(&update, &result, GIT_2_55, NULL, &said);
	ck_assert_str_eq(said.data, "cannot lock references");
	text_done(&said);
}
