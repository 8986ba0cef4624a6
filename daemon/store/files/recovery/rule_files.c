#include "daemon/store/files/recovery/rule_files.h"

/* Another writer's file may have the same time stamp as refd's lock. */
#define SAME_TIME_NS 1

static bool has_new_oid(const struct record_member *m,
    const struct loose_value *loose)
{
	return loose->kind == LOOSE_OID && m->action == RECORD_WRITE &&
	    refd_oid_eq(&loose->oid, &m->new_oid);
}

int rule_files_apply(const struct rule_files *files,
    const struct record_member *m, int64_t locked_at_ns,
    struct rule_files_found *found)
{
	struct loose_value loose;
	struct refd_oid packed;
	int r;

	r = loose_read(files->sys, files->dirfd, m->name, files->format,
	    &loose);
	if (r < 0)
		return r;
	*found =
	    (struct rule_files_found){ .is_loose = loose.kind != LOOSE_ABSENT &&
			loose.kind != LOOSE_DIR,
		    .is_broken = loose.kind == LOOSE_BROKEN,
		    .has_oid = loose.kind == LOOSE_OID,
		    .oid = loose.oid };
	if (!found->is_loose && files->snap != NULL) {
		r = packed_lookup(files->snap, m->name, &packed);
		found->has_oid = r > 0;
		if (r > 0)
			found->oid = packed;
	}
	found->verdict = has_new_oid(m, &loose) ?
	    RULE_STANDS :
	    rule_is_replaced(m, &loose) ?
	    RULE_LOST :
	    rule_apply(m, locked_at_ns - SAME_TIME_NS, &loose,
		r > 0 ? &packed : NULL, files->packed_mtime_ns < locked_at_ns);
	loose_value_done(&loose);
	return r < 0 ? r : 0;
}
