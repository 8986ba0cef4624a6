/*
 * The happy path: the file holds what was recorded.
 *
 * Otherwise: a well-formed file that is younger than our lock is another's,
 * and so is a packed value that was not there when the record was made. All
 * else, older, absent, empty or broken, is a value that was lost.
 */
#include "daemon/store/recovery/judge.h"

#include <string.h>

bool judge_is_value(const struct record_member *m,
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

/* A torn tail of ours is nobody else's value, however young. */
static bool is_torn_value(const struct record_member *m,
    const struct loose_value *loose)
{
	return m->action == RECORD_WRITE && m->target == NULL &&
	    refd_oid_eq(&loose->oid, &m->new_oid);
}

static enum judge_verdict judge_packed(const struct record_member *m,
    const struct refd_oid *packed, bool packed_is_older)
{
	bool is_oid = m->action == RECORD_WRITE && m->target == NULL;

	if (packed == NULL)
		return m->action == RECORD_DELETE ? JUDGE_STANDS : JUDGE_LOST;
	if (is_oid && refd_oid_eq(packed, &m->new_oid))
		return JUDGE_STANDS;
	return packed_is_older ? JUDGE_LOST : JUDGE_LATER;
}

enum judge_verdict judge(const struct record_member *m, int64_t locked_at_ns,
    const struct loose_value *loose, const struct refd_oid *packed,
    bool packed_is_older)
{
	bool is_younger = loose->mtime_ns > locked_at_ns;

	/* What is right may be an earlier recovery's, which the power ended. */
	if (judge_is_value(m, loose))
		return JUDGE_STANDS;
	switch (loose->kind) {
	case LOOSE_OID:
		return is_younger && !is_torn_value(m, loose) ? JUDGE_LATER :
								JUDGE_LOST;
	case LOOSE_SYMREF:
		return is_younger && loose->exact ? JUDGE_LATER : JUDGE_LOST;
	case LOOSE_BROKEN:
		return JUDGE_LOST;
	case LOOSE_ABSENT:
	case LOOSE_DIR:
		break;
	}
	return judge_packed(m, packed, packed_is_older);
}
