/*
 * Any bytes as frames between the daemon and refd-group, from either side. An
 * accepted frame is encoded as the same bytes. No read beyond the input, and
 * no leaks.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/group_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool ok)
{
	if (!ok)
		abort();
}

static void check_accepted(const struct group_frame *f, const uint8_t *data,
    size_t len)
{
	uint8_t *again;

	expect(group_frame_bytes(f) == len);
	again = malloc(len);
	expect(again != NULL);
	group_frame_encode(f, again);
	expect(memcmp(again, data, len) == 0);
	free(again);
}

/* Decodes a copy of the exact size, so the sanitizer detects a read beyond the
 * end. */
static void check_frame(const uint8_t *data, size_t len)
{
	struct refd_arena *arena = refd_arena_new();
	uint8_t *exact = malloc(len);
	struct group_frame f;

	expect(arena != NULL && exact != NULL);
	memcpy(exact, data, len);
	if (!group_frame_decode(exact, len, arena, &f))
		check_accepted(&f, exact, len);
	free(exact);
	refd_arena_free(arena);
}

static void check_side(const uint8_t *data, size_t size,
    enum group_frame_side from)
{
	long len;

	while ((len = group_frame_parse(data, size, from)) > 0) {
		expect((size_t)len <= size);
		check_frame(data, (size_t)len);
		data += len;
		size -= (size_t)len;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_side(data, size, GROUP_FROM_DAEMON);
	check_side(data, size, GROUP_FROM_GROUP);
	return 0;
}
