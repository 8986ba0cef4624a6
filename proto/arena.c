#include "proto/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/lib/pages.h"

/* Most transactions have one ref, so the first chunk is small. The chunks grow,
 * because a transaction of 100,000 refs must not call malloc for every name. */
#define CHUNK_MIN 512
#define CHUNK_MAX 65536
#define ARRAY_MIN 4
#define ALIGNMENT sizeof(uint64_t)

struct chunk {
	struct chunk *next;
	size_t used, size;
	_Alignas(uint64_t) char bytes[];
};

struct refd_arena {
	struct chunk *chunks; /* newest first */
	void *array;
	size_t array_room; /* elements */
	size_t array_bytes;
	size_t bytes; /* of all chunks and of the array */
};

struct refd_arena *refd_arena_new(void)
{
	struct refd_arena *arena = calloc(1, sizeof(*arena));

	if (arena != NULL)
		arena->bytes = sizeof(*arena);
	return arena;
}

void refd_arena_free(struct refd_arena *arena)
{
	struct chunk *c, *next;

	if (arena == NULL)
		return;
	for (c = arena->chunks; c != NULL; c = next) {
		next = c->next;
		free(c);
	}
	pages_free(arena->array, arena->array_bytes);
	free(arena);
}

static struct chunk *chunk_add(struct refd_arena *arena, size_t need)
{
	struct chunk *c;
	size_t size = CHUNK_MIN;

	if (arena->chunks != NULL)
		size = arena->chunks->size * 2;
	if (size > CHUNK_MAX)
		size = CHUNK_MAX;
	if (size < need)
		size = need;
	c = malloc(sizeof(*c) + size);
	if (c == NULL)
		return NULL;
	c->next = arena->chunks;
	c->used = 0;
	c->size = size;
	arena->chunks = c;
	arena->bytes += sizeof(*c) + size;
	return c;
}

char *refd_arena_string(struct refd_arena *arena, const char *data, size_t len)
{
	struct chunk *c = arena->chunks;
	char *copy;

	if (c == NULL || c->size - c->used < len + 1) {
		c = chunk_add(arena, len + 1);
		if (c == NULL)
			return NULL;
	}
	copy = c->bytes + c->used;
	memcpy(copy, data, len);
	copy[len] = '\0';
	c->used += len + 1;
	return copy;
}

void *refd_arena_zalloc(struct refd_arena *arena, size_t size)
{
	struct chunk *c = arena->chunks;
	size_t skip = 0;
	void *p;

	if (c != NULL)
		skip = -c->used % ALIGNMENT;
	if (c == NULL || c->size - c->used < skip + size) {
		c = chunk_add(arena, size);
		if (c == NULL)
			return NULL;
		skip = 0;
	}
	p = c->bytes + c->used + skip;
	c->used += skip + size;
	return memset(p, 0, size);
}

void *refd_arena_array(struct refd_arena *arena, size_t nr, size_t size)
{
	size_t room = arena->array_room;
	void *array;

	if (nr <= room)
		return arena->array;
	if (room == 0)
		room = ARRAY_MIN;
	while (room < nr)
		room *= 2;
	array = pages_grow(arena->array, arena->array_bytes, room * size);
	if (array == NULL)
		return NULL;
	arena->array = array;
	arena->bytes += room * size - arena->array_bytes;
	arena->array_bytes = room * size;
	arena->array_room = room;
	return array;
}

size_t refd_arena_bytes(const struct refd_arena *arena)
{
	return arena != NULL ? arena->bytes : 0;
}
