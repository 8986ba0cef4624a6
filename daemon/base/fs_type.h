/*
 * What is known of kinds of file systems, by statfs(2)'s f_type. Pure.
 */
#ifndef BASE_FS_TYPE_H
#define BASE_FS_TYPE_H

#include <stdbool.h>
#include <stdint.h>

/* Precision of a comparison of ctimes: one tick of their clock (4 ms before
 * multigrain timestamps), and some time between the reading of the clock and
 * the change of a file. */
#define FS_SLACK_NS (100 * 1000 * 1000)

/* The name of one that several machines share; NULL for any other. What a
 * FUSE file system is can't be told. */
const char *fs_type_network(uint64_t type);
/* Are its ctimes of this machine's clock? */
bool fs_type_has_our_clock(uint64_t type);
/* Does O_DIRECT read what is on the disk, whatever is in memory? Elsewhere it
 * may be taken for a plain read without a word. */
bool fs_type_reads_directly(uint64_t type);
/* Is everything on it gone with the power? */
bool fs_type_in_memory(uint64_t type);

#endif
