/*
 * Proves which pushes the hook leaves to git because of a rule that only git
 * enforces, each by itself against a bare repository that has none of them.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/native.h"
#include "tests/lib/tmp.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define Z "0000000000000000000000000000000000000000"

static struct push push;
static struct push_command command;

static void setup(void)
{
	tmp_setup();
	unsetenv("GIT_COMMITTER_DATE");
	unsetenv("GIT_SHALLOW_FILE");
	tmp_run("git init -q -b main --bare repo.git && "
		"rm -f repo.git/hooks/*");
	ck_assert_int_eq(fchdir(tmp_fd), 0);
	ck_assert_int_eq(chdir("repo.git"), 0);
	memset(&push, 0, sizeof(push));
	push.commands = &command;
	push.nr = 1;
	command.name = (char *)"refs/heads/a";
}

static void teardown(void)
{
	ck_assert_int_eq(chdir("/"), 0);
	tmp_teardown();
}

static const char *reason(const char *old, const char *new)
{
	struct gitconfig config = { 0 };
	struct gitdir gd = { 0 };
	struct text why = { 0 };
	const char *native;

	ck_assert_int_eq(refd_oid_parse(old, &command.old_oid), 0);
	ck_assert_int_eq(refd_oid_parse(new, &command.new_oid), 0);
	ck_assert(gitdir_find(&gd, ".", &why));
	gitconfig_load(&config, &gd);
	native = native_reason(&push, &config, &gd);
	gitconfig_done(&config);
	gitdir_done(&gd);
	text_done(&why);
	return native;
}

START_TEST(test_rules)
{
	static const struct {
		const char *shell, *name, *value;
	} cases[] = {
		{ "git config core.bare false", NULL, NULL },
		{ "git config --unset core.bare", NULL, NULL },
		{ "git config core.worktree /", NULL, NULL },
		{ "git config receive.denyDeletes false", NULL, NULL },
		{ "git config receive.denyNonFastForwards true", NULL, NULL },
		{ "git config hook.x.event reference-transaction", NULL, NULL },
		{ "git config hook.x.event update", NULL, NULL },
		{ "touch hooks/update && chmod +x hooks/update", NULL, NULL },
		{ "touch hooks/reference-transaction && "
		  "chmod +x hooks/reference-transaction",
		    NULL, NULL },
		{ "mkdir h && touch h/update && chmod +x h/update && "
		  "git config core.hooksPath h",
		    NULL, NULL },
		{ "git config core.hooksPath '~/h'", NULL, NULL },
		{ "mkdir -p worktrees/w", NULL, NULL },
		{ "rm HEAD && ln -s refs/heads/main HEAD", NULL, NULL },
		{ "true", "GIT_NAMESPACE", "n" },
		{ "true", "GIT_SHALLOW_FILE", "" },
		{ "true", "GIT_COMMITTER_DATE", "yesterday" },
	};

	ck_assert_ptr_null(reason(Z, A));
	tmp_run("cd repo.git && %s", cases[_i].shell);
	if (cases[_i].name)
		setenv(cases[_i].name, cases[_i].value, 1);
	ck_assert_ptr_nonnull(reason(Z, A));
	ck_assert_ptr_nonnull(reason(A, A));
}
END_TEST

/* What looks like a rule and is none. */
START_TEST(test_no_rules)
{
	tmp_run("cd repo.git && touch hooks/update && "
		"git config hook.x.event post-receive && "
		"git config hook.update.command true && "
		"mkdir h worktrees && git config core.hooksPath h && "
		"git config receive.procReceiveRefs refs");
	setenv("GIT_NAMESPACE", "", 1);
	setenv("GIT_COMMITTER_DATE", "1700000000 +0000", 1);
	ck_assert_ptr_null(reason(Z, A));
	ck_assert_ptr_null(reason(A, Z));
}
END_TEST

START_TEST(test_deletions)
{
	ck_assert_ptr_null(reason(A, Z));
	ck_assert_ptr_nonnull(reason(Z, Z));
	/* The current branch, to which HEAD leads by two steps. */
	tmp_run("cd repo.git && git symbolic-ref HEAD refs/heads/s && "
		"git symbolic-ref refs/heads/s refs/heads/a");
	ck_assert_ptr_nonnull(reason(A, Z));
	ck_assert_ptr_null(reason(A, A));
	command.name = (char *)"refs/heads/b";
	ck_assert_ptr_null(reason(A, Z));
}
END_TEST

START_TEST(test_other_hash)
{
	push.other_hash = true;
	ck_assert_ptr_nonnull(reason(Z, A));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("client_native");
	TCase *tc = tcase_create("native");
	SRunner *sr;
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, test_rules, 0, 16);
	tcase_add_test(tc, test_no_rules);
	tcase_add_test(tc, test_deletions);
	tcase_add_test(tc, test_other_hash);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
