/*
 * Properties of file systems by f_type of statfs(2). Pure.
 */
#ifndef BASE_FS_TYPE_H
#define BASE_FS_TYPE_H

#include <stdbool.h>
#include <stdint.h>

/* Precision of a comparison of ctimes: one tick of the clock (4 ms before
 * multigrain timestamps), and some time between reading the clock and changing
 * a file. */
#define FS_SLACK_NS (100 * 1000 * 1000)

/* A file has the time TIME_NS now. Can a change after NOW_NS, by the clock of
 * this machine, leave the file with the same time? Some file systems have whole
 * seconds, for example ext4 with inodes of 128 bytes. So a time without a
 * fraction may repeat for a second more. */
static inline bool fs_time_may_repeat(int64_t time_ns, int64_t now_ns)
{
	const int64_t second_ns = 1000 * 1000 * 1000;

	return now_ns - time_ns <
	    FS_SLACK_NS + (time_ns % second_ns == 0 ? second_ns : 0);
}

/* The name of a network file system, or NULL for all other types. FUSE counts
 * as local, because its kind is unknown. */
const char *fs_type_network(uint64_t type);
/* Do ctimes come from the clock of this machine? */
bool fs_type_has_our_clock(uint64_t type);
/* Does O_DIRECT always read from the disk, also if the file is in memory? On
 * other file systems O_DIRECT may silently be a normal read. */
bool fs_type_reads_directly(uint64_t type);
/* Does a new name of a file, by link or rename, change the ctime of the file?
 * True only for file systems where the source of Linux shows this. */
bool fs_type_marks_new_names(uint64_t type);
/* Does only the kernel which mounts the file system make its files, and set
 * every ctime by its own clock? True only for the file systems of refd's tests
 * with power cuts. */
bool fs_type_has_one_kernel(uint64_t type);
/* Is all content lost at power-off? */
bool fs_type_in_memory(uint64_t type);

#endif
