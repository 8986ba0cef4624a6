/*
 * The type of an object, its contents, and the target of a tag: in the
 * repository's own store and in the alternates, loose or packed.
 *
 * A truncated file in a map would end the daemon by SIGBUS, so nothing is
 * mapped. For the type, only the header of an object is inflated. For the
 * target of a tag, at most ODB_TAG_BYTES are read. A multi-pack-index is not
 * read, because git keeps the .idx file of each pack.
 *
 * Bounds: ODB_PACKS packs of a repository are read, ODB_ENTRIES names of a
 * directory of packs. ODB_OPEN packs stay open (two descriptors each), and the
 * fan-outs of all other packs stay in memory (1 KiB each).
 *
 * One thread at a time; blocks; nothing logs.
 */
#ifndef STORE_ODB_H
#define STORE_ODB_H

#include "daemon/store/objects/object_stores.h"
#include "daemon/store/objects/object_type.h"
#include "proto/oid.h"

#define ODB_PACKS     4096
#define ODB_ENTRIES   65536
#define ODB_OPEN      24
#define ODB_TAG_BYTES (64 * 1024)

struct odb;

/* COMMON_FD and FORMAT are borrowed, RULE is copied; no file is touched, and
 * *FORMAT is read at the first use. NULL: no memory. */
struct odb *odb_new(const struct sys *sys, int common_fd,
    const enum refd_object_format *format, const struct object_rule *rule);
void odb_free(struct odb *odb);

/*
 * Checks whether alternates changed, and whether packs were added or removed.
 * Call before a run of look-ups, because otherwise pruned objects are still
 * found. Returns the errors of object_stores_refresh(), explained by
 * object_stores_why(); after an error look-ups answer OBJECT_ERROR.
 */
int odb_refresh(struct odb *odb);
/* As of the last odb_refresh(), so empty if the refresh failed. */
const struct object_stores *odb_stores(const struct odb *odb);

/* If an object is not found and a directory of packs changed, the packs are
 * listed again, because git may have moved the object into a pack. */
enum object_type odb_type(struct odb *odb, const struct refd_oid *oid);
#define ODB_FAULT_TEXT 320
/* After OBJECT_ERROR for OID, the error, and text to follow the id of the
 * object. 0 and "" if a later look-up failed. */
int odb_fault(const struct odb *odb, const struct refd_oid *oid,
    char why[ODB_FAULT_TEXT]);
/*
 * Reads the object OID, whose content has the check sum OID.
 * -ENOENT: absent; -EFBIG: more than MAX bytes, or a delta on a larger object;
 * -EIO: unreadable.
 */
int odb_read(struct odb *odb, const struct refd_oid *oid, size_t max,
    struct object_content *out);
/*
 * Stores the target of the tag TAG in *TO, and follows tags of tags, up to
 * eight. The contents must have the check sum TAG. -EFBIG: a tag on the way has
 * more than ODB_TAG_BYTES, or is a delta on a larger object, or the chain is
 * longer than eight. -EINVAL: not a tag, malformed, or of a target whose type
 * is not the stated type, because git 2.53 gives such a tag no peeled value.
 * -EIO: the tag or a target is absent or unreadable.
 */
int odb_peel(struct odb *odb, const struct refd_oid *tag, struct refd_oid *to);

/* The work done since the last call, in units of about a look-up, for a caller
 * that shares a thread among repositories. */
size_t odb_take_work(struct odb *odb);

#endif
