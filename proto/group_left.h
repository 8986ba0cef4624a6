/*
 * The uuid of a journal that has left its group of nodes (`refd recover
 * --leave`):
 *
 *	2 bytes		0xff
 *	6 bytes		the LSN of the last row of the group, little-endian
 *	8 bytes		random
 *
 * The journal is of no group as long as it has no later row. `refd group
 * create` can make a new group with this uuid, and with this LSN as its first
 * one. So no other group takes the node, and the new group takes no node
 * without a copy of this one.
 *
 * Pure functions over bytes; any thread.
 */
#ifndef PROTO_GROUP_LEFT_H
#define PROTO_GROUP_LEFT_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/group_frame.h"

#define GROUP_LEFT_LSN_MAX ((UINT64_C(1) << 48) - 1)
/* "<LSN>:<32 hexadecimal digits>", and a NUL */
#define GROUP_LEFT_TEXT_MAX 64

/* UUID has random bytes at first. LSN: 1 to GROUP_LEFT_LSN_MAX. */
void group_left_make(uint64_t lsn, uint8_t uuid[GROUP_UUID_BYTES]);
/* False: UUID is no such uuid. */
bool group_left_lsn(const uint8_t uuid[GROUP_UUID_BYTES], uint64_t *lsn);

/* Returns TEXT. UUID is such a uuid. */
char *group_left_print(const uint8_t uuid[GROUP_UUID_BYTES],
    char text[GROUP_LEFT_TEXT_MAX]);
/* False: TEXT is not as printed. */
bool group_left_parse(const char *text, uint8_t uuid[GROUP_UUID_BYTES]);

#endif
