#include "proto/left_log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "proto/hex.h"

#define MARK      0xff
#define LSN_AT    2
#define LSN_BYTES 6

void left_log_make(uint64_t lsn, uint8_t uuid[GROUP_UUID_BYTES])
{
	size_t i;

	uuid[0] = uuid[1] = MARK;
	for (i = 0; i < LSN_BYTES; i++)
		uuid[LSN_AT + i] = (uint8_t)(lsn >> (8 * i));
}

bool left_log_lsn(const uint8_t uuid[GROUP_UUID_BYTES], uint64_t *lsn)
{
	size_t i;

	if (uuid[0] != MARK || uuid[1] != MARK)
		return false;
	*lsn = 0;
	for (i = 0; i < LSN_BYTES; i++)
		*lsn |= (uint64_t)uuid[LSN_AT + i] << (8 * i);
	return true;
}

char *left_log_print(const uint8_t uuid[GROUP_UUID_BYTES],
    char text[LEFT_LOG_TEXT_MAX])
{
	char hex[2 * GROUP_UUID_BYTES + 1];
	uint64_t lsn = 0;

	left_log_lsn(uuid, &lsn);
	snprintf(text, LEFT_LOG_TEXT_MAX, "%" PRIu64 ":%s", lsn,
	    refd_hex_put(uuid, GROUP_UUID_BYTES, hex));
	return text;
}

bool left_log_parse(const char *text, uint8_t uuid[GROUP_UUID_BYTES])
{
	const char *colon = strchr(text, ':');
	char printed[LEFT_LOG_TEXT_MAX];
	uint64_t lsn;

	return colon != NULL && strlen(colon + 1) == 2 * GROUP_UUID_BYTES &&
	    refd_hex_parse(colon + 1, uuid, GROUP_UUID_BYTES) == 0 &&
	    left_log_lsn(uuid, &lsn) && lsn > 0 &&
	    strcmp(left_log_print(uuid, printed), text) == 0;
}
