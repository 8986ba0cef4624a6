/*
 * Proves which rule refuses which command of a push, in cases that
 * tests/scenario/push_rules.sh lacks, because git's own commands do not make
 * them. The scenario compares all rules with git: checked out branches,
 * deletions, fast forwards, the update hook.
 */
#include <stdlib.h>
#include <string.h>

#include "client/push/rules.h"
#include "tests/lib/hook_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

static struct push_command command;

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

CASE(.setup = hook_setup, .teardown = hook_teardown, .seconds = 60);

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

/* Worktrees and links that push_rules.sh does not have. */
TEST(test_current, .times = 5)
{
	static const char said[] = "branch is currently checked out";
	static const struct {
		const char *shell, *why;
	} cases[] = {
		/* A worktree without a gitdir file does not count. */
		{ "mkdir -p worktrees/w && "
		  "echo ref: refs/heads/main >worktrees/w/HEAD",
		    NULL },
		{ "mkdir -p worktrees/w/rebase-merge && "
		  "echo x >worktrees/w/gitdir && echo " A " >worktrees/w/HEAD "
		  "&& echo refs/heads/main >worktrees/w/rebase-merge/head-name",
		    said },
		{ "mkdir -p worktrees/w/rebase-apply && "
		  "echo x >worktrees/w/gitdir && echo " A " >worktrees/w/HEAD "
		  "&& echo refs/heads/main >worktrees/w/rebase-apply/head-name "
		  "&& touch worktrees/w/rebase-apply/applying",
		    NULL },
		{ "git config core.bare false && "
		  "git symbolic-ref HEAD refs/heads/s && "
		  "git symbolic-ref refs/heads/s refs/heads/main",
		    said },
		/* The symbolic ref leads nowhere. */
		{ "git config core.bare false && "
		  "echo ref: refs/heads/main >refs/heads/main",
		    NULL },
	};

	tmp_run("cd repo.git && %s", cases[_i].shell);
	expect(cases[_i].why, refuse(Z, A, "refs/heads/main"));
	expect(NULL, refuse(Z, A, "refs/heads/other"));
}

/* HEAD belongs to the repository, not to the namespace. */
TEST(test_deletion_in_a_namespace)
{
	command.ref = (char *)"refs/namespaces/t/refs/heads/main";
	expect(NULL, refuse(A, Z, "refs/heads/main"));
	command.ref = (char *)"refs/heads/main";
	expect("deletion of the current branch prohibited",
	    refuse(A, Z, "refs/heads/x"));
}

/* The hook must not be asked for what an earlier rule refuses. */
TEST(test_order)
{
	tmp_run("cd repo.git && git config receive.denyNonFastForwards true && "
		"printf '#!/bin/sh\necho >asked\nexit 1\n' >hooks/update && "
		"chmod +x hooks/update");
	expect("funny refname", refuse(A, B, "refs/a"));
	expect("bad ref", refuse(A, B, "refs/heads/a"));
	ck_assert(!tmp_exists("repo.git/asked"));
	expect("hook declined", refuse(Z, B, "refs/heads/a"));
	ck_assert(tmp_exists("repo.git/asked"));
}
