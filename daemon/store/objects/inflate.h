/*
 * Bounded inflation of a file's bytes. Any thread; blocks on the file; nothing
 * logs. -EBADMSG: not such a stream; -ENOMEM; or the read's error.
 */
#ifndef STORE_INFLATE_H
#define STORE_INFLATE_H

#include "daemon/base/sys.h"

/* The first bytes of the stream IN: how many came out, at most OUT_LEN. */
ssize_t inflate_head(const void *in, size_t in_len, void *out, size_t out_len);

/* The stream at OFFSET of the file FD, which must inflate to exactly OUT_LEN
 * bytes, its check sum included. Reads at most twice OUT_LEN and 4 KiB. */
int inflate_file(const struct sys *sys, int fd, uint64_t offset, void *out,
    size_t out_len);
/* The same for the first OUT_LEN bytes of a longer stream. */
int inflate_file_head(const struct sys *sys, int fd, uint64_t offset, void *out,
    size_t out_len);

#endif
