/*
 * Proves which rule refuses which command of a push, and why: names, checked
 * out branches, deletions, fast forwards, the update hook. Every rule is tested
 * alone here. tests/scenario/push_rules.sh compares with git.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/push/rules.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define Z "0000000000000000000000000000000000000000"

static struct push_command command;

static void setup(void)
{
	tmp_setup();
	tmp_run("git init -q -b main --bare repo.git && "
		"rm -f repo.git/hooks/*");
	ck_assert_int_eq(fchdir(tmp_fd), 0);
	ck_assert_int_eq(chdir("repo.git"), 0);
	setenv("GIT_DIR", ".", 1);
	memset(&command, 0, sizeof(command));
}

static void teardown(void)
{
	unsetenv("GIT_DIR");
	ck_assert_int_eq(chdir("/"), 0);
	tmp_teardown();
}

static const char *refuse(const char *old, const char *new, const char *name)
{
	struct gitconfig config = { 0 };
	struct gitdir gd = { 0 };
	struct text text = { 0 };
	struct rules rules;
	const char *why;

	command.name = (char *)name;
	if (!command.ref)
		command.ref = (char *)name;
	ck_assert_int_eq(
	    refd_oid_parse(old, REFD_FORMAT_SHA1, &command.old_oid), 0);
	ck_assert_int_eq(
	    refd_oid_parse(new, REFD_FORMAT_SHA1, &command.new_oid), 0);
	ck_assert(gitdir_find(&gd, ".", &text));
	gitconfig_load(&config, &gd);
	rules_load(&rules, &gd, &config);
	why = rules_refuse(&rules, &command);
	rules_done(&rules);
	gitconfig_done(&config);
	gitdir_done(&gd);
	command.ref = NULL;
	return why;
}

static void expect(const char *wanted, const char *why)
{
	if (wanted)
		ck_assert_pstr_eq(why, wanted);
	else
		ck_assert_ptr_null(why);
}

CASE(.setup = setup, .teardown = teardown, .seconds = 60);

TEST(test_names)
{
	static const char funny[] = "funny refname";

	expect(NULL, refuse(Z, A, "refs/heads/a"));
	expect(funny, refuse(Z, A, "refs/a"));
	expect(NULL, refuse(A, Z, "refs/a"));
	expect(funny, refuse(Z, A, "HEAD"));
	expect(funny, refuse(A, Z, "HEAD"));
	expect(funny, refuse(Z, A, "refs/heads/../../escape"));
	expect(funny, refuse(A, Z, "refs/heads/a.lock"));
	command.unreportable = true;
	expect(funny, refuse(Z, A, "refs/heads/a"));
}

TEST(test_current, .times = 13)
{
	static const struct {
		const char *shell, *why;
	} cases[] = {
		{ "true", NULL },
		{ "git config core.bare false",
		    "branch is currently checked out" },
		{ "git config core.bare false && "
		  "git config receive.denyCurrentBranch warn",
		    NULL },
		{ "git config core.bare false && "
		  "git config receive.denyCurrentBranch yes",
		    "branch is currently checked out" },
		{ "git config core.bare false && "
		  "git config receive.denyCurrentBranch no",
		    NULL },
		{ "git config --unset core.bare", NULL },
		{ "mkdir -p worktrees/w && echo x >worktrees/w/gitdir && "
		  "echo ref: refs/heads/main >worktrees/w/HEAD",
		    "branch is currently checked out" },
		/* A worktree without a gitdir file does not count. */
		{ "mkdir -p worktrees/w && "
		  "echo ref: refs/heads/main >worktrees/w/HEAD",
		    NULL },
		{ "mkdir -p worktrees/w/rebase-merge && "
		  "echo x >worktrees/w/gitdir && echo " A " >worktrees/w/HEAD "
		  "&& echo refs/heads/main >worktrees/w/rebase-merge/head-name",
		    "branch is currently checked out" },
		{ "mkdir -p worktrees/w/rebase-apply && "
		  "echo x >worktrees/w/gitdir && echo " A " >worktrees/w/HEAD "
		  "&& echo refs/heads/main >worktrees/w/rebase-apply/head-name "
		  "&& touch worktrees/w/rebase-apply/applying",
		    NULL },
		{ "mkdir -p worktrees/w && echo x >worktrees/w/gitdir && "
		  "echo " A " >worktrees/w/HEAD && "
		  "touch worktrees/w/BISECT_LOG && "
		  "echo main >worktrees/w/BISECT_START",
		    "branch is currently checked out" },
		{ "git config core.bare false && "
		  "git symbolic-ref HEAD refs/heads/s && "
		  "git symbolic-ref refs/heads/s refs/heads/main",
		    "branch is currently checked out" },
		/* The symbolic ref leads nowhere. */
		{ "git config core.bare false && "
		  "echo ref: refs/heads/main >refs/heads/main",
		    NULL },
	};

	tmp_run("cd repo.git && %s", cases[_i].shell);
	expect(cases[_i].why, refuse(Z, A, "refs/heads/main"));
	expect(NULL, refuse(Z, A, "refs/heads/other"));
}

TEST(test_deletions)
{
	static const char current[] =
	    "deletion of the current branch prohibited";

	expect(current, refuse(A, Z, "refs/heads/main"));
	expect(NULL, refuse(A, Z, "refs/heads/a"));
	/* HEAD belongs to the repository, not to the namespace. */
	command.ref = (char *)"refs/namespaces/t/refs/heads/main";
	expect(NULL, refuse(A, Z, "refs/heads/main"));
	command.ref = (char *)"refs/heads/main";
	expect(current, refuse(A, Z, "refs/heads/x"));
	tmp_run("git -C repo.git config receive.denyDeleteCurrent warn");
	expect(NULL, refuse(A, Z, "refs/heads/main"));
	tmp_run("git -C repo.git config receive.denyDeletes true");
	expect("deletion prohibited", refuse(A, Z, "refs/heads/a"));
	expect(NULL, refuse(A, Z, "refs/tags/a"));
}

TEST(test_fast_forwards)
{
	struct text one = { 0 }, two = { 0 };

	tmp_run("cd repo.git && t=$(git mktree </dev/null) && "
		"git commit-tree -m 1 $t >1 && "
		"git commit-tree -m 2 -p $(cat 1) $t >2 && "
		"git config receive.denyNonFastForwards true");
	ck_assert_int_eq(text_read_file(&one, "1", 1000), 0);
	ck_assert_int_eq(text_read_file(&two, "2", 1000), 0);
	expect(NULL, refuse(one.data, two.data, "refs/heads/a"));
	expect("non-fast-forward", refuse(two.data, one.data, "refs/heads/a"));
	expect(NULL, refuse(two.data, one.data, "refs/tags/a"));
	expect(NULL, refuse(Z, one.data, "refs/heads/a"));
	expect(NULL, refuse(two.data, Z, "refs/heads/a"));
	expect("bad ref", refuse(A, one.data, "refs/heads/a"));
	text_done(&one);
	text_done(&two);
}

TEST(test_update_hook)
{
	tmp_run(
	    "cd repo.git && cat >hooks/update <<'END'\n"
	    "#!/bin/sh\n"
	    "test \"$0 $*\" = \"hooks/update refs/heads/a " A " " B "\" &&\n"
	    "test \"$GIT_DIR\" = . && test -f HEAD && test -z \"$(cat)\"\n"
	    "END\n"
	    "chmod +x hooks/update");
	expect(NULL, refuse(A, B, "refs/heads/a"));
	expect("hook declined", refuse(A, B, "refs/heads/b"));
	/* Earlier rules come first. */
	expect("funny refname", refuse(A, B, "refs/a"));
	tmp_run("cd repo.git && mkdir h && mv hooks/update h && "
		"git config core.hooksPath h");
	expect("hook declined", refuse(A, B, "refs/heads/a"));
	tmp_run("cd repo.git && chmod -x h/update");
	expect(NULL, refuse(A, B, "refs/heads/a"));
}
