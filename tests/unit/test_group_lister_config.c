/*
 * Proves that the leader's refd-group reads whatever bytes a repository's
 * configuration has, and tells a node that joins the format and hidden refs of
 * exactly the keys that git obeys. The output is that of git config -z.
 */
#include <string.h>

#include "daemon/group/service/lister_config.h"
#include "tests/lib/suite.h"

#define FORMAT   "extensions.objectformat\n"
#define TRANSFER "transfer.hiderefs\n"
#define UPLOAD   "uploadpack.hiderefs\n"

struct example {
	const char *output;
	size_t len;
	bool is_sha256, hides_refs;
};

/* Each entry ends with a NUL. */
#define EXAMPLE(output, ...) { output "\0", sizeof(output), __VA_ARGS__ }

static const struct example examples[] = {
	{ "", 0, false, false },
	EXAMPLE(FORMAT "sha256", true, false),
	EXAMPLE(FORMAT "sha1", false, false),
	EXAMPLE(FORMAT "sha1\0" FORMAT "sha256", true, false),
	EXAMPLE(TRANSFER "refs/pull", false, true),
	EXAMPLE(UPLOAD "refs/pull", false, true),
	EXAMPLE(TRANSFER "refs/refd", false, false),
	EXAMPLE(TRANSFER "refs/refd/", false, false),
	EXAMPLE(TRANSFER "refs/refd/diverged", false, false),
	EXAMPLE(TRANSFER "refs/refd\0" UPLOAD "refs/x", false, true),
	EXAMPLE(TRANSFER "refs/x\0" UPLOAD "refs/refd", false, true),
	/* Only whole components are hidden by git. */
	EXAMPLE(TRANSFER "refs/refdiff", false, true),
	EXAMPLE(TRANSFER "refs/ref", false, true),
	EXAMPLE(TRANSFER "", false, true),
	EXAMPLE(TRANSFER "!refs/refd", false, true),
	EXAMPLE(TRANSFER "^refs/refd", false, true),
	/* A key without a value, which git refuses. */
	EXAMPLE("transfer.hiderefs", false, true),
	EXAMPLE("extensions.objectformat", false, false),
	/* Values that look like lines, keys or formats. */
	EXAMPLE(TRANSFER "refs/refd\nfoo bar", false, true),
	EXAMPLE(TRANSFER "refs/refd/\nfoo bar", false, false),
	EXAMPLE(TRANSFER "refs/refd/\n" FORMAT "sha256", false, false),
	EXAMPLE(TRANSFER "refs/refd/ sha256", false, false),
	EXAMPLE(FORMAT "sha1\n" UPLOAD "refs/x", false, false),
	EXAMPLE(FORMAT "sha256\nx", false, false),
	EXAMPLE("\n", false, false),
	EXAMPLE("\0\0\n\0", false, false),
	EXAMPLE("x.y.hiderefs\nrefs/x", false, false),
	EXAMPLE("transfer.x.hiderefs\nrefs/x", false, false),
	EXAMPLE("\xff\xfe%s%n\x01\nrefs/x", false, false),
	/* The output was cut. */
	{ TRANSFER, sizeof(TRANSFER) - 2, false, true },
};

TEST(configurations, .times = sizeof(examples) / sizeof(*examples))
{
	const struct example *e = &examples[_i];
	struct text text = { 0 };
	struct lister_config config;

	text_add(&text, e->output, e->len);
	config = lister_config_parse(&text);
	ck_assert_msg(config.is_sha256 == e->is_sha256, "%s", e->output);
	ck_assert_msg(config.hides_refs == e->hides_refs, "%s", e->output);
	text_done(&text);
}
