/*
 * Proves that each key of the configuration file is read. An error about an
 * unknown key names the nearest key. An invalid socket or state is refused. An
 * option beats the environment, then come the file and the default. A name that
 * was found once stays known while the service of names is away.
 * Random files are refused as git refuses them; test_client_configfiles.c
 * compares what is read.
 */
#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/config.h"
#include "daemon/options.h"
#include "proto/lib/config_file.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define RANDOM_FILES 150

static char file[600], root_a[600], root_b[600];

static void setup(void)
{
	tmp_setup();
	snprintf(file, sizeof(file), "%s/config", tmp_root);
	snprintf(root_a, sizeof(root_a), "%s/a", tmp_root);
	snprintf(root_b, sizeof(root_b), "%s/b", tmp_root);
	tmp_mkdir("a");
	tmp_mkdir("b");
	setenv("XDG_CONFIG_HOME", tmp_root, 1);
	unsetenv("REFD_SOCKET");
	unsetenv("REFD_STATE");
	unsetenv("XDG_RUNTIME_DIR");
}

CASE(.setup = setup, .teardown = tmp_teardown, .seconds = 60);

/* ---- the syntax ---- */

static int pass_over(void *arg, const char *key, const char *value,
    unsigned line)
{
	(void)arg;
	(void)key;
	(void)value;
	(void)line;
	return 0;
}

/* Most files of these pieces are nearly correct. */
static const char *const pieces[] = { "[a]", "[b.c]", "[a \"s\"]", "[", "]",
	"\n", "\n", "\n", "\r\n", "\n\t", " ", "  ", "key", "k-2", "=", " = ",
	"=", "value", "\"", "\"quoted # \"", "\\\\", "\\n", "\\\"", "\\\n",
	"\\x", "#", "; c", "0", "_", "\x80" };

/* A file that refd alone refuses would keep the daemon from starting. */
TEST(what_git_takes_is_taken_and_nothing_else)
{
	const char *why = NULL;
	char text[512];
	unsigned seed, line = 0;
	size_t nr, piece;
	int r, gits;

	for (seed = 1; seed <= RANDOM_FILES; seed++) {
		srand(seed);
		strcpy(text, "[s]\n");
		for (nr = (size_t)rand() % 16; nr > 0; nr--) {
			piece = (size_t)rand() %
			    (sizeof(pieces) / sizeof(pieces[0]));
			strcat(text, pieces[piece]);
		}
		tmp_put("config", text);
		gits = tmp_status("git config -f config --list");
		r = config_file_parse(text, strlen(text), pass_over, NULL,
		    &line, &why);
		ck_assert_msg((r == 0) == (gits == 0),
		    "git ends with %d, we say %d %s:\n%s", gits, r,
		    why != NULL ? why : "", text);
	}
}

/* ---- keys ---- */

static char *read_error(const char *text)
{
	struct config cfg;
	char *why = NULL;
	int r;

	config_init(&cfg);
	config_defaults(&cfg, &why);
	tmp_put("config", text);
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
	tmp_put("config", text);
	ck_assert_int_eq(config_read_file(&cfg, &sys_kernel, file, &why), 0);
	ck_assert_uint_eq(cfg.users.nr, 1);
	id = cfg.users.ids[0];
	config_done(&cfg);
	return id;
}

static void expect_error(const char *text, const char *wanted)
{
	char *why = read_error(text), full[1200];

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
	tmp_put("config", text);
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
	char text[1200], *why;
	struct config cfg;

	snprintf(text, sizeof(text),
	    "[daemon]\nsocket=/file/s\n"
	    "state=/file/t\nroot=%s\n[batch]\nrefs=5\n",
	    root_a);
	tmp_put("config", text);

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
	char link[700], text[700], *why;
	struct config cfg;

	snprintf(link, sizeof(link), "%s/link", root_b);
	ck_assert_int_eq(symlink(root_a, link), 0);
	snprintf(text, sizeof(text), "%s/../b/./link", root_a);
	ck_assert_int_eq(load(&cfg, &why, "--socket", "/s", "--state", "/t",
			     "--root", text, NULL),
	    OPTIONS_RUN);
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
	tmp_put("config", "[metrics]\nsocket = /etc\n");
	expect_complaint(OPTIONS_BAD,
	    "metrics.socket is '/etc': a directory of this name", "--config",
	    file);
	ck_assert_int_eq(load(&cfg, &why, "--help", NULL), OPTIONS_HELP);
	config_done(&cfg);
	ck_assert_int_eq(load(&cfg, &why, "--version", NULL), OPTIONS_VERSION);
	config_done(&cfg);
}
