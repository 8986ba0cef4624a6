/*
 * Proves which pushes the hook leaves to git as a whole. Every cause is tested
 * alone, in a bare repository without any other cause.
 */
#include <stdlib.h>
#include <string.h>

#include "client/push/push_fallback.h"
#include "tests/lib/hook_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

static struct push_command command = { .name = (char *)"refs/heads/a",
	.ref = (char *)"refs/heads/a" };
static struct push push = { .commands = &command, .nr = 1 };

static const char *reason(const char *old, const char *new)
{
	struct gitconfig config = { 0 };
	struct gitdir gd = { 0 };
	struct text why = { 0 };
	struct rules rules;
	const char *reason;

	ck_assert_int_eq(
	    refd_oid_parse(old, REFD_FORMAT_SHA1, &command.old_oid), 0);
	ck_assert_int_eq(
	    refd_oid_parse(new, REFD_FORMAT_SHA1, &command.new_oid), 0);
	ck_assert(gitdir_find(&gd, ".", &why));
	gitconfig_load(&config, &gd);
	rules_load(&rules, &gd, &config);
	reason = push_fallback_reason(&push, &config, &gd, &rules);
	rules_done(&rules);
	gitconfig_done(&config);
	gitdir_done(&gd);
	text_done(&why);
	return reason;
}

/* From this index on, a cause names its variable. */
#define NAMED_CAUSES 3

CASE(.setup = hook_setup, .teardown = hook_teardown, .seconds = 60);

TEST(test_causes, .times = 6)
{
	static const struct {
		const char *shell, *name, *value;
	} cases[] = {
		{ "rm HEAD && ln -s refs/heads/main HEAD", NULL, NULL },
		{ "git config core.bare false && "
		  "git config receive.denyCurrentBranch updateInstead && "
		  "git symbolic-ref HEAD refs/heads/a",
		    NULL, NULL },
		{ "true", "GIT_SHALLOW_FILE", "" },
		{ "true", "GIT_REFERENCE_BACKEND", "files:///elsewhere" },
		{ "true", "GIT_REFERENCE_BACKEND", "" },
		{ "true", "GIT_REF_STORAGE_FORMAT", "reftable" },
	};
	const char *why;

	ck_assert_ptr_null(reason(Z, A));
	tmp_run("cd repo.git && %s", cases[_i].shell);
	if (cases[_i].name)
		setenv(cases[_i].name, cases[_i].value, 1);
	why = reason(Z, A);
	ck_assert_ptr_nonnull(why);
	if (_i >= NAMED_CAUSES)
		ck_assert_msg(strstr(why, cases[_i].name) != NULL, "%s", why);
	ck_assert_ptr_nonnull(reason(A, A));
	command.is_chained = true;
	if (_i == 1)
		ck_assert_ptr_null(reason(Z, A));
}

/* Other rules of the repository don't leave the push to git. */
TEST(test_no_causes)
{
	tmp_run("cd repo.git && touch hooks/update && chmod +x hooks/update && "
		"cp hooks/update hooks/reference-transaction && "
		"mkdir -p worktrees/w && "
		"git config core.bare false && "
		"git config receive.denyDeletes true && "
		"git config extensions.partialClone origin && "
		"git config receive.denyCurrentBranch updateInstead && "
		"git config hook.x.event update");
	setenv("GIT_NAMESPACE", "n", 1);
	setenv("GIT_COMMITTER_DATE", "yesterday", 1);
	setenv("GIT_REFERENCE_BACKEND", "files", 1);
	ck_assert_ptr_null(reason(Z, A));
	ck_assert_ptr_null(reason(A, A));
	unsetenv("GIT_NAMESPACE");
	unsetenv("GIT_COMMITTER_DATE");
	unsetenv("GIT_REFERENCE_BACKEND");
}

static void commit_at(const char *shell)
{
	tmp_run("cd repo.git && c=$(git commit-tree -m c "
		"$(git mktree </dev/null)) && %s",
	    shell);
}

static char *value_of(const char *ref)
{
	struct text t = { 0 };
	char *path = xasprintf("%s", ref);

	ck_assert_int_eq(text_read_file(&t, path, 1 << 20), 0);
	free(path);
	t.data[40] = '\0';
	return t.data;
}

/* git checks the old value less strictly if it can't read the value. */
TEST(test_deletions)
{
	char *c;

	ck_assert_ptr_nonnull(reason(Z, Z));
	ck_assert_ptr_nonnull(reason(A, Z));
	tmp_run("cd repo.git && echo " A " >refs/heads/a");
	ck_assert_ptr_null(reason(A, Z));
	tmp_run("cd repo.git && rm refs/heads/a && "
		"echo " A " refs/heads/a >packed-refs");
	ck_assert_ptr_null(reason(A, Z));
	commit_at("echo $c >seen");
	c = value_of("seen");
	ck_assert_ptr_null(reason(c, Z));
	free(c);
	/* A name that leads out of the repository is not looked up. */
	command.name = command.ref = (char *)"refs/../../fifo";
	tmp_run("mkfifo fifo");
	ck_assert_ptr_null(reason(A, Z));
}
