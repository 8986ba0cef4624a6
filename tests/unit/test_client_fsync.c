/*
 * Proves that core.fsync is read as in git: the table agrees with the flushes
 * of the machine's git, if this git knows the variable.
 */
#include "proto/lib/fsync.h"

#include <stdlib.h>
#include <string.h>

#include "client/git/gitversion.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

static const struct {
	const char *value;
	bool refs, objects;
} cases[] = {
	{ "committed,loose-object", true, true },
	{ "committed", true, true },
	{ "added", true, true },
	{ "all", true, true },
	{ "reference", true, false },
	{ "objects", false, true },
	{ "loose-object", false, true },
	{ "objects,reference", true, true },
	{ "pack,pack-metadata,commit-graph,index", false, false },
	{ "derived-metadata", false, false },
	{ "none", false, false },
	{ "", false, false },
	{ "unknown", false, false },
	/* A minus sign removes a component only from git's default. */
	{ "committed,-loose-object", true, true },
	{ "-loose-object,committed", true, true },
	{ "all,-reference,-objects", true, true },
	{ "-all", false, false },
	{ "-objects,reference", true, false },
	{ "committed,none", true, true },
	{ "none,reference", true, false },
	{ "none,objects", false, true },
	/* Only commas end a word. */
	{ " \t,, reference,\n objects", true, true },
	{ "reference objects", false, false },
	{ "reference ,objects", false, true },
	{ "reference,", true, false },
	{ "Reference", false, false },
	{ "-,reference", false, false },
	{ "reference,-,objects", true, false },
	{ "--reference", false, false },
	{ "- reference,l", false, true },
	/* The beginning of a name is enough. A longer word is no name. */
	{ "r", true, false },
	{ "o", false, true },
	{ "c", true, true },
	{ "a", true, true },
	{ "p,d,i", false, false },
	{ "references", false, false },
	{ "loose-objects", false, false },
};

CASE(.setup = tmp_setup, .teardown = tmp_teardown, .seconds = 60);

TEST(test_as_written)
{
	ck_assert(!fsync_covers_refs(NULL));
	ck_assert(!fsync_covers_objects(NULL));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert_msg(fsync_covers_refs(cases[i].value) ==
			cases[i].refs,
		    "refs: %s", cases[i].value);
		ck_assert_msg(fsync_covers_objects(cases[i].value) ==
			cases[i].objects,
		    "objects: %s", cases[i].value);
	}
}

/*
 * git counts its flushes in a trace: as data of the key "fsync/hardware-flush",
 * and from 2.40 on as a counter "hardware-flush" of the category "fsync".
 */
static bool flushes(const char *command)
{
	char *said = tmp_output("rm -f said && "
				"GIT_TRACE2_EVENT=$PWD/said git -C r.git %s "
				">/dev/null 2>&1 && cat said",
	    command);
	bool is = strstr(said, "hardware-flush");

	ck_assert_msg(strstr(said, "\"exit\""), "%s: %s", command, said);
	free(said);
	return is;
}

TEST(test_as_git_does)
{
	if (gitversion_before(2, 36)) {
		suite_skip(__func__, "git before 2.36 has no core.fsync");
		return;
	}
	tmp_run("git init -q --bare r.git && git -C r.git commit-tree -m x "
		"$(git -C r.git mktree </dev/null) >id");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *value = cases[i].value;

		setenv("GIT_CONFIG_COUNT", "1", 1);
		setenv("GIT_CONFIG_KEY_0", "core.fsync", 1);
		setenv("GIT_CONFIG_VALUE_0", value, 1);
		tmp_put("new", value);
		ck_assert_msg(flushes("update-ref refs/heads/x $(cat id)") ==
			cases[i].refs,
		    "refs: %s", value);
		ck_assert_msg(flushes("hash-object -w ../new") ==
			cases[i].objects,
		    "objects: %s", value);
		tmp_run("git -C r.git update-ref -d refs/heads/x");
	}
}
