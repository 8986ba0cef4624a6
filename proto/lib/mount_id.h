/*
 * The id of the mount on which a file lies. Any thread; may block.
 */
#ifndef PROTO_LIB_MOUNT_ID_H
#define PROTO_LIB_MOUNT_ID_H

#include <stdint.h>

enum mount_id_kind {
	MOUNT_ID_LISTED, /* as in /proc/self/mountinfo */
	MOUNT_ID_UNIQUE, /* never reused; before Linux 6.8 the listed id */
};

/* PATH is relative to DIRFD, and "" is DIRFD itself. Follows links. Returns 0
 * or a negative errno, which is -EOPNOTSUPP before Linux 5.8. */
int mount_id_of(int dirfd, const char *path, enum mount_id_kind kind,
    uint64_t *id);

#endif
