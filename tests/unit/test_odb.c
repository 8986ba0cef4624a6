/*
 * Proves that refd's object reader tells the type of any object that git knows,
 * loose or packed, with deltas and alternates, by comparison with git cat-file.
 * The target of a tag is found, and a large tag is not read (finding F7). Many
 * packs take few descriptors. Only permitted alternates are read, and all
 * others get the same answer (finding F9).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/odb_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- comparison with git ---- */

/* Compares with git cat-file: every object of the repository NAME, and every id
 * with one digit changed. Returns the number of objects. */
static size_t compare_with_git(const char *name)
{
	static const char *const words[] = { "", "commit", "tree", "blob",
		"tag" };
	char *out, *line, *rest, hex[REFD_OID_MAX_HEX + 1], word[16];
	struct refd_oid oid;
	size_t nr = 0, size;
	unsigned type;

	odb_rig_open(name);
	rest = out = tmp_output("cd %s && git cat-file --unordered "
				"--batch-all-objects --batch-check | cut -d' ' "
				"-f1 | while read -r o; do echo $o; echo "
				"00${o#??}; done | git cat-file --batch-check",
	    name);
	while ((line = strsep(&rest, "\n")) != NULL && *line != '\0') {
		ck_assert_int_ge(
		    sscanf(line, "%64s %15s %zu", hex, word, &size), 2);
		oid = odb_rig_oid(hex);
		type = odb_type(odb_rig, &oid);
		if (strcmp(word, "missing") == 0)
			ck_assert_msg(type == OBJECT_ABSENT, "%s: %u", line,
			    type);
		else
			ck_assert_msg(type < COUNT(words) &&
				strcmp(word, words[type]) == 0,
			    "%s: %u", line, type);
		nr++;
	}
	free(out);
	return nr;
}

struct odb_way {
	const char *what, *command; /* the command runs in r */
};

static const struct odb_way ways[] = {
	{ "loose", ":" },
	{ "one pack", "git repack -q -a -d -f --depth=50 --window=50" },
	{ "deltas by name",
	    "git -c repack.useDeltaBaseOffset=false repack -q -a -d -f "
	    "--depth=50 --window=50" },
	{ "index version 1", "git -c pack.indexVersion=1 repack -q -a -d -f" },
	{ "a multi-pack-index",
	    "git repack -q -a -d && git commit -q --allow-empty -m more && git "
	    "repack -q --write-midx" },
	{ "a bitmap and a reverse index",
	    "git -c pack.writeReverseIndex=true repack -q -a -d -b" },
	{ "64-bit offsets",
	    "git rev-list --objects --all | git pack-objects -q "
	    "--index-version=2,0x40 .git/objects/pack/pack >/dev/null && git "
	    "prune-packed -q" },
	{ "many packs, each of one object",
	    "git repack -q -a -d && git rev-list --all | head -n 40 | while "
	    "read -r o; do echo $o | git pack-objects -q "
	    ".git/objects/pack/pack >/dev/null; done" },
	{ "what nobody refers to, loose again",
	    "git update-ref -d refs/tags/t7 && git repack -q -A -d" },
};

static struct suite_case sha256 = { .name = "sha256",
	.setup = odb_rig_setup_sha256,
	.teardown = odb_rig_teardown,
	.seconds = 120 };

CASE(.name = "odb", .setup = odb_rig_setup, .teardown = odb_rig_teardown,
    .seconds = 120);

TEST(each_object_is_as_git_has_it, .times = COUNT(ways), .also = &sha256)
{
	tmp_run(ODB_RIG_HISTORY "cd r && %s", ways[_i].command);
	ck_assert_msg(compare_with_git("r/.git") > 300, "%s", ways[_i].what);
}

TEST(alternates_are_as_git_has_them, .also = &sha256)
{
	tmp_run(ODB_RIG_HISTORY
	    "git clone -q --shared r second && cd second && git "
	    "commit -q --allow-empty -m more && cd .. && git clone "
	    "-q --bare --shared second third && cd third && "
	    "echo x | git hash-object -w --stdin");
	ck_assert_uint_gt(compare_with_git("third"), 300);
	tmp_run("cd r && git repack -q -a -d");
	ck_assert_uint_gt(compare_with_git("third"), 300);
	/* By a relative path, and in a ring. */
	tmp_run("echo ../../second/.git/objects >third/objects/info/alternates "
		"&& echo $PWD/third/objects >>r/.git/objects/info/alternates");
	ck_assert_uint_gt(compare_with_git("third"), 300);
	ck_assert_uint_eq(odb_stores(odb_rig)->nr, 3);
}

/* ---- loose objects and packs ---- */

TEST(objects_are_found_loose_and_packed)
{
	odb_rig_make_objects();
	odb_rig_open("r");
	odb_rig_check_objects();
	tmp_run("git -C r repack -q -a -d && git -C r prune-packed");
	odb_rig_check_objects();
	ck_assert_int_eq(odb_refresh(odb_rig), 0);
	odb_rig_check_objects();
}

/* More packs than may stay open, looked up twice. */
TEST(descriptors_have_a_bound)
{
	char *out, *at, *hex;
	struct refd_oid oid;
	int i, fd, before;

	tmp_run("git init -q --bare r");
	before = dup(0);
	close(before);
	out = tmp_output("cd r && for i in $(seq 60); do o=$(echo $i | git "
			 "hash-object -w --stdin) && echo $o && echo $o | git "
			 "pack-objects -q objects/pack/pack >/dev/null; done; "
			 "git prune-packed -q");
	odb_rig_open("r");
	for (i = 0; i < 2; i++)
		for (at = out; (hex = strsep(&at, "\n")) != NULL && *hex;) {
			oid = odb_rig_oid(hex);
			ck_assert_int_eq(odb_type(odb_rig, &oid), OBJECT_BLOB);
			if (at != NULL)
				at[-1] = '\n';
		}
	free(out);
	fd = dup(0);
	ck_assert_int_lt(fd, before + 2 * ODB_OPEN + 8);
	close(fd);
	tmp_run("git -C r gc -q --prune=now");
	ck_assert_int_eq(odb_refresh(odb_rig), 0);
	fd = dup(0);
	ck_assert_int_lt(fd, before + 16);
	close(fd);
}

/* ---- targets of tags ---- */

static int peel(const char *revision, struct refd_oid *to)
{
	struct refd_oid oid = odb_rig_named(revision);

	return odb_peel(odb_rig, &oid, to);
}

static void check_peel(const char *revision)
{
	char inner[64];
	struct refd_oid to, is;

	ck_assert_msg(peel(revision, &to) == 0, "%s", revision);
	snprintf(inner, sizeof(inner), "%s^{}", revision);
	is = odb_rig_named(inner);
	ck_assert(refd_oid_eq(&to, &is));
}

TEST(tags_are_peeled_as_git_does, .also = &sha256)
{
	const struct refd_oid absent = { { 1 } };
	struct refd_oid to;
	int i, way;
	char name[16];

	tmp_run(ODB_RIG_HISTORY
	    "cd r && git tag -a -m tree tree HEAD^{tree} && n=ttt && "
	    "for i in 4 5 6 7 8 9; do git tag -a -m x n$i $n && "
	    "n=n$i; done");
	for (way = 0; way < 3; way++) {
		odb_rig_open("r/.git");
		for (i = 1; i <= 30; i++) {
			snprintf(name, sizeof(name), "t%d", i);
			check_peel(name);
		}
		check_peel("ttt");
		check_peel("tree");
		check_peel("n8");
		/* Nine in a row. */
		ck_assert_int_eq(peel("n9", &to), -EFBIG);
		ck_assert_int_eq(peel("HEAD", &to), -EINVAL);
		ck_assert_int_eq(odb_peel(odb_rig, &absent, &to), -EIO);
		tmp_run("cd r && git -c repack.useDeltaBaseOffset=%s repack -q "
			"-a -d -f --depth=50",
		    way == 0 ? "true" : "false");
	}
}

/* F7: only the header is read. Also for deltas, one of them small. */
TEST(a_large_tag_is_not_peeled)
{
	struct refd_oid to;
	int way;

	tmp_run(
	    "git init -q r && cd r && git commit -q --allow-empty -m m && "
	    "seq 1000000 | head -c 65000 >fits && seq 1000000 | head -c "
	    "20000000 >large && git tag -a -F fits fits && git tag -a -F "
	    "large large && (cat fits; seq 500) >both && git tag -a -F both "
	    "beyond");
	for (way = 0; way < 2; way++) {
		odb_rig_open("r/.git");
		check_peel("fits");
		ck_assert_int_eq(odb_rig_type("large"), OBJECT_TAG);
		ck_assert_int_eq(peel("large", &to), -EFBIG);
		ck_assert_int_eq(peel("beyond", &to), -EFBIG);
		tmp_run("cd r && git tag -d beyond && git repack -q -a -d && "
			"git tag -a -F both beyond");
	}
}

/* A tag whose contents do not match the name has no answer. */
TEST(a_tag_that_lies_is_not_peeled, .also = &sha256)
{
	struct refd_oid to;

	odb_rig_make_objects();
	tmp_run("cd r && git tag -a -m other other refs/heads/x^{tree} && "
		"path() { p=$(git rev-parse $1); echo objects/${p%%${p#??}}/"
		"${p#??}; } && cp -f $(path other) $(path t)");
	odb_rig_open("r");
	ck_assert_int_eq(odb_rig_type("t"), OBJECT_TAG);
	ck_assert_int_eq(peel("t", &to), -EIO);
	ck_assert_int_eq(peel("other", &to), 0);
}

/* As git 2.53. Whoever pushes a tag may write any type into it. */
TEST(a_tag_that_states_another_type)
{
	struct refd_oid to;

	odb_rig_make_objects();
	tmp_run(
	    "cd r && lie() { printf 'object %%s\ntype %%s\ntag t\ntagger "
	    "A <a@b> 1 +0000\n\nm\n' $(git rev-parse $2) $3 | git "
	    "hash-object -t tag -w --stdin --literally >refs/tags/$1; } && "
	    "lie blob refs/heads/x blob && lie tag refs/heads/x tag && "
	    "lie other refs/heads/x zork && lie short refs/heads/x commi && "
	    "lie commit refs/heads/x^{tree} commit && "
	    "lie deep blob tag && lie true refs/heads/x commit");
	odb_rig_open("r");
	check_peel("true");
	ck_assert_int_eq(peel("blob", &to), -EINVAL);
	ck_assert_int_eq(peel("tag", &to), -EINVAL);
	ck_assert_int_eq(peel("other", &to), -EINVAL);
	ck_assert_int_eq(peel("short", &to), -EINVAL);
	ck_assert_int_eq(peel("commit", &to), -EINVAL);
	ck_assert_int_eq(peel("deep", &to), -EINVAL);
}

/* ---- alternates ---- */

static int with_alternates(const char *text)
{
	tmp_put("a/objects/info/alternates", text);
	return odb_rig_refresh_of("a");
}

/* F9: all problems with a store give the same answer. */
TEST(alternates_have_rules)
{
	char text[16384];
	int i;

	odb_rig_make_objects();
	tmp_run("git init -q --bare a && mkdir other && mkdir served && mv r "
		"served/r && ln -s ../r served/link && ln -s /tmp served/out");
	ck_assert_int_eq(with_alternates("../../served/r/objects\n"), 0);
	snprintf(text, sizeof(text), "# no\n\n%s/served/r/objects\n", tmp_root);
	ck_assert_int_eq(with_alternates(text), 0);
	ck_assert_uint_eq(odb_stores(odb_rig)->nr, 2);
	/* Missing; elsewhere; not a directory; quoted; above. */
	ck_assert_int_eq(with_alternates("../../served/none/objects\n"),
	    -EXDEV);
	ck_assert_int_eq(with_alternates("/etc\n"), -EXDEV);
	ck_assert_int_eq(with_alternates("../../served/out\n"), -EXDEV);
	ck_assert_int_eq(with_alternates("../../served/r/HEAD\n"), -EXDEV);
	ck_assert_int_eq(with_alternates("\"../../served/r/objects\"\n"),
	    -EXDEV);
	ck_assert_int_eq(with_alternates("../../../../../../../etc\n"), -EXDEV);
	/* An alternate of another owner. */
	odb_rig_owner = odb_rig_group = 4711;
	ck_assert_int_eq(with_alternates(text), -EXDEV);
	odb_rig_group = (uint32_t)getegid();
	ck_assert_int_eq(with_alternates(text), 0);
	/* Too many: lines, stores, and stores in a row. */
	for (i = 0; i < 1001; i++)
		memcpy(text + 3 * i, "..\n", 4);
	ck_assert_int_eq(with_alternates(text), -EXDEV);
	text[3 * 1000] = '\0';
	ck_assert_int_eq(with_alternates(text), 0);
	tmp_run("for i in $(seq 40); do mkdir -p s/$i; echo $PWD/s/$i; done "
		">a/objects/info/alternates");
	ck_assert_int_eq(odb_rig_refresh_of("a"), -EXDEV);
	tmp_run("for i in $(seq 9); do mkdir -p s/$i/info; echo $PWD/s/$((i + "
		"1)) >s/$i/info/alternates; done; echo $PWD/s/1 "
		">a/objects/info/alternates");
	ck_assert_int_eq(odb_rig_refresh_of("a"), -EXDEV);
	tmp_run("rm s/5/info/alternates");
	ck_assert_int_eq(odb_rig_refresh_of("a"), 0);
	ck_assert_uint_eq(odb_stores(odb_rig)->nr, 6);
}

/* An alternate that was moved away is not read any more. */
TEST(an_alternate_that_goes_is_noticed)
{
	odb_rig_make_objects();
	tmp_run("git init -q --bare a");
	ck_assert_int_eq(with_alternates("../../r/objects\n"), 0);
	ck_assert_int_eq(odb_rig_type("refs/heads/x"), OBJECT_COMMIT);
	ck_assert_int_eq(odb_refresh(odb_rig), 0);
	tmp_run("mv r/objects r/elsewhere && mkdir r/objects");
	ck_assert_int_eq(odb_refresh(odb_rig), 0);
	tmp_run("rmdir r/objects && mv r/elsewhere r/objects");
	ck_assert_int_eq(odb_refresh(odb_rig), 0);
	ck_assert_int_eq(odb_rig_type("refs/heads/x"), OBJECT_COMMIT);
	tmp_run("rm a/objects/info/alternates");
	ck_assert_int_eq(odb_refresh(odb_rig), 0);
	ck_assert_int_eq(odb_rig_type("refs/heads/x"), OBJECT_ABSENT);
}
