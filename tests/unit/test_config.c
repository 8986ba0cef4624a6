/*
 * Proves that the configuration file is read as git reads it (oracle: git
 * config -f FILE --list -z, on chosen and on random files). An error about an
 * unknown key names the nearest key. An invalid socket or state is refused. An
 * option beats the environment, then come the file and the default. A name that
 * was found once stays known while the service of names is away.
 */
#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/config.h"
#include "daemon/options.h"
#include "proto/lib/config_file.h"
#include "tests/lib/suite.h"

#define RANDOM_FILES 150

static char dir[] = "/tmp/test_config.XXXXXX";
static char file[64], root_a[64], root_b[64];

static void make_places(void)
{
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(file, sizeof(file), "%s/config", dir);
	snprintf(root_a, sizeof(root_a), "%s/a", dir);
	snprintf(root_b, sizeof(root_b), "%s/b", dir);
	ck_assert_int_eq(mkdir(root_a, 0777), 0);
	ck_assert_int_eq(mkdir(root_b, 0777), 0);
	setenv("XDG_CONFIG_HOME", dir, 1);
	setenv("HOME", dir, 1);
	unsetenv("REFD_SOCKET");
	unsetenv("REFD_STATE");
	unsetenv("XDG_RUNTIME_DIR");
}

static void remove_places(void)
{
	unlink(file);
	rmdir(root_a);
	rmdir(root_b);
	rmdir(dir);
	memcpy(dir + sizeof(dir) - 7, "XXXXXX", 6);
}

static void write_file(const char *text, size_t len)
{
	FILE *f = fopen(file, "w");

	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(text, 1, len, f), len);
	ck_assert_int_eq(fclose(f), 0);
}

/* ---- the syntax, beside git ---- */

struct listing {
	char text[65536];
	size_t len;
};

static int list_entry(void *arg, const char *key, const char *value,
    unsigned line)
{
	struct listing *list = arg;
	int n;

	(void)line;
	n = snprintf(list->text + list->len, sizeof(list->text) - list->len,
	    value == NULL ? "%s" : "%s\n%s", key, value);
	list->len += (size_t)n + 1;
	return 0;
}

/* Entries as git prints them. False if git refuses the file. */
static bool ask_git(struct listing *list)
{
	char command[256];
	FILE *git;

	snprintf(command, sizeof(command),
	    "git config -f %s --list -z 2>/dev/null", file);
	git = popen(command, "r");
	ck_assert_ptr_nonnull(git);
	list->len = fread(list->text, 1, sizeof(list->text), git);
	return pclose(git) == 0;
}

static void compare_with_git(const char *text, size_t len)
{
	static struct listing ours, gits;
	const char *why = NULL;
	unsigned line = 0;
	bool accepted;
	int r;

	ours.len = 0;
	write_file(text, len);
	accepted = ask_git(&gits);
	r = config_file_parse(text, len, list_entry, &ours, &line, &why);
	ck_assert_msg((r == 0) == accepted, "git %s, we say %d %s:\n%.*s",
	    accepted ? "accepts it" : "refuses it", r, why ? why : "", (int)len,
	    text);
	if (!accepted)
		return;
	ck_assert_msg(ours.len == gits.len &&
		memcmp(ours.text, gits.text, gits.len) == 0,
	    "read differently:\n%.*s\n--- git:\n%.*s\n--- ours:\n%.*s",
	    (int)len, text, (int)gits.len, gits.text, (int)ours.len, ours.text);
}

static const char *const files[] = {
	"",
	"\n\n# only a comment\n; and another",
	"[daemon]\n\tsocket = /run/x\n\troot = /srv/a\n\troot = /srv/b\n",
	"\xef\xbb\xbf[a]\nb = c\n",
	"[A.B]\nKey-9=Value\n",
	"[a \"Sub.Case\\\"d\\\\\"]\nB = c\n",
	"[a] b = on the section's line\n",
	"[a]\nb\nc =\nd = \"\"\ne\n",
	"[a]\nb =   leading and trailing   \n",
	"[a]\nb = inner  blanks  stay # not this\n",
	"[a]\nb = \"  kept  \" ; gone\n",
	"[a]\nb = \"a # b ; c\"\n",
	"[a]\nb = one\\\n  two\\\n three\n",
	"[a]\nb = \\ttab\\nline\\\\back\\\"quote\\bbell\n",
	"[a]\nb = x\"y z\"w\n",
	"[a]\r\nb = c\r\nd = \"e\"\r\n",
	"[a]\nb = ends without a newline",
	"[a]\n  # comment\n\n  ; comment\nb=c",
	"[a]\n[b]\n[b \"c\"]\n[b]\nd=1\n",
	/* Refused: */
	"[a\nb = c\n",
	"[a] = b\n",
	"[a]\n= b\n",
	"[a]\nb c\n",
	"[a]\nb_c = d\n",
	"[a]\n9b = d\n",
	"[a]\nb = \"open\n",
	"[a]\nb = \"open",
	"[a]\nb = \\q\n",
	"[a]\nb = \\",
	"[a \"b]\nc = d\n",
	"[a \"b\\\n\"]\nc = d\n",
	"[a b]\nc = d\n",
	"[a \"b\" ]\nc = d\n",
	"[a",
	"[",
	"garbage\x80\n",
};

CASE(.setup = make_places, .teardown = remove_places, .seconds = 60);

TEST(hand_made_files, .times = sizeof(files) / sizeof(files[0]))
{
	compare_with_git(files[_i], strlen(files[_i]));
}

/* Most files of these pieces are nearly correct. No value has a tab: until
 * 2.45, git returned a blank for a tab. */
static const char *const pieces[] = { "[a]", "[b.c]", "[a \"s\"]", "[", "]",
	"\n", "\n", "\n", "\r\n", "\n\t", " ", "  ", "key", "k-2", "=", " = ",
	"=", "value", "\"", "\"quoted # \"", "\\\\", "\\n", "\\\"", "\\\n",
	"\\x", "#", "; c", "0", "_", "\x80" };

TEST(random_files)
{
	char text[512];
	unsigned seed;
	size_t len, n, nr, piece;

	for (seed = 1; seed <= RANDOM_FILES; seed++) {
		srand(seed);
		len = 0;
		strcpy(text, "[s]\n");
		len = strlen(text);
		nr = (size_t)rand() % 16;
		for (n = 0; n < nr; n++) {
			piece = (size_t)rand() %
			    (sizeof(pieces) / sizeof(pieces[0]));
			strcpy(text + len, pieces[piece]);
			len += strlen(pieces[piece]);
		}
		compare_with_git(text, len);
	}
}

TEST(a_nul_byte_is_refused)
{
	static struct listing list;
	const char *why = NULL;
	unsigned line;

	ck_assert_int_eq(config_file_parse("[a]\nb=\0c\n", 9, list_entry, &list,
			     &line, &why),
	    -EINVAL);
	ck_assert_ptr_nonnull(why);
}

/* ---- keys ---- */

static char *read_error(const char *text)
{
	struct config cfg;
	char *why = NULL;
	int r;

	config_init(&cfg);
	config_defaults(&cfg, &why);
	write_file(text, strlen(text));
	r = config_read_file(&cfg, &sys_kernel, file, &why);
	config_done(&cfg);
	if (r == 0)
		return NULL;
	ck_assert_ptr_nonnull(why);
	return why;
}

/* In the place of the C library's: knows a user and another, while the
 * directory service answers. */
static bool service_is_away;
static uid_t directory_uid = 4711;

struct passwd *getpwnam(const char *name)
{
	static struct passwd user;

	user.pw_uid = strcmp(name, "root") == 0 ? 0 : directory_uid;
	return service_is_away ||
		(user.pw_uid != 0 && strcmp(name, "alice") != 0) ?
	    NULL :
	    &user;
}

static uint32_t user_in(const char *text)
{
	struct config cfg;
	char *why;
	uint32_t id;

	config_init(&cfg);
	write_file(text, strlen(text));
	ck_assert_int_eq(config_read_file(&cfg, &sys_kernel, file, &why), 0);
	ck_assert_uint_eq(cfg.users.nr, 1);
	id = cfg.users.ids[0];
	config_done(&cfg);
	return id;
}

static void expect_error(const char *text, const char *wanted)
{
	char *why = read_error(text), full[512];

	ck_assert_msg(why != NULL, "accepted: %s", text);
	snprintf(full, sizeof(full), "%s:%s", file, wanted);
	ck_assert_str_eq(why, full);
	free(why);
}

TEST(keys_of_each_kind_are_taken)
{
	static const char text[] =
	    "[daemon]\nsocket=/s\nstate=/t\nroot=/r1\n"
	    "root=/r2\nallowUser=root\nallowUser=1234\nallowGroup=root\n"
	    "[Durability]\nMode=journal\n[checkpoint]\n"
	    "interval=250ms\n[session]\ntimeout=5 s\n[batch]\nrefs=42\n"
	    "[limits]\nconnections=7\n";
	struct config cfg;
	char *why;

	config_init(&cfg);
	config_defaults(&cfg, &why);
	write_file(text, strlen(text));
	ck_assert_int_eq(config_read_file(&cfg, &sys_kernel, file, &why), 0);
	ck_assert_str_eq(cfg.file, file);
	ck_assert_str_eq(cfg.socket_path, "/s");
	ck_assert_str_eq(cfg.state_dir, "/t");
	ck_assert_uint_eq(cfg.nr_roots, 2);
	ck_assert_str_eq(cfg.roots[0], "/r1");
	ck_assert_str_eq(cfg.roots[1], "/r2");
	ck_assert_uint_eq(cfg.users.nr, 2);
	ck_assert_uint_eq(cfg.users.ids[0], 0);
	ck_assert_uint_eq(cfg.users.ids[1], 1234);
	ck_assert_uint_eq(cfg.groups.nr, 1);
	ck_assert_uint_eq(cfg.groups.ids[0], 0);
	ck_assert_int_eq(cfg.durability, REFD_DURABILITY_JOURNAL);
	ck_assert_uint_eq(cfg.checkpoint_interval_ms, 250);
	ck_assert_uint_eq(cfg.session_timeout_ms, 5000);
	ck_assert_uint_eq(cfg.batch_refs, 42);
	ck_assert_uint_eq(cfg.connections_max, 7);
	config_done(&cfg);
}

TEST(a_name_stays_known)
{
	static const char alice[] = "[daemon]\nallowUser=alice\n";

	ck_assert_uint_eq(user_in(alice), 4711);
	service_is_away = true;
	ck_assert_uint_eq(user_in(alice), 4711);
	expect_error("[daemon]\nallowUser=bob\n",
	    "2: daemon.allowUser is 'bob': there is no such user");
	expect_error("[daemon]\nallowGroup=alice\n",
	    "2: daemon.allowGroup is 'alice': there is no such group");
	service_is_away = false;
	directory_uid = 4712;
	ck_assert_uint_eq(user_in(alice), 4712);
	service_is_away = true;
	ck_assert_uint_eq(user_in(alice), 4712);
}

#define TIME                                                                   \
	": it must be a number with a unit, as in 10ms, 5s, 2min, 1h or 1 "    \
	"week, "
#define SIZE ": it must be a number with a unit, as in 100MiB, 2GiB or 1TiB, "

TEST(what_is_wrong_is_named)
{
	expect_error("[daemon]\n\n\tsokcet = /x\n",
	    "3: unknown key "
	    "'daemon.sokcet'; did you mean daemon.socket?");
	expect_error("[daemon]\nallowUser = no such one\n",
	    "2: daemon.allowUser is 'no such one': there is no such user");
	expect_error("[daemon]\nallowGroup = 4294967295\n",
	    "2: daemon.allowGroup is '4294967295': there is no such group");
	expect_error("[batchs]\nref=1\n",
	    "2: unknown key 'batchs.ref'; "
	    "did you mean batch.refs?");
	expect_error("[include]\npath=/x\n",
	    "2: unknown key 'include.path': refd.conf(5) lists the keys");
	expect_error("[root \"/srv\"]\nmode=fsync\n",
	    "2: unknown key 'root.mode': refd.conf(5) lists the keys");
	expect_error("[daemon \"x\"]\nsocket=/x\n",
	    "2: unknown key "
	    "'daemon.x.socket'; did you mean daemon.socket?");
	expect_error("[durability]\nmode = safe\n",
	    "2: 'safe' is not a "
	    "durability mode: it can be none, periodic, journal, batch or "
	    "fsync");
	expect_error("[durability]\ninterval = 0\n",
	    "2: durability.interval is '0'" TIME "from 1ms to 1h");
	expect_error("[durability]\nmode = default\n",
	    "2: 'default' is not "
	    "a durability mode: it can be none, periodic, journal, batch or "
	    "fsync");
	expect_error("[daemon]\nroot = srv\n",
	    "2: daemon.root is 'srv': it "
	    "must be an absolute path");
	expect_error("[daemon]\nsocket\n", "2: daemon.socket has no value");
	expect_error("[daemon]\nsocket=\n", "2: daemon.socket has no value");
	expect_error("[batch]\nrefs = 0\n",
	    "2: batch.refs is '0': it must "
	    "be a number from 1 to 100000");
	expect_error("[batch]\nrefs = -1\n",
	    "2: batch.refs is '-1': it "
	    "must be a number from 1 to 100000");
	expect_error("[batch]\nrefs = 1k\n",
	    "2: batch.refs is '1k': it "
	    "must be a number from 1 to 100000");
	expect_error("[batch]\nrefs = 99999999999999999999999\n",
	    "2: batch.refs is '99999999999999999999999': it must be a "
	    "number from 1 to 100000");
	expect_error("[session]\ntimeout = 0\n",
	    "2: session.timeout is '0'" TIME "from 1ms to 1h");
	expect_error("[session]\ntimeout = 5000\n",
	    "2: session.timeout is '5000'" TIME "from 1ms to 1h");
	expect_error("[journal]\nretention = 604800\n",
	    "2: journal.retention is '604800'" TIME "from 1s to 3650 days");
	expect_error("[journal]\nretention-size = 10\n",
	    "2: journal.retention-size is '10'" SIZE "from 1MiB to 1024TiB");
	expect_error("[daemon]\nstate = \"/x\n[a]\n",
	    "2: quotes are not closed");
}

/* ---- precedence ---- */

#define ARGS_MAX 8

static enum options_result load(struct config *cfg, char **why, ...)
{
	char *argv[ARGS_MAX + 2] = { "refd-daemon" };
	int argc = 0;
	va_list ap;

	va_start(ap, why);
	do
		argv[++argc] = va_arg(ap, char *);
	while (argv[argc] != NULL);
	va_end(ap);
	return options_load(&options_daemon, cfg, &sys_kernel, argc, argv, NULL,
	    why);
}

TEST(option_environment_file_default)
{
	char text[256], *why;
	struct config cfg;

	snprintf(text, sizeof(text),
	    "[daemon]\nsocket=/file/s\n"
	    "state=/file/t\nroot=%s\n[batch]\nrefs=5\n",
	    root_a);
	write_file(text, strlen(text));

	ck_assert_int_eq(load(&cfg, &why, "--config", file, NULL), OPTIONS_RUN);
	ck_assert_str_eq(cfg.socket_path, "/file/s");
	ck_assert_str_eq(cfg.state_dir, "/file/t");
	ck_assert_uint_eq(cfg.nr_roots, 1);
	ck_assert_str_eq(cfg.roots[0], root_a);
	ck_assert_uint_eq(cfg.batch_refs, 5);
	ck_assert_uint_eq(cfg.connections_max, 10000);
	ck_assert_uint_eq(cfg.checkpoint_interval_ms, 1000);
	ck_assert_uint_eq(cfg.durability_interval_ms, 1000);
	ck_assert_uint_eq(cfg.session_timeout_ms, 30000);
	config_done(&cfg);

	setenv("REFD_SOCKET", "/env/s", 1);
	setenv("REFD_STATE", "/env/t", 1);
	ck_assert_int_eq(load(&cfg, &why, "--config", file, NULL), OPTIONS_RUN);
	ck_assert_str_eq(cfg.socket_path, "/env/s");
	ck_assert_str_eq(cfg.state_dir, "/env/t");
	config_done(&cfg);

	ck_assert_int_eq(load(&cfg, &why, "--config", file, "--socket=/opt/s",
			     "--state", "/opt/t", "--root", root_b, NULL),
	    OPTIONS_RUN);
	ck_assert_str_eq(cfg.socket_path, "/opt/s");
	ck_assert_str_eq(cfg.state_dir, "/opt/t");
	ck_assert_uint_eq(cfg.nr_roots, 1);
	ck_assert_str_eq(cfg.roots[0], root_b);
	config_done(&cfg);
}

TEST(roots_are_resolved)
{
	char link[80], text[160], *why;
	struct config cfg;

	snprintf(link, sizeof(link), "%s/link", root_b);
	ck_assert_int_eq(symlink(root_a, link), 0);
	snprintf(text, sizeof(text), "%s/../b/./link", root_a);
	ck_assert_int_eq(load(&cfg, &why, "--socket", "/s", "--state", "/t",
			     "--root", text, NULL),
	    OPTIONS_RUN);
	unlink(link);
	ck_assert_str_eq(cfg.roots[0], root_a);
	config_done(&cfg);
}

TEST(relative_paths_are_taken_from_here)
{
	char wanted[PATH_MAX + 32], here[PATH_MAX], *why;
	struct config cfg;

	ck_assert_ptr_nonnull(getcwd(here, sizeof(here)));
	ck_assert_int_eq(load(&cfg, &why, "--socket", "x.sock", "--state", "st",
			     "--root", "/", NULL),
	    OPTIONS_RUN);
	snprintf(wanted, sizeof(wanted), "%s/x.sock", here);
	ck_assert_str_eq(cfg.socket_path, wanted);
	snprintf(wanted, sizeof(wanted), "%s/st", here);
	ck_assert_str_eq(cfg.state_dir, wanted);
	config_done(&cfg);
}

static void expect_complaint(enum options_result wanted, const char *part,
    const char *option, const char *argument)
{
	struct config cfg;
	char *why;

	ck_assert_int_eq(load(&cfg, &why, option, argument, NULL), wanted);
	ck_assert_ptr_nonnull(why);
	ck_assert_msg(strstr(why, part) != NULL, "'%s' not in: %s", part, why);
	free(why);
	config_done(&cfg);
}

TEST(wrong_command_lines)
{
	struct config cfg;
	char *why;

	expect_complaint(OPTIONS_USAGE, "unknown option `x'", "--x", NULL);
	expect_complaint(OPTIONS_USAGE, "option `root' requires a value",
	    "--root", NULL);
	expect_complaint(OPTIONS_USAGE, "unexpected argument 'x'", "x", NULL);
	expect_complaint(OPTIONS_USAGE, "empty", "--root", "");
	expect_complaint(OPTIONS_USAGE, "'safe' is not a durability mode",
	    "--durability", "safe");
	expect_complaint(OPTIONS_BAD, "No such file", "--config", "/nowhere");
	expect_complaint(OPTIONS_BAD, "No such file", "--root", "/nowhere");
	expect_complaint(OPTIONS_BAD, "Not a directory", "--root",
	    "/etc/passwd");
	expect_complaint(OPTIONS_BAD, "no root", "--socket", "/s");
	expect_complaint(OPTIONS_BAD,
	    "daemon.socket is '/etc': a directory of this name", "--socket",
	    "/etc");
	expect_complaint(OPTIONS_BAD,
	    "daemon.state is '/etc/passwd/a/b': '/etc/passwd' is not a "
	    "directory",
	    "--state", "/etc/passwd/a/b");
	write_file("[metrics]\nsocket = /etc\n", 24);
	expect_complaint(OPTIONS_BAD,
	    "metrics.socket is '/etc': a directory of this name", "--config",
	    file);
	ck_assert_int_eq(load(&cfg, &why, "--help", NULL), OPTIONS_HELP);
	config_done(&cfg);
	ck_assert_int_eq(load(&cfg, &why, "--version", NULL), OPTIONS_VERSION);
	config_done(&cfg);
}
