/*
 * A loose object below the directory of an object store. The files are hostile
 * input, so the file is opened by single names, without following a link, and
 * must be a regular file.
 *
 * Blocks; nothing logs; any thread. -ENOENT: no such object; -EBADMSG:
 * malformed; or the error of a call.
 */
#ifndef STORE_LOOSE_OBJECT_H
#define STORE_LOOSE_OBJECT_H

#include "daemon/base/sys.h"
#include "daemon/store/objects/object_type.h"
#include "proto/oid.h"

/* Inflates the header alone, so at most LOOSE_HEADER bytes come out. */
#define LOOSE_HEADER 32

/* Reads the header of an object, "<type> SP <size> NUL", from the LEN bytes
 * TEXT. *HEADER: its length. */
int loose_object_header(const char *text, size_t len, enum object_type *type,
    uint64_t *size, size_t *header);
int loose_object_type(const struct sys *sys, int store_fd,
    const struct refd_oid *oid, enum refd_object_format format,
    enum object_type *type);
/* -EFBIG: more than MAX bytes. */
int loose_object_read(const struct sys *sys, int store_fd,
    const struct refd_oid *oid, enum refd_object_format format, size_t max,
    struct object_content *out);
/*
 * Writes the LEN bytes FILE as the entry NAME of the fan-out DIRFD. The bytes
 * are first under the name TEMPORARY, so only one thread at a time may use a
 * fan-out and TEMPORARY. An entry NAME is replaced. MODE has the bits for
 * reading.
 */
int loose_object_put(const struct sys *sys, int dirfd, const char *temporary,
    const char *name, const void *file, size_t len, uint32_t mode);
/* The same for OBJECT, without a sync. A new fan-out has DIR_MODE, and the file
 * has its bits for reading. */
int loose_object_write(const struct sys *sys, int store_fd,
    const char *temporary, enum refd_object_format format,
    const struct row_object *object, uint32_t dir_mode);

#endif
