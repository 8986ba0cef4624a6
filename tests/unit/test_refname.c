/*
 * Proves that refnames are accepted and refused as in git: rule by rule on
 * chosen names, and against the installed git on random names that are made of
 * critical pieces. (check-ref-format for the format and for pushed names,
 * update-ref -d for deletions.)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/limits.h"
#include "proto/refname.h"
#include "tests/lib/gen_message.h"
#include "tests/lib/suite.h"

#define NR_RANDOM  2000
#define NR_PUSHED  400
#define NR_DELETED 300
#define COUNT(a)   (sizeof(a) / sizeof((a)[0]))

static const char *const good[] = { "a", "-a", "refs/heads/main", "refs/@",
	"@a", "a@", "a@b", "@@", "a{", "{", "a.b", "a./b", "a.lockb", "lock",
	"a.LOCK", "x/lock", "\xff", "caf\xc3\xa9", "\x80/\x9f", "a\"b", "a$b",
	"#", "refs/heads/a/b/c/d", "HEAD", "a@/{", "(", "!", "a|b", "a.l" };

static const char *const bad[] = { "", "@", "/", "//", "a/", "/a", "a//b", ".",
	"..", ".a", "a/.b", "a..b", "a/..", "../a", "a/./b", "a.", "a/b.",
	"a.lock", ".lock", "a.lock/b", "a/b.lock", "a/.lock/c", "a b", " ",
	"a~", "a^1", "a:b", "a?", "a*", "a[b", "a\\b", "a\tb", "a\nb", "\x01",
	"a\x1f", "\x7f", "a\x7fz", "@{", "a@{b", "a@{0}", "refs/heads/@{u}",
	"refs/heads/..", "refs/heads/\r" };

/* For git, which some tests ask. */
static void setup(void)
{
	setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
	setenv("HOME", "/nonexistent", 1);
	setenv("LC_ALL", "C", 1);
}

CASE(.setup = setup, .seconds = 120);

TEST(test_format)
{
	size_t i;

	for (i = 0; i < COUNT(good); i++)
		ck_assert_msg(refd_refname_format_ok(good[i]), "%s", good[i]);
	for (i = 0; i < COUNT(bad); i++)
		ck_assert_msg(!refd_refname_format_ok(bad[i]), "%s", bad[i]);
}

TEST(test_every_byte)
{
	char name[] = "refs/heads/a?b";
	bool ok;
	int c;

	for (c = 1; c < 256; c++) {
		name[12] = (char)c;
		ok = c > ' ' && c != 0x7f && strchr("~^:?*[\\", c) == NULL;
		ck_assert_msg(refd_refname_format_ok(name) == ok, "%d", c);
	}
}

TEST(test_place)
{
	const char *id = NULL, *bare;
	size_t len = 0;

	ck_assert_int_eq(refd_refname_place("refs/heads/x", &id, &len, &bare),
	    REFD_PLACE_COMMON);
	ck_assert_str_eq(bare, "refs/heads/x");
	ck_assert_int_eq(refd_refname_place("HEAD", &id, &len, &bare),
	    REFD_PLACE_OWN);
	ck_assert_int_eq(refd_refname_place("main-worktree/refs/bisect/x", &id,
			     &len, &bare),
	    REFD_PLACE_MAIN);
	ck_assert_str_eq(bare, "refs/bisect/x");
	ck_assert_int_eq(refd_refname_place("worktrees/w1/HEAD", &id, &len,
			     &bare),
	    REFD_PLACE_LINKED);
	ck_assert_str_eq(bare, "HEAD");
	ck_assert_uint_eq(len, 2);
	ck_assert(memcmp(id, "w1", 2) == 0);
	ck_assert_int_eq(refd_refname_place("worktrees/w1/refs/heads/x", &id,
			     &len, &bare),
	    REFD_PLACE_COMMON);
}

TEST(test_may_write)
{
	static const char *const yes[] = { "refs/heads/main", "refs/stash",
		"refs/a/b", "HEAD", "ORIG_HEAD", "AUTO_MERGE",
		"CHERRY_PICK_HEAD", "BISECT_EXPECTED_REV", "NOTES_MERGE_REF",
		"A-B", "T", "refs/heads/FETCH_HEAD", "main-worktree/HEAD",
		"worktrees/w/HEAD", "worktrees/w/refs/bisect/bad",
		"main-worktree/refs/worktree/x", "foo", "head", "HEAD1", "Head",
		"-a", "caf\xc3\xa9", "x.y", "configs", "Config", "packed",
		"refsx", "index-pack", "a@b" };
	static const char *const no[] = { "", "refs", "refs/", "heads/main",
		"HEAD/", "FETCH_HEAD", "MERGE_HEAD", "refs/heads/a.lock",
		"/refs/x", "refs//x", "refs/../HEAD", "../refs/heads/x", "@",
		".", "..", ".git", "foo.", "foo.lock", "a b", "logs/HEAD",
		"refsx/y", "HEAD.lock", "main-worktree/refs/heads/x",
		"main-worktree/FETCH_HEAD", "main-worktree/HEAD.lock",
		"worktrees/w/refs/heads/x", "worktrees//HEAD",
		"worktrees/../HEAD", "worktrees/./HEAD", "worktrees/w",
		"worktrees/w/", "worktrees/w/config", "worktrees/w/foo" };
	size_t i;

	for (i = 0; i < COUNT(yes); i++)
		ck_assert_msg(refd_refname_may_write(yes[i]), "%s", yes[i]);
	for (i = 0; i < COUNT(no); i++) {
		ck_assert_msg(!refd_refname_may_write(no[i]), "%s", no[i]);
		ck_assert(!refd_refname_is_too_long(no[i]));
	}
	ck_assert(refd_refname_may_write("HEAD"));
}

/* Of all files that git itself puts into a git directory, only names of root
 * refs may be written. */
TEST(test_root)
{
	static const char *const yes[] = { "HEAD", "ORIG_HEAD", "MY-OWN_HEAD",
		"AUTO_MERGE", "BISECT_EXPECTED_REV" };
	static const char *const no[] = { "FETCH_HEAD", "MERGE_HEAD",
		"COMMIT_EDITMSG", "FOO", "my_HEAD", "refs/heads/X_HEAD", "" };
	size_t i;

	for (i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
		ck_assert_msg(refd_refname_is_root(yes[i]), "%s", yes[i]);
	for (i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		ck_assert_msg(!refd_refname_is_root(no[i]), "%s", no[i]);
}

TEST(test_reserved)
{
	static const char *const kept[] = { "config", "config.worktree",
		"description", "index", "index.bak", "packed-refs",
		"packed-refs.new", "shallow", "commondir", "gitdir", "locked",
		"gc.pid", "gc.log", "sharedindex.0123", "refs", "objects",
		"logs", "hooks", "info", "branches", "remotes", "worktrees",
		"modules", "rr-cache", "lfs", "svn", "rebase-merge",
		"rebase-apply", "sequencer", "reftable", "refd",
		"fsmonitor--daemon.ipc", "git-daemon-export-ok" };
	size_t i;

	for (i = 0; i < COUNT(kept); i++) {
		ck_assert_msg(refd_refname_is_reserved(kept[i]), "%s", kept[i]);
		ck_assert_msg(!refd_refname_may_write(kept[i]), "%s", kept[i]);
		ck_assert_msg(!refd_refname_may_delete(kept[i]), "%s", kept[i]);
	}
	ck_assert(!refd_refname_is_reserved("HEAD"));
	ck_assert(!refd_refname_is_reserved("foo"));
	ck_assert(!refd_refname_is_reserved(""));
}

/* Makes a name of "refs/" and components of COMPONENT bytes, LEN long. */
static void make_long(char *name, size_t len, size_t component)
{
	size_t i;

	for (i = 0; i < len; i++)
		name[i] = i > 4 && (i - 4) % (component + 1) == 0 ? '/' : 'x';
	memcpy(name, "refs/", 5);
	name[len] = '\0';
}

static void expect_too_long(size_t len, size_t component, bool too_long)
{
	static char name[REFD_REFNAME_MAX + 2];

	make_long(name, len, component);
	ck_assert_int_eq(refd_refname_is_too_long(name), too_long);
	ck_assert_int_eq(refd_refname_may_write(name), !too_long);
	ck_assert_int_eq(refd_refname_may_delete(name), !too_long);
}

TEST(test_lengths)
{
	expect_too_long(REFD_REFNAME_MAX, 100, false);
	expect_too_long(REFD_REFNAME_MAX + 1, 100, true);
	expect_too_long(5 + 2 * REFD_COMPONENT_MAX + 1, REFD_COMPONENT_MAX,
	    false);
	expect_too_long(5 + 2 * REFD_COMPONENT_MAX + 2, REFD_COMPONENT_MAX + 1,
	    true);
	/* Also the last component. */
	expect_too_long(5 + REFD_COMPONENT_MAX, REFD_REFNAME_MAX, false);
	expect_too_long(5 + REFD_COMPONENT_MAX + 1, REFD_REFNAME_MAX, true);
}

TEST(test_may_delete)
{
	static const char *const yes[] = { "refs/heads/main", "refs/heads/a..b",
		"refs/heads/a b", "refs/heads/~", "refs/x", "refs/heads/@{",
		"refs/heads/a.", "refs/.a", "HEAD", "ORIG_HEAD", "FOO" };
	static const char *const no[] = { "", "refs", "refs/", "refs//",
		"refs/heads/", "refs//a", "refs/..", "refs/../HEAD",
		"refs/a/../b", "refs/a/.", "refs/./a", "refs/heads/main.lock",
		"refs/a.lock/b", "config", "packed-refs", "/etc/passwd",
		"FETCH_HEAD", "MERGE_HEAD", "A-B", "HEAD.lock", "@" };
	size_t i;

	for (i = 0; i < COUNT(yes); i++)
		ck_assert_msg(refd_refname_may_delete(yes[i]), "%s", yes[i]);
	for (i = 0; i < COUNT(no); i++) {
		ck_assert_msg(!refd_refname_may_delete(no[i]), "%s", no[i]);
		ck_assert(!refd_refname_is_too_long(no[i]));
	}
}

TEST(test_may_push)
{
	static const char *const yes[] = { "refs/heads/main", "refs/a/b",
		"refs/for/main/topic", "refs/@/a" };
	static const char *const no[] = { "", "HEAD", "refs/x", "refs/heads",
		"refs/heads/", "refs//x", "refs/heads/../x", "heads/main",
		"refs/heads/a.lock", "refs/heads/a b", "refs/@", "refs/.a/b",
		"refs/heads/x\ny" };
	size_t i;

	for (i = 0; i < COUNT(yes); i++)
		ck_assert_msg(refd_refname_may_push(yes[i]), "%s", yes[i]);
	for (i = 0; i < COUNT(no); i++)
		ck_assert_msg(!refd_refname_may_push(no[i]), "%s", no[i]);
}

TEST(test_may_push_deletion)
{
	static const char *const yes[] = { "refs/heads/main", "refs/x",
		"refs/heads" };
	static const char *const no[] = { "", "HEAD", "refs/", "refs/@",
		"refs/x.lock", "refs/heads/../x", "heads/main" };
	size_t i;

	for (i = 0; i < COUNT(yes); i++)
		ck_assert_msg(refd_refname_may_push_deletion(yes[i]), "%s",
		    yes[i]);
	for (i = 0; i < COUNT(no); i++)
		ck_assert_msg(!refd_refname_may_push_deletion(no[i]), "%s",
		    no[i]);
}

TEST(test_per_worktree)
{
	static const char *const yes[] = { "HEAD", "ORIG_HEAD", "AUTO_MERGE",
		"refs/bisect/bad", "refs/worktree/a", "refs/rewritten/a" };
	static const char *const no[] = { "", "refs/heads/main", "refs/bisect",
		"refs/bisected/a", "refs/heads/HEAD", "refs/worktrees/a",
		"refs/stash" };
	size_t i;

	for (i = 0; i < COUNT(yes); i++)
		ck_assert_msg(refd_refname_is_per_worktree(yes[i]), "%s",
		    yes[i]);
	for (i = 0; i < COUNT(no); i++)
		ck_assert_msg(!refd_refname_is_per_worktree(no[i]), "%s",
		    no[i]);
}

/* ---- against git ---- */

/* Runs a program and returns its exit status. The first SIZE bytes of its
 * standard error go to SAID. */
static int run(const char *const *argv, char *said, size_t size)
{
	int fds[2], status;
	size_t len = 0;
	char rest[256];
	ssize_t n;
	pid_t pid;

	ck_assert_int_eq(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		dup2(fds[1], 2);
		close(fds[0]);
		close(fds[1]);
		execvp(argv[0], (char *const *)argv);
		_exit(127);
	}
	ck_assert_int_gt(pid, 0);
	close(fds[1]);
	while ((n = read(fds[0], rest, sizeof(rest))) > 0) {
		if ((size_t)n > size - 1 - len)
			n = (ssize_t)(size - 1 - len);
		memcpy(said + len, rest, (size_t)n);
		len += (size_t)n;
	}
	said[len] = '\0';
	close(fds[0]);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	ck_assert_int_ne(WEXITSTATUS(status), 127);
	return WEXITSTATUS(status);
}

static bool git_format_ok(const char *name, bool one_level)
{
	const char *argv[] = { "git", "check-ref-format", name, NULL, NULL };
	char said[64];
	int rc;

	if (one_level) {
		argv[2] = "--allow-onelevel";
		argv[3] = name;
	}
	rc = run(argv, said, sizeof(said));
	ck_assert_msg(rc == 0 || rc == 1, "git said %s of %s", said, name);
	return rc == 0;
}

/* A name of a few critical pieces. It never begins with "-", because git would
 * read an option. */
static void random_name(struct gen *g, char *name)
{
	static const char *const pieces[] = { "a", "b", "Z", "/", "/", "/", ".",
		"..", "@", "{", "@{", "}", "~", "^", ":", "?", "*", "[", "]",
		"\\", " ", "\x7f", "\x01", "\n", "\x80", "\xc3\xa9", ".lock",
		"lock", "-", "HEAD", "refs/heads/", "x", "y", "1", "main" };
	static const char *const tame[] = { "a", "b", "/x", "/y", ".c", "@",
		"{", "-", "\xc3\xa9", ".lock", "/" };
	uint32_t i, nr = 1 + gen_below(g, 6);
	/* Half of the names are harmless. Otherwise very few would be valid. */
	bool is_tame = gen_below(g, 2) == 0;

	name[0] = '\0';
	for (i = 0; i < nr; i++)
		strcat(name,
		    is_tame ? tame[gen_below(g, COUNT(tame))] :
			      pieces[gen_below(g, COUNT(pieces))]);
	if (name[0] == '-')
		name[0] = '_';
}

TEST(test_format_like_git)
{
	struct gen g = { 20260801 };
	char name[128];
	size_t valid = 0;
	bool ok;
	int i;

	for (i = 0; i < NR_RANDOM; i++) {
		random_name(&g, name);
		ok = refd_refname_format_ok(name);
		ck_assert_msg(ok == git_format_ok(name, true), "'%s'", name);
		valid += ok;
	}
	/* Both answers must be frequent. */
	ck_assert_uint_gt(valid, NR_RANDOM / 10);
	ck_assert_uint_lt(valid, NR_RANDOM * 9 / 10);
	for (i = 0; i < (int)COUNT(good); i++)
		ck_assert_msg(good[i][0] == '-' || git_format_ok(good[i], true),
		    "'%s'", good[i]);
	for (i = 0; i < (int)COUNT(bad); i++)
		ck_assert_msg(!git_format_ok(bad[i], true), "'%s'", bad[i]);
}

TEST(test_push_like_git)
{
	struct gen g = { 77 };
	char name[160] = "refs/";
	int i;

	for (i = 0; i < NR_PUSHED; i++) {
		random_name(&g, name + 5);
		ck_assert_msg(refd_refname_may_push(name) ==
			git_format_ok(name + 5, false),
		    "'%s'", name);
	}
}

/* Differences on purpose, and cases without a message of git. */
static bool delete_differs(const char *name)
{
	return strstr(name, ".lock/") != NULL ||
	    (strlen(name) >= 5 &&
		strcmp(name + strlen(name) - 5, ".lock") == 0) ||
	    strcmp(name, "FETCH_HEAD") == 0 || strcmp(name, "MERGE_HEAD") == 0;
}

TEST(test_delete_like_git)
{
	static const char *const more[] = { "HEAD2", "FOO", "FOO_BAR", "A-B",
		"config", "refs/heads/a b", "refs/../x", "refs/a/../b",
		"refs/a/", "refs/.a", "refs", "refs/a//b", "refs/a/./b" };
	const char *init[] = { "git", "init", "-q", "--bare", NULL, NULL };
	const char *argv[] = { "git", "--git-dir", NULL, "update-ref", "-d",
		NULL, NULL };
	const char *rm[] = { "rm", "-rf", NULL, NULL };
	char dir[] = "/tmp/test_refname.XXXXXX";
	char name[160], said[512];
	struct gen g = { 4711 };
	const char *prefix;
	int i;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	init[4] = argv[2] = rm[2] = dir;
	argv[5] = name;
	ck_assert_int_eq(run(init, said, sizeof(said)), 0);
	for (i = 0; i < NR_DELETED; i++) {
		prefix = gen_below(&g, 4) == 0 ? "" : "refs/";
		strcpy(name, prefix);
		random_name(&g, name + strlen(prefix));
		if (i < (int)COUNT(more))
			strcpy(name, more[i]);
		if (delete_differs(name))
			continue;
		run(argv, said, sizeof(said));
		ck_assert_msg(refd_refname_may_delete(name) ==
			(strstr(said, "with bad name") == NULL),
		    "'%s': %s", name, said);
	}
	ck_assert_int_eq(run(rm, said, sizeof(said)), 0);
}
