/*
 * Proves the findings of refd verify in a repository whose refs are in
 * reftables: missing and damaged tables, and wrong refs in sound tables. A
 * sound repository has no findings. Only lost footers are repaired.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/reftable_help.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"
#include "tests/lib/verify_help.h"

#define TABLE(n) "reftable/0x00000000000" #n "-0x00000000000" #n "-00000001.ref"

#define HAS(line, words)                                                       \
	ck_assert_msg(vh_has(line, words), "no '%s' (%s) in:%s", line, words,  \
	    vh_lines())
#define FINDS(n)                                                               \
	do {                                                                   \
		size_t found_ = vh_look("r");                                  \
		ck_assert_msg(vh_why() == NULL, "%s", vh_why());               \
		ck_assert_msg(found_ == (n), "%zu found:%s", found_,           \
		    vh_lines());                                               \
	} while (0)

static struct refd_oid commit, tree;

static struct refd_oid made(const char *command)
{
	struct refd_oid oid;
	char *hex = tmp_output("%s", command);

	ck_assert_int_eq(refd_oid_parse(hex, REFD_FORMAT_SHA1, &oid), 0);
	free(hex);
	return oid;
}

static struct reftable_record ref_to(const char *name, uint64_t index,
    const struct refd_oid *oid)
{
	struct reftable_record rec = rh_ref(name, index, 0);

	rec.ref.oid = *oid;
	return rec;
}

/* Adds a table to the stack of the git-dir DIR. */
static void add(const char *dir, uint64_t index,
    const struct reftable_record *records, size_t nr)
{
	struct rh_bytes table =
	    rh_table(REFD_FORMAT_SHA1, index, index, records, nr);
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/%s/reftable", tmp_root, dir);
	fd = open(path, O_RDONLY | O_DIRECTORY);
	ck_assert_int_ge(fd, 0);
	rh_add(&sys_kernel, fd, &table, index, index, 1);
	close(fd);
	rh_free(&table);
}

/* r has main, a symbolic ref, and the log of main, in two tables. */
static void setup(void)
{
	struct reftable_record first[3];

	tmp_setup();
	vh_reset();
	tmp_run("git config --global user.name a &&"
		"git config --global user.email a@b && git init -q --bare r &&"
		"cd r && git config core.repositoryFormatVersion 1 &&"
		"rm -r refs/heads && echo x >refs/heads && mkdir reftable");
	commit = made("cd r && git -c core.repositoryFormatVersion=0 "
		      "commit-tree $(git hash-object -wt tree /dev/null) "
		      "</dev/null");
	tree = made("cd r && git hash-object -wt tree /dev/null");
	tmp_run("cd r && git config extensions.refStorage reftable &&"
		"echo 'ref: refs/heads/.invalid' >HEAD");
	first[0] = rh_symref("HEAD", 1, "refs/heads/main");
	first[1] = ref_to("refs/heads/main", 1, &commit);
	first[2] = rh_log("refs/heads/main", 1, 0, 0, "m\n");
	first[2].log.to = commit;
	add("r", 1, first, 3);
	first[0] = ref_to("refs/heads/b", 2, &commit);
	first[1] = ref_to("refs/trees/t", 2, &tree);
	add("r", 2, first, 2);
}

CASE(.setup = setup, .teardown = tmp_teardown, .seconds = 120);

TEST(nothing)
{
	FINDS(0);
	/* The files of refs do not count. */
	tmp_put("r/packed-refs", "nonsense\n");
	tmp_put("r/refs/x", "nonsense\n");
	FINDS(0);
}

/* As git and JGit leave behind: the place in the list decides. */
TEST(overlapping_tables)
{
	struct reftable_record rec = ref_to("refs/heads/b", 1, &commit);
	struct rh_bytes table = rh_table(REFD_FORMAT_SHA1, 1, 1, &rec, 1);
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/r/reftable", tmp_root);
	fd = open(path, O_RDONLY | O_DIRECTORY);
	rh_add(&sys_kernel, fd, &table, 1, 1, 9);
	close(fd);
	rh_free(&table);
	FINDS(0);
}

TEST(missing_parts)
{
	tmp_run("cd r && mv " TABLE(1) " t");
	FINDS(1);
	HAS("reftable-damaged " TABLE(1), "the table is missing");
	tmp_run("cd r && mv t " TABLE(1) " && mv reftable/tables.list t");
	FINDS(1);
	HAS("reftable-list reftable/tables.list", "No such file");
	tmp_run("cd r && mv reftable d");
	FINDS(1);
	HAS("reftable-damaged reftable/tables.list", "the directory");
}

TEST(damaged_tables)
{
	tmp_run("cd r && cp -r reftable d && : >" TABLE(1));
	FINDS(1);
	HAS("reftable-damaged " TABLE(1), "the file is empty");
	tmp_run("cd r && cp d/* reftable && "
		"printf x | dd of=" TABLE(1) " bs=1 seek=35 conv=notrunc "
					     "status=none");
	FINDS(1);
	HAS("reftable-damaged " TABLE(1), "");
	tmp_run("cd r && cp d/* reftable && "
		"printf x | dd of=" TABLE(2) " bs=1 seek=10 conv=notrunc "
					     "status=none");
	FINDS(1);
	HAS("reftable-damaged " TABLE(2), "least update index");
	tmp_run("cd r && cp d/* reftable && cat d/tables.list "
		">>reftable/tables.list");
	FINDS(1);
	HAS("reftable-list reftable/tables.list", "a table is listed twice");
}

static void lose_footer(const char *table, bool as_zeroes)
{
	tmp_run("cd r && n=$(($(stat -c %%s %s) - 68)) && truncate -s $n %s "
		"%s truncate -s $((n + 68)) %s",
	    table, table, as_zeroes ? "&&" : "|| :", table);
}

TEST(lost_footers, .times = 2)
{
	tmp_run("cp -r r before");
	lose_footer(TABLE(1), _i == 0);
	FINDS(1);
	HAS("reftable-footer " TABLE(1), "entries of logs may be missing");
	/* The other table has only refs. */
	lose_footer(TABLE(2), _i == 0);
	ck_assert_uint_eq(vh_repair("r"), 1);
	ck_assert(vh_did("reftable-footer " TABLE(1), "perhaps refs"));
	tmp_run("git config -f r/config core.fsync reference");
	FINDS(1);
	HAS("reftable-footer " TABLE(2), "all blocks are there");
	tmp_run("cd r && : >reftable/tables.list.lock");
	ck_assert_uint_eq(vh_repair("r"), 1);
	ck_assert(vh_did("reftable-footer " TABLE(2), "has the lock"));
	tmp_run("cd r && rm reftable/tables.list.lock");
	vh_repair("r");
	ck_assert_msg(vh_has("reftable-footer " TABLE(2) " repaired", ""), "%s",
	    vh_lines());
	FINDS(0);
	tmp_run("cd r && test $(ls reftable | wc -l) = 3 && "
		"cat $(sed s,^,reftable/, reftable/tables.list) >../is && "
		"cd ../before && "
		"cat $(sed s,^,reftable/, reftable/tables.list) >../was && "
		"cmp ../was ../is");
}

static unsigned long calls_left;

/* After a kill nothing changes any more. */
static bool is_killed(void)
{
	if (calls_left > 0)
		calls_left--;
	return calls_left == 0;
}

static int killed_openat(const struct sys *sys, int dirfd, const char *path,
    int flags, mode_t mode)
{
	if ((flags & O_CREAT) != 0 && is_killed())
		return -EIO;
	return sys_kernel.openat(sys, dirfd, path, flags, mode);
}

static int killed_write(const struct sys *sys, int fd, const void *buf,
    size_t len)
{
	return is_killed() ? -EIO : sys_kernel.write_all(sys, fd, buf, len);
}

static int killed_fsync(const struct sys *sys, int fd)
{
	return is_killed() ? -EIO : sys_kernel.fsync(sys, fd);
}

static int killed_rename(const struct sys *sys, int from_dir, const char *from,
    int to_dir, const char *to)
{
	return is_killed() ?
	    -EIO :
	    sys_kernel.renameat(sys, from_dir, from, to_dir, to);
}

static int killed_unlink(const struct sys *sys, int dirfd, const char *path)
{
	return is_killed() ? -EIO : sys_kernel.unlinkat(sys, dirfd, path);
}

/* A killed repair leaves git's lock, and at most one file that no list names
 * and that the first batch removes (test_stack_fold: unlisted_tables). The next
 * repair succeeds. */
TEST(a_killed_repair)
{
	struct sys killed = *vh_opt.sys;
	const struct sys *calls = vh_opt.sys;
	unsigned long n = 0, left;

	killed.openat = killed_openat;
	killed.write_all = killed_write;
	killed.fsync = killed_fsync;
	killed.renameat = killed_rename;
	killed.unlinkat = killed_unlink;
	lose_footer(TABLE(1), true);
	tmp_run("cp -r r before");
	do {
		tmp_run("rm -r r && cp -r before r");
		calls_left = ++n;
		vh_opt.sys = &killed;
		vh_repair("r");
		vh_opt.sys = calls;
		left = calls_left;
		tmp_run("rm -f r/reftable/tables.list.lock");
		vh_repair("r");
		FINDS(0);
		tmp_run(
		    "cd r/reftable && ls | grep -vxF -f tables.list | "
		    "grep -vx tables.list >../left || : && "
		    "test $(wc -l <../left) -le 1 && "
		    "! grep -vE '^0x.*-0x0{11}1-[0-9a-f]{8}[.]ref$' ../left");
	} while (left == 0);
	ck_assert_uint_gt(n, 8);
}

/* Git leaves an empty list, and no table, when every ref is deleted. */
TEST(empty_lists)
{
	tmp_run("cd r && : >reftable/tables.list");
	FINDS(1);
	HAS("reftable-list reftable/tables.list", "tables are there");
	tmp_run("cd r && rm reftable/*.ref");
	FINDS(0);
}

/* By an editor, or by a copy that ended early. No table is lost. */
TEST(edited_lists)
{
	static const char *const edits[] = { "sed -i 's/$/\\r/'", "sed -i 1G",
		"truncate -s -1", "truncate -s -5" };
	size_t i;

	tmp_run("cd r && cp reftable/tables.list t");
	for (i = 0; i < 4; i++) {
		tmp_run("cd r && cp t reftable/tables.list && "
			"%s reftable/tables.list",
		    edits[i]);
		FINDS(1);
		HAS("reftable-list reftable/tables.list", "line");
	}
	tmp_run("cd r && cp t reftable/tables.list");
	FINDS(0);
}

TEST(another_hash)
{
	struct rh_bytes table = rh_table(REFD_FORMAT_SHA256, 1, 1, NULL, 0);

	tmp_put_bytes("r/" TABLE(1), table.data, table.len);
	FINDS(1);
	HAS("reftable-damaged " TABLE(1), "another object format");
	rh_free(&table);
}

TEST(wrong_refs)
{
	const struct refd_oid null = { { 0 } };
	struct reftable_record records[] = {
		ref_to("refs/a b", 3, &commit),
		ref_to("refs/heads/a", 3, &tree),
		rh_ref("refs/heads/a-1", 3, 0x77),
		ref_to("refs/heads/a/x", 3, &commit),
		ref_to("refs/heads/a/x/y", 3, &null),
		rh_deleted("refs/heads/main", 3),
		rh_symref("refs/s", 3, "refs/heads/.."),
		rh_log("refs/gone", 3, 0, 1, "m\n"),
		rh_log("refs/heads/b", 3, 0, 1, "m\n"),
		rh_log("refs/marked", 3, 0, 0, ""),
	};

	add("r", 3, records, 10);
	FINDS(11);
	HAS("ref-name refs/a b", "does not accept");
	HAS("object-not-commit refs/heads/a", "not a commit");
	HAS("object-missing refs/heads/a-1", "7777");
	HAS("ref-conflict refs/heads/a/x", "'refs/heads/a'");
	HAS("ref-conflict refs/heads/a/x/y", "'refs/heads/a'");
	HAS("ref-conflict refs/heads/a/x/y", "'refs/heads/a/x'");
	HAS("ref-broken refs/heads/a/x/y", "null id");
	HAS("ref-broken refs/s", "refs/heads/..");
	HAS("log-orphan refs/gone", "no such ref");
	HAS("log-orphan refs/heads/main", "no such ref");
	HAS("log-disagrees refs/heads/b", "its log ends with 0101");
	/* Nothing is written. */
	tmp_run("cp -r r before");
	ck_assert_uint_eq(vh_repair("r"), 11);
	ck_assert(vh_did("ref-broken refs/s", "repairs only footers"));
	tmp_run("diff -r r before");
}

TEST(worktrees)
{
	const struct reftable_record head = rh_symref("HEAD", 1, "refs/x..");

	tmp_run("mkdir -p r/worktrees/w/reftable && cd r/worktrees/w && "
		"echo ../.. >commondir && echo /w/.git >gitdir && "
		"echo 'ref: refs/heads/.invalid' >HEAD");
	FINDS(1);
	HAS("reftable-list worktrees/w/reftable/tables.list", "No such");
	add("r/worktrees/w", 1, &head, 1);
	FINDS(1);
	HAS("ref-broken worktrees/w/HEAD", "refs/x..");
}

TEST(an_old_lock)
{
	tmp_put("r/reftable/tables.list.lock", "");
	FINDS(0);
	vh_ahead_ns = 61 * INT64_C(1000000000);
	FINDS(1);
	HAS("lock-stale reftable/tables.list.lock", "old");
}

static void mend(void)
{
	tmp_run("cd r && test ! -e t || mv t " TABLE(1));
}

/* A finding that is gone at a second look does not count. */
TEST(a_second_look)
{
	tmp_run("cd r && mv " TABLE(1) " t");
	vh_meanwhile = mend;
	FINDS(0);
}
