/*
 * A pack and its index, read by pread alone. Nothing is mapped, so if somebody
 * truncates a file during use, the result is a short read and no signal.
 *
 *	index	versions 1 and 2 (git's Documentation/gitformat-pack.txt). The
 *		fan-out stays in memory, 1 KiB; the rest is searched in parts.
 *	entry	the header alone tells the type; a delta has the type of its
 *		base, so the chain of bases is followed, without inflation.
 *
 * The files are hostile input, so every number in the files is checked against
 * the sizes of the files. Blocks; nothing logs; one thread at a time. -EBADMSG:
 * malformed; -ENOENT: the pack or the index is missing; or the error of a call.
 */
#ifndef STORE_PACK_H
#define STORE_PACK_H

#include "daemon/base/sys.h"
#include "daemon/store/objects/object_type.h"
#include "proto/oid.h"

/* git makes at most 4095 deltas in a row (pack.depth). */
#define PACK_CHAIN 5000
/* Maximum number of deltas that pack_read() applies in a row; git makes 50 by
 * default. */
#define PACK_READ_CHAIN 64

struct pack {
	char *name;      /* without ".idx"; owned */
	size_t id_bytes; /* of an id, and of a check sum */
	/* The index, once read. */
	uint32_t *fanout; /* owned; NULL: not read yet */
	unsigned version;
	uint64_t idx_ino, idx_size;
	uint64_t pack_size;  /* once the pack was opened */
	int idx_fd, pack_fd; /* -1: not open */
	uint64_t used;       /* the owner's time of last use */
	/* Counts the reads, and the parts of 4 KiB that were read, inflated or
	 * copied. An object may need thousands of them, so they count for the
	 * account of the owner. */
	size_t nr_steps;
};

/* NAME is copied; 0 or -ENOMEM. */
int pack_init(struct pack *p, const char *name, size_t len,
    enum refd_object_format format);
/* A missing pack file is noticed when the pack is opened the next time. */
void pack_close_pack(const struct sys *sys, struct pack *p);
/* Closes both files, but the fan-out stays. */
void pack_close(const struct sys *sys, struct pack *p);
/* Frees the fan-out too, so the next use reads the files again. */
void pack_forget(const struct sys *sys, struct pack *p);
void pack_done(const struct sys *sys, struct pack *p);

/* Returns 1 and the OFFSET of the entry of OID, or 0 if the pack has no such
 * object. DIRFD is objects/pack. */
int pack_find(const struct sys *sys, int dirfd, struct pack *p,
    const struct refd_oid *oid, uint64_t *offset);
int pack_type(const struct sys *sys, int dirfd, struct pack *p, uint64_t offset,
    enum object_type *type);
/* -EFBIG: the result or an intermediate result is larger than MAX, all steps
 * together are larger than four times MAX, or the chain is longer than
 * PACK_READ_CHAIN. */
int pack_read(const struct sys *sys, int dirfd, struct pack *p, uint64_t offset,
    size_t max, struct object_content *out);

#endif
