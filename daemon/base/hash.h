/*
 * Hash tables (uthash.h) for keys that clients and files choose: ids, refnames,
 * paths. The hash has a secret, because otherwise a client could choose keys
 * that all fall into one bucket, and every look-up would walk along all of
 * them. The daemon includes uthash.h only here, so that every table has this
 * hash.
 *
 * hash_begin() before the first table and the first thread; afterwards any
 * thread. Nothing blocks or fails. Without hash_begin(), as in tests, the
 * secret is zero.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_NONFATAL_OOM               1
#define HASH_FUNCTION(key, len, result) ((result) = hash_key(key, len))
#include <uthash.h>

/* Makes the secret of this process. */
void hash_begin(void);
/* Of the LEN bytes at KEY. */
uint32_t hash_key(const void *key, size_t len);
/* SipHash-2-4, of which hash_key() is the lower half. */
uint64_t hash_siphash(const uint64_t secret[2], const void *key, size_t len);

#endif
