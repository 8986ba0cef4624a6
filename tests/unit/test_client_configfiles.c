/*
 * Proves that configfiles_list() has exactly the entries of "git config -z
 * --list", byte by byte, or leaves the question to git: with every construct of
 * the syntax, every extension of the format, with random files, with all
 * sources in the environment, and with files that are hostile. An ordinary
 * configuration is never left to git.
 *
 * REFD_TEST_LONG: fifty times as many random files.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "client/git/configfiles.h"
#include "client/git/gitconfig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define CASES 1000

#define CONFIG "bare.git/config"
#define BASE   "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"
#define V1     "[core]\n\trepositoryformatversion = 1\n[extensions]\n"

#define COUNT(array) (int)(sizeof(array) / sizeof((array)[0]))

static unsigned seed;
static struct gitdir gd;

static void setup(void)
{
	struct text why = { 0 };

	tmp_setup();
	unsetenv("GIT_CONFIG");
	unsetenv("GIT_CONFIG_GLOBAL");
	unsetenv("GIT_CONFIG_SYSTEM");
	ck_assert_int_eq(fchdir(tmp_fd), 0);
	tmp_run("git init -q --bare bare.git");
	ck_assert(gitdir_find(&gd, "bare.git", &why));
}

static void teardown(void)
{
	gitdir_done(&gd);
	ck_assert_int_eq(chdir("/"), 0);
	tmp_teardown();
}

/* Whether the files were enough. If so, git has the same list. */
static bool is_same(const char *what)
{
	struct text ours = { 0 };
	struct gitconfig git = { 0 };
	size_t own;
	bool enough = configfiles_list(&ours, &gd, &own);

	if (enough) {
		ck_assert_msg(gitconfig_read(&git, gd.path) == 0,
		    "%s: git fails", what);
		ck_assert_msg(ours.len == git.list.len &&
			(!ours.len ||
			    !memcmp(ours.data, git.list.data, ours.len)),
		    "%s: git has other entries", what);
		ck_assert_msg(git.own_end ?
			own == git.own && ours.len == git.own_end :
			own == ours.len,
		    "%s: git has other entries of the repository", what);
	}
	text_done(&ours);
	gitconfig_done(&git);
	return enough;
}

/* git's messages about malformed files. */
static void be_quiet(void)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	ck_assert_int_ge(dup2(null, 2), 0);
	close(null);
}

/* ---- syntax ---- */

static const char *const certain[] = {
	"",
	"\xef\xbb\xbf[core]\r\n\tbare\r\n",
	"[a] b = c [d]\n[e]f=g;h\n[i]#j\nk=l#m",
	"[A.B.C]\nD = E\n[A \"B.c\"] D = E\n[ \"x\"] y\n[.]z = 1\n",
	"[a \"b\\\"c\\\\d\\e\"]\nf\n[a\t\"\"]\ng=\n",
	"k = before the first section\n",
	"[a]\nb = \"c # d\" ; e\nb = c\\\\d\\\"e\\nf\\b\n",
	"[a]\nb = c \\\n  d \\\r\n e\nb = \\\n\nb = x\\",
	"[a]\nb =   c  d  \" \"  \nb = \"\"\nb = \"\" c \"\"\n",
	"[a]\nb\nb = 1\nb =\n  b  =  2\n",
	"[a]\nb = \xff\xc3\x01\x7f\n",
	"[includes]\n\tpath = other\n",
	"[core]\nrepositoryFormatVersion = 1\n",
	"\n\n# only a comment\n; and another",
	"[A.B]\nKey-9=Value\n",
	"[a \"Sub.Case\\\"d\\\\\"]\nB = c\n",
	"[a]\nb\nc =\nd = \"\"\ne\n",
	"[a]\nb = inner  blanks  stay # not this\n",
	"[a]\nb = \"  kept  \" ; gone\n",
	"[a]\nb = \"a # b ; c\"\n",
	"[a]\nb = x\"y z\"w\n",
	"[a]\n  # comment\n\n  ; comment\nb=c",
	"[a]\n[b]\n[b \"c\"]\n[b]\nd=1\n",
	"[a]\nb = \\",
	/* Extensions. */
	V1 "objectFormat = sha256\n",
	V1 "objectFormat = sha256\nobjectFormat = sha1\n",
	"[extensions]\nobjectFormat = sha1\n" V1,
	"[extensions]\nObjectFormat = sha1\n[CORE]\nrepositoryformatversion=1",
	V1 "noop\nnoop = x\nnoop-v1 = \npreciousObjects\n",
	V1 "partialClone = origin\n",
	BASE "[extensions]\npartialClone = \npreciousObjects = true\n",
	V1 "worktreeConfig = true\n",
	BASE "[extensions]\n\tworktreeConfig\n[core]\nbare\n",
	V1 "worktreeConfig = true\nworktreeConfig = false\n",
	BASE "[extensions]\nunheardOf = 1\n[extensions \"a.b\"]\nc = d\n",
};

/* git fails on these, so refd must not take them either. */
static const char *const malformed[] = {
	"[a\nb = c\n",
	"[a] = b\n",
	"[a]\n= b\n",
	"[a]\nb c\n",
	"[a]\nb_c = d\n",
	"[a]\n9b = d\n",
	"[a]\nb = \"open\n",
	"[a]\nb = \"open",
	"[a]\nb = \\q\n",
	"[a \"b]\nc = d\n",
	"[a \"b\\\n\"]\nc = d\n",
	"[a b]\nc = d\n",
	"[a \"b\" ]\nc = d\n",
	"[a",
	"[",
	"garbage\x80\n",
};

/* Malformed, or more than the file decides. */
static const char *const gits[] = {
	"\xef\xbb[core]\n",
	"[a]\nb1-c = d\n-e = f\n",
	"[a]\nb\rc = d\n",
	"[a]\nb # no value\n",
	"[a \"b\n\"]\n",
	"[]\n\ta = b\n",
	"[a]\nb = c\td\n",
	"[a]\nb = \"c\\td\"\n",
	"[a]\nb = c\rd\n",
	"[include]\n\tpath = other\n",
	"[core]\nrepositoryFormatVersion = 99\n",
	"[core]\nrepositoryFormatVersion\n",
	"[core]\nbare = maybe\n",
	"[core]\nworktree = nowhere\n",
	/* Extensions: git may end, or print something else. */
	"[extensions]\nworktreeConfig = true\n",
	V1 "objectFormat = md5\n",
	V1 "objectFormat\n",
	BASE "[extensions]\nobjectFormat = sha1\n",
	V1 "objectFormat = sha1\n[core]\nrepositoryFormatVersion = 0\n",
	BASE "[extensions]\nnoop-v1 = 1\n",
	V1 "unheardOf = 1\n",
	V1 "partialClone\n",
	V1 "worktreeConfig = yes\n",
	V1 "preciousObjects = 1\n",
	V1 "refStorage = files:///elsewhere\n",
	V1 "compatObjectFormat = sha256\n",
	"[extensions]\nunheardOf = 1\n",
};

CASE(.setup = setup, .teardown = teardown,
    .seconds = getenv("REFD_TEST_LONG") ? 3600 : 120);

TEST(test_certain, .times = COUNT(certain))
{
	tmp_put(CONFIG, certain[_i]);
	ck_assert_msg(is_same(certain[_i]), "%s", certain[_i]);
}

TEST(test_malformed, .times = COUNT(malformed))
{
	tmp_put(CONFIG, malformed[_i]);
	ck_assert_msg(!is_same(malformed[_i]), "%s", malformed[_i]);
	ck_assert_int_ne(tmp_status("git config -f " CONFIG " --list"), 0);
}

TEST(test_gits, .times = COUNT(gits))
{
	tmp_put(CONFIG, gits[_i]);
	ck_assert_msg(!is_same(gits[_i]), "%s", gits[_i]);
}

TEST(test_nul)
{
	static const char file[] = "[a]\nb = c\0d\n";

	tmp_put_bytes(CONFIG, file, sizeof(file) - 1);
	ck_assert(!is_same("NUL"));
}

/* ---- extensions of the format ---- */

/* Git before 2.45 would print nothing. */
TEST(test_reftable)
{
	struct gitconfig config = { 0 };

	tmp_put(CONFIG, V1 "refStorage = reftable\n[a]\n\tb = c\n");
	ck_assert_int_eq(gitconfig_try(&config, &gd), 0);
	ck_assert(gitconfig_is_reftable(&config));
	ck_assert_str_eq(gitconfig_get(&config, "a.b"), "c");
	gitconfig_done(&config);
}

/* Git ignores extensions in other files, and prints them. */
TEST(test_extensions_elsewhere)
{
	struct gitconfig config = { 0 };

	tmp_put(CONFIG, V1 "objectFormat = sha256\nworktreeConfig = true\n");
	ck_assert(is_same("no config.worktree"));
	tmp_put("bare.git/config.worktree", "[a]\n\tb = worktree\n");
	ck_assert(is_same("config.worktree"));
	ck_assert_int_eq(gitconfig_try(&config, &gd), 0);
	ck_assert_str_eq(gitconfig_get(&config, "a.b"), "worktree");
	ck_assert_int_eq(gitconfig_object_format(&config, &gd),
	    REFD_FORMAT_SHA256);
	gitconfig_done(&config);
	tmp_put("bare.git/config.worktree",
	    "[extensions]\nobjectFormat = sha1\n");
	ck_assert(!is_same("an extension in config.worktree"));
	tmp_run("rm bare.git/config.worktree && mkfifo "
		"bare.git/config.worktree");
	ck_assert(!is_same("a FIFO"));
	tmp_run("rm bare.git/config.worktree");
	tmp_put(".gitconfig", "[extensions]\nobjectFormat = sha1\n");
	ck_assert(!is_same("an extension of the user"));
	ck_assert_int_eq(gitconfig_try(&config, &gd), 0);
	ck_assert_int_eq(gitconfig_object_format(&config, &gd),
	    REFD_FORMAT_SHA256);
	gitconfig_done(&config);
}

/* A linked worktree has a config.worktree of its own. */
TEST(test_linked_worktree)
{
	struct text why = { 0 };

	tmp_run("git init -q w && cd w && git -c user.name=a -c user.email=b "
		"commit -q --allow-empty -m m && git worktree add -q ../linked "
		"&& git config extensions.worktreeConfig true && "
		"git config --worktree a.b main && cd ../linked && "
		"git config --worktree a.b linked");
	gitdir_done(&gd);
	ck_assert(gitdir_find(&gd, "w/.git", &why));
	ck_assert(is_same("the main worktree"));
	gitdir_done(&gd);
	ck_assert(gitdir_find(&gd, "w/.git/worktrees/linked", &why));
	ck_assert(is_same("a linked worktree"));
	text_done(&why);
}

/* ---- random files ---- */

static unsigned pick(unsigned n)
{
	seed = seed * 1103515245u + 12345u;
	return (seed >> 12) % n;
}

/* Mostly from the start of the list: the rest is malformed or odd. */
#define PICK(words, usual) words[pick(10) ? pick(usual) : pick(COUNT(words))]

static void add_section(struct text *t)
{
	static const char *const sections[] = { "[a]", "[A.b-1.C]", "[.]",
		"[receive]", "[hook \"A.b\"]", "[a \"\"]", "[b  \"c\\\"]\\d\"]",
		"[ \"x\"]", "[url \"ssh://h/\xc3\xa9#;\"]", "[]", "[x\"y\"]",
		"[a \"b]\n", "[i\r\n\"x\"]", "[ a]", "[a ]" };

	text_adds(t, PICK(sections, 9));
}

static void add_value(struct text *t)
{
	static const char *const parts[] = { "x", "1k", " ", "  ", "a b",
		"\"c # d\"", "/s/x y.sock", "adm!:refs", "\\\"", "\\\\", "\\n",
		"\\b", "\\\n", "\\\r\n", "=", "[z]", "\xc3\xa9 ", "\"  \"",
		"\"\"", "\x01", "#", ";", "\"", "\\t", "\t", "\r", "\\q" };
	unsigned n = pick(6);

	while (n--)
		text_adds(t, PICK(parts, 20));
}

static void add_line(struct text *t)
{
	static const char *const keys[] = { "b", "Name", "a1-B", "k-", "\tp",
		"  q", "procReceiveRefs", "1x", "-y", "z_", "include.path" };
	static const char *const signs[] = { " = ", "=", "\t=\t", "= ", "", " ",
		" # " };
	static const char *const ends[] = { "\n", "\n", "\r\n", "\n\n", " \n",
		" ; c\n", "#c\n", "\t\n", "", "\r" };
	static const char *const rests[] = { "# comment\n", "; \"c\r\n", "\n",
		" \t\n", "\r\n" };

	switch (pick(8)) {
	case 0:
	case 1:
		add_section(t);
		text_adds(t, PICK(ends, 8));
		break;
	case 2:
		text_adds(t, PICK(rests, COUNT(rests)));
		break;
	case 3:
		text_adds(t, PICK(keys, 7));
		text_adds(t, PICK(ends, 5));
		break;
	default:
		text_adds(t, PICK(keys, 7));
		text_adds(t, PICK(signs, 4));
		add_value(t);
		text_adds(t, PICK(ends, 8));
	}
}

/* Replaces a byte, in a quarter of the files. */
static void spoil(struct text *t)
{
	static const char bytes[] = "[]\"\\=#; \t\r\n\0\xef\xbb\xbf\x80"
				    "aZ1.-_";

	if (t->len && !pick(4))
		t->data[pick((unsigned)t->len)] =
		    bytes[pick(sizeof(bytes) - 1)];
}

static void put_random(const char *path, const char *begin, unsigned lines)
{
	struct text t = { 0 };

	text_adds(&t, pick(16) ? begin : "\xef\xbb\xbf");
	while (lines--)
		add_line(&t);
	spoil(&t);
	tmp_put_bytes(path, t.data, t.len);
	text_done(&t);
}

TEST(test_random)
{
	static const char *const begins[] = { BASE, "",
		V1 "objectFormat = sha256\nworktreeConfig = true\n",
		BASE "[extensions]\nworktreeConfig\n",
		V1 "worktreeConfig = perhaps\n", V1 "unheardOf = x\n" };
	unsigned cases = CASES, enough = 0, i;
	char name[40];

	if (getenv("REFD_TEST_LONG"))
		cases *= 50;

	be_quiet();
	for (i = 0; i < cases; i++) {
		seed = i * 2654435761u;
		put_random(".gitconfig", "", pick(4) ? 0 : pick(4));
		put_random(".config/git/config", "", pick(4) ? 0 : pick(4));
		put_random(CONFIG, PICK(begins, 4), pick(9));
		put_random("bare.git/config.worktree", "", pick(4));
		snprintf(name, sizeof(name), "random files %u", i);
		enough += is_same(name);
	}
	/* Otherwise nothing is compared. */
	ck_assert_uint_gt(enough, cases / 4);
}

/* ---- files ---- */

TEST(test_order)
{
	struct gitconfig config = { 0 };

	tmp_put(".gitconfig", "[a]\n\tb = user\n");
	tmp_put(".config/git/config", "[a]\n\tb = xdg\n");
	tmp_put("x/git/config", "[a]\n\tb = elsewhere\n");
	tmp_run("git -C bare.git config a.b repository");
	ck_assert(is_same("all files"));
	setenv("XDG_CONFIG_HOME", tmp_root, 1);
	ck_assert(is_same("no XDG file"));
	tmp_put("git/config", "[a]\n\tb = \"in XDG\"\n");
	ck_assert(is_same("XDG_CONFIG_HOME"));
	setenv("XDG_CONFIG_HOME", "x", 1);
	ck_assert(!is_same("a relative XDG_CONFIG_HOME"));
	setenv("XDG_CONFIG_HOME", "", 1);
	ck_assert(is_same("an empty XDG_CONFIG_HOME"));
	gitconfig_load(&config, &gd);
	ck_assert_str_eq(gitconfig_get(&config, "a.b"), "repository");
	gitconfig_done(&config);
	setenv("HOME", ".", 1);
	ck_assert(!is_same("a relative HOME"));
	unsetenv("HOME");
	ck_assert(is_same("no HOME"));
	tmp_run("rm bare.git/config");
	ck_assert(is_same("no config"));
}

/* Each repository reads its own record of refd enable, and no process is needed
 * for it. Elsewhere, and for other files, git is asked. */
TEST(test_record)
{
	struct gitconfig config = { 0 };

	tmp_run("cp bare.git/config was && "
		"git config -f bare.git/refd.gitconfig x.y included");
	tmp_run("printf '[includeIf \"gitdir:/\"]\npath = refd.gitconfig\n' | "
		"cat - was >bare.git/config");
	ck_assert(is_same("a record"));
	gitconfig_load(&config, &gd);
	ck_assert_str_eq(gitconfig_get(&config, "x.y"), "included");
	ck_assert(!gitconfig_has_outside(&config, "x.y", "included"));
	gitconfig_done(&config);
	tmp_run("git -C bare.git config x.y mine");
	ck_assert(is_same("a record that is overruled"));
	tmp_run("rm bare.git/refd.gitconfig");
	ck_assert(is_same("no record"));
	tmp_run("mkfifo bare.git/refd.gitconfig");
	ck_assert(!configfiles_list(&config.list, &gd, &config.own));
	gitconfig_done(&config);
	tmp_run("rm bare.git/refd.gitconfig && cp was bare.git/config && "
		"printf '[includeIf \"gitdir:/\"]\npath = refd.gitconfig\n' "
		">.gitconfig");
	ck_assert(!is_same("the record of nobody"));
}

/* The directory of all cases is @, which has the repository. */
static const struct {
	const char *condition, *path;
	bool is_gits;
	const char *value; /* of the included setting */
} includes[] = {
	{ "includeIf \"gitdir:@/\"", "@/other", false, "included" },
	{ "IncludeIF \"gitdir:/\"", "@/other", false, "included" },
	{ "includeIf \"gitdir:@/bare.git/\"", "@/other", false, NULL },
	{ "includeIf \"gitdir:@/bare.gi/\"", "@/other", false, NULL },
	{ "includeIf \"gitdir:@/\"", "@/nowhere", false, NULL },
	{ "includeIf \"gitdir:@/bare.git\"", "@/other", true, "included" },
	{ "includeIf \"gitdir:@/*/\"", "@/other", true, NULL },
	{ "includeIf \"gitdir:bare.git\"", "@/other", true, "included" },
	{ "includeIf \"gitdir/i:@/\"", "@/other", true, "included" },
	{ "includeIf \"gitdir:~/\"", "@/other", true, "included" },
	{ "includeIf \"gitdir:@/\"", "other", true, "included" },
	{ "includeIf \"gitdir:@/\"", "@/nested", true, "included" },
	{ "include", "@/other", true, "included" },
};

static void add_in_root(struct text *t, const char *words)
{
	for (; *words; words++)
		if (*words == '@')
			text_add(t, gd.path,
			    strlen(gd.path) - strlen("/bare.git"));
		else
			text_addc(t, *words);
}

TEST(test_includes, .times = COUNT(includes))
{
	struct gitconfig config = { 0 };
	const char *value;
	struct text t = { 0 };

	tmp_put("other", "[x]\n\ty = included\n");
	add_in_root(&t, "[includeIf \"gitdir:@/\"]\n\tpath = @/other\n");
	tmp_put("nested", t.data);
	text_clear(&t);
	text_adds(&t, "[");
	add_in_root(&t, includes[_i].condition);
	text_adds(&t, "]\n\tpath = ");
	add_in_root(&t, includes[_i].path);
	text_adds(&t, "\n[x]\n\tz = last\n");
	tmp_put(".gitconfig", t.data);
	ck_assert_msg(is_same(t.data) == !includes[_i].is_gits, "%s", t.data);
	gitconfig_load(&config, &gd);
	value = gitconfig_get(&config, "x.y");
	ck_assert_msg(!value == !includes[_i].value, "%s", t.data);
	ck_assert_str_eq(gitconfig_get(&config, "x.z"), "last");
	gitconfig_done(&config);
	text_done(&t);
}

/* git decides about each of them: an error, a warning, or nothing. A FIFO must
 * not block. */
TEST(test_odd_files, .times = 8)
{
	static const char *const commands[] = {
		"mkfifo " CONFIG,
		"mkdir " CONFIG,
		"ln -s config " CONFIG,
		"ln -s /dev/zero " CONFIG,
		"ln -s /proc/sys/kernel/ostype " CONFIG,
		"truncate -s 2M " CONFIG,
		"yes '#' | head -c 2000000 >" CONFIG,
		"touch e; for i in $(seq 40); do printf '[includeIf "
		"\"gitdir:/\"]\npath = %s\n' \"$PWD/e\"; done >" CONFIG,
	};

	tmp_run("rm " CONFIG);
	tmp_run("%s", commands[_i]);
	ck_assert(!is_same(commands[_i]));
}

TEST(test_links)
{
	tmp_run("mv " CONFIG " real && ln -s ../real " CONFIG);
	ck_assert(is_same("a link"));
	tmp_run(
	    "rm real && touch real/x 2>/dev/null || ln -sf nowhere " CONFIG);
	ck_assert(is_same("a dangling link"));
}

/* git asks access(), which ignores the effective user and the ambient
 * capabilities of a service. */
TEST(test_closed_home, .times = 2)
{
	bool is_root = geteuid() == 0;
	char home[4096];

	tmp_run("chmod 755 . && mkdir closed");
	tmp_put("closed/.gitconfig", "[a]\n\tb = c\n");
	tmp_run("chmod 0 closed");
	snprintf(home, sizeof(home), "%s/closed", tmp_root);
	setenv("HOME", home, 1);
	if (is_root)
		ck_assert_int_eq(setresuid(65534, _i ? 0 : 65534, 0), 0);
	if (access(gd.path, R_OK) < 0) {
		suite_skip("closed_home", "TMPDIR is closed to others");
	} else {
		ck_assert_int_eq(access(home, X_OK), -1);
		ck_assert(is_same("a closed HOME"));
	}
	if (is_root)
		ck_assert_int_eq(setresuid(0, 0, 0), 0);
	tmp_run("chmod 755 closed");
}

/* ---- the environment ---- */

TEST(test_settings, .times = 7)
{
	static const char *const names[] = { "GIT_CONFIG", "GIT_CONFIG_COUNT",
		"GIT_CONFIG_PARAMETERS", "GIT_CONFIG_GLOBAL",
		"GIT_CONFIG_SYSTEM", "GIT_COMMON_DIR", "GIT_WORK_TREE" };

	ck_assert(is_same("nothing"));
	setenv(names[_i], _i % 2 ? "" : "/dev/null", 1);
	ck_assert(!is_same(names[_i]));
}

static void put_git(const char *command)
{
	char path[4096];

	tmp_run("rm -rf bin && mkdir bin && cd bin && %s", command);
	snprintf(path, sizeof(path), "%s/bin:/usr/bin:/bin", tmp_root);
	setenv("PATH", path, 1);
}

/* Is the file of the git in /usr/bin certain? */
static bool is_usual_git(void)
{
	return access("/usr/bin/git", X_OK) == 0 &&
	    access("/usr/etc/gitconfig", F_OK) < 0 &&
	    access("/usr/local/etc/gitconfig", F_OK) < 0;
}

/* /etc/gitconfig is the file of a git in /usr. */
TEST(test_system)
{
	bool is_usual = is_usual_git();

	setenv("GIT_CONFIG_NOSYSTEM", "0", 1);
	ck_assert(!is_same("a word that is not certain"));
	setenv("GIT_CONFIG_NOSYSTEM", "true", 1);
	ck_assert(is_same("no system file"));
	unsetenv("GIT_CONFIG_NOSYSTEM");
	put_git("true");
	ck_assert(is_same("git in /usr/bin") == is_usual);
	put_git("ln -s /usr/bin/git git");
	ck_assert(is_same("a link to git") == is_usual);
	put_git("cp /bin/true git");
	ck_assert(!is_same("a git with an unknown prefix"));
	put_git("printf '#!/bin/sh\\nexec git -c a.b=c \"$@\"' >git && "
		"chmod +x git");
	ck_assert(!is_same("a script"));
	setenv("PATH", "bin:/usr/bin", 1);
	ck_assert(!is_same("a relative PATH"));
	setenv("PATH", "/nowhere", 1);
	ck_assert(!is_same("no git"));
	unsetenv("PATH");
	ck_assert(!is_same("no PATH"));
}

/* ---- the places of git ---- */

/* Mounts FROM, or an empty file system, on PLACE, for this process alone. The
 * system's file counts then, and the git in PATH is that of the machine. */
static bool cover(const char *test, const char *from, const char *place)
{
	if (!suite_is_root(test))
		return false;
	if (unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount(from ? from : "none", place, from ? NULL : "tmpfs",
		from ? MS_BIND : 0, NULL) < 0) {
		suite_skip(test, "no mounts here, or nothing to mount on");
		return false;
	}
	unsetenv("GIT_CONFIG_NOSYSTEM");
	setenv("PATH", "/usr/bin:/bin", 1);
	return true;
}

/* The script of a distribution or an administrator in the usual place. */
TEST(test_script)
{
	char path[4096];

	tmp_run("printf '#!/bin/sh\n' >git && chmod +x git");
	snprintf(path, sizeof(path), "%s/git", tmp_root);
	if (cover("script", path, "/usr/bin/git"))
		ck_assert(!is_same("a script in place of git"));
}

/* Distributions put git into different directories, and receive-pack puts this
 * directory at the head of PATH. A program may bring a git of its own, whose
 * file is anywhere. */
TEST(test_places, .times = 4)
{
	static const struct {
		const char *dir;
		bool is_usual;
	} places[] = {
		{ "/usr/libexec/git-core", true },
		{ "/usr/libexec/git", true },
		{ "/usr/libexec/portable/git", false },
		{ "/usr/libexec/git/git", false },
	};
	const char *dir = places[_i].dir;
	char path[4096];

	if (!is_usual_git()) {
		suite_skip("places", "no usual git in /usr/bin");
		return;
	}
	if (!cover("places", NULL, "/usr/libexec"))
		return;
	tmp_run("mkdir -p %s && cp -L /usr/bin/git %s/git", dir, dir);
	snprintf(path, sizeof(path), "%s:/usr/bin:/bin", dir);
	setenv("PATH", path, 1);
	ck_assert_msg(is_same(dir) == places[_i].is_usual, "%s", dir);
}

/* A git in /usr may be built for /usr/local, and have its file there. */
TEST(test_second_file)
{
	if (!is_usual_git()) {
		suite_skip("second_file", "no usual git in /usr/bin");
		return;
	}
	if (!cover("second_file", NULL, "/usr/local"))
		return;
	ck_assert(is_same("a single place"));
	tmp_run("mkdir /usr/local/etc && touch /usr/local/etc/gitconfig");
	ck_assert(!is_same("a second place"));
}
