/*
 * The rule (rule.h) for a ref in files: reads the ref, loose or packed, and
 * compares it with the last record. For `refd verify`, and for a strict
 * recovery (old_copy.h).
 *
 * Any thread; blocks on the disk; nothing logs.
 */
#ifndef STORE_RULE_FILES_H
#define STORE_RULE_FILES_H

#include "daemon/base/sys.h"
#include "daemon/store/files/recovery/rule.h"
#include "daemon/store/files/format/packed.h"

/* All borrowed. */
struct rule_files {
	const struct sys *sys;
	int dirfd; /* of the git-dir */
	enum refd_object_format format;
	const struct packed_snapshot *snap; /* NULL: no ref is packed */
	int64_t packed_mtime_ns;            /* of packed-refs */
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
