/*
 * The uuid of a journal whose node has left the others (`refd recover
 * --leave`):
 *
 *	2 bytes		0xff
 *	6 bytes		the LSN of the last shared row, little-endian
 *	8 bytes		random
 *
 * The journal shares no rows until a later row comes. `refd group create` can
 * begin a new log with this uuid, and with this LSN as the first LSN. The uuid
 * and the LSN bind journal and log to each other. So no other log takes the
 * node, and the new log takes no node without a copy of this node.
 *
 * Pure functions over bytes; any thread.
 */
#ifndef PROTO_LEFT_LOG_H
#define PROTO_LEFT_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/group_frame.h"

#define LEFT_LOG_LSN_MAX ((UINT64_C(1) << 48) - 1)
/* "<LSN>:<32 hexadecimal digits>", and a NUL */
#define LEFT_LOG_TEXT_MAX 64

/* UUID has random bytes at first. LSN: 1 to LEFT_LOG_LSN_MAX. */
void left_log_make(uint64_t lsn, uint8_t uuid[GROUP_UUID_BYTES]);
/* False: UUID is no such uuid. */
bool left_log_lsn(const uint8_t uuid[GROUP_UUID_BYTES], uint64_t *lsn);

/* Returns TEXT. UUID is such a uuid. */
char *left_log_print(const uint8_t uuid[GROUP_UUID_BYTES],
    char text[LEFT_LOG_TEXT_MAX]);
/* False: TEXT is not as printed. */
bool left_log_parse(const char *text, uint8_t uuid[GROUP_UUID_BYTES]);

#endif
