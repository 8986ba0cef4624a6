/*
 * Proves that a lock of a living process never counts as older than this boot
 * (this_boot.h), by random histories of a machine: boots, a clock that is set
 * forward or back or stands still in a pause, locks of this boot and of earlier
 * boots. And that nothing is proved where a process outside of this boot may
 * hold a lock.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/time.h"
#include "daemon/store/refs/dead_lock.h"
#include "tests/lib/suite.h"

#define S         INT64_C(1000000000)
#define HISTORIES 50000
#define FD        7

/* ---- a machine ---- */

struct machine {
	struct sys sys;
	uint64_t random;
	int64_t offset_ns;      /* wall clock, less the time since the boot */
	int64_t up_ns;          /* since the boot */
	int64_t sys_ns, reg_ns; /* the stamps; 0: no such file */
	uint64_t pid_namespace;
	const char *sign; /* of a file server, or NULL */
	uint64_t sign_size;
	int sign_err;
	struct sys_stat opened;
	uint64_t type; /* of the file system; 0: unknown */
};

static int64_t now_wall(const struct sys *sys)
{
	const struct machine *m = sys->ctx;

	return m->offset_ns + m->up_ns;
}

static int64_t now_boot(const struct sys *sys)
{
	return ((const struct machine *)sys->ctx)->up_ns;
}

static int m_openat(const struct sys *sys, int dirfd, const char *path,
    int flags, mode_t mode)
{
	struct machine *m = sys->ctx;
	struct sys_stat *st = &m->opened;

	(void)mode;
	ck_assert_int_eq(dirfd, SYS_TRUSTED);
	ck_assert_int_eq(flags, O_PATH);
	*st = (struct sys_stat){ .size = 0 };
	if (strcmp(path, "/sys") == 0)
		st->ctime_ns = m->sys_ns;
	else if (strcmp(path, "/run/systemd/inaccessible/reg") == 0)
		st->ctime_ns = m->reg_ns;
	else if (strcmp(path, "/proc/self/ns/pid") == 0)
		st->ino = m->pid_namespace;
	else if (strcmp(path, "/proc/self/ns/user") == 0)
		st->ino = 0xEFFFFFFD;
	else if (m->sign != NULL && strcmp(path, m->sign) == 0)
		st->size = m->sign_size;
	else
		return -ENOENT;
	if (m->sign != NULL && strcmp(path, m->sign) == 0 && m->sign_err < 0)
		return m->sign_err;
	return st->ino == 0 && st->size == 0 && st->ctime_ns == 0 ? -ENOENT :
								    FD;
}

static int m_fstat(const struct sys *sys, int fd, struct sys_stat *st)
{
	ck_assert_int_eq(fd, FD);
	*st = ((const struct machine *)sys->ctx)->opened;
	return 0;
}

static int m_close(const struct sys *sys, int fd)
{
	(void)sys;
	ck_assert_int_eq(fd, FD);
	return 0;
}

static int m_fs_type(const struct sys *sys, int fd, uint64_t *type)
{
	ck_assert_int_eq(fd, FD);
	*type = ((const struct machine *)sys->ctx)->type;
	return *type != 0 ? 0 : -EIO;
}

/* A machine that runs for an hour, whose clock nobody has set. */
static void boot(struct machine *m)
{
	*m = (struct machine){ .offset_ns = 1700000000 * S,
		.up_ns = 3600 * S,
		.pid_namespace = 0xEFFFFFFC };
	m->sys_ns = m->offset_ns + 2 * S;
	m->reg_ns = m->offset_ns + 5 * S;
	m->sys = (struct sys){ .ctx = m,
		.openat = m_openat,
		.close = m_close,
		.fstat = m_fstat,
		.fs_type = m_fs_type,
		.now_wall = now_wall,
		.now_boot = now_boot };
}

static bool is_older(struct machine *m, int64_t ctime_ns)
{
	struct this_boot b;

	this_boot_find(&m->sys, &b);
	return this_boot_is_after(&b, &m->sys, ctime_ns) == NULL;
}

/* ---- random histories ---- */

static int64_t any(struct machine *m, int64_t n)
{
	m->random ^= m->random << 13;
	m->random ^= m->random >> 7;
	m->random ^= m->random << 17;
	return (int64_t)(m->random % (uint64_t)n);
}

/* Up to a millisecond, a second, ..., a year. */
static int64_t any_time(struct machine *m)
{
	static const int64_t most[] = { S / 1000, S, 60 * S, 3600 * S,
		86400 * S, 365 * 86400 * S };

	return any(m, most[any(m, 6)]) + 1;
}

/* File times lag behind the clock by up to a tick. */
static int64_t file_time(const struct machine *m)
{
	int64_t now = m->offset_ns + m->up_ns;

	return now - now % 4000000;
}

CASE(.seconds = 120);

TEST(histories)
{
	uint64_t i, proved = 0, of_earlier = 0;
	int64_t earlier, living, direction;
	struct machine m;
	int k;

	for (i = 1; i <= HISTORIES; i++) {
		boot(&m);
		m.random = i * UINT64_C(2654435761) + 88172645463325252;
		direction = any(&m, 3) - 1;
		m.up_ns = 0;
		/* The clock of the earlier boot may have been wrong, too. */
		earlier = m.offset_ns - any_time(&m) +
		    (any(&m, 4) == 0 ? any_time(&m) : 0);
		m.up_ns += any(&m, 30 * S);
		m.sys_ns = any(&m, 4) == 0 ? 0 : file_time(&m);
		m.up_ns += any(&m, 30 * S);
		m.reg_ns = m.sys_ns == 0 || any(&m, 2) == 0 ? file_time(&m) : 0;
		living = INT64_MAX;
		for (k = (int)any(&m, 5); k >= 0; k--) {
			if (any(&m, 2) == 0)
				m.up_ns += any_time(&m);
			if (any(&m, 2) == 0)
				living = file_time(&m);
			m.offset_ns += direction * any_time(&m);
		}
		ck_assert_msg(living == INT64_MAX || !is_older(&m, living),
		    "history %llu: a lock of this boot counts as older",
		    (unsigned long long)i);
		if (direction == 0) {
			of_earlier++;
			proved += is_older(&m, earlier);
		}
	}
	printf("# %d histories: of %llu dead locks, without a set clock, %llu "
	       "are proved dead\n",
	    HISTORIES, (unsigned long long)of_earlier,
	    (unsigned long long)proved);
	ck_assert_uint_gt(proved, of_earlier / 2);
}

/* ---- single cases ---- */

TEST(nothing_was_set)
{
	struct machine m;

	boot(&m);
	ck_assert(is_older(&m, m.offset_ns - S));
	ck_assert(!is_older(&m, m.offset_ns));
	ck_assert(!is_older(&m, m.offset_ns + S));
}

/* Such a time in nanoseconds would wrap, and the lock would look oldest. */
TEST(a_time_of_the_far_future, .times = 5)
{
	static const int64_t late_s[] = { 9000000000, 9223372036, 9223372037,
		18446744073, INT64_MAX };
	struct machine m;

	boot(&m);
	ck_assert(
	    !is_older(&m, time_ns((struct timespec){ .tv_sec = late_s[_i] })));
}

/* A clock that is wrong once is no clock to believe. */
TEST(the_clock_was_set, .times = 4)
{
	static const int64_t by[] = { 10 * S, 86400 * S, -700 * S, -86400 * S };
	struct machine m;

	boot(&m);
	m.offset_ns += by[_i];
	ck_assert(!is_older(&m, m.sys_ns - 365 * 86400 * S));
}

/* The clock is set between the search for the stamp and the question. */
TEST(set_meanwhile)
{
	struct machine m;
	struct this_boot b;

	boot(&m);
	this_boot_find(&m.sys, &b);
	ck_assert_ptr_null(this_boot_is_after(&b, &m.sys, m.offset_ns - S));
	m.offset_ns += 86400 * S;
	ck_assert_ptr_nonnull(
	    this_boot_is_after(&b, &m.sys, m.offset_ns - 86401 * S));
}

/* A service gets a sysfs of its own at its start. */
TEST(a_late_stamp)
{
	struct machine m;

	boot(&m);
	m.sys_ns = m.offset_ns + 3500 * S;
	ck_assert(is_older(&m, m.offset_ns - S));
	/* Set forward between the boot and the start of the service. */
	m.sys_ns += 300 * S;
	m.offset_ns += 300 * S;
	ck_assert(!is_older(&m, m.offset_ns - S));
}

TEST(no_stamp)
{
	struct this_boot none = { 0 };
	struct machine m;

	boot(&m);
	m.sys_ns = m.reg_ns = 0;
	ck_assert(!is_older(&m, 0));
	ck_assert_ptr_nonnull(this_boot_is_after(&none, &m.sys, 0));
}

TEST(in_a_container)
{
	struct machine m;

	boot(&m);
	m.pid_namespace = 4026532000;
	ck_assert(!is_older(&m, m.offset_ns - S));
	m.pid_namespace = 0;
	ck_assert(!is_older(&m, m.offset_ns - S));
}

/* The client of a file server survives a restart of the server. */
TEST(a_file_server, .times = 5)
{
	static const char *const signs[] = { "/etc/exports",
		"/var/lib/nfs/etab", "/etc/ksmbd/ksmbd.conf", "/usr/sbin/smbd",
		"/etc/ganesha/ganesha.conf" };
	struct machine m;

	boot(&m);
	m.sign = signs[_i];
	m.sign_size = 1;
	ck_assert(!is_older(&m, m.offset_ns - S));
	m.sign_size = 0;
	ck_assert(is_older(&m, m.offset_ns - S));
	m.sign_err = -EACCES;
	m.sign_size = 1;
	ck_assert(!is_older(&m, m.offset_ns - S));
}

/* Only a file system of this kernel has all its locks from this kernel. */
TEST(file_systems, .times = 7)
{
	static const struct {
		uint64_t type;
		bool is_ours;
	} types[] = {
		{ 0xef53, true },      /* ext4 */
		{ 0x58465342, true },  /* XFS */
		{ 0x9123683e, true },  /* btrfs */
		{ 0x65735546, false }, /* FUSE, virtiofs */
		{ 0x6969, false },     /* NFS */
		{ 0x01161970, false }, /* GFS2 */
		{ 0x794c7630, false }, /* overlayfs */
	};
	struct machine m;
	struct this_boot b;
	struct dead_lock l = { .fd = FD };

	boot(&m);
	this_boot_find(&m.sys, &b);
	l.st.ctime_ns = m.offset_ns - S;
	m.type = types[_i].type;
	ck_assert_int_eq(dead_lock_not_older(&l, &m.sys, &b) == NULL,
	    types[_i].is_ours);
	m.type = 0;
	ck_assert_ptr_nonnull(dead_lock_not_older(&l, &m.sys, &b));
}
