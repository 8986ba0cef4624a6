/*
 * git's delta format (git's patch-delta.c). Pure functions; any thread.
 */
#ifndef STORE_DELTA_H
#define STORE_DELTA_H

#include <stddef.h>
#include <stdint.h>

/* Reads a size at the head of a delta: first the size of the base, then the
 * size of the result. Advances *P. -1: no complete size before END. */
int delta_size(const uint8_t **p, const uint8_t *end, uint64_t *size);

/*
 * Applies DELTA to BASE. *OUT (to be freed) is the result of *LEN bytes.
 * -EBADMSG: the delta does not fit the base; -EFBIG: the result is larger than
 * MAX; -ENOMEM.
 */
int delta_apply(const uint8_t *base, size_t base_len, const uint8_t *delta,
    size_t delta_len, size_t max, uint8_t **out, size_t *len);

#endif
