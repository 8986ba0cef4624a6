/*
 * shutdown_fs [logflush|nologflush] MOUNT: cuts the power of a mounted file
 * system. From then on nothing reaches the disk and every call fails, until the
 * file system is unmounted. With logflush, its journal is written first: names
 * and sizes, but not the contents of files. Such a cut leaves empty files
 * behind.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

/* The numbers are the same in ext4, XFS, btrfs (since 6.16) and f2fs. No header
 * for programs defines all of them. */
#define FS_SHUTDOWN  _IOR('X', 125, uint32_t)
#define LOG_FLUSH    1
#define NO_LOG_FLUSH 2

int main(int argc, char **argv)
{
	uint32_t how = NO_LOG_FLUSH;
	int fd;

	if (argc == 3 && !strcmp(argv[1], "logflush"))
		how = LOG_FLUSH;
	else if (argc != 3 || strcmp(argv[1], "nologflush"))
		argc = 0;
	if (argc == 0) {
		fputs("usage: shutdown_fs logflush|nologflush MOUNT\n", stderr);
		return 129;
	}
	fd = open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || ioctl(fd, FS_SHUTDOWN, &how) < 0) {
		perror(argv[2]);
		return 1;
	}
	return 0;
}
