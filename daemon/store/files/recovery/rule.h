/*
 * Does a file still hold the value that the journal recorded last? The rule of
 * recovery after a power loss, also for `refd verify`. Any thread. Pure, except
 * for rule_files_apply(), which blocks on the disk and logs nothing.
 */
#ifndef STORE_RULE_H
#define STORE_RULE_H

#include "daemon/base/sys.h"
#include "daemon/store/files/format/loose.h"
#include "daemon/store/files/format/packed.h"
#include "daemon/store/journal/record.h"

enum rule_verdict {
	RULE_STANDS, /* the recorded value */
	RULE_LATER,  /* another writer's value, after our lock */
	RULE_LOST    /* different, without evidence of another writer */
};

/* Does the file hold the value of M? A torn tail may read like the value, but
 * does not count. */
bool rule_is_value(const struct record_member *m,
    const struct loose_value *loose);

/* Is this the very file that the update of M replaced? After a power loss the
 * file system may show the file again, so the file is no later write. */
bool rule_is_replaced(const struct record_member *m,
    const struct loose_value *loose);

/* M is the last record of the file, LOCKED_AT_NS the time of its lock. PACKED:
 * the value in packed-refs, which counts if no file is loose; NULL: none.
 * PACKED_IS_OLDER: PACKED predates the record. */
enum rule_verdict rule_apply(const struct record_member *m,
    int64_t locked_at_ns, const struct loose_value *loose,
    const struct refd_oid *packed, bool packed_is_older);

/* What a record of a ref says about VALUE, which packed-refs has now. */
enum rule_packed {
	RULE_PACKED_NOTHING,
	RULE_PACKED_MEANT,   /* somebody may have written VALUE since */
	RULE_PACKED_REPLACED /* refd replaced VALUE, or deleted the ref */
};

/*
 * Tells what M, a member of REC, says about VALUE in packed-refs. `git
 * pack-refs --auto` reads loose refs before it locks packed-refs. So a value
 * that refd has replaced meanwhile can return, as a line of packed-refs alone.
 * Call this for the records of the ref, the newest first: the first result
 * other than NOTHING decides. If the first such result is REPLACED, no record
 * shows that somebody wrote VALUE again.
 */
enum rule_packed rule_packed(const struct record *rec,
    const struct record_member *m, const struct refd_oid *value);

/* ---- a ref in files, read and compared with its last record ---- */

/* For `refd verify`, and for a strict recovery (old_copy.h). All borrowed. */
struct rule_files {
	const struct sys *sys;
	int dirfd; /* of the git-dir */
	enum refd_object_format format;
	const struct packed_snapshot *snap; /* NULL: no ref is packed */
};

struct rule_files_found {
	enum rule_verdict verdict;
	bool is_loose;
	bool is_broken; /* the loose file is damaged, which tells nothing */
	bool has_oid;   /* OID is the value */
	struct refd_oid oid;
};

/* M is the last record of the ref, LOCKED_AT_NS the time of its lock. 0, or
 * negative errno: the ref can't be read. */
int rule_files_apply(const struct rule_files *files,
    const struct record_member *m, int64_t locked_at_ns,
    struct rule_files_found *found);

#endif
