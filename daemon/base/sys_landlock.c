#include "daemon/base/sys_landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/base/sys.h"

/* Versions 3, 4, 5 and 6 (Linux 6.2, 6.7, 6.10, 6.12): defined here, because
 * the header of Debian 12 is older. */
#define FS_TRUNCATE   (UINT64_C(1) << 14)
#define FS_IOCTL_DEV  (UINT64_C(1) << 15)
#define NET_TCP       UINT64_C(3) /* bind and connect */
#define SCOPE_SOCKETS (UINT64_C(1) << 0)
#define SCOPE_SIGNALS (UINT64_C(1) << 1)

/* struct landlock_ruleset_attr as of version 6, because an older kernel accepts
 * a larger structure if all unknown fields are zero. */
struct ruleset {
	uint64_t fs, net, scoped;
};

#define FS_VERSION_2 (LANDLOCK_ACCESS_FS_REFER * 2 - 1)

#define READ (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define RENEW                                                                  \
	(READ | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG |  \
	    LANDLOCK_ACCESS_FS_REMOVE_FILE | FS_TRUNCATE)
#define KEEP                                                                   \
	(RENEW | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_REMOVE_DIR | \
	    LANDLOCK_ACCESS_FS_REFER)
/* The kernel refuses all other rights for a file that is not a directory. */
#define OF_FILES                                                               \
	(LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |        \
	    FS_TRUNCATE)

static uint64_t fs_of(int abi)
{
	uint64_t fs = FS_VERSION_2;

	if (abi >= 3)
		fs |= FS_TRUNCATE;
	if (abi >= 5)
		fs |= FS_IOCTL_DEV;
	return fs;
}

int landlock_begin(struct landlock *landlock)
{
	struct ruleset all = { 0 };
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0,
	    LANDLOCK_CREATE_RULESET_VERSION);
	long fd;

	if (abi < 0)
		return -errno;
	if (abi < 2)
		return -EPROTO;
	all.fs = fs_of((int)abi);
	if (abi >= 4)
		all.net = NET_TCP;
	if (abi >= 6)
		all.scoped = SCOPE_SIGNALS | SCOPE_SOCKETS;
	fd = syscall(SYS_landlock_create_ruleset, &all, sizeof(all), 0);
	if (fd < 0)
		return -errno;
	landlock->ruleset = (int)fd;
	landlock->abi = (int)abi;
	return 0;
}

int landlock_allow(struct landlock *landlock, const char *path,
    enum landlock_rights rights)
{
	static const uint64_t masks[] = { [LANDLOCK_READ] = READ,
		[LANDLOCK_RENEW] = RENEW,
		[LANDLOCK_KEEP] = KEEP };
	struct landlock_path_beneath_attr rule = { 0 };
	struct sys_stat st;
	int r;

	rule.parent_fd = SYS(&sys_kernel, openat, SYS_TRUSTED, path, O_PATH, 0);
	if (rule.parent_fd < 0)
		return rule.parent_fd;
	rule.allowed_access = masks[rights] & fs_of(landlock->abi);
	r = SYS(&sys_kernel, fstat, rule.parent_fd, &st);
	if (r == 0 && !S_ISDIR(st.mode))
		rule.allowed_access &= OF_FILES;
	if (r == 0 &&
	    syscall(SYS_landlock_add_rule, landlock->ruleset,
		LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
		r = -errno;
	SYS(&sys_kernel, close, rule.parent_fd);
	return r;
}

int landlock_enforce(struct landlock *landlock)
{
	int r = 0;

	if (syscall(SYS_landlock_restrict_self, landlock->ruleset, 0) < 0)
		r = -errno;
	SYS(&sys_kernel, close, landlock->ruleset);
	landlock->ruleset = -1;
	return r;
}
