/*
 * The memory of one decoded message: strings that live and die together, and
 * one array that grows. For proto/, and for who builds an answer to own.
 *
 * One owner at a time; nothing blocks. Everything handed out is borrowed
 * from the arena until refd_arena_free().
 */
#ifndef PROTO_ARENA_H
#define PROTO_ARENA_H

#include <stddef.h>

struct refd_arena;

/* NULL when out of memory, as all of these. */
struct refd_arena *refd_arena_new(void);
void refd_arena_free(struct refd_arena *arena);
/* A copy of LEN bytes with a NUL behind them. */
char *refd_arena_string(struct refd_arena *arena, const char *data, size_t len);
/* SIZE zeroed bytes for a struct. */
void *refd_arena_zalloc(struct refd_arena *arena, size_t size);
/*
 * The arena's only array, with room for at least NR elements of SIZE bytes;
 * what is in it is kept, but it may move. It grows by doubling, so filling
 * it one by one is linear. On failure the array is as before.
 */
void *refd_arena_array(struct refd_arena *arena, size_t nr, size_t size);
/* The bytes that are allocated for ARENA, used or not; 0 of NULL. */
size_t refd_arena_bytes(const struct refd_arena *arena);

#endif
