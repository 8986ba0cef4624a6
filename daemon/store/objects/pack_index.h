/*
 * The index of a pack, the other half of pack.c, by the rules of pack.h.
 */
#ifndef STORE_PACK_INDEX_H
#define STORE_PACK_INDEX_H

#include "daemon/store/objects/pack.h"

/* Opens NAME with SUFFIX in DIRFD, which must be a regular file, no link. */
int pack_open_file(const struct sys *sys, int dirfd, const struct pack *p,
    const char *suffix, struct sys_stat *st);
/* Reads all LEN bytes of FD, a file of P, or returns -EBADMSG. */
int pack_pread(const struct sys *sys, struct pack *p, int fd, void *buf,
    size_t len, uint64_t offset);
/* Counts a step with BYTES bytes. */
void pack_step(struct pack *p, size_t bytes);
uint32_t pack_be32(const uint8_t *p);

#endif
