/*
 * Proves which extensions of git's repository format refd serves, and that a
 * refusal names the extension and never the value.
 */
#include <string.h>

#include "proto/format.h"
#include "tests/lib/suite.h"

static const struct {
	int version;
	const char *name, *value;
	const char *why; /* words of the refusal; NULL: served */
} cases[] = {
	{ 1, "objectFormat", "sha1", NULL },
	{ 1, "objectformat", "sha256", NULL },
	{ 1, "objectFormat", "sha", "extensions.objectFormat" },
	{ 1, "objectFormat", "sha1 sha256", "extensions.objectFormat" },
	{ 1, "objectFormat", "", "extensions.objectFormat" },
	{ 0, "objectFormat", "sha1", "needs core.repositoryFormatVersion 1" },
	{ 1, "refStorage", "files", NULL },
	{ 1, "refStorage", "reftable", NULL },
	{ 1, "refstorage", "files://secret",
	    "the refs are elsewhere (extensions.refStorage)" },
	{ 1, "refStorage", "reftable://secret", "elsewhere" },
	{ 1, "refStorage", "secret",
	    "neither in files nor in reftables (extensions.refStorage)" },
	{ 0, "refStorage", "files", "needs core.repositoryFormatVersion 1" },
	{ 0, "worktreeConfig", "true", NULL },
	{ 1, "worktreeConfig", "false", NULL },
	{ 1, "relativeWorktrees", "true", NULL },
	{ 0, "relativeWorktrees", "true", "needs core" },
	{ 0, "preciousObjects", "true", NULL },
	{ 1, "preciousObjects", "true", NULL },
	{ 0, "noop", "secret", NULL },
	{ 1, "noop-v1", "secret", NULL },
	{ 0, "noop-v1", "secret", "extensions.noop-v1 needs" },
	{ 0, "partialClone", "origin", NULL },
	{ 1, "partialclone", "origin", NULL },
	{ 1, "submodulePathConfig", "true", NULL },
	{ 1, "compatObjectFormat", "sha256",
	    "ids of two kinds (extensions.compatObjectFormat)" },
	{ 1, "noop-v2", "secret", "the extension 'noop-v2'" },
	{ 1, "unheardof", "files://secret", "the extension 'unheardof'" },
	{ 0, "unheardof", "secret", NULL },
	{ 1, "", "secret", "an extension of the repository" },
	{ 1, "secret word", "1", "an extension of the repository" },
	{ 1, "secret\n", "1", "an extension of the repository" },
	{ 1, "secretsecretsecretsecretsecretsecretsecret", "1",
	    "an extension of the repository" },
};

TEST(each_extension, .times = sizeof(cases) / sizeof(cases[0]))
{
	char why[FORMAT_WHY_MAX] = "";
	bool serves = format_serves(cases[_i].version, cases[_i].name,
	    cases[_i].value, why);

	ck_assert_msg(serves == (cases[_i].why == NULL), "%s=%s",
	    cases[_i].name, cases[_i].value);
	if (!serves)
		ck_assert_msg(strstr(why, cases[_i].why) != NULL, "%s", why);
	ck_assert_ptr_null(strstr(why, "secret"));
}

TEST(each_version)
{
	ck_assert_ptr_null(format_version_unserved(0));
	ck_assert_ptr_null(format_version_unserved(1));
	ck_assert_ptr_nonnull(format_version_unserved(2));
	ck_assert_ptr_nonnull(format_version_unserved(-1));
}
