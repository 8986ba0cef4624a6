#include "daemon/group/service/room.h"

#include <stdint.h>
#include <sys/statvfs.h>

#define MIB         (UINT64_C(1) << 20)
#define NONE_BYTES  MIB
#define LEAD_BYTES  (64 * MIB)
#define LEAD_INODES 1000

enum room room_look(const char *path)
{
	struct statvfs fs;
	uint64_t bytes, inodes;

	if (statvfs(path, &fs) < 0)
		return ROOM_LITTLE;
	/* Some file systems have no limit, or make inodes as needed. */
	bytes = fs.f_blocks != 0 ? fs.f_bavail * fs.f_frsize : LEAD_BYTES;
	inodes = fs.f_files != 0 ? fs.f_favail : LEAD_INODES;
	if (bytes < NONE_BYTES || inodes == 0)
		return ROOM_NONE;
	return bytes < LEAD_BYTES || inodes < LEAD_INODES ? ROOM_LITTLE :
							    ROOM_ENOUGH;
}
