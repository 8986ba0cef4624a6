/*
 * git's delta format (git's patch-delta.c), in pure functions for any thread.
 */
#ifndef STORE_DELTA_H
#define STORE_DELTA_H

#include <stddef.h>
#include <stdint.h>

/*
 * Applies DELTA to BASE. The result *OUT (to be freed) has *LEN bytes.
 * -EBADMSG: the delta does not fit the base; -EFBIG: the result is larger than
 * MAX; -ENOMEM.
 */
int delta_apply(const uint8_t *base, size_t base_len, const uint8_t *delta,
    size_t delta_len, size_t max, uint8_t **out, size_t *len);

#endif
