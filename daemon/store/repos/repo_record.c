/*
 * The last records of a repository's refs, for looks (looking/looker.h). A name
 * belongs to a group by its hash. So the memory is fixed, and a look may take a
 * ref for changed because of a different ref: the next look finds the ref.
 *
 * Nothing here can fail.
 */
#include "daemon/store/repos/repo.h"

static atomic_uint_fast64_t *group_of(struct repo *repo, const char *name)
{
	uint32_t h = 2166136261u;

	for (; *name != '\0'; name++)
		h = (h ^ (unsigned char)*name) * 16777619u;
	return &repo->last_lsn[(h ^ h >> 15) % REPO_REF_GROUPS];
}

void repo_note_record(struct repo *repo, const char *name, uint64_t lsn)
{
	atomic_uint_fast64_t *last = group_of(repo, name);
	uint_fast64_t was = atomic_load(last);

	while (was < lsn && !atomic_compare_exchange_weak(last, &was, lsn))
		;
}

uint64_t repo_last_record(struct repo *repo, const char *name)
{
	return atomic_load(group_of(repo, name));
}
