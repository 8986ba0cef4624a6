/*
 * Does a file still hold what the journal recorded last for it? The rule of a
 * cut's recovery, which `refd verify` asks too. Pure; any thread.
 */
#ifndef STORE_RULE_H
#define STORE_RULE_H

#include "daemon/store/refs/loose.h"
#include "daemon/store/journal/record.h"

enum rule_verdict {
	RULE_STANDS, /* it is as recorded */
	RULE_LATER,  /* another wrote it after our lock was taken */
	RULE_LOST    /* it is not, and nothing shows that another wrote it */
};

/* Is what M wrote in the file? A torn tail may read as it, and is not. */
bool rule_is_value(const struct record_member *m,
    const struct loose_value *loose);

/* M is the last record of the file, LOCKED_AT_NS its lock's time. PACKED: the
 * value in packed-refs, which counts where nothing is loose; NULL: none is.
 * PACKED_IS_OLDER: that was there before the record. */
enum rule_verdict rule_apply(const struct record_member *m,
    int64_t locked_at_ns, const struct loose_value *loose,
    const struct refd_oid *packed, bool packed_is_older);

#endif
