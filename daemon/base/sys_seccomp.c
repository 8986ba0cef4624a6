/*
 * The table names the system calls of the daemon, libevent, SQLite, zlib and
 * the C library. Calls restricted by an argument have separate rules: threads
 * and no processes, sending without an address, signals to the daemon alone.
 * clone3 is left out on purpose, because its flags are in memory, out of reach
 * of a filter. The C library then uses clone.
 *
 * No call makes or connects a socket, or names the address of a message. The
 * services of the account that listen on Unix sockets would otherwise act for
 * code inside the daemon: its service manager, an agent with keys, a database.
 * The daemon connects before the filter (notify.h). A look-up of a name that a
 * directory service would answer over a socket fails.
 */
#include "daemon/base/sys_seccomp.h"

#include <errno.h>
#include <linux/btrfs.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

/* A name that an architecture lacks is skipped by libseccomp. */
static const int allowed[] = {
	/* files */
	SCMP_SYS(access),
	SCMP_SYS(chmod),
	SCMP_SYS(chown),
	SCMP_SYS(close),
	SCMP_SYS(close_range),
	SCMP_SYS(dup),
	SCMP_SYS(dup2),
	SCMP_SYS(dup3),
	SCMP_SYS(faccessat),
	SCMP_SYS(faccessat2),
	SCMP_SYS(fadvise64),
	SCMP_SYS(fallocate),
	SCMP_SYS(fchmod),
	SCMP_SYS(fchmodat),
	SCMP_SYS(fchown),
	SCMP_SYS(fchownat),
	SCMP_SYS(fcntl),
	SCMP_SYS(fdatasync),
	SCMP_SYS(flock),
	SCMP_SYS(fstat),
	SCMP_SYS(fstatfs),
	SCMP_SYS(fsync),
	SCMP_SYS(ftruncate),
	SCMP_SYS(getcwd),
	SCMP_SYS(getdents64),
	SCMP_SYS(link),
	SCMP_SYS(linkat),
	SCMP_SYS(lseek),
	SCMP_SYS(lstat),
	SCMP_SYS(mkdir),
	SCMP_SYS(mkdirat),
	SCMP_SYS(newfstatat),
	SCMP_SYS(open),
	SCMP_SYS(openat),
	SCMP_SYS(openat2),
	SCMP_SYS(pread64),
	SCMP_SYS(preadv),
	SCMP_SYS(preadv2),
	SCMP_SYS(pwrite64),
	SCMP_SYS(pwritev),
	SCMP_SYS(pwritev2),
	SCMP_SYS(read),
	SCMP_SYS(readlink),
	SCMP_SYS(readlinkat),
	SCMP_SYS(readv),
	SCMP_SYS(rename),
	SCMP_SYS(renameat),
	SCMP_SYS(renameat2),
	SCMP_SYS(rmdir),
	SCMP_SYS(stat),
	SCMP_SYS(statfs),
	SCMP_SYS(statx),
	SCMP_SYS(sync_file_range),
	SCMP_SYS(sync_file_range2),
	SCMP_SYS(syncfs),
	SCMP_SYS(umask),
	SCMP_SYS(unlink),
	SCMP_SYS(unlinkat),
	SCMP_SYS(utimensat),
	SCMP_SYS(write),
	SCMP_SYS(writev),
	/* memory */
	SCMP_SYS(brk),
	SCMP_SYS(madvise),
	SCMP_SYS(mincore),
#ifdef __s390__
	SCMP_SYS(mmap), /* its arguments are in memory */
#endif
	SCMP_SYS(mremap),
	SCMP_SYS(munmap),
	/* threads and signals */
	SCMP_SYS(exit),
	SCMP_SYS(exit_group),
	SCMP_SYS(futex),
	SCMP_SYS(getcpu),
	SCMP_SYS(gettid),
	SCMP_SYS(membarrier),
	SCMP_SYS(restart_syscall),
	SCMP_SYS(rseq),
	SCMP_SYS(rt_sigaction),
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(sched_getaffinity),
	SCMP_SYS(sched_yield),
	SCMP_SYS(set_robust_list),
	SCMP_SYS(sigaltstack),
	/* time */
	SCMP_SYS(clock_getres),
	SCMP_SYS(clock_gettime),
	SCMP_SYS(clock_nanosleep),
	SCMP_SYS(gettimeofday),
	SCMP_SYS(nanosleep),
	SCMP_SYS(time),
	SCMP_SYS(timerfd_create),
	SCMP_SYS(timerfd_settime),
	/* waiting */
	SCMP_SYS(epoll_create),
	SCMP_SYS(epoll_create1),
	SCMP_SYS(epoll_ctl),
	SCMP_SYS(epoll_pwait),
	SCMP_SYS(epoll_wait),
	SCMP_SYS(eventfd2),
	SCMP_SYS(pipe),
	SCMP_SYS(pipe2),
	SCMP_SYS(poll),
	SCMP_SYS(ppoll),
	SCMP_SYS(pselect6),
	SCMP_SYS(select),
	/* existing sockets */
	SCMP_SYS(accept),
	SCMP_SYS(accept4),
	SCMP_SYS(getpeername),
	SCMP_SYS(getsockname),
	SCMP_SYS(getsockopt),
	SCMP_SYS(recv), /* recv and send: on s390 only */
	SCMP_SYS(recvfrom),
	SCMP_SYS(send),
	SCMP_SYS(setsockopt),
	SCMP_SYS(shutdown),
	/* about the process and the machine */
	SCMP_SYS(getegid),
	SCMP_SYS(geteuid),
	SCMP_SYS(getgid),
	SCMP_SYS(getgroups),
	SCMP_SYS(getpid),
	SCMP_SYS(getrandom),
	SCMP_SYS(getrlimit),
	SCMP_SYS(getrusage),
	SCMP_SYS(getuid),
	SCMP_SYS(sysinfo),
	SCMP_SYS(uname),
};

/* CALL, if the bits of MASK of argument ARG are VALUE. */
struct rule {
	int call;
	unsigned arg;
	scmp_datum_t mask, value;
};

/* clone(2), "C library/kernel differences" */
#ifdef __s390__
#define CLONE_FLAGS 1
#else
#define CLONE_FLAGS 0
#endif

#define WHOLE (~(scmp_datum_t)0)
/* An int: the upper bits of the register are undefined. */
#define INT UINT32_MAX

static int add_rules(scmp_filter_ctx ctx)
{
	const struct rule rules[] = {
		{ SCMP_SYS(clone), CLONE_FLAGS, CLONE_THREAD, CLONE_THREAD },
		{ SCMP_SYS(ioctl), 1, INT, FIONREAD },
		{ SCMP_SYS(ioctl), 1, INT, BTRFS_IOC_FS_INFO },
		{ SCMP_SYS(ioctl), 1, INT, TCGETS }, /* isatty */
		{ SCMP_SYS(kill), 0, INT, (scmp_datum_t)getpid() },
		{ SCMP_SYS(mmap), 2, PROT_EXEC, 0 },
		/* A library of the name service, mapped without write
		 * access. */
		{ SCMP_SYS(mmap), 2, PROT_WRITE | PROT_EXEC, PROT_EXEC },
		{ SCMP_SYS(mprotect), 2, PROT_EXEC, 0 },
		{ SCMP_SYS(prctl), 0, INT, PR_SET_NAME },
		{ SCMP_SYS(prlimit64), 2, WHOLE, 0 }, /* read only */
		{ SCMP_SYS(sendto), 4, WHOLE, 0 },    /* no address */
		{ SCMP_SYS(tgkill), 0, INT, (scmp_datum_t)getpid() },
	};
	size_t i;
	int r = 0;

	for (i = 0; r == 0 && i < sizeof(rules) / sizeof(*rules); i++)
		r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, rules[i].call, 1,
		    SCMP_CMP(rules[i].arg, SCMP_CMP_MASKED_EQ, rules[i].mask,
			rules[i].value));
	for (i = 0; r == 0 && i < sizeof(allowed) / sizeof(*allowed); i++)
		r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, allowed[i], 0);
	return r;
}

int sys_seccomp_enforce(void)
{
	scmp_filter_ctx ctx;
	int r;

	/* The table lacks mmap2, futex_time64 and the like, so a 32-bit build
	 * has no filter. */
	if (sizeof(long) < sizeof(int64_t))
		return -EOPNOTSUPP;
	ctx = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
	if (ctx == NULL)
		return -ENOMEM;
	/* 2 is a tree instead of a list (libseccomp 2.5). An older libseccomp
	 * refuses the setting and uses a list, which works as well. */
	seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	r = add_rules(ctx);
	if (r == 0)
		r = seccomp_load(ctx);
	seccomp_release(ctx);
	return r;
}
