/*
 * The new loose objects of a repository as bytes: the log's record of a small
 * push contains them, so that the flush of the log makes them durable
 * (docs/decisions/018-objects-in-the-record.md).
 *
 * The files are hostile input, so every file is opened by a single name without
 * following a link, must be regular, and must have the checksum which is its
 * name. The bounds below limit the work and the memory. Beyond a bound, and
 * after any failure, the barrier makes the objects durable.
 *
 * A look is for one thread, and blocks on the files. Other functions: any
 * thread. Nothing logs.
 */
#ifndef STORE_NEW_OBJECTS_H
#define STORE_NEW_OBJECTS_H

#include "daemon/base/sys.h"
#include "proto/oid.h"

#define NEW_OBJECTS_FILES   64
#define NEW_OBJECTS_BYTES   (64 * 1024)       /* of all files */
#define NEW_OBJECTS_CONTENT (1024 * 1024)     /* of all contents, inflated */
#define NEW_OBJECTS_NAMES   1024              /* in all new fan-outs */
#define NEW_OBJECTS_HELD    (4 * 1024 * 1024) /* in memory at a time */

/* For every file a u32 length, a u16 mode and the u16 mode of the fan-out,
 * little-endian, then the id, and the bytes of the file. */
struct new_objects {
	size_t len;
	uint8_t bytes[];
};

/* NULL: out of memory, or NEW_OBJECTS_HELD is exceeded. */
struct new_objects *new_objects_copy(const struct new_objects *objects);
void new_objects_free(struct new_objects *objects); /* NULL is fine */

struct new_objects_look {
	const struct sys *sys;
	enum refd_object_format format;
	uint64_t dev; /* all files must be there */
	/* What the bounds leave. */
	size_t files, bytes, content, names;
	struct new_objects *found; /* owned; NULL: none so far */
};

/* Ends with new_objects_end(), whatever happens in between. */
void new_objects_begin(struct new_objects_look *look, const struct sys *sys,
    enum refd_object_format format, uint64_t dev);
/* Copies the objects that changed at LIMIT or later, from the fan-out NAME of
 * the store FD. Returns 0, or 1 if a copy is not possible, or negative
 * errno. */
int new_objects_add(struct new_objects_look *look, int fd, const char *name,
    int64_t limit);
/* Can recovery write below a directory with the attributes ST? */
bool new_objects_may_restore(const struct sys_stat *st);
/* R is the last result of the look. Returns R, or 0 and the *OBJECTS, which are
 * NULL if there are no new objects. */
int new_objects_end(struct new_objects_look *look, int r,
    struct new_objects **objects);

/* An object, whose DATA is borrowed from the bytes. */
struct new_object {
	struct refd_oid oid;
	const uint8_t *data; /* of the file */
	size_t len;
	uint16_t mode, dir_mode; /* permission bits of file and fan-out */
};

/* Calls CB for each object in BYTES. -EBADMSG: malformed. A result of CB other
 * than 0 ends the calls and is returned. */
int new_objects_each(const uint8_t *bytes, size_t len,
    enum refd_object_format format,
    int (*cb)(void *arg, const struct new_object *object), void *arg);

/* new_objects_history.c: does everything exist that TIP leads to through
 * objects in BYTES? The walk ends at objects outside of BYTES, and EXISTS is
 * asked for each of them. 1: yes, or TIP is not in BYTES; 0: no. EXISTS returns
 * 0 for a missing object, and other results if the object is not known to be
 * missing. */
int new_objects_is_complete(const uint8_t *bytes, size_t len,
    enum refd_object_format format, const struct refd_oid *tip,
    int (*exists)(void *arg, const struct refd_oid *oid), void *arg);

#endif
