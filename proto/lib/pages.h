/*
 * Zeroed memory that may be large and may grow. Any thread; nothing logs.
 *
 * A large piece is mapped, so that the kernel zeroes its pages at their first
 * use, and moves them when the piece grows. calloc and realloc do so only as
 * long as the heap has no free piece of the size. Otherwise they zero or copy
 * all of it: several milliseconds for the updates of a huge transaction.
 */
#ifndef PROTO_LIB_PAGES_H
#define PROTO_LIB_PAGES_H

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGES_FROM ((size_t)256 << 10) /* smaller pieces are of the heap */

/* PIECE had BEFORE bytes, and has SIZE from now on, which is more. NULL and 0
 * make a new piece. Returns the piece, perhaps moved, or NULL without memory,
 * and PIECE is then unchanged. */
static inline void *pages_grow(void *piece, size_t before, size_t size)
{
	char *grown;

	if (size < PAGES_FROM) {
		grown = realloc(piece, size);
		if (grown != NULL)
			memset(grown + before, 0, size - before);
		return grown;
	}
	if (before >= PAGES_FROM)
		grown = mremap(piece, before, size, MREMAP_MAYMOVE);
	else
		grown = mmap(NULL, size, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (grown == MAP_FAILED)
		return NULL;
	/* Without an effect, the kernel zeroes small pages one by one. */
	madvise(grown, size, MADV_HUGEPAGE);
	if (before > 0 && before < PAGES_FROM) {
		memcpy(grown, piece, before);
		free(piece);
	}
	return grown;
}

/* SIZE: the bytes of PIECE; PIECE may be NULL. */
static inline void pages_free(void *piece, size_t size)
{
	if (size < PAGES_FROM)
		free(piece);
	else
		munmap(piece, size);
}

#endif
