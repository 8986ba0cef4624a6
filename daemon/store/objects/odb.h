/*
 * Which type an object has, and which object a tag is of: in a repository's
 * own store and its alternates, loose or packed.
 *
 * Nothing is mapped and no object is inflated but its header, and tags of at
 * most ODB_TAG_BYTES for their target. A multi-pack-index is not read: git
 * keeps the .idx file of each pack beside it.
 *
 * Bounds: ODB_PACKS packs of a repository are read, ODB_ENTRIES names of a
 * directory of packs; ODB_OPEN packs stay open (two descriptors each), and the
 * fan-outs of the others stay in memory (1 KiB each).
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

/* COMMON_FD is borrowed, RULE is copied; no file is touched. NULL: no
 * memory. */
struct odb *odb_new(const struct sys *sys, int common_fd,
    const struct object_rule *rule);
void odb_free(struct odb *odb);

/*
 * Looks whether alternates changed, and packs came or went: objects that were
 * pruned are not found any more. To be called before a run of look-ups. The
 * errors of object_stores_refresh(), which object_stores_why() explains; then
 * look-ups answer OBJECT_ERROR.
 */
int odb_refresh(struct odb *odb);
/* As of the last odb_refresh(); none where that failed. */
const struct object_stores *odb_stores(const struct odb *odb);

/* An object that is not found makes it list the packs anew, where a directory
 * of packs changed. */
enum object_type odb_type(struct odb *odb, const struct refd_oid *oid);
/*
 * What the tag TAG is of, tags of tags followed, up to eight. The contents'
 * check sum is TAG. -EFBIG: a tag on the way has more than ODB_TAG_BYTES, or
 * is a delta on more, or there are more than eight. -EINVAL: it is no tag, or
 * malformed. -EIO: absent or unreadable.
 */
int odb_peel(struct odb *odb, const struct refd_oid *tag, struct refd_oid *to);

/* How much was done since the last call, in units of about one look-up, for a
 * caller who shares a thread among repositories. */
size_t odb_take_work(struct odb *odb);

#endif
