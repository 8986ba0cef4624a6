/*
 * Proves that the committer of a reflog line is the same as in git: the answer
 * of "git var GIT_COMMITTER_IDENT" for names, addresses and dates from
 * environment, configuration and password file. A date in git's special forms
 * is left to git.
 */
#include <stdlib.h>
#include <string.h>

#include "client/git/gitdate.h"
#include "client/git/identity.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

static void put(const char *name, const char *value)
{
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

static void check_against_git(void)
{
	struct gitconfig config = { 0 };
	char *git, *ours;

	gitconfig_load(&config, NULL);
	ours = identity_committer(&config);
	git = tmp_output("git var GIT_COMMITTER_IDENT");
	git[strcspn(git, "\n")] = '\0';
	ck_assert_ptr_nonnull(ours);
	ck_assert_str_eq(ours, git);
	free(ours);
	free(git);
	gitconfig_done(&config);
}

CASE(.setup = tmp_setup, .teardown = tmp_teardown);

TEST(test_sources, .times = 15)
{
	static const struct {
		const char *name, *mail, *email, *config;
	} cases[] = {
		{ "A U Thor", "a@x", NULL, "" },
		{ "  A <U> Thor,; ", " <a@x> ", NULL, "" },
		{ "\"Quoted\"", "", NULL, "" },
		{ "A", NULL, "e@x", "" },
		{ "A", NULL, NULL, "[user]\n\temail = u@x\n" },
		{ NULL, NULL, NULL, "[user]\n\tname = U\n\temail = u@x\n" },
		{ NULL, NULL, "e@x",
		    "[user]\n\tname = U\n\temail = u@x\n"
		    "[committer]\n\tname = C\n\temail = c@x\n" },
		{ NULL, NULL, "e@x", "[committer]\n\tname = C\n" },
		{ "caf\303\251", "c\303\251@x", NULL, "" },
		{ NULL, "a@x", NULL, "" },
		/* An empty address is one, and stops the search. */
		{ "A", NULL, "e@x", "[user]\n\temail =\n" },
		{ "A", NULL, "e@x", "[committer]\n\temail =\n" },
		{ "A", NULL, "e@x", "[author]\n\temail = a@x\n" },
		{ "A", NULL, "e@x",
		    "[user]\n\temail = u@x\n[committer]\n\temail =\n" },
		{ "A", NULL, "e@x",
		    "[user]\n\temail = u@x\n[user]\n\temail =\n" },
	};

	put("GIT_COMMITTER_NAME", cases[_i].name);
	put("GIT_COMMITTER_EMAIL", cases[_i].mail);
	put("EMAIL", cases[_i].email);
	put("GIT_COMMITTER_DATE", "1700000000 +0100");
	tmp_put(".gitconfig", cases[_i].config);
	check_against_git();
}

/* "git var" refuses an empty name; a reflog gets the account's name. */
TEST(test_empty_name)
{
	struct gitconfig config = { 0 };
	char *ours, *account = tmp_output("id -un");

	account[strcspn(account, "\n")] = '\0';
	put("GIT_COMMITTER_NAME", "");
	put("GIT_COMMITTER_EMAIL", "c@x");
	put("GIT_COMMITTER_DATE", "1700000000 +0100");
	tmp_put(".gitconfig", "[user]\n\tname = U\n");
	gitconfig_load(&config, NULL);
	ours = identity_committer(&config);
	ck_assert_int_eq(strncmp(ours, account, strlen(account)), 0);
	ck_assert_str_eq(ours + strlen(account), " <c@x> 1700000000 +0100");
	free(ours);
	free(account);
	gitconfig_done(&config);
}

TEST(test_dates, .times = 13)
{
	static const char *const dates[] = {
		"1700000000 +0000",
		"@1700000000 +0530",
		"@5 -0800",
		"1700000000 -0330",
		"Thu, 07 Apr 2005 22:13:13 +0200",
		"Thu, 7 Apr 2005 22:13:13 -0700",
		"7 Apr 2005 22:13:13 +0000",
		"2005-04-07T22:13:13+0200",
		"2005-04-07T22:13:13Z",
		"2005-04-07 22:13:13 -0800",
		"2005-04-07 22:13:13",
		"2005-10-07T22:13:13",
		"2024-02-29T00:00:00+00:00",
	};

	put("GIT_COMMITTER_NAME", "C");
	put("GIT_COMMITTER_EMAIL", "c@x");
	put("TZ", "Europe/Berlin");
	put("GIT_COMMITTER_DATE", dates[_i]);
	check_against_git();
}

TEST(test_left_to_git, .times = 12)
{
	static const char *const dates[] = { "yesterday", "1700000000", "@5",
		"2005-04-07", "12 +0000", "2005-02-30T00:00:00Z",
		"2005-04-07T25:00:00Z", "1700000000 +00", "now", "",
		"Thu 07 Apr 2005 22:13:13 +0200", "1700000000 +0000 x" };
	struct gitdate date = { 1, 2 };

	ck_assert(!gitdate_parse(dates[_i], &date));
	ck_assert_int_eq(date.secs, 1);
	ck_assert_int_eq(date.zone, 2);
}

TEST(test_now)
{
	struct gitconfig config = { 0 };
	char *ours;

	put("GIT_COMMITTER_NAME", "C");
	put("GIT_COMMITTER_EMAIL", "c@x");
	put("GIT_COMMITTER_DATE", NULL);
	put("TZ", "XXX-5:30");
	ours = identity_committer(&config);
	ck_assert_int_eq(strncmp(ours, "C <c@x> ", 8), 0);
	ck_assert_str_eq(strrchr(ours, ' '), " +0530");
	free(ours);
	put("GIT_COMMITTER_DATE", "yesterday");
	ck_assert_ptr_null(identity_committer(&config));
}
