/*
 * The last records of a repository's refs, for looks (looking/looker.h). A name
 * belongs to a class by its hash, so the memory is fixed. A look may leave out
 * a changed ref because of a different ref of the class, but the next look
 * finds the ref.
 *
 * Nothing here can fail.
 */
#include "daemon/store/repos/repo.h"

static size_t class_of(const char *name)
{
	uint32_t h = 2166136261u;

	for (; *name != '\0'; name++)
		h = (h ^ (unsigned char)*name) * 16777619u;
	return (h ^ h >> 15) % REPO_REF_CLASSES;
}

static void raise_to(atomic_uint_fast64_t *last, uint64_t lsn)
{
	uint_fast64_t was = atomic_load(last);

	while (was < lsn && !atomic_compare_exchange_weak(last, &was, lsn))
		;
}

void repo_note_record(struct repo *repo, const char *name, uint64_t lsn)
{
	raise_to(&repo->last_lsn[class_of(name)], lsn);
}

uint64_t repo_last_record(struct repo *repo, const char *name)
{
	return atomic_load(&repo->last_lsn[class_of(name)]);
}

void repo_note_look(struct repo *repo, uint64_t lsn)
{
	raise_to(&repo->look_lsn, lsn);
}
