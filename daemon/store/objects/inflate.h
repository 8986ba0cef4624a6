/*
 * Bounded inflation of the bytes of a file, because the files of a repository
 * are hostile input. Any thread; blocks on the file; nothing logs. -EBADMSG:
 * not a zlib stream; -ENOMEM; or the error of the read.
 */
#ifndef STORE_INFLATE_H
#define STORE_INFLATE_H

#include "daemon/base/sys.h"
#include "proto/lib/sha.h"

/* Inflates the first bytes of the stream IN. Returns the number of bytes
 * written, at most OUT_LEN. */
ssize_t inflate_head(const void *in, size_t in_len, void *out, size_t out_len);

/* Inflates the stream at OFFSET of the file FD, which must inflate to exactly
 * OUT_LEN bytes with a correct check sum. Reads at most twice OUT_LEN and 4
 * KiB. */
int inflate_file(const struct sys *sys, int fd, uint64_t offset, void *out,
    size_t out_len);

/* Inflates the whole stream IN into *OUT, *LEN bytes, to be freed. -EBADMSG:
 * also for more than MAX. */
int inflate_whole(const void *in, size_t in_len, size_t max, uint8_t **out,
    size_t *len);

/* Adds the stream IN, inflated, to SUM. IN must be the whole stream and nothing
 * else, and inflate to at most *ROOM bytes, which are taken from *ROOM. */
int inflate_sum(const void *in, size_t in_len, size_t *room, struct sha *sum);

#endif
