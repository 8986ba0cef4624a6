/*
 * Proves that refd-group finds damaged packs and loose objects of a repository
 * and missing objects of its refs, and nothing in a repository that is whole,
 * and that a repair gets all objects from another repository and keeps what was
 * damaged. A check ends after six hours. Git is real.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/group/service/whole.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

static char *root, *source, *dir;
static struct fetch_site site;
static struct fetch_wish wish;
static struct whole whole;
static struct text why;

/* Each git seems to take so long. */
static long git_hours;
static unsigned nr_ran; /* gits that have ended */

/* Instead of the function of libc. The hours are over when refd knows that git
 * has ended: a git that still ends would be killed for being late. */
pid_t waitpid(pid_t pid, int *status, int options)
{
	const pid_t ended =
	    (pid_t)syscall(SYS_wait4, pid, status, options, NULL);

	nr_ran += ended > 0;
	return ended;
}

/* Instead of the function of libc. */
int clock_gettime(clockid_t id, struct timespec *ts)
{
	long r = syscall(SYS_clock_gettime, id, ts);

	ts->tv_sec += nr_ran * git_hours * 3600;
	return (int)r;
}

static void slow_git(long hours)
{
	git_hours = hours;
	nr_ran = 0;
}

/* dst/r.git: a copy of src/r.git, with one pack; its name is in the file pack.
 */
static void make(const char *format)
{
	tmp_run("git init -q --bare --object-format=%s src/r.git && "
		"git init -q -b main --object-format=%s w && cd w && "
		"for i in 1 2 3 4; do seq $i 999 >f && git add f && "
		"git commit -qm $i || exit 1; done && "
		"git push -q ../src/r.git HEAD:refs/heads/main && cd .. && "
		"git -C src/r.git repack -adq && mkdir dst && "
		"cp -a src/r.git dst && basename -s .pack "
		"dst/r.git/objects/pack/*.pack >pack",
	    format, format);
	if (!strcmp(format, "sha256"))
		wish.format = REFD_FORMAT_SHA256;
}

static void setup(void)
{
	tmp_setup();
	root = xasprintf("%s/dst", tmp_root);
	source = xasprintf("%s/src", tmp_root);
	dir = xasprintf("%s/git", tmp_root);
	fetch_dirs_make(dir);
	site = (struct fetch_site){ .roots = &root, .nr_roots = 1, .dir = dir };
	wish = (struct fetch_wish){ .source_path = "r.git",
		.path = "r.git",
		.cancel = -1 };
	whole = (struct whole){ .site = &site, .wish = &wish };
}

static void teardown(void)
{
	git_hours = 0;
	free(root);
	free(source);
	free(dir);
	text_done(&why);
	tmp_teardown();
}

static enum whole_state check(void)
{
	char *main = tmp_output("git -C src/r.git rev-parse main");
	enum whole_state state;

	text_clear(&whole.needed);
	text_addf(&whole.needed, "%s%s", main, strchr(main, '\n') ? "" : "\n");
	free(main);
	ck_assert_msg(whole_open(&whole, root, &why), "%s", why.data);
	text_clear(&whole.heads);
	fetch_repo_values(whole.repo.fd, &site, &wish, &whole.heads);
	state = whole_check(&whole, &why);
	fetch_repo_close(&whole.repo);
	return state;
}

static void assert_state(enum whole_state wanted)
{
	const enum whole_state got = check();

	ck_assert_msg(got == wanted, "%d, not %d: %s %s", got, wanted,
	    whole.said.data, why.data);
}

static bool repair(void)
{
	struct text wanted = { 0 };
	char *main = tmp_output("git -C src/r.git rev-parse main");
	bool is_done;

	ck_assert_msg(whole_open(&whole, root, &why), "%s", why.data);
	text_addf(&wanted, "%s%s", main, strchr(main, '\n') ? "" : "\n");
	is_done = whole_repair(&whole, source, &wanted, &why);
	fetch_repo_close(&whole.repo);
	text_done(&wanted);
	free(main);
	return is_done;
}

static void assert_repaired(void)
{
	assert_state(WHOLE_DAMAGED);
	ck_assert_msg(repair(), "%s", why.data);
	assert_state(WHOLE);
	tmp_run("git -C dst/r.git fsck --full --strict");
	ck_assert(!tmp_exists("dst/r.git/refd/fetched"));
	whole_done(&whole);
}

/* The number of files with NAME, of a shell, in refd/damaged/. */
static void assert_kept(const char *name, int nr)
{
	tmp_run("test $(ls dst/r.git/refd/damaged | grep -c -- %s) = %d", name,
	    nr);
}

/* Writes into the middle of FILE. */
static void overwrite(const char *file)
{
	tmp_run("f=%s && chmod u+w $f && "
		"printf damaged | dd of=$f bs=1 conv=notrunc status=none "
		"seek=$(($(stat -c %%s $f) / 2))",
	    file);
}

#define PACK "dst/r.git/objects/pack/$(cat pack)"

CASE(.setup = setup, .teardown = teardown, .seconds = 120);

TEST(a_damaged_file_is_replaced, .times = 4)
{
	static const char *const files[] = { PACK ".pack", PACK ".idx" };

	make(_i < 2 ? "sha1" : "sha256");
	assert_state(WHOLE);
	overwrite(files[_i % 2]);
	assert_repaired();
	assert_kept("pack$", 1);
	assert_kept("idx$", 1);
}

/* A node has a pack for each fetch until git gc, and one git for each of them
 * would take longer than a node may stay away. */
TEST(sound_packs_need_no_process)
{
	make("sha1");
	tmp_run("cd dst/r.git && for i in $(seq 40); do "
		"echo $i | git hash-object -w --stdin | "
		"git pack-objects -q objects/pack/pack || exit; done >/dev/null"
		" && git prune-packed -q");
	overwrite(PACK ".pack");
	nr_ran = 0;
	assert_repaired();
	ck_assert_uint_lt(nr_ran, 40);
	assert_kept("pack$", 1);
}

TEST(a_damaged_loose_object_is_replaced, .times = 2)
{
	make(_i ? "sha256" : "sha1");
	tmp_run("mv " PACK ".pack p && rm -f " PACK ".* && "
		"git -C dst/r.git unpack-objects -q <p && "
		"git -C dst/r.git rev-parse main:f | "
		"sed 's|^..|dst/r.git/objects/&/|' >loose");
	assert_state(WHOLE);
	overwrite("$(cat loose)");
	assert_repaired();
	assert_kept("'^[0-9]*-[0-9a-f]*$'", 1);
}

TEST(missing_objects_come)
{
	make("sha1");
	tmp_run("rm -f " PACK ".*");
	assert_repaired();
	assert_kept("pack", 0);
}

/* It names packs that a repair moves. */
TEST(an_index_of_all_packs_goes)
{
	make("sha1");
	tmp_run("git -C dst/r.git multi-pack-index write");
	overwrite(PACK ".pack");
	assert_repaired();
	assert_kept("multi-pack-index$", 1);
}

/* git has taken these objects, and another node would give the same. */
TEST(strange_objects_are_whole)
{
	make("sha1");
	tmp_run("git -C dst/r.git cat-file commit main | "
		"sed 's/com> .*/com/' | git -C dst/r.git hash-object -w "
		"--literally -t commit --stdin");
	ck_assert_int_ne(tmp_status("git -C dst/r.git fsck"), 0);
	assert_state(WHOLE);
	whole_done(&whole);
}

/* A push can bring these: malformed ones that git calls errors, alone or in a
 * pack, and a tree that calls one of them a file. Then git says "missing" or
 * "broken link", too. */
TEST(malformed_objects_are_no_damage, .times = 4)
{
	make(_i % 2 ? "sha256" : "sha1");
	tmp_run("cd dst/r.git && printf 'bogus\\n' >text && "
		"git hash-object --literally -t commit text >../bogus && "
		"t=$(printf '100644 blob %%s\\tx\\n' $(cat ../bogus) | "
		"git mktree --missing) && "
		"git hash-object -w --literally -t commit text && "
		"c=$(git commit-tree -m x $t) && git update-ref refs/heads/x "
		"$c && git cat-file -e $(cat ../bogus)");
	if (_i >= 2)
		tmp_run("cd dst/r.git && { cat ../bogus && "
			"git rev-parse x x^{tree}; } | git pack-objects -q "
			"objects/pack/pack && git prune-packed");
	ck_assert_int_ne(tmp_status("git -C dst/r.git fsck"), 0);
	assert_state(WHOLE);
	ck_assert_msg(whole.said.len > 0, "git has said nothing");
	whole_done(&whole);
	/* Damage beside them is still found. */
	overwrite(PACK ".pack");
	assert_state(WHOLE_DAMAGED);
	whole_done(&whole);
}

/* A ref in a file replaces its line in packed-refs. */
TEST(a_replaced_value_is_no_damage)
{
	make("sha1");
	tmp_run("cd dst/r.git && git pack-refs --all && sed -i 's|^%s|%s|' "
		"packed-refs && git -C ../../src/r.git rev-parse main "
		">refs/heads/main",
	    "[0-9a-f]* refs/heads/main",
	    "0123456789012345678901234567890123456789 refs/heads/main");
	assert_state(WHOLE);
	ck_assert_msg(whole.said.len > 0, "git has said nothing");
	whole_done(&whole);
}

/* Nothing moves before all objects are there. */
TEST(a_failed_repair_changes_nothing)
{
	make("sha1");
	overwrite(PACK ".pack");
	overwrite("src/r.git/objects/pack/$(cat pack).pack");
	tmp_run("ls dst/r.git/objects/pack >before");
	assert_state(WHOLE_DAMAGED);
	ck_assert(!repair());
	ck_assert_msg(strstr(why.data, "git fetch of all objects") != NULL,
	    "%s", why.data);
	tmp_run("ls dst/r.git/objects/pack | cmp - before");
	ck_assert(!tmp_exists("dst/r.git/refd/fetched"));
	whole_done(&whole);
}

/* Fsck, the packs and the second fsck have six hours together. */
TEST(a_slow_repository_takes_six_hours)
{
	make("sha1");
	overwrite(PACK ".pack");
	ck_assert_msg(whole_open(&whole, root, &why), "%s", why.data);
	slow_git(5);
	/* The first look has found the damage. */
	ck_assert_int_eq(whole_check(&whole, &why), WHOLE_DAMAGED);
	ck_assert_uint_eq(why.len, 0);
	ck_assert_int_eq(nr_ran, 2);
	whole_print(&whole, WHOLE_DAMAGED);
	ck_assert_int_eq(nr_ran, 2);
	whole_done(&whole);
}

/* Nobody has looked whether the complaints of git are damage. */
TEST(a_look_that_is_not_made_proves_nothing)
{
	char *main;

	make("sha1");
	tmp_run("cd dst/r.git && printf 'bogus\n' | git hash-object "
		"--literally -w -t commit --stdin");
	ck_assert_msg(whole_open(&whole, root, &why), "%s", why.data);
	main = tmp_output("git -C src/r.git rev-parse main");
	text_adds(&whole.needed, main);
	free(main);
	slow_git(5);
	ck_assert_int_eq(whole_check(&whole, &why), WHOLE_UNKNOWN);
	ck_assert_int_eq(nr_ran, 2);
	whole_done(&whole);
}

TEST(alternates_are_refused)
{
	make("sha1");
	tmp_run("echo /x >dst/r.git/objects/info/alternates");
	ck_assert(!whole_open(&whole, root, &why));
	ck_assert_msg(strstr(why.data, "info/alternates") != NULL, "%s",
	    why.data);
	whole_done(&whole);
}
