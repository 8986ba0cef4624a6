/*
 * git's delta format (git's patch-delta.c). Pure functions; any thread.
 */
#ifndef STORE_DELTA_H
#define STORE_DELTA_H

#include <stddef.h>
#include <stdint.h>

/* A size at the head of a delta: first the base's, then the result's. Takes it
 * off *P. -1: there is none before END. */
int delta_size(const uint8_t **p, const uint8_t *end, uint64_t *size);

/*
 * The result of DELTA on BASE, of *LEN bytes, in *OUT (to be freed). -EBADMSG:
 * it does not fit that base; -EFBIG: the result is larger than MAX; -ENOMEM.
 */
int delta_apply(const uint8_t *base, size_t base_len, const uint8_t *delta,
    size_t delta_len, size_t max, uint8_t **out, size_t *len);

#endif
