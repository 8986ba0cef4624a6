/*
 * Does a file still hold the value that the journal recorded last? The rule of
 * recovery after a power loss, also for `refd verify`. Pure; any thread.
 */
#ifndef STORE_RULE_H
#define STORE_RULE_H

#include "daemon/store/files/format/loose.h"
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
 * file system may show the file again. */
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
 * `git pack-refs --auto` reads loose refs before it locks packed-refs. So a
 * value that refd has replaced meanwhile can return, as a line of packed-refs
 * alone. The newest record of the ref that says more than NOTHING decides: with
 * REPLACED, no record shows that somebody wrote VALUE again. M belongs to REC.
 */
enum rule_packed rule_packed(const struct record *rec,
    const struct record_member *m, const struct refd_oid *value);

#endif
