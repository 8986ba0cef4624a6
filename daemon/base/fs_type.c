#include "daemon/base/fs_type.h"

#include <stddef.h>

/* From linux/magic.h, and from the sources of the file systems missing
 * there. */
static const struct {
	uint32_t type;
	const char *name;
} network[] = {
	{ 0x6969, "NFS" },
	{ 0x517b, "SMB" },
	{ 0xff534d42, "CIFS" },
	{ 0xfe534d42, "SMB" },
	{ 0x5346414f, "AFS" },
	{ 0x6b414653, "AFS" },
	{ 0x00c36400, "Ceph" },
	{ 0x01021997, "9P" },
	{ 0x73757245, "Coda" },
	{ 0x01161970, "GFS2" },
	{ 0x7461636f, "OCFS2" },
	{ 0x0bd00bd0, "Lustre" },
	{ 0x47504653, "GPFS" },
	{ 0x19830326, "BeeGFS" },
	{ 0x786f4256, "vboxsf" },
};

const char *fs_type_network(uint64_t type)
{
	size_t i;

	for (i = 0; i < sizeof(network) / sizeof(network[0]); i++)
		if (network[i].type == type)
			return network[i].name;
	return NULL;
}

bool fs_type_in_memory(uint64_t type)
{
	return type == 0x01021994 /* tmpfs */ || type == 0x858458f6; /* ramfs */
}

bool fs_type_has_our_clock(uint64_t type)
{
	return fs_type_network(type) == NULL && type != 0x65735546 /* FUSE */;
}

/* ext2 to ext4, XFS, btrfs, F2FS and tmpfs. The proofs in Linux are
 * ext4_rename(), xfs_rename(), btrfs_rename(), f2fs_rename() and
 * simple_rename_timestamp(), and their functions for link. */
bool fs_type_marks_new_names(uint64_t type)
{
	return type == 0xef53 || type == 0x58465342 || type == 0x9123683e ||
	    type == 0xf2f52010 || type == 0x01021994;
}

static bool is_common(uint64_t type)
{
	return type == 0xef53 /* ext4 */ || type == 0x58465342 /* XFS */ ||
	    type == 0x9123683e /* btrfs */;
}

/* btrfs reads compressed extents through memory, but an extent exists only
 * after it was written. */
bool fs_type_reads_directly(uint64_t type)
{
	return is_common(type);
}

bool fs_type_has_one_kernel(uint64_t type)
{
	return is_common(type);
}
