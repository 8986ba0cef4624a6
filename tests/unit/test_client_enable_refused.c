/*
 * Proves that enable changes nothing if the kernel refuses a call which the
 * change needs.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "client/commands.h"
#include "client/enable/enable.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

static char repo[600];

static void setup(void)
{
	tmp_setup();
	unsetenv("REFD_SOCKET");
	tmp_run("git init -q --bare r.git && cp r.git/config before");
	snprintf(repo, sizeof(repo), "%s/r.git", tmp_root);
}

static int enable(void)
{
	char name[] = "enable";
	char *argv[] = { name, repo, NULL };

	return enable_command.run(&enable_command, 2, argv);
}

static void check_as_before(void)
{
	tmp_run("cmp before r.git/config");
}

/* The calls A and B fail from now on. */
static void forbid(unsigned a, unsigned b)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
		    offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, a, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, b, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program),
	    0);
}

CASE(.setup = setup, .teardown = tmp_teardown);

/* As on a file system without hard links. */
TEST(no_hard_links)
{
#ifdef SYS_link
	forbid(SYS_link, SYS_linkat);
#else
	forbid(SYS_linkat, SYS_linkat);
#endif
	ck_assert_int_eq(enable(), 1);
	check_as_before();
}

/* Tables from before the setting would count as synced (docs/reftables.md). */
TEST(tables_before_the_setting, .times = 2)
{
	const char *const format = _i == 0 ? "reftable" : "files";

	tmp_run("git -C r.git config core.repositoryFormatVersion 1 && "
		"git -C r.git config extensions.refStorage %s && "
		"cp r.git/config before",
	    format);
	forbid(SYS_syncfs, SYS_syncfs);
	ck_assert_int_eq(enable(), _i == 0);
	if (_i == 0)
		check_as_before();
}
