/*
 * Proves that a confined process cannot run a program, make a process, use the
 * network, reach other processes, or make kernel calls without need. The
 * process opens files only below the permitted directories, also through links.
 * All needed calls still work. If a kernel lacks some means of confinement, the
 * lack is reported and the other means stay in force.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/base/confine.h"
#include "daemon/base/sys_landlock.h"
#include "daemon/base/sys_seccomp.h"
#include "tests/lib/suite.h"

/* With 32 bits the daemon has no filter of system calls, and says so. */
#define HAS_FILTER (sizeof(long) == sizeof(int64_t))

static bool has_filter(const char *test)
{
	if (!HAS_FILTER)
		suite_skip(test, "with 32 bits there is no filter of calls");
	return HAS_FILTER;
}

/* Where a child reports failures. */
static int report_fd;

#define EXPECT(condition)                                                      \
	do {                                                                   \
		if (!(condition)) {                                            \
			dprintf(report_fd, "line %d: %s (errno %d)\n",         \
			    __LINE__, #condition, errno);                      \
			_exit(1);                                              \
		}                                                              \
	} while (0)

#define EXPECT_ERRNO(call, wanted)                                             \
	do {                                                                   \
		errno = 0;                                                     \
		EXPECT((long)(call) == -1 && errno == (wanted));               \
	} while (0)

/* Runs in a child, since confinement cannot be undone. */
static void in_child(void (*run)(void))
{
	char text[512] = "";
	int fds[2], status;
	pid_t pid;

	ck_assert_int_eq(pipe(fds), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		report_fd = fds[1];
		alarm(60);
		run();
		_exit(0);
	}
	close(fds[1]);
	ck_assert_int_ge(read(fds[0], text, sizeof(text) - 1), 0);
	close(fds[0]);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(status == 0, "status %x: %s", (unsigned)status, text);
}

static void enforce_seccomp(void)
{
	EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	EXPECT(sys_seccomp_enforce() == 0);
}

/* ---- system calls ---- */

static void no_programs(void)
{
	char *argv[] = { "true", NULL };

	enforce_seccomp();
	EXPECT_ERRNO(execv("/bin/true", argv), ENOSYS);
	EXPECT_ERRNO(syscall(SYS_execveat, AT_FDCWD, "/bin/true", argv, NULL,
			 0),
	    ENOSYS);
	EXPECT_ERRNO(fork(), ENOSYS);
	EXPECT_ERRNO(syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0), ENOSYS);
	EXPECT_ERRNO(syscall(SYS_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL,
			 NULL, NULL, 0),
	    ENOSYS);
	EXPECT_ERRNO(syscall(SYS_clone3, NULL, 0), ENOSYS);
#ifdef SYS_vfork
	EXPECT_ERRNO(syscall(SYS_vfork), ENOSYS);
#endif
	EXPECT(system("true") != 0);
	EXPECT(popen("true", "r") == NULL);
}

static void no_calls_of_the_kernel(void)
{
	static const long calls[] = { SYS_ptrace, SYS_mount, SYS_umount2,
		SYS_pivot_root, SYS_chroot, SYS_unshare, SYS_setns, SYS_keyctl,
		SYS_add_key, SYS_request_key, SYS_bpf, SYS_userfaultfd,
		SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register,
		SYS_perf_event_open, SYS_process_vm_readv,
		SYS_process_vm_writev, SYS_pidfd_getfd, SYS_open_by_handle_at,
		SYS_name_to_handle_at, SYS_init_module, SYS_finit_module,
		SYS_kexec_load, SYS_reboot, SYS_swapon, SYS_sethostname,
		SYS_settimeofday, SYS_clock_settime, SYS_setuid, SYS_setgid,
		SYS_setresuid, SYS_capset, SYS_memfd_create, SYS_mknodat,
		SYS_symlinkat, SYS_fsopen, SYS_open_tree, SYS_move_mount,
		SYS_personality, SYS_bind, SYS_listen, SYS_shmget, SYS_seccomp,
		SYS_landlock_create_ruleset, SYS_acct, SYS_quotactl,
		SYS_fanotify_init, SYS_setxattr, 4000 };
	size_t i;

	enforce_seccomp();
	for (i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		errno = 0;
		if (syscall(calls[i], 0, 0, 0, 0, 0, 0) != -1 ||
		    errno != ENOSYS) {
			dprintf(report_fd, "call %ld: errno %d\n", calls[i],
			    errno);
			_exit(1);
		}
	}
}

static void no_harmful_arguments(void)
{
	char byte = 'x';
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	enforce_seccomp();
	EXPECT_ERRNO(socket(AF_INET, SOCK_STREAM, 0), ENOSYS);
	EXPECT_ERRNO(socket(AF_INET6, SOCK_DGRAM, 0), ENOSYS);
	EXPECT_ERRNO(socket(AF_NETLINK, SOCK_RAW, 0), ENOSYS);
	EXPECT_ERRNO(socket(AF_PACKET, SOCK_RAW, 0), ENOSYS);
	EXPECT_ERRNO(socket(AF_UNIX, SOCK_STREAM, 0), ENOSYS);
	EXPECT_ERRNO(kill(getppid(), 0), ENOSYS);
	EXPECT_ERRNO(kill(-1, 0), ENOSYS);
	EXPECT_ERRNO(syscall(SYS_tgkill, getppid(), getppid(), 0), ENOSYS);
	EXPECT_ERRNO(mprotect(page, 4096, PROT_READ | PROT_EXEC), ENOSYS);
	EXPECT(mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
	EXPECT_ERRNO(ioctl(0, TIOCSTI, &byte), ENOSYS);
	EXPECT_ERRNO(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), ENOSYS);
}

static void *add_one(void *arg)
{
	++*(int *)arg;
	return NULL;
}

static void what_is_needed(void)
{
	pthread_t thread;
	int fds[2], n = 0;
	char c = 0;

	enforce_seccomp();
	EXPECT(pthread_create(&thread, NULL, add_one, &n) == 0);
	EXPECT(pthread_join(thread, NULL) == 0 && n == 1);
	EXPECT(pipe2(fds, O_CLOEXEC) == 0);
	EXPECT(write(fds[1], "x", 1) == 1 && read(fds[0], &c, 1) == 1);
	EXPECT(ioctl(fds[0], FIONREAD, &n) == 0);
	EXPECT(signal(SIGUSR1, SIG_IGN) != SIG_ERR &&
	    syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1) == 0);
	EXPECT(kill(getpid(), SIGUSR1) == 0);
	EXPECT(open("/proc/self/status", O_RDONLY) >= 0);
}

/* A service of the account that listens, such as an agent with keys. */
static void no_foreign_sockets(void)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	struct sockaddr *name = (struct sockaddr *)&to;
	struct msghdr m = { .msg_name = &to, .msg_namelen = sizeof(to) };
	int stream = socket(AF_UNIX, SOCK_STREAM, 0);
	int datagrams = socket(AF_UNIX, SOCK_DGRAM, 0);
	int connected = socket(AF_UNIX, SOCK_DGRAM, 0);

	/* A name in the abstract namespace. */
	snprintf(to.sun_path + 1, sizeof(to.sun_path) - 1, "agent-%d",
	    (int)getpid());
	EXPECT(bind(datagrams, name, sizeof(to)) == 0);
	EXPECT(connect(connected, name, sizeof(to)) == 0);
	enforce_seccomp();
	EXPECT_ERRNO(connect(stream, name, sizeof(to)), ENOSYS);
	EXPECT_ERRNO(connect(connected, name, sizeof(to)), ENOSYS);
	EXPECT_ERRNO(sendto(connected, "x", 1, 0, name, sizeof(to)), ENOSYS);
	EXPECT_ERRNO(sendmsg(connected, &m, 0), ENOSYS);
	EXPECT_ERRNO(sendmmsg(connected, NULL, 0, 0), ENOSYS);
	/* As to the service manager. */
	EXPECT(send(connected, "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1);
}

CASE(.is_left_out = !has_filter("confine"));

TEST(runs_no_programs)
{
	in_child(no_programs);
}

TEST(makes_no_other_calls)
{
	in_child(no_calls_of_the_kernel);
}

TEST(gives_no_harmful_arguments)
{
	in_child(no_harmful_arguments);
}

TEST(reaches_no_foreign_sockets)
{
	in_child(no_foreign_sockets);
}

TEST(does_what_is_needed)
{
	in_child(what_is_needed);
}

/* ---- files ---- */

static char dir[128];

static const char *in_dir(const char *name)
{
	static char paths[4][256];
	static unsigned at;
	char *path = paths[at++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
	return path;
}

static void put(const char *name)
{
	int fd = open(in_dir(name), O_CREAT | O_WRONLY, 0600);

	ck_assert_int_ge(fd, 0);
	close(fd);
}

static void setup(void)
{
	static const char *const dirs[] = { "kept", "kept/a", "kept/b",
		"renewed", "read", "outside" };
	const char *tmp = getenv("TMPDIR");
	size_t i;

	snprintf(dir, sizeof(dir), "%s/test_confine.XXXXXX",
	    tmp != NULL ? tmp : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	for (i = 0; i < sizeof(dirs) / sizeof(*dirs); i++)
		ck_assert_int_eq(mkdir(in_dir(dirs[i]), 0700), 0);
	put("kept/a/file");
	put("read/file");
	put("outside/secret");
	ck_assert_int_eq(symlink(in_dir("outside/secret"), in_dir("kept/link")),
	    0);
	ck_assert_int_eq(symlink(in_dir("outside"), in_dir("kept/way")), 0);
}

static void teardown(void)
{
	char command[256];

	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	ck_assert_int_eq(system(command), 0);
}

CASE(.setup = setup, .teardown = teardown);

static struct landlock enforce_landlock(void)
{
	struct landlock l;

	EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	EXPECT(landlock_begin(&l) == 0);
	EXPECT(landlock_allow(&l, in_dir("kept"), LANDLOCK_KEEP) == 0);
	EXPECT(landlock_allow(&l, in_dir("renewed"), LANDLOCK_RENEW) == 0);
	EXPECT(landlock_allow(&l, in_dir("read"), LANDLOCK_READ) == 0);
	EXPECT(landlock_allow(&l, in_dir("none"), LANDLOCK_READ) == -ENOENT);
	EXPECT(landlock_enforce(&l) == 0);
	return l;
}

/* systemd-nspawn and other containers deny Landlock by default. */
static bool has_landlock(const char *test)
{
	if (syscall(SYS_landlock_create_ruleset, NULL, 0, 1) > 0)
		return true;
	suite_skip(test, "Landlock is denied here");
	return false;
}

static void nothing_outside(void)
{
	int fd;

	enforce_landlock();
	EXPECT_ERRNO(open(in_dir("outside/secret"), O_RDONLY), EACCES);
	EXPECT_ERRNO(open(in_dir("kept/link"), O_RDONLY), EACCES);
	EXPECT_ERRNO(open(in_dir("kept/way/secret"), O_WRONLY), EACCES);
	EXPECT_ERRNO(open(in_dir("kept/way/new"), O_CREAT | O_WRONLY, 0600),
	    EACCES);
	EXPECT_ERRNO(open("/etc/shadow", O_RDONLY), EACCES);
	EXPECT_ERRNO(open("/dev/zero", O_RDONLY), EACCES);
	EXPECT_ERRNO(unlink(in_dir("outside/secret")), EACCES);
	EXPECT_ERRNO(truncate(in_dir("outside/secret"), 0), EACCES);
	EXPECT_ERRNO(rename(in_dir("kept/a/file"), in_dir("outside/file")),
	    EACCES);
	EXPECT_ERRNO(link(in_dir("outside/secret"), in_dir("kept/a/secret")),
	    EXDEV);
	EXPECT_ERRNO(mkdir(in_dir("outside/dir"), 0700), EACCES);
	fd = open(in_dir("outside"), O_PATH);
	EXPECT(fd >= 0);
	EXPECT_ERRNO(openat(fd, "secret", O_RDONLY), EACCES);
}

static void rights_below(void)
{
	enforce_landlock();
	EXPECT(open(in_dir("kept/a/new"), O_CREAT | O_RDWR, 0600) >= 0);
	EXPECT(link(in_dir("kept/a/new"), in_dir("kept/b/link")) == 0);
	EXPECT(rename(in_dir("kept/a/new"), in_dir("kept/b/new")) == 0);
	EXPECT(mkdir(in_dir("kept/c"), 0700) == 0);
	EXPECT(rmdir(in_dir("kept/c")) == 0);
	EXPECT_ERRNO(symlink("a", in_dir("kept/symlink")), EACCES);
	EXPECT_ERRNO(mkfifo(in_dir("kept/fifo"), 0600), EACCES);
	EXPECT(open(in_dir("renewed/new"), O_CREAT | O_RDWR, 0600) >= 0);
	EXPECT(rename(in_dir("renewed/new"), in_dir("renewed/file")) == 0);
	EXPECT(unlink(in_dir("renewed/file")) == 0);
	EXPECT_ERRNO(mkdir(in_dir("renewed/dir"), 0700), EACCES);
	EXPECT(open(in_dir("read/file"), O_RDONLY) >= 0);
	EXPECT_ERRNO(open(in_dir("read/file"), O_WRONLY), EACCES);
	EXPECT_ERRNO(open(in_dir("read/new"), O_CREAT | O_RDWR, 0600), EACCES);
}

static void no_network(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
		.sin_port = htons(9),
		.sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct landlock l = enforce_landlock();
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	EXPECT(fd >= 0);
	if (l.abi >= 4)
		EXPECT_ERRNO(connect(fd, (struct sockaddr *)&addr,
				 sizeof(addr)),
		    EACCES);
	if (l.abi >= 6)
		EXPECT_ERRNO(kill(getppid(), 0), EPERM);
	EXPECT(kill(getpid(), 0) == 0);
}

TEST(opens_nothing_outside)
{
	if (has_landlock("opens_nothing_outside"))
		in_child(nothing_outside);
}

TEST(has_rights_below)
{
	if (has_landlock("has_rights_below"))
		in_child(rights_below);
}

TEST(has_no_network)
{
	if (has_landlock("has_no_network"))
		in_child(no_network);
}

/* ---- the whole confinement ---- */

#ifndef REFD_UNCONFINED
static struct confine_places places(const char *const *roots, size_t nr)
{
	return (struct confine_places){ .roots = roots,
		.nr_roots = nr,
		.state_dir = in_dir("renewed"),
		.sockets = { in_dir("read/socket"), NULL } };
}

static void everything(void)
{
	const char *roots[] = { in_dir("kept") };
	struct confine_places p = places(roots, 1);
	struct confined c;
	char *why;

	EXPECT(confine_process(&p, &c, &why) == 0);
	dprintf(report_fd, "by '%s', without '%s'\n", c.by, c.without);
	EXPECT(strstr(c.by, "no new privileges, ") == c.by);
	EXPECT(strstr(c.by, ", Landlock ") != NULL);
	EXPECT(strstr(c.by, ", seccomp") != NULL);
	EXPECT(c.without[0] == '\0');
	EXPECT(prctl(PR_SET_NAME, "confined") == 0);
	EXPECT_ERRNO(open(in_dir("outside/secret"), O_RDONLY), EACCES);
	/* A daemon of another account may read /etc, as everybody may. */
	if (geteuid() == 0)
		EXPECT_ERRNO(open("/etc/shadow", O_RDONLY), EACCES);
	EXPECT_ERRNO(fork(), ENOSYS);
	EXPECT(open(in_dir("renewed/journal"), O_CREAT | O_RDWR, 0600) >= 0);
}

static void missing_place(void)
{
	const char *kept = in_dir("kept");
	const char *roots[] = { kept, in_dir("gone"), kept };
	struct confine_places p = places(roots, 2);
	struct confined c;
	char *why;

	EXPECT(confine_process(&p, &c, &why) == -ENOENT);
	EXPECT(strstr(why, "/gone: No such file") != NULL);
	/* The first one is missing. */
	p.roots++;
	EXPECT(confine_process(&p, &c, &why) == -ENOENT);
	EXPECT(strstr(why, "/gone: No such file") != NULL);
}

/* As a kernel without CALL, or a container that forbids CALL. */
static void forbid(int call, int err)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);

	EXPECT(ctx != NULL);
	EXPECT(
	    seccomp_rule_add(ctx, SCMP_ACT_ERRNO((uint32_t)err), call, 0) == 0);
	EXPECT(seccomp_load(ctx) == 0);
	seccomp_release(ctx);
}

static void lacking_kernel(void)
{
	const char *roots[] = { in_dir("kept") };
	struct confine_places p = places(roots, 1);
	struct confined c;
	char *why;

	forbid(SCMP_SYS(landlock_create_ruleset), ENOSYS);
	forbid(SCMP_SYS(openat2), ENOSYS);
	EXPECT(confine_process(&p, &c, &why) == 0);
	dprintf(report_fd, "by '%s', without '%s'\n", c.by, c.without);
	EXPECT(strcmp(c.without,
		   "openat2 (the kernel is older than 5.6), "
		   "Landlock (Function not implemented)") == 0);
	EXPECT(strstr(c.by, "seccomp") != NULL);
	EXPECT_ERRNO(fork(), ENOSYS);
	EXPECT(open(in_dir("outside/secret"), O_RDONLY) >= 0);
}

static void lacking_seccomp(void)
{
	const char *roots[] = { in_dir("kept") };
	struct confine_places p = places(roots, 1);
	struct confined c;
	char *why;

	forbid(SCMP_SYS(seccomp), EPERM);
	EXPECT(confine_process(&p, &c, &why) == 0);
	dprintf(report_fd, "by '%s', without '%s'\n", c.by, c.without);
	EXPECT(strstr(c.without, "seccomp (") == c.without);
	EXPECT_ERRNO(open(in_dir("outside/secret"), O_RDONLY), EACCES);
}

TEST(confines_all)
{
	if (has_filter("confines_all") && has_landlock("confines_all"))
		in_child(everything);
}

TEST(names_a_missing_place)
{
	if (has_landlock("names_a_missing_place"))
		in_child(missing_place);
}

TEST(reports_what_is_missing)
{
	if (HAS_FILTER)
		in_child(lacking_kernel);
	if (has_landlock("reports_what_is_missing"))
		in_child(lacking_seccomp);
}
#endif
