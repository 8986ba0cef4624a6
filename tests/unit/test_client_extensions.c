/*
 * Proves that the client reads the configuration of a repository with
 * extensions as git does, or leaves the question to git: every extension, both
 * versions of the format, config.worktree, extensions in other files, and the
 * format of the object ids.
 */
#include <string.h>

#include "client/git/gitconfig.h"
#include "tests/lib/config_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define COUNT(array) (int)(sizeof(array) / sizeof((array)[0]))

static const char *const certain[] = {
	V1 "objectFormat = sha256\n",
	V1 "objectFormat = sha256\nobjectFormat = sha1\n",
	"[extensions]\nobjectFormat = sha1\n" V1,
	"[extensions]\nObjectFormat = sha1\n[CORE]\nrepositoryformatversion=1",
	V1 "noop\nnoop = x\nnoop-v1 = \npreciousObjects\n",
	V1 "partialClone = origin\n",
	BASE "[extensions]\npartialClone = \npreciousObjects = true\n",
	V1 "worktreeConfig = true\n",
	BASE "[extensions]\n\tworktreeConfig\n[core]\nbare\n",
	V1 "worktreeConfig = true\nworktreeConfig = false\n",
	BASE "[extensions]\nunheardOf = 1\n[extensions \"a.b\"]\nc = d\n",
};

/* Git may end, or print something else. */
static const char *const gits[] = {
	"[extensions]\nworktreeConfig = true\n",
	V1 "objectFormat = md5\n",
	V1 "objectFormat\n",
	BASE "[extensions]\nobjectFormat = sha1\n",
	V1 "objectFormat = sha1\n[core]\nrepositoryFormatVersion = 0\n",
	BASE "[extensions]\nnoop-v1 = 1\n",
	V1 "unheardOf = 1\n",
	V1 "partialClone\n",
	V1 "worktreeConfig = yes\n",
	V1 "preciousObjects = 1\n",
	V1 "refStorage = files:///elsewhere\n",
	V1 "compatObjectFormat = sha256\n",
	"[extensions]\nunheardOf = 1\n",
};

CASE(.setup = config_rig_setup, .teardown = config_rig_teardown);

TEST(test_certain, .times = COUNT(certain))
{
	tmp_put(CONFIG, certain[_i]);
	ck_assert_msg(config_rig_same(certain[_i]), "%s", certain[_i]);
}

TEST(test_gits, .times = COUNT(gits))
{
	tmp_put(CONFIG, gits[_i]);
	ck_assert_msg(!config_rig_same(gits[_i]), "%s", gits[_i]);
}

/* Git before 2.45 would print nothing. */
TEST(test_reftable)
{
	struct gitconfig config = { 0 };

	tmp_put(CONFIG, V1 "refStorage = reftable\n[a]\n\tb = c\n");
	ck_assert_int_eq(gitconfig_try(&config, &config_rig_gd), 0);
	ck_assert(gitconfig_is_reftable(&config));
	ck_assert_str_eq(gitconfig_get(&config, "a.b"), "c");
	gitconfig_done(&config);
}

/* Git ignores extensions in other files, and prints them. */
TEST(test_extensions_elsewhere)
{
	struct gitconfig config = { 0 };

	tmp_put(CONFIG, V1 "objectFormat = sha256\nworktreeConfig = true\n");
	ck_assert(config_rig_same("no config.worktree"));
	tmp_put("bare.git/config.worktree", "[a]\n\tb = worktree\n");
	ck_assert(config_rig_same("config.worktree"));
	ck_assert_int_eq(gitconfig_try(&config, &config_rig_gd), 0);
	ck_assert_str_eq(gitconfig_get(&config, "a.b"), "worktree");
	ck_assert_int_eq(gitconfig_object_format(&config, &config_rig_gd),
	    REFD_FORMAT_SHA256);
	gitconfig_done(&config);
	tmp_put("bare.git/config.worktree",
	    "[extensions]\nobjectFormat = sha1\n");
	ck_assert(!config_rig_same("an extension in config.worktree"));
	tmp_run("rm bare.git/config.worktree && mkfifo "
		"bare.git/config.worktree");
	ck_assert(!config_rig_same("a FIFO"));
	tmp_run("rm bare.git/config.worktree");
	tmp_put(".gitconfig", "[extensions]\nobjectFormat = sha1\n");
	ck_assert(!config_rig_same("an extension of the user"));
	ck_assert_int_eq(gitconfig_try(&config, &config_rig_gd), 0);
	ck_assert_int_eq(gitconfig_object_format(&config, &config_rig_gd),
	    REFD_FORMAT_SHA256);
	gitconfig_done(&config);
}

/* A linked worktree has a config.worktree of its own. */
TEST(test_linked_worktree)
{
	struct text why = { 0 };

	tmp_run("git init -q w && cd w && git -c user.name=a -c user.email=b "
		"commit -q --allow-empty -m m && git worktree add -q ../linked "
		"&& git config extensions.worktreeConfig true && "
		"git config --worktree a.b main && cd ../linked && "
		"git config --worktree a.b linked");
	gitdir_done(&config_rig_gd);
	ck_assert(gitdir_find(&config_rig_gd, "w/.git", &why));
	ck_assert(config_rig_same("the main worktree"));
	gitdir_done(&config_rig_gd);
	ck_assert(gitdir_find(&config_rig_gd, "w/.git/worktrees/linked", &why));
	ck_assert(config_rig_same("a linked worktree"));
	text_done(&why);
}
