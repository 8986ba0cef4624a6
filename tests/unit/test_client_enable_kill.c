/*
 * Proves that enable and disable can be killed before any of their changing
 * system calls. The configuration then has all settings of refd or none, and
 * never names a missing hook. The next enable then leaves an enabled
 * repository. The next disable restores the repository, to the byte of its
 * configuration and to the last file. The lock of a running refd stays. Also
 * proves that disable waits until the removal of the hook is on disk.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/commands.h"
#include "client/enable/enable.h"
#include "client/enable/shared_hooks.h"
#include "proto/lib/cli.h"
#include "tests/lib/suite.h"
#include "tests/lib/sweep.h"
#include "tests/lib/tmp.h"

#define STOPS_MAX 2000

/* Replaces client/enable/shared_hooks.c: the hooks that are installed with this
 * program. */
char *shared_hooks_place(const char *self)
{
	(void)self;
	return xasprintf("%s/share/hooks", tmp_root);
}

bool shared_hooks_are_there(const char *dir)
{
	(void)dir;
	return true;
}

/* With a foreign proc-receive hook, so that enable does all its work. */
static void setup(void)
{
	char path[700];

	tmp_setup();
	snprintf(path, sizeof(path), "%s/etc/gitconfig", tmp_root);
	setenv("GIT_CONFIG_SYSTEM", path, 1);
	unsetenv("GIT_CONFIG_NOSYSTEM");
	unsetenv("REFD_SOCKET");
	tmp_run("umask 022 && mkdir -p etc share/hooks && "
		"ln -s /bin/true share/hooks/proc-receive && "
		"git init -q -b main --bare r.git && mkdir -p r.git/hooks && "
		"printf '[receive]\\n# no end of line' >>r.git/config && "
		"cp -a r.git before");
}

static void with_other_hook(void)
{
	tmp_put("before/hooks/proc-receive", "#!/bin/sh\nexit 1\n");
	tmp_run("chmod 755 before/hooks/proc-receive && "
		"rm -r r.git && cp -a before r.git");
}

enum way { PLAIN, CHAINED, SYSTEM, NR_WAYS };

static int run(bool enables, enum way way)
{
	char repo[700];
	const struct command *command =
	    enables ? &enable_command : &disable_command;
	const char *argv[10] = { "x" };
	int argc = 1;

	snprintf(repo, sizeof(repo), "%s/r.git", tmp_root);
	if (enables && way == CHAINED) {
		argv[argc++] = "--chain";
		argv[argc++] = "refs/for";
	}
	if (way == SYSTEM) {
		argv[argc++] = "--system";
		argv[argc++] = "--root";
	}
	argv[argc++] = way == SYSTEM ? tmp_root : repo;
	return command->run(command, argc, (char **)argv);
}

/* ---- a run that ends before change N ---- */

static bool changes_something(uint64_t nr, const uint64_t *args)
{
	switch (nr) {
	case SYS_openat:
		return args[2] & O_CREAT;
/* arm64 has only the calls with a directory. */
#ifdef SYS_open
	case SYS_open:
		return args[1] & O_CREAT;
	case SYS_rename:
	case SYS_unlink:
	case SYS_mkdir:
	case SYS_rmdir:
	case SYS_symlink:
	case SYS_link:
	case SYS_vfork:
	case SYS_fork:
#endif
	case SYS_renameat:
	case SYS_renameat2:
	case SYS_unlinkat:
	case SYS_mkdirat:
	case SYS_symlinkat:
	case SYS_linkat:
	case SYS_clone:
	case SYS_clone3:
		return true;
	}
	return false;
}

/* Sends the signal BY to the child before change N. True: the child ran to the
 * end; the status must be 0. */
static bool runs_to_end(pid_t pid, int n, int by)
{
	struct __ptrace_syscall_info info;
	int status;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSTOPPED(status));
	ptrace(PTRACE_SETOPTIONS, pid, 0,
	    PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD);
	for (;;) {
		long signal = 0;

		if (WIFSTOPPED(status) && WSTOPSIG(status) != SIGSTOP &&
		    WSTOPSIG(status) != (SIGTRAP | 0x80))
			signal = WSTOPSIG(status);
		ptrace(PTRACE_SYSCALL, pid, 0, signal);
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		if (WIFEXITED(status)) {
			ck_assert_int_eq(WEXITSTATUS(status), 0);
			return true;
		}
		ck_assert(WIFSTOPPED(status));
		if (WSTOPSIG(status) != (SIGTRAP | 0x80))
			continue;
		ck_assert_int_gt(ptrace(PTRACE_GET_SYSCALL_INFO, pid,
				     sizeof(info), &info),
		    0);
		if (info.op == PTRACE_SYSCALL_INFO_ENTRY &&
		    changes_something(info.entry.nr, info.entry.args) &&
		    n-- == 0)
			break;
	}
	kill(pid, by);
	ptrace(PTRACE_DETACH, pid, 0, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return false;
}

static bool run_until(int n, bool enables, enum way way, int by)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		int null = open("/dev/null", O_WRONLY);

		/* The library's handler would end the test. */
		signal(SIGTERM, SIG_DFL);
		dup2(null, 1);
		dup2(null, 2);
		if (ptrace(PTRACE_TRACEME, 0, 0, 0) < 0)
			_exit(77);
		raise(SIGSTOP);
		_exit(run(enables, way) || fflush(stdout));
	}
	return runs_to_end(pid, n, by);
}

/* ---- required results ---- */

/* The hook that git would run, if the configuration names a hook. */
static void check_hook_is_there(enum way way, int n)
{
	int status = tmp_status("cd r.git && "
				"case $(git config --get-all "
				"receive.procReceiveRefs | wc -l) in "
				"0) exit 0 ;; esac; "
				"d=$(git config core.hooksPath) || d=hooks; "
				"test -x \"$d/proc-receive\" %s",
	    way != PLAIN ? "-a \"$d\" != hooks" : "");

	ck_assert_msg(status == 0, "killed before change %d: no hook", n);
}

/* The settings of an enabled repository are in the file "enabled". */
static void check_all_or_nothing(int n)
{
	int status = tmp_status("git config -f r.git/config -l >now; "
				"git config -f before/config -l | "
				"cmp -s - now || cmp -s enabled now");

	ck_assert_msg(status == 0, "killed before change %d: in between", n);
}

static void check_enabled(enum way way, int n)
{
	int status = tmp_status("cd r.git && "
				"test \"$(git config --get-all "
				"receive.procReceiveRefs | xargs)\" = "
				"'refs adm!:refs' && "
				"test \"$(git config core.fsyncMethod)\" = "
				"batch && "
				"test \"$(git config refd.chain)\" = '%s'",
	    way == CHAINED ? "refs/for" : "");

	ck_assert_msg(status == 0, "killed before change %d: not enabled", n);
	check_hook_is_there(way, n);
}

static void check_as_before(int n)
{
	char *rest = tmp_output("diff -r --no-dereference before r.git; "
				"find etc state -mindepth 1 ! -path "
				"state/enabled 2>/dev/null; true");

	ck_assert_msg(!*rest, "killed before change %d: left:\n%s", n, rest);
	free(rest);
}

static void start_again(void)
{
	tmp_run("rm -rf r.git etc/* state && cp -a before r.git");
}

/* SWEEP_STEP: see sweep.h. */
static int stride(void)
{
	return sweep_step() > 1 ? 7 : 1;
}

static void note_enabled(enum way way)
{
	ck_assert_int_eq(run(true, way), 0);
	tmp_run("git config -f r.git/config -l >enabled");
	start_again();
}

/* Kills enable, or disable, before each change. */
static void sweep(bool enables, enum way way)
{
	bool ended = false;
	int n;

	note_enabled(way);
	for (n = 0; !ended; n += stride()) {
		ck_assert_int_lt(n, STOPS_MAX);
		if (!enables) {
			ck_assert_int_eq(run(true, way), 0);
			check_enabled(way, n);
		}
		ended = run_until(n, enables, way, SIGKILL);
		check_hook_is_there(way, n);
		check_all_or_nothing(n);
		if (n % 2) {
			ck_assert_int_eq(run(true, way), 0);
			check_enabled(way, n);
		}
		ck_assert_int_eq(run(false, way), 0);
		check_as_before(n);
		start_again();
	}
	ck_assert_int_gt(n, 10);
}

static bool may_trace(void)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(ptrace(PTRACE_TRACEME, 0, 0, 0) < 0);
	if (pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
	    !WEXITSTATUS(status))
		return true;
	suite_skip("client_enable_kill", "ptrace(2) is not allowed");
	return false;
}

CASE(.setup = setup, .teardown = tmp_teardown, .seconds = 240,
    .is_left_out = !may_trace());

TEST(test_killed, .times = 2 * NR_WAYS)
{
	enum way way = (enum way)(_i / 2);

	if (way == CHAINED)
		with_other_hook();
	sweep(_i % 2 == 0, way);
}

/* A signal that the user sends leaves no lock of git's behind. */
TEST(test_terminated, .times = 2)
{
	bool ended = false, enables = _i;
	int n;

	for (n = 0; !ended; n++) {
		if (!enables)
			ck_assert_int_eq(run(true, PLAIN), 0);
		ended = run_until(n, enables, PLAIN, SIGTERM);
		ck_assert_msg(!tmp_exists("r.git/config.lock") &&
			!tmp_exists("r.git/config.refd"),
		    "ended before change %d: locked", n);
		start_again();
	}
	ck_assert_int_gt(n, 10);
}

/* Replaces libc's. Notes a sync of the hooks that lack refd's hook. */
static bool was_removal_synced;

int fsync(int fd)
{
	char link[64], path[700] = "";

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (readlink(link, path, sizeof(path) - 1) > 0 &&
	    strstr(path, "r.git/hooks") &&
	    !tmp_exists("r.git/hooks/proc-receive"))
		was_removal_synced = true;
	return (int)syscall(SYS_fsync, fd);
}

/* A power loss must not bring back a hook that disable removed. */
TEST(test_removal_is_synced)
{
	ck_assert_int_eq(run(true, PLAIN), 0);
	ck_assert(!was_removal_synced);
	ck_assert_int_eq(run(false, PLAIN), 0);
	ck_assert(was_removal_synced);
}

/* Root and the owner have different lists, and so no lock in common. */
TEST(test_other_runs)
{
	char stage[700];
	int fd;

	snprintf(stage, sizeof(stage), "%s/r.git/config.refd", tmp_root);
	tmp_run("cd r.git && echo half >config.refd && "
		"ln config.refd config.lock");
	fd = open(stage, O_RDONLY | O_CLOEXEC);
	ck_assert_int_eq(flock(fd, LOCK_EX), 0);
	ck_assert_int_eq(run(true, PLAIN), 1);
	tmp_run("cd r.git && test config.refd -ef config.lock");
	close(fd);
	ck_assert_int_eq(run(true, PLAIN), 0);
	tmp_run("cd r.git && test ! -e config.refd -a ! -e config.lock");
}
