/*
 * Proves that enable sets up the hook and the configuration of a repository,
 * and that disable removes exactly this: to the byte without other changes, and
 * around changes by others. A foreign hook is refused without any change. Both
 * commands can be repeated, and completed after an interruption.
 */
#include <check.h>
#include <errno.h>
#include <getopt.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client/enable/enable.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

static char repo[600];

static void setup(void)
{
	tmp_setup();
	unsetenv("REFD_SOCKET");
	tmp_run("git init -q -b main --bare r.git && mkdir -p r.git/hooks && "
		"cp r.git/config before");
	snprintf(repo, sizeof(repo), "%s/r.git", tmp_root);
}

static int run(int (*command)(int argc, char **argv), const char *option,
    const char *value)
{
	char name[] = "x";
	char *argv[] = { name, NULL, NULL, NULL, NULL };
	int argc = 1;

	if (option)
		argv[argc++] = (char *)option;
	if (value)
		argv[argc++] = (char *)value;
	argv[argc++] = repo;
	optind = 0;
	return command(argc, argv);
}

static int enable(void)
{
	return run(command_enable, NULL, NULL);
}

static int disable(void)
{
	return run(command_disable, NULL, NULL);
}

static void check_config(const char *key, const char *wanted)
{
	char *got = tmp_output("git -C r.git config --get-all %s; true", key);

	ck_assert_str_eq(got, wanted);
	free(got);
}

static void check_as_before(void)
{
	tmp_run("cmp before r.git/config");
	ck_assert(!tmp_exists("r.git/hooks/proc-receive"));
	ck_assert(!tmp_exists("r.git/refd"));
}

START_TEST(test_there_and_back)
{
	ck_assert_int_eq(run(command_enable, "--socket", "/s.sock"), 0);
	tmp_run("test -x r.git/hooks/proc-receive -a "
		"-L r.git/hooks/proc-receive");
	check_config("receive.procReceiveRefs", "refs\nadm!:refs\n");
	check_config("refd.socket", "/s.sock\n");
	check_config("core.fsync", "committed,loose-object\n");
	check_config("core.fsyncMethod", "batch\n");
	ck_assert_uint_eq(tmp_mode("r.git/refd"), tmp_mode("r.git/refs"));

	tmp_run("cp r.git/config once");
	ck_assert_int_eq(run(command_enable, "--socket", "/s.sock"), 0);
	tmp_run("cmp once r.git/config");

	ck_assert_int_eq(disable(), 0);
	check_as_before();
	ck_assert_int_eq(disable(), 0);
	check_as_before();
}
END_TEST

START_TEST(test_options)
{
	setenv("REFD_SOCKET", "/env.sock", 1);
	ck_assert_int_eq(run(command_enable, "--no-fsync", NULL), 0);
	check_config("refd.socket", "/env.sock\n");
	check_config("core.fsync", "");
	ck_assert_int_eq(run(command_enable, "--frob", NULL), 129);
	ck_assert_int_eq(run(command_disable, "--frob", NULL), 129);
	ck_assert_int_eq(disable(), 0);
	check_as_before();
}
END_TEST

/* Earlier settings stay, and replaced settings come back. */
START_TEST(test_what_was_there)
{
	tmp_run("cd r.git && git config refd.socket /old && "
		"git config core.fsync none && "
		"git config receive.procReceiveRefs refs/for && "
		"git config --add receive.procReceiveRefs refs && "
		"cp config ../before");
	tmp_put(".gitconfig", "[core]\n\tfsyncMethod = fsync\n");
	ck_assert_int_eq(run(command_enable, "--socket", "/new"), 0);
	check_config("refd.socket", "/new\n");
	check_config("core.fsync", "none\n");
	check_config("core.fsyncMethod", "fsync\n");
	check_config("receive.procReceiveRefs", "refs/for\nrefs\nadm!:refs\n");
	ck_assert_int_eq(run(command_enable, "--socket", "/newer"), 0);
	check_config("refd.socket", "/newer\n");
	ck_assert_int_eq(disable(), 0);
	check_as_before();
}
END_TEST

START_TEST(test_changed_since)
{
	ck_assert_int_eq(run(command_enable, "--socket", "/s"), 0);
	tmp_run("cd r.git && git config refd.socket /theirs && "
		"git config --unset core.fsync && "
		"rm hooks/proc-receive && echo theirs >hooks/proc-receive");
	ck_assert_int_eq(disable(), 0);
	check_config("refd.socket", "/theirs\n");
	check_config("core.fsync", "");
	check_config("core.fsyncMethod", "");
	check_config("receive.procReceiveRefs", "");
	tmp_run("grep -q theirs r.git/hooks/proc-receive");
}
END_TEST

START_TEST(test_foreign_hook)
{
	tmp_put("r.git/hooks/proc-receive", "#!/bin/sh\n");
	ck_assert_int_eq(enable(), 1);
	tmp_run("cmp before r.git/config");
	ck_assert(!tmp_exists("r.git/refd"));
	tmp_run("ln -sf /bin/true r.git/hooks/proc-receive");
	ck_assert_int_eq(enable(), 1);
	tmp_run("cmp before r.git/config");
}
END_TEST

START_TEST(test_shared_hooks)
{
	char self[600] = "";

	ck_assert_int_gt(readlink("/proc/self/exe", self, sizeof(self) - 1), 0);
	tmp_mkdir("shared");
	tmp_run("git -C r.git config core.hooksPath \"$PWD/shared\" && "
		"cp r.git/config before");
	ck_assert_int_eq(enable(), 1);
	tmp_run("cmp before r.git/config");
	tmp_run("ln -s '%s' shared/proc-receive", self);
	ck_assert_int_eq(enable(), 0);
	check_config("receive.procReceiveRefs", "refs\nadm!:refs\n");
	ck_assert_int_eq(disable(), 0);
	check_as_before();
	ck_assert(tmp_exists("shared/proc-receive"));
}
END_TEST

START_TEST(test_no_hooks_dir)
{
	tmp_run("rm -r r.git/hooks");
	ck_assert_int_eq(enable(), 0);
	tmp_run("test -x r.git/hooks/proc-receive");
	ck_assert_int_eq(disable(), 0);
	ck_assert(!tmp_exists("r.git/hooks"));
	check_as_before();
}
END_TEST

/* The record comes first. Its steps may be done, half done, or not done. */
START_TEST(test_cut_short)
{
	ck_assert_int_eq(enable(), 0);
	tmp_run("cp before r.git/config && cp r.git/refd/enabled once");
	ck_assert_int_eq(enable(), 0);
	tmp_run("cmp once r.git/refd/enabled");
	check_config("receive.procReceiveRefs", "refs\nadm!:refs\n");
	check_config("core.fsyncMethod", "batch\n");
	ck_assert_int_eq(disable(), 0);
	check_as_before();

	ck_assert_int_eq(enable(), 0);
	tmp_run("cp before r.git/config && rm r.git/hooks/proc-receive");
	ck_assert_int_eq(disable(), 0);
	check_as_before();
}
END_TEST

START_TEST(test_damaged_record)
{
	static const char *const records[] = { "", "nonsense\n",
		"refd enabled 1\nfrob x y\n", "refd enabled 1\nset x\n",
		"refd enabled 1\nwas x\n" };

	tmp_put("r.git/refd/enabled", records[_i]);
	ck_assert_int_eq(enable(), 1);
	ck_assert_int_eq(disable(), 1);
	tmp_run("cmp before r.git/config");
}
END_TEST

/* The owner of a repository may put any file in place of its record. */
START_TEST(test_record_that_is_no_file)
{
	static const char *const makes[] = { "mkfifo", "mkdir",
		"truncate -s 1G", "ln -s /dev/zero",
		"echo 'refd enabled 1' >record && ln -s ../../record" };

	tmp_run("mkdir -p r.git/refd && %s r.git/refd/enabled", makes[_i]);
	ck_assert_int_eq(enable(), 1);
	ck_assert_int_eq(disable(), 1);
	tmp_run("cmp before r.git/config");
}
END_TEST

/* As on a file system without hard links. */
static void forbid_links(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
		    offsetof(struct seccomp_data, nr)),
#ifdef SYS_link
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_link, 1, 0),
#endif
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_linkat, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program),
	    0);
}

START_TEST(test_no_hard_links)
{
	forbid_links();
	ck_assert_int_eq(enable(), 1);
	check_as_before();
}
END_TEST

/* Text that git config would not restore: an empty section, a last line without
 * an end, text behind the name of a section. */
START_TEST(test_odd_configuration)
{
	static const char *const ends[] = { "[receive]\n[other]\n",
		"[receive]\n# no end of line", "[receive] autogc = false",
		"[refd]\n" };

	tmp_run("printf '%s' >>r.git/config && cp -p r.git/config before && "
		"chmod 640 r.git/config",
	    ends[_i]);
	ck_assert_int_eq(run(command_enable, "--socket", "/s"), 0);
	ck_assert_int_eq(run(command_enable, "--socket", "/newer"), 0);
	ck_assert_int_eq(disable(), 0);
	check_as_before();
	ck_assert_uint_eq(tmp_mode("r.git/config"), 0640);
}
END_TEST

/* After a later change, the old text is not restored. */
START_TEST(test_written_since)
{
	tmp_run(
	    "printf '[receive]\n' >>r.git/config && cp r.git/config before");
	ck_assert_int_eq(enable(), 0);
	tmp_run("git -C r.git config user.name N");
	ck_assert_int_eq(run(command_enable, "--socket", "/s"), 0);
	ck_assert_int_eq(disable(), 0);
	check_config("user.name", "N\n");
	check_config("core.fsync", "");
	check_config("receive.procReceiveRefs", "");
	ck_assert(!tmp_exists("r.git/refd"));
}
END_TEST

/* git's lock stops disable and stays. Without the lock, disable succeeds. */
START_TEST(test_locked)
{
	ck_assert_int_eq(enable(), 0);
	tmp_put("r.git/config.lock", "theirs");
	ck_assert_int_eq(disable(), 1);
	ck_assert(tmp_exists("r.git/config.lock"));
	ck_assert(tmp_exists("r.git/hooks/proc-receive"));
	tmp_run("rm r.git/config.lock");
	ck_assert_int_eq(disable(), 0);
	check_as_before();
}
END_TEST

/* Words, names with spaces and signs, and replaced values. */
START_TEST(test_record)
{
	tmp_run("git -C r.git config refd.socket '/a %%20b\n%%c' && "
		"cp r.git/config before");
	ck_assert_int_eq(run(command_enable, "--socket", "/a b%2"), 0);
	check_config("refd.socket", "/a b%2\n");
	tmp_run("rm r.git/refd/enabled.before");
	ck_assert_int_eq(disable(), 0);
	check_as_before();
}
END_TEST

START_TEST(test_usage)
{
	static const char *const bad[][2] = { { "--all", "--all" },
		{ "--root", "/" }, { "--json", NULL }, { "--system", NULL },
		{ "--list", NULL }, { "--template", "/" } };

	ck_assert_int_eq(run(command_enable, bad[_i][0], bad[_i][1]), 129);
	tmp_run("cmp before r.git/config");
}
END_TEST

START_TEST(test_no_repository)
{
	tmp_run("rm -r r.git");
	ck_assert_int_eq(enable(), 1);
	ck_assert_int_eq(disable(), 1);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("client_enable");
	TCase *tc = tcase_create("enable");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, tmp_teardown);
	tcase_add_test(tc, test_there_and_back);
	tcase_add_test(tc, test_options);
	tcase_add_test(tc, test_what_was_there);
	tcase_add_test(tc, test_changed_since);
	tcase_add_test(tc, test_foreign_hook);
	tcase_add_test(tc, test_shared_hooks);
	tcase_add_test(tc, test_no_hooks_dir);
	tcase_add_test(tc, test_cut_short);
	tcase_add_loop_test(tc, test_damaged_record, 0, 5);
	tcase_add_loop_test(tc, test_record_that_is_no_file, 0, 5);
	tcase_add_test(tc, test_no_hard_links);
	tcase_add_loop_test(tc, test_odd_configuration, 0, 4);
	tcase_add_test(tc, test_written_since);
	tcase_add_test(tc, test_locked);
	tcase_add_test(tc, test_record);
	tcase_add_loop_test(tc, test_usage, 0, 6);
	tcase_add_test(tc, test_no_repository);
	suite_add_tcase(s, tc);
	return suite_run(s);
}
