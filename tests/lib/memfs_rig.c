#include <check.h>
#include <fcntl.h>

#include "tests/lib/memfs_rig.h"

struct memfs *mr_fs;
const struct sys *mr_sys;

void mr_setup(void)
{
	mr_fs = memfs_new();
	mr_sys = memfs_sys(mr_fs);
	memfs_write(mr_fs, "/d/x", MR_OLD);
}

void mr_teardown(void)
{
	memfs_free(mr_fs);
}

void mr_power_loss(uint64_t seed)
{
	struct memfs_choice choice = memfs_choose(seed);

	memfs_power_loss(mr_fs, &choice);
}

int mr_open(const char *path, int flags)
{
	int fd = SYS(mr_sys, openat, AT_FDCWD, path, flags, 0666);

	ck_assert_int_ge(fd, 0);
	return fd;
}

void mr_sync(const char *path)
{
	int fd = mr_open(path, O_RDONLY);

	ck_assert_int_eq(SYS(mr_sys, fsync, fd), 0);
	SYS(mr_sys, close, fd);
}
