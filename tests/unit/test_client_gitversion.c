/*
 * Proves that versions of git are compared as numbers, with any text after the
 * numbers, and that a git without a version counts as new.
 */
#include "client/git/gitversion.h"

#include <stdlib.h>

#include "proto/lib/cli.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

static void git_says(const char *words)
{
	char *script = xasprintf("#!/bin/sh\n%s\n", words);

	tmp_put("git", script);
	tmp_run("chmod +x git");
	free(script);
}

CASE(.setup = tmp_setup, .teardown = tmp_teardown);

TEST(test_before)
{
	static const struct {
		const char *words;
		bool is;
	} cases[] = { { "echo git version 2.39.5", true },
		{ "echo git version 2.9.0", true },
		{ "echo git version 1.60.1", true },
		{ "echo git version 2.51.0", false },
		{ "echo git version 2.51.0.rc1.dirty", false },
		{ "echo 'git version 2.50.1 (Apple Git-155)'", true },
		{ "echo git version 2.55.0+next.20260731", false },
		{ "echo git version 10.2", false },
		{ "echo git version 3", false },
		{ "echo nothing of the kind", false }, { "true", false },
		{ "echo git version 2.39.5; exit 1", false } };
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *path = xstrdup(getenv("PATH"));
		char *both = xasprintf("%s:%s", tmp_root, path);

		git_says(cases[i].words);
		setenv("PATH", both, 1);
		ck_assert_msg(gitversion_before(2, 51) == cases[i].is, "%s",
		    cases[i].words);
		setenv("PATH", path, 1);
		free(path);
		free(both);
	}
}
