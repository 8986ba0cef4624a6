/*
 * The memory of one decoded message: strings with a common lifetime, and one
 * array that grows, so that 100,000 refs need no malloc for each name. For
 * proto/, and for builders of answers that own their memory.
 *
 * One owner at a time; nothing blocks. All returned memory is borrowed from the
 * arena until refd_arena_free().
 */
#ifndef PROTO_ARENA_H
#define PROTO_ARENA_H

#include <stddef.h>

struct refd_arena;

/* All functions that return a pointer return NULL when out of memory. */
struct refd_arena *refd_arena_new(void);
void refd_arena_free(struct refd_arena *arena);
/* A copy of LEN bytes with a NUL behind them. */
char *refd_arena_string(struct refd_arena *arena, const char *data, size_t len);
/* SIZE zeroed bytes for a struct. */
void *refd_arena_zalloc(struct refd_arena *arena, size_t size);
/*
 * Returns the arena's only array, with room for at least NR elements of SIZE
 * bytes. The content is kept, but may move. The array grows by doubling, so
 * appending is linear in total. On failure the array stays unchanged.
 */
void *refd_arena_array(struct refd_arena *arena, size_t nr, size_t size);
/* Bytes allocated for ARENA, used or not, or 0 for NULL. */
size_t refd_arena_bytes(const struct refd_arena *arena);

#endif
