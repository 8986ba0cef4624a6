/*
 * Proves that enable sets up the hook and the configuration of a repository,
 * and that disable removes exactly this, to the byte, also after changes by
 * others. Settings of others stay, and overrule refd's. A foreign hook is
 * refused without any change. Both commands can be repeated, and enable mends.
 * A worker of root that a repository has tricked gets nothing for others, and
 * no user leads root's --root to the repositories of others. The doctor's
 * repair leaves a repository alone that it has not checked. A reader of the
 * configuration keeps no lock. If the kernel refuses a call which the change
 * needs, enable changes nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/commands.h"
#include "client/enable/durable.h"
#include "client/enable/enable.h"
#include "client/enable/shared_hooks.h"
#include "proto/lib/worker.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

static char repo[600];

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

static void setup(void)
{
	tmp_setup();
	unsetenv("REFD_SOCKET");
	tmp_run(
	    "umask 022 && git init -q -b main --bare r.git && mkdir -p r.git/hooks && "
	    "cp r.git/config before");
	snprintf(repo, sizeof(repo), "%s/r.git", tmp_root);
}

static int run(const struct command *command, const char *option,
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
	return command->run(command, argc, argv);
}

/* Of a child: a wrong option ends the program. */
static int status_in_child(const struct command *command, int argc, char **argv)
{
	pid_t pid = fork();
	int status;

	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		exit(command->run(command, argc, argv));
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int status_of(const struct command *command, const char *option,
    const char *value)
{
	char *argv[] = { "x", (char *)option, (char *)value, repo, NULL };

	if (value == NULL) {
		argv[2] = repo;
		argv[3] = NULL;
	}
	return status_in_child(command, value != NULL ? 4 : 3, argv);
}

static int enable(void)
{
	return run(&enable_command, NULL, NULL);
}

static int disable(void)
{
	return run(&disable_command, NULL, NULL);
}

static void check_config(const char *key, const char *wanted)
{
	char *got = tmp_output("git -C r.git config --get-all %s; true", key);

	ck_assert_str_eq(got, wanted);
	free(got);
}

/* The value that counts. */
static void check_last(const char *key, const char *wanted)
{
	char *got = tmp_output("git -C r.git config --get %s", key);

	ck_assert_str_eq(got, wanted);
	free(got);
}

static void check_as_before(void)
{
	tmp_run("cmp before r.git/config");
	ck_assert(!tmp_exists("r.git/hooks/proc-receive"));
	ck_assert(!tmp_exists("r.git/refd.gitconfig"));
}

static void expect_refused(void)
{
	ck_assert_int_eq(enable(), 1);
	tmp_run("cmp before r.git/config");
}

static void disable_all(void)
{
	ck_assert_int_eq(disable(), 0);
	check_as_before();
}

CASE(.setup = setup, .teardown = tmp_teardown, .seconds = 60);

TEST(test_there_and_back)
{
	ck_assert_int_eq(run(&enable_command, "--socket", "/s.sock"), 0);
	tmp_run("test -x r.git/hooks/proc-receive -a "
		"-L r.git/hooks/proc-receive");
	check_config("receive.procReceiveRefs", "refs\nadm!:refs\n");
	check_config("refd.socket", "/s.sock\n");
	check_config("core.fsync", "committed,loose-object\n");
	check_config("core.fsyncMethod", "batch\n");
	check_config("maintenance.pack-refs.enabled", "false\n");
	check_config("gc.packRefs", "false\n");

	tmp_run("cp r.git/config once");
	ck_assert_int_eq(run(&enable_command, "--socket", "/s.sock"), 0);
	tmp_run("cmp once r.git/config");

	disable_all();
	disable_all();
}

TEST(test_options)
{
	setenv("REFD_SOCKET", "/env.sock", 1);
	ck_assert_int_eq(enable(), 0);
	check_config("refd.socket", "/env.sock\n");
	ck_assert_int_eq(status_of(&enable_command, "--frob", NULL), 129);
	ck_assert_int_eq(status_of(&disable_command, "--frob", NULL), 129);
	disable_all();
}

/* Earlier settings stay, and count. */
TEST(test_what_was_there)
{
	tmp_run("cd r.git && git config refd.socket /old && "
		"git config core.fsync none && "
		"git config maintenance.pack-refs.enabled true && "
		"git config receive.procReceiveRefs refs/for && "
		"git config --add receive.procReceiveRefs refs && "
		"cp config ../before");
	tmp_put(".gitconfig", "[core]\n\tfsyncMethod = fsync\n");
	/* The own value would count. */
	ck_assert_int_eq(run(&enable_command, "--socket", "/new"), 1);
	check_as_before();
	ck_assert_int_eq(run(&enable_command, "--socket", "/old"), 0);
	check_config("refd.socket", "/old\n");
	check_config("core.fsync", "none\n");
	check_config("core.fsyncMethod", "fsync\n");
	check_config("maintenance.pack-refs.enabled", "true\n");
	check_config("receive.procReceiveRefs",
	    "refs\nadm!:refs\nrefs/for\nrefs\n");
	/* Without the hook, git would refuse pushes for the value of others,
	 * too. */
	ck_assert_int_eq(disable(), 0);
	tmp_run("git config --file before --unset receive.procReceiveRefs "
		"'^refs$'");
	check_as_before();
}

TEST(test_changed_since)
{
	ck_assert_int_eq(run(&enable_command, "--socket", "/s"), 0);
	tmp_run("cd r.git && git config refd.socket /theirs && "
		"git config core.fsync none && "
		"rm hooks/proc-receive && echo theirs >hooks/proc-receive");
	ck_assert_int_eq(disable(), 0);
	check_config("refd.socket", "/theirs\n");
	check_config("core.fsync", "none\n");
	check_config("core.fsyncMethod", "");
	check_config("receive.procReceiveRefs", "");
	tmp_run("grep -q theirs r.git/hooks/proc-receive");
}

TEST(test_foreign_hook)
{
	tmp_put("r.git/hooks/proc-receive", "#!/bin/sh\n");
	expect_refused();
	ck_assert(!tmp_exists("r.git/refd.gitconfig"));
	tmp_run("ln -sf /bin/true r.git/hooks/proc-receive");
	expect_refused();
}

TEST(test_shared_hooks)
{
	char self[600] = "";

	ck_assert_int_gt(readlink("/proc/self/exe", self, sizeof(self) - 1), 0);
	tmp_mkdir("shared");
	tmp_run("git -C r.git config core.hooksPath \"$PWD/shared\" && "
		"cp r.git/config before");
	expect_refused();
	tmp_run("ln -s '%s' shared/proc-receive", self);
	ck_assert_int_eq(enable(), 0);
	check_config("receive.procReceiveRefs", "refs\nadm!:refs\n");
	disable_all();
	ck_assert(tmp_exists("shared/proc-receive"));
}

TEST(test_no_hooks_dir)
{
	tmp_run("rm -r r.git/hooks");
	ck_assert_int_eq(enable(), 0);
	tmp_run("test -x r.git/hooks/proc-receive");
	ck_assert_int_eq(disable(), 0);
	ck_assert(!tmp_exists("r.git/hooks"));
	check_as_before();
}

/* Somebody took a part away. */
TEST(test_mended)
{
	ck_assert_int_eq(enable(), 0);
	tmp_run("cp r.git/config once && cd r.git && rm hooks/proc-receive && "
		"git config -f refd.gitconfig --unset "
		"receive.procReceiveRefs '^refs$' && "
		"git config -f refd.gitconfig --unset core.fsync");
	ck_assert_int_eq(enable(), 0);
	check_config("core.fsync", "committed,loose-object\n");
	tmp_run("test \"$(git -C r.git config --get-all "
		"receive.procReceiveRefs | sort | xargs)\" = "
		"'adm!:refs refs' && test -x r.git/hooks/proc-receive");
	tmp_run("cp before r.git/config && rm r.git/hooks/proc-receive");
	ck_assert_int_eq(enable(), 0);
	tmp_run("cmp once r.git/config");
	disable_all();
}

/* The owner of a repository may put any file in place of its configuration. */
TEST(test_config_that_is_no_file, .times = 4)
{
	static const char *const makes[] = { "mkfifo", "mkdir",
		"truncate -s 1G", "ln -s /dev/null" };

	tmp_run("rm r.git/config && %s r.git/config && "
		"ls -l r.git/config >listed",
	    makes[_i]);
	ck_assert_int_eq(enable(), 1);
	ck_assert_int_eq(disable(), 1);
	tmp_run("ls -l r.git/config | cmp - listed");
}

/* A member of the group can exchange the file after it was read. */
TEST(test_sync_of_a_fifo)
{
	char path[700];

	tmp_run("mkfifo fifo");
	snprintf(path, sizeof(path), "%s/fifo", tmp_root);
	ck_assert_int_eq(durable_sync_fs(path), 0);
}

/* The owner may put any file in place of the record, too. The hook stays until
 * the file is away. */
TEST(test_record_that_is_no_file, .times = 6)
{
	static const char *const makes[] = { "mkfifo", "mkdir",
		"truncate -s 40G", "ln -s ../config", "echo '[' >",
		"yes '[a]b' | head -n 30000 >" };

	ck_assert_int_eq(enable(), 0);
	tmp_run("rm r.git/refd.gitconfig && %s r.git/refd.gitconfig && "
		"ls -l r.git/refd.gitconfig >listed",
	    makes[_i]);
	ck_assert_int_eq(enable(), 1);
	ck_assert_int_eq(disable(), 1);
	tmp_run(
	    "ls -l r.git/refd.gitconfig | cmp - listed && "
	    "test -L r.git/hooks/proc-receive && rm -r r.git/refd.gitconfig");
	disable_all();
}

/* A record that names what others have made. */
TEST(test_lying_record)
{
	tmp_run("git -C r.git config receive.autogc false && "
		"cp r.git/config before && echo theirs >r.git/hooks/update");
	ck_assert_int_eq(enable(), 0);
	tmp_run("cd r.git && for i in core.bare receive.autogc; do "
		"git config -f refd.gitconfig $i false || exit 1; done; "
		"git config -f refd.gitconfig refd.enable.hook ../config && "
		"git config -f refd.gitconfig refd.enable.gate update && "
		"git config -f refd.gitconfig refd.enable.madeconfig true");
	disable_all();
	ck_assert(tmp_exists("r.git/hooks/update"));
}

/* Another program has written a part of the configuration anew. Nothing of it
 * is left with the hook gone. */
TEST(test_rewritten, .times = 5)
{
	static const char *const edits[] = {
		"git config --replace-all receive.procReceiveRefs refs",
		"git config --replace-all receive.procReceiveRefs 'adm!:refs'",
		"git config receive.procReceiveRefs refs && rm refd.gitconfig && "
		"git config --unset receive.procReceiveRefs",
		"sed -i 's,^\tpath = .*,path=refd.gitconfig # mine,' config",
		"sed -i '1,2d; $a [includeIf \"gitdir:/\"] path=refd.gitconfig' "
		"config",
	};

	tmp_run("git -C r.git config receive.autogc false && "
		"cp r.git/config before");
	ck_assert_int_eq(enable(), 0);
	tmp_run("cd r.git && %s", edits[_i]);
	if (_i % 2)
		ck_assert_int_eq(enable(), 0);
	disable_all();
}

/* Whoever can read the configuration has to be able to read the record, or git
 * fails. */
TEST(test_closed_umask)
{
	mode_t was = umask(077);

	tmp_run("chmod 640 r.git/config");
	ck_assert_int_eq(enable(), 0);
	umask(was);
	ck_assert_uint_eq(tmp_mode("r.git/refd.gitconfig"), 0640);
	ck_assert_uint_eq(tmp_mode("r.git/config"), 0640);
	disable_all();
}

/* A second command waits for nobody, and changes nothing. */
TEST(test_at_work)
{
	char lock[700];
	int fd;

	ck_assert_int_eq(enable(), 0);
	tmp_run("cp r.git/config once && cd r.git && "
		"echo >refd.gitconfig.refd && "
		"ln refd.gitconfig.refd refd.gitconfig.lock");
	snprintf(lock, sizeof(lock), "%s/r.git/refd.gitconfig.refd", tmp_root);
	fd = open(lock, O_RDONLY | O_CLOEXEC);
	ck_assert_int_eq(flock(fd, LOCK_EX), 0);
	ck_assert_int_eq(enable(), 1);
	ck_assert_int_eq(disable(), 1);
	tmp_run("cmp once r.git/config && test -L r.git/hooks/proc-receive");
	/* The other one was killed. */
	close(fd);
	disable_all();
	tmp_run("test -z \"$(ls r.git | grep refd)\"");
}

/* ---- a reader of the files ---- */

static bool has_reader;

/* Replaces libc's. Whoever may read the file tries to be the first. */
int flock(int fd, int operation)
{
	char path[64];
	struct stat st;
	int reader;

	if (has_reader && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    (st.st_mode & 0004)) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		reader = open(path, O_RDONLY | O_CLOEXEC);
		if (syscall(SYS_flock, reader, LOCK_EX | LOCK_NB) < 0)
			close(reader);
	}
	return (int)syscall(SYS_flock, fd, operation);
}

/* A lock that a reader could take would keep root away for ever. */
TEST(test_readers)
{
	has_reader = true;
	ck_assert_int_eq(enable(), 0);
	tmp_run("test -z \"$(ls r.git | grep '\\.refd$')\"");
	ck_assert_int_eq(disable(), 0);
	has_reader = false;
	check_as_before();
}

/* Text that git config would not restore: an empty section, a last line without
 * an end, text behind the name of a section. */
TEST(test_odd_configuration, .times = 7)
{
	static const char *const ends[] = { "[receive]\n[other]\n",
		"[receive]\n# no end of line", "[receive] autogc = false",
		"[refd]\n", "[receive]\r\n\tautogc = false\r\n",
		"# a comment \\\\"
		"x",
		"[a] b = c\\\\" };

	tmp_run("printf '%s' >>r.git/config && cp -p r.git/config before && "
		"chmod 640 r.git/config",
	    ends[_i]);
	ck_assert_int_eq(run(&enable_command, "--socket", "/s"), 0);
	ck_assert_int_eq(run(&enable_command, "--socket", "/newer"), 0);
	disable_all();
	ck_assert_uint_eq(tmp_mode("r.git/config"), 0640);
}

/* Git takes the mark of the encoding at the begin alone. */
TEST(test_encoding_mark)
{
	tmp_run("printf '\\357\\273\\277' | cat - before >r.git/config && "
		"cp r.git/config before");
	ck_assert_int_eq(enable(), 0);
	check_config("core.fsyncMethod", "batch\n");
	disable_all();
}

/* Text before and behind refd's lines stays, and refd's lines go to the byte.
 */
TEST(test_edited_around, .times = 5)
{
	static const char *const edits[] = {
		"sed -i '1i # above' %s",
		"sed -i '$a [user]' %s",
		"sed -i '1i [one]\nkey = value' %s; printf '# below' >>%s",
		"git config -f %s user.name N",
		"git config -f %s core.bare false",
	};

	tmp_run(edits[_i], "before", "before");
	ck_assert_int_eq(run(&enable_command, "--socket", "/s"), 0);
	tmp_run(edits[_i], "r.git/config", "r.git/config");
	disable_all();
}

/* Values in the configuration overrule refd's, wherever git config puts them,
 * and stay. */
TEST(test_overruled)
{
	ck_assert_int_eq(run(&enable_command, "--socket", "/s"), 0);
	tmp_run("cd r.git && git config receive.autogc false && "
		"git config include.path other && "
		"git config refd.socket /theirs && "
		"git config core.fsync all");
	ck_assert_int_eq(enable(), 0);
	check_last("core.fsync", "all\n");
	check_last("refd.socket", "/theirs\n");
	ck_assert_int_eq(disable(), 0);
	check_config("receive.autogc", "false\n");
	check_config("include.path", "other\n");
	check_config("refd.socket", "/theirs\n");
	check_config("core.fsync", "all\n");
	check_config("core.fsyncMethod", "");
	check_config("receive.procReceiveRefs", "");
}

TEST(test_linked_config)
{
	tmp_run("mv r.git/config real && ln -s ../real r.git/config && "
		"cp real before");
	ck_assert_int_eq(enable(), 0);
	check_config("core.fsyncMethod", "batch\n");
	ck_assert_int_eq(disable(), 0);
	tmp_run("test -L r.git/config");
	check_as_before();
}

TEST(test_owner)
{
	if (geteuid() != 0) {
		suite_skip(__func__, "only root can change owners");
		return;
	}
	tmp_run("chown 65534:65533 r.git/config && chmod 640 r.git/config && "
		"stat -c '%%u %%g %%a' r.git/config >owner");
	ck_assert_int_eq(enable(), 0);
	tmp_run("stat -c '%%u %%g %%a' r.git/config | cmp - owner");
	ck_assert_int_eq(disable(), 0);
	tmp_run("stat -c '%%u %%g %%a' r.git/config | cmp - owner");
	check_as_before();
}

/* git's lock stops disable and stays. Without the lock, disable succeeds. */
TEST(test_locked)
{
	ck_assert_int_eq(enable(), 0);
	tmp_put("r.git/config.lock", "theirs");
	ck_assert_int_eq(disable(), 1);
	ck_assert(tmp_exists("r.git/config.lock"));
	ck_assert(tmp_exists("r.git/hooks/proc-receive"));
	tmp_run("rm r.git/config.lock");
	disable_all();
}

/* Signs with a meaning in git's syntax. */
TEST(test_signs)
{
	const char *socket = "/a \"b\\c#;d' ";

	ck_assert_int_eq(run(&enable_command, "--socket", socket), 0);
	check_config("refd.socket", "/a \"b\\c#;d' \n");
	tmp_run("cp r.git/config once");
	ck_assert_int_eq(run(&enable_command, "--socket", socket), 0);
	tmp_run("cmp once r.git/config");
	disable_all();
}

/* ---- a worker that was tricked ---- */

#define OWNER "64001"
#define OTHER "64002"

/* Packets that no worker of refd sends. "%" is the directory of the test. */
static const char *const tricks[] = { "", "l", "l%/other.git", "m%/other.git",
	"l%/r.git/../other.git", "l%/link", "lother.git", "o", "p%/other.git",
	"n%/other.git", "z%/r.git", "l%/none", "l/" };

/* Replaces libc's, which the work calls: the first call sends all tricks. */
int fsync(int fd)
{
	static bool is_done;
	char packet[700];
	size_t i;

	for (i = 0; geteuid() == 64001 && !is_done &&
	    i < sizeof(tricks) / sizeof(tricks[0]);
	    i++) {
		const char *at = strchr(tricks[i], '%');

		snprintf(packet, sizeof(packet), "%.*s%s%s",
		    at ? (int)(at - tricks[i]) : 700, tricks[i],
		    at ? tmp_root : "", at ? at + 1 : "");
		/* With and without the NUL at the end. */
		if (worker_tell(packet, strlen(packet) + 1) != 0 ||
		    worker_tell(packet, strlen(packet)) != 0)
			abort();
	}
	is_done |= geteuid() == 64001;
	return (int)syscall(SYS_fsync, fd);
}

TEST(test_tricked)
{
	if (!suite_is_root(__func__))
		return;
	tmp_run("chmod 755 . && git init -q --bare other.git && "
		"ln -s other.git link && chown -R " OWNER " r.git && "
		"chown -R " OTHER " other.git && git config --global "
		"--add safe.directory '*'");
	ck_assert_int_eq(enable(), 0);
	tmp_run(
	    "test \"$(cat state/enabled/list)\" = \"repository $PWD/r.git\" "
	    "&& echo \"repository $PWD/other.git\" >>state/enabled/list && "
	    "test ! -e share");
	ck_assert_int_eq(disable(), 0);
	tmp_run("test \"$(cat state/enabled/list)\" = "
		"\"repository $PWD/other.git\"");
}

/* The exit status of COMMAND --system --root ROOT. */
static int of_root(const struct command *command, const char *root)
{
	char dir[PATH_MAX];
	char *argv[] = { "x", "--system", "--root", dir, NULL };

	snprintf(dir, sizeof(dir), "%s/%s", tmp_root, root);
	return status_in_child(command, 4, argv);
}

/* All below a root is enabled, so nobody but root and its owner may decide
 * where the root is. */
TEST(test_led_by_a_root)
{
	char *config = xasprintf("%s/etc/gitconfig", tmp_root);

	if (!suite_is_root(__func__))
		return;
	setenv("GIT_CONFIG_SYSTEM", config, 1);
	unsetenv("GIT_CONFIG_NOSYSTEM");
	free(config);
	tmp_run("chmod 755 . && mkdir -p etc mine/of-root theirs && "
		"git init -q --bare theirs/a.git && ln -s ../theirs mine/link "
		"&& chown -h " OWNER " mine mine/link && "
		"chown -R " OTHER " theirs");
	ck_assert_int_eq(of_root(&enable_command, "mine/link"), 128);
	ck_assert_int_eq(of_root(&enable_command, "mine/of-root"), 128);
	ck_assert(!tmp_exists("etc/gitconfig"));
	ck_assert_int_eq(of_root(&enable_command, "theirs"), 0);
	tmp_run("grep -q '/theirs/' etc/gitconfig && cp etc/gitconfig enabled");
	ck_assert_int_eq(of_root(&disable_command, "mine/link"), 0);
	tmp_run("cmp enabled etc/gitconfig");
	ck_assert_int_eq(of_root(&disable_command, "theirs"), 0);
	tmp_run("! grep -q '/theirs/' etc/gitconfig");
}

/* The repository was replaced after the doctor had checked the path. */
TEST(test_checked)
{
	struct stat was;
	struct wishes w;

	ck_assert_int_eq(stat(repo, &was), 0);
	tmp_run("mv r.git old.git && cp -Rp old.git r.git");
	enable_begin(&w);
	ck_assert(!enable_checked(repo, &was, &w));
	check_as_before();
	ck_assert_int_eq(stat(repo, &was), 0);
	ck_assert(enable_checked(repo, &was, &w));
	ck_assert(enable_end(&w));
	check_config("receive.procReceiveRefs", "refs\nadm!:refs\n");
	disable_all();
}

TEST(test_usage, .times = 4)
{
	static const char *const bad[][2] = { { "--all", "--all" },
		{ "--root", "/" }, { "--system", NULL }, { "--list", NULL } };

	ck_assert_int_eq(status_of(&enable_command, bad[_i][0], bad[_i][1]),
	    129);
	tmp_run("cmp before r.git/config");
}

TEST(test_no_repository)
{
	tmp_run("rm -r r.git");
	ck_assert_int_eq(enable(), 1);
	ck_assert_int_eq(disable(), 1);
}

/* ---- calls that the kernel refuses ---- */

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

/* As on a file system without hard links. */
TEST(test_no_hard_links)
{
#ifdef SYS_link
	forbid(SYS_link, SYS_linkat);
#else
	forbid(SYS_linkat, SYS_linkat);
#endif
	expect_refused();
}

/* Tables from before the setting would count as synced (docs/reftables.md). */
TEST(test_tables_before_the_setting, .times = 2)
{
	const char *const format = _i == 0 ? "reftable" : "files";

	tmp_run("git -C r.git config core.repositoryFormatVersion 1 && "
		"git -C r.git config extensions.refStorage %s && "
		"cp r.git/config before",
	    format);
	forbid(SYS_syncfs, SYS_syncfs);
	ck_assert_int_eq(enable(), _i == 0);
	if (_i == 0)
		tmp_run("cmp before r.git/config");
}
