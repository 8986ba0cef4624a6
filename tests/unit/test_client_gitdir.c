/*
 * Proves that the client finds the same repository as git (bare repositories,
 * work trees, linked work trees, .git files, ceilings), by comparison with "git
 * rev-parse". The client reads the configuration as git resolves it.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/git/gitconfig.h"
#include "client/git/gitdir.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

static struct gitdir gd;
static struct text why;

static void setup(void)
{
	tmp_setup();
	memset(&gd, 0, sizeof(gd));
	memset(&why, 0, sizeof(why));
	unsetenv("GIT_CEILING_DIRECTORIES");
	tmp_run("git init -q -b main --bare bare.git && git init -q -b main wt "
		"&& cd wt && git commit -q --allow-empty -m x && mkdir -p a/b "
		"&& git worktree add -q ../linked && cd .. && mkdir -p empty/x "
		"&& git init -q -b main --separate-git-dir sep.git sep "
		"&& mkdir -p bare.git/refs/deep && ln -s wt symlinked");
}

static void teardown(void)
{
	gitdir_done(&gd);
	text_done(&why);
	ck_assert_int_eq(chdir("/"), 0);
	tmp_teardown();
}

static void enter(const char *dir)
{
	ck_assert_int_eq(fchdir(tmp_fd), 0);
	ck_assert_int_eq(chdir(dir), 0);
}

static void check_same(const char *path, const char *from_git)
{
	char *git = realpath(from_git, NULL);

	ck_assert_ptr_nonnull(git);
	ck_assert_str_eq(path, git);
	free(git);
}

CASE(.setup = setup, .teardown = teardown);

TEST(test_as_git_finds_it, .times = 11)
{
	static const char *const dirs[] = { "bare.git", "bare.git/refs/deep",
		"wt", "wt/a/b", "wt/.git", "wt/.git/refs", "linked", "sep",
		"sep.git", "symlinked/a", "wt/.git/worktrees/linked" };
	char *out, *common;

	enter(dirs[_i]);
	ck_assert_msg(gitdir_find(&gd, NULL, &why), "%s", why.data);
	out = tmp_output("cd '%s' && git rev-parse --absolute-git-dir && "
			 "realpath \"$(git rev-parse --git-common-dir)\"",
	    dirs[_i]);
	common = strchr(out, '\n');
	*common++ = '\0';
	common[strcspn(common, "\n")] = '\0';
	check_same(gd.path, out);
	check_same(gd.common, common);
	free(out);
}

TEST(test_named)
{
	char path[PATH_MAX];

	enter("empty");
	ck_assert(gitdir_find(&gd, "../bare.git", &why));
	ck_assert_int_eq(gd.path[0], '/');
	ck_assert(gd.ino != 0);
	gitdir_done(&gd);
	/* A .git file. The target is relative to its directory. */
	tmp_put("odd/.git", "gitdir: ../bare.git\n");
	ck_assert(gitdir_find(&gd, "../odd/.git", &why));
	snprintf(path, sizeof(path), "%s/bare.git", tmp_root);
	check_same(gd.path, path);
	gitdir_done(&gd);
	ck_assert(gitdir_at(&gd, "../wt", &why));
	gitdir_done(&gd);
	ck_assert(!gitdir_at(&gd, "../wt/a", &why));
}

TEST(test_none)
{
	enter("empty/x");
	/* TMPDIR may be on a separate file system. */
	setenv("GIT_DISCOVERY_ACROSS_FILESYSTEM", "1", 1);
	ck_assert(!gitdir_find(&gd, NULL, &why));
	ck_assert_str_eq(why.data,
	    "not a git repository (or any of the parent "
	    "directories): .git");
	text_clear(&why);
	ck_assert(!gitdir_find(&gd, "../nowhere", &why));
	ck_assert_str_eq(why.data, "not a git repository: '../nowhere'");
	tmp_put("wt/.git/HEAD", "garbage\n");
	enter("wt/a");
	ck_assert(!gitdir_find(&gd, NULL, &why));
}

/* The search ends at any .git file with an invalid target. */
TEST(test_bad_gitfile)
{
	static const struct {
		const char *content, *why;
	} files[] = {
		{ "gitdir: ../nowhere\n",
		    "gitfile does not point to a valid repository: " },
		{ "gitdir: \n", "no path in gitfile: " },
		{ "gitdir:x\n", "invalid gitfile format: " },
		{ "", "invalid gitfile format: " },
	};
	size_t i;

	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		tmp_put("wt/a/.git", files[i].content);
		enter("wt/a");
		ck_assert(!gitdir_find(&gd, NULL, &why));
		ck_assert_msg(has_prefix(why.data, files[i].why), "%s",
		    why.data);
		ck_assert(!gitdir_find(&gd, ".git", &why));
		ck_assert(has_prefix(why.data, files[i].why));
		ck_assert(!gitdir_at(&gd, ".", &why));
	}
}

/* A member of the group may put any file in the place of a file that leads to
 * the repository. The search ends at once. */
TEST(test_hostile_files, .times = 5)
{
	static const char *const files[] = { "HEAD", "commondir", "../.git" };
	static const char *const makes[] = { "mkfifo %s", "ln -s /dev/zero %s",
		"mkdir %s", "yes '' | head -c 2000000 >%s",
		"truncate -s 1T %s" };
	size_t i;

	enter("wt");
	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		tmp_run("rm -rf wt/.git && cp -r bare.git wt/.git && "
			"cd wt/.git && rm -rf %s",
		    files[i]);
		tmp_run(makes[_i],
		    i == 2 ? "wt/.git" :
			i  ? "wt/.git/commondir" :
			     "wt/.git/HEAD");
		alarm(20);
		ck_assert_msg(!gitdir_at(&gd, ".", &why), "%s", files[i]);
		alarm(0);
		gitdir_done(&gd);
	}
}

TEST(test_ceiling)
{
	char dir[PATH_MAX];

	enter("wt/a/b");
	snprintf(dir, sizeof(dir), "/nowhere:%s/wt/", tmp_root);
	setenv("GIT_CEILING_DIRECTORIES", dir, 1);
	ck_assert(!gitdir_find(&gd, NULL, &why));
	ck_assert_int_eq(tmp_status("cd wt/a/b && git rev-parse"), 128);
	enter("wt");
	ck_assert(gitdir_find(&gd, NULL, &why));
	unsetenv("GIT_CEILING_DIRECTORIES");
}

/* ---- configuration ---- */

TEST(test_config)
{
	struct gitconfig config = { 0 };
	const char *key, *value;
	size_t at = 0, nr = 0;

	tmp_put("bare.git/config",
	    "[core]\n\trepositoryformatversion = 0\n\tbare\n"
	    "\tLogAllRefUpdates = off\n"
	    "[receive]\n\tprocReceiveRefs = refs\n"
	    "\tprocReceiveRefs = adm!:refs\n"
	    "[hook \"A.b\"]\n\tevent = \"two\\nlines\"\n");
	enter("bare.git");
	ck_assert(gitdir_find(&gd, NULL, &why));
	gitconfig_load(&config, &gd);
	ck_assert_str_eq(gitconfig_get(&config, "receive.procreceiverefs"),
	    "adm!:refs");
	ck_assert_str_eq(gitconfig_get(&config, "hook.A.b.event"),
	    "two\nlines");
	ck_assert_ptr_null(gitconfig_get(&config, "hook.a.b.event"));
	ck_assert(gitconfig_bool(&config, "core.bare", false));
	ck_assert(!gitconfig_bool(&config, "core.logallrefupdates", true));
	ck_assert(gitconfig_bool(&config, "core.unset", true));
	while (gitconfig_next(&config, &at, &key, &value))
		nr += !strcmp(key, "receive.procreceiverefs");
	ck_assert_uint_eq(nr, 2);
	gitconfig_done(&config);
}

TEST(test_booleans, .times = 12)
{
	static const struct {
		const char *value;
		bool is;
	} values[] = { { "true", true }, { "YES", true }, { "on", true },
		{ "1", true }, { "-1", true }, { "2k", true }, { "0", false },
		{ "0x0", false }, { "", false }, { "no", false },
		{ "False", false }, { "off", false } };
	struct gitconfig config = { 0 };

	text_addf(&config.list, "a.b\n%s", values[_i].value);
	text_addc(&config.list, '\0');
	ck_assert_int_eq(gitconfig_bool(&config, "a.b", !values[_i].is),
	    values[_i].is);
	gitconfig_done(&config);
}

/* git fails on these values. */
TEST(test_no_booleans, .times = 5, .exit = 128)
{
	static const char *const values[] = { "nonsense", "1x", "k", "1kk",
		"always" };
	struct gitconfig config = { 0 };

	text_addf(&config.list, "a.b\n%s", values[_i]);
	text_addc(&config.list, '\0');
	gitconfig_bool(&config, "a.b", false);
}
