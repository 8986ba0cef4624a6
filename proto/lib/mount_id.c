/*
 * struct statx comes from the kernel's header, because the one of musl has no
 * id of the mount. The two headers cannot be included in one file.
 */
#include "proto/lib/mount_id.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Linux 6.8; not in the headers of Debian 12. */
#ifndef STATX_MNT_ID_UNIQUE
#define STATX_MNT_ID_UNIQUE 0x00004000U
#endif

/* A kernel that knows both bits returns the unique id, and an older kernel
 * ignores the unknown bit, so one call serves all kernels. */
int mount_id_of(int dirfd, const char *path, enum mount_id_kind kind,
    uint64_t *id)
{
	const unsigned asked =
	    STATX_MNT_ID | (kind == MOUNT_ID_UNIQUE ? STATX_MNT_ID_UNIQUE : 0);
	struct statx stx;

	if (syscall(SYS_statx, dirfd, path, AT_EMPTY_PATH, asked, &stx) < 0)
		return -errno;
	if ((stx.stx_mask & asked) == 0)
		return -EOPNOTSUPP;
	*id = stx.stx_mnt_id;
	return 0;
}
