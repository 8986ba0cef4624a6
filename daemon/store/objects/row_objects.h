/*
 * The objects of an update that other machines may lack, as bytes for the row
 * in the log that they share (docs/decisions/028-row-objects.md).
 *
 * The repository is hostile input, so every object is read by the object
 * reader, has the checksum which is its name, and the bounds below limit work
 * and memory.
 *
 * A collection is for one thread, and blocks on the files. Other functions: any
 * thread. Nothing logs.
 */
#ifndef STORE_ROW_OBJECTS_H
#define STORE_ROW_OBJECTS_H

#include "daemon/store/objects/odb.h"

/* The number and the bytes have the bounds of new_objects.h, because a follower
 * then needs no further flush for the objects. */
#define ROW_OBJECTS_NR        64
#define ROW_OBJECTS_BYTES     (64 * 1024)  /* of all contents */
#define ROW_OBJECTS_TREE      (128 * 1024) /* of a tree to compare with */
#define ROW_OBJECTS_TIPS      64
#define ROW_OBJECTS_ANCESTORS 128
#define ROW_OBJECTS_HELD      (4 * 1024 * 1024) /* of all rows that have them */
#define ROW_OBJECTS_NS        (10 * 1000000LL)  /* for a collection */

/* A commit that new values have behind them, or are. */
struct row_ancestor {
	struct refd_oid oid;
	uint64_t tips; /* a bit for each tip, by its number */
};

/* BYTES has for every object its type (1 byte), the length of its content (4
 * bytes, little-endian), and its content. The id follows from these. */
struct row_objects {
	size_t len, charged;
	uint8_t *bytes;
	struct refd_oid *tips;
	size_t nr_tips, nr_ancestors;
	struct row_ancestor ancestors[]; /* then the tips, and the bytes */
};

#define ROW_OBJECTS_HEAD 5 /* bytes of type and length */

/* Room for LEN bytes, which NR_ROWS rows have. NULL: out of memory, or
 * ROW_OBJECTS_HELD is exceeded. */
struct row_objects *row_objects_new(size_t len, size_t nr_rows, size_t nr_tips,
    size_t nr_ancestors);
void row_objects_free(struct row_objects *objects); /* NULL is fine */

struct row_objects_need {
	const struct sys *sys;
	struct odb *odb;
	enum refd_object_format format;
	/* Do other nodes have the object, and all that it reaches? */
	bool (*is_known)(void *arg, const struct refd_oid *oid);
	void *arg;
	const struct refd_oid *tips; /* the new values */
	size_t nr_tips;              /* at most ROW_OBJECTS_TIPS */
	size_t nr_rows;              /* with the objects, at most */
};

/*
 * Collects what the tips reach, and what other nodes may lack. 0: other nodes
 * can have all that the tips reach, if they get *OBJECTS (owned). 1: not
 * possible, because of a bound, or because an object is not readable. -ENOMEM.
 */
int row_objects_collect(const struct row_objects_need *need,
    struct row_objects **objects);

/* Is OLD the tip TIP, or an ancestor of it? False: perhaps not. */
bool row_objects_is_behind(const struct row_objects *objects,
    const struct refd_oid *tip, const struct refd_oid *old);

/* Calls CB for each object in BYTES, of which the object borrows its data.
 * -EBADMSG: malformed. A result of CB other than 0 ends the calls and is
 * returned. */
int row_objects_each(const uint8_t *bytes, size_t len,
    int (*cb)(void *arg, const struct row_object *object), void *arg);

/* Does an object in BYTES name an object that is not in ODB? Git can have
 * pruned an object of BYTES since the object was written. So even an object of
 * BYTES must be in ODB. Returns 1 and *MISSING if one is missing, 0 if not, or
 * a negative errno. */
int row_objects_missing(const uint8_t *bytes, size_t len, struct odb *odb,
    enum refd_object_format format, struct refd_oid *missing);

#endif
