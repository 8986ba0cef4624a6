/*
 * Repairs without a risk. Most do the work of "refd enable", which records its
 * steps. The work is a part of this command, because the failures of an owner
 * are counted for each command. A repair reports nothing: the checks that
 * follow show whether the finding is gone.
 *
 * Failures: a repository that was replaced since the check is left alone.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/doctor/doctor_internal.h"
#include "client/enable/enable.h"
#include "client/enable/registry.h"
#include "proto/lib/interrupt.h"

/* If the directory around PATH is missing too, a disk may be unmounted, so PATH
 * stays listed. */
static void forget_listed(const char *path)
{
	char *around = xstrdup(path), *slash = strrchr(around, '/');
	bool is_there;

	if (slash)
		*slash = '\0';
	is_there = slash && access(around, F_OK) == 0;
	free(around);
	if (is_there)
		registry_remove(path);
}

/* Does the list name the same repair of the same repository before AT? The
 * findings of a repository are neighbours, so another repository ends the
 * search. */
static bool is_again(const struct findings *f, size_t at)
{
	const struct finding *this = &f->list[at]->finding, *other;

	while (at-- > 0) {
		other = &f->list[at]->finding;
		if (strcmp(other->repo, this->repo))
			return false;
		if (finding_repair(other->id) == finding_repair(this->id))
			return true;
	}
	return false;
}

/* The checked directory, or NULL if no check came that far. */
static const struct stat *checked(const struct doctor *d, const char *path)
{
	size_t i;

	for (i = d->nr_known; i > 0; i--)
		if (!strcmp(d->known[i - 1].path, path))
			return &d->known[i - 1].st;
	return NULL;
}

struct doctor_repairs {
	const struct doctor *d;
	struct wishes w;
	bool has_begun; /* enable_begin() */
};

static const struct wishes *wishes(struct doctor_repairs *m)
{
	if (!m->has_begun)
		enable_begin(&m->w);
	m->has_begun = true;
	return &m->w;
}

/* False: this command has no such repair. */
static bool mend(struct doctor_repairs *m, const struct finding *finding)
{
	const struct stat *was = checked(m->d, finding->repo);

	switch (finding_repair(finding->id)) {
	case REPAIR_ENABLE:
		if (was)
			enable_checked(finding->repo, was, wishes(m));
		return was != NULL;
	case REPAIR_SYSTEM:
		enable_system(NULL, 0, wishes(m));
		return true;
	case REPAIR_LIST:
		wishes(m);
		forget_listed(finding->repo);
		return true;
	case REPAIR_NONE:
	case REPAIR_PACKED_NEW:
	case REPAIR_REF:
	case REPAIR_LOG:
	case REPAIR_EMPTY:
	case REPAIR_LOCKS:
	case REPAIR_TABLE:
		break;
	}
	return false;
}

bool doctor_mend(const struct doctor *d)
{
	const struct findings *f = &d->f;
	struct doctor_repairs m = { .d = d };
	bool any = false;
	size_t i;

	for (i = 0; i < f->nr && !interrupt_came(); i++)
		if (!is_again(f, i))
			any |= mend(&m, &f->list[i]->finding);
	if (m.has_begun)
		enable_end(&m.w);
	return any;
}
