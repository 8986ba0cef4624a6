/*
 * The index of a pack: pack.c's other half. As pack.h has it.
 */
#ifndef STORE_PACK_INDEX_H
#define STORE_PACK_INDEX_H

#include "daemon/store/objects/pack.h"

/* A trailer holds the check sums of the pack and of the index itself. */
#define PACK_INDEX_TRAILER (2 * REFD_OID_BYTES)

/* Opens NAME with SUFFIX in DIRFD: a regular file, no link. */
int pack_open_file(const struct sys *sys, int dirfd, const struct pack *p,
    const char *suffix, struct sys_stat *st);
/* All of it, or -EBADMSG. */
int pack_pread(const struct sys *sys, int fd, void *buf, size_t len,
    uint64_t offset);
uint32_t pack_be32(const uint8_t *p);

#endif
