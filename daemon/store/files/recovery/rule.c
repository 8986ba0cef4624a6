/*
 * The happy path: the file holds the recorded value.
 *
 * Otherwise: a well-formed file younger than our lock belongs to another
 * writer, and so does a packed value that was absent when the record was made.
 * Any other state (older, absent, empty or broken) means that the recorded
 * value was lost.
 *
 * Tools set times, so a file is younger only if its ctime is, too. The clock
 * can be wrong, and a file that an update replaced can look younger than the
 * lock of that update. The record has the mtime of that file, so value and
 * mtime show what was replaced, whatever the clock says.
 */
#include "daemon/store/files/recovery/rule.h"

#include <string.h>

bool rule_is_value(const struct record_member *m,
    const struct loose_value *loose)
{
	if (m->action != RECORD_WRITE)
		return false;
	if (m->target != NULL)
		return loose->kind == LOOSE_SYMREF && loose->exact &&
		    strcmp(loose->target, m->target) == 0;
	return loose->kind == LOOSE_OID && loose->exact &&
	    refd_oid_eq(&loose->oid, &m->new_oid);
}

bool rule_is_replaced(const struct record_member *m,
    const struct loose_value *loose)
{
	/* A line replaces no value: the value belongs to another ref, has a
	 * separate record, or is durable. */
	if (m->action == RECORD_LOG || !m->had_old || m->old_mtime_ns == 0 ||
	    loose->mtime_ns != m->old_mtime_ns)
		return false;
	return loose->kind == LOOSE_SYMREF ?
	    loose->exact :
	    loose->kind == LOOSE_OID && refd_oid_eq(&loose->oid, &m->old_oid);
}

/* A torn tail of ours is nobody else's value, however young. */
static bool is_torn_value(const struct record_member *m,
    const struct loose_value *loose)
{
	return m->action == RECORD_WRITE && m->target == NULL &&
	    refd_oid_eq(&loose->oid, &m->new_oid);
}

static enum rule_verdict apply_to_packed(const struct record_member *m,
    const struct refd_oid *packed, bool packed_is_older)
{
	bool is_oid = m->action == RECORD_WRITE && m->target == NULL;

	if (packed == NULL)
		return m->action == RECORD_DELETE ? RULE_STANDS : RULE_LOST;
	if (is_oid && refd_oid_eq(packed, &m->new_oid))
		return RULE_STANDS;
	return packed_is_older ? RULE_LOST : RULE_LATER;
}

enum rule_verdict rule_apply(const struct record_member *m,
    int64_t locked_at_ns, const struct loose_value *loose,
    const struct refd_oid *packed, bool packed_is_older)
{
	/* An equal time counts as younger, because a later writer's file can
	 * have the time of the lock. A value of refd can have this time, too.
	 * But the record of the next update knows the replaced value. */
	bool is_younger = loose->written_ns >= locked_at_ns;

	/* The value may already be correct because an earlier, interrupted
	 * recovery wrote it. */
	if (rule_is_value(m, loose))
		return RULE_STANDS;
	switch (loose->kind) {
	case LOOSE_OID:
		return is_younger && !is_torn_value(m, loose) ? RULE_LATER :
								RULE_LOST;
	case LOOSE_SYMREF:
		return is_younger && loose->exact ? RULE_LATER : RULE_LOST;
	case LOOSE_BROKEN:
		return RULE_LOST;
	case LOOSE_ABSENT:
	case LOOSE_DIR:
		break;
	}
	return apply_to_packed(m, packed, packed_is_older);
}

/* A record of a look (is_seen) says nothing about VALUE, because a look also
 * finds and records a value that has returned. A record of a gate tells of
 * another writer, and the value of this writer may have been packed since. */
enum rule_packed rule_packed(const struct record *rec,
    const struct record_member *m, const struct refd_oid *value)
{
	if (rec->is_seen ||
	    (m->action != RECORD_WRITE && m->action != RECORD_DELETE))
		return RULE_PACKED_NOTHING;
	if (rec->is_gated ||
	    (m->action == RECORD_WRITE && m->target == NULL &&
		refd_oid_eq(&m->new_oid, value)))
		return RULE_PACKED_MEANT;
	return m->had_old && refd_oid_eq(&m->old_oid, value) ?
	    RULE_PACKED_REPLACED :
	    RULE_PACKED_NOTHING;
}

/* ---- a ref in files ---- */

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
	    rule_apply(m, locked_at_ns, &loose, r > 0 ? &packed : NULL,
		packed_written_ns(files->snap) < locked_at_ns);
	loose_value_done(&loose);
	return r < 0 ? r : 0;
}
