#include "client/restore/restore_plan.h"

#include <stdlib.h>
#include <string.h>

#include "proto/pattern.h"
#include "proto/refname.h"

static int compare(const void *a, const void *b)
{
	const struct plan_ref *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* git makes refs/remotes/<name>/HEAD as a symbolic ref. The record of its
 * deletion does not say that the ref was symbolic. */
static bool is_remote_head(const char *name)
{
	static const char remotes[] = "refs/remotes/", head[] = "/HEAD";
	size_t len = strlen(name);

	return has_prefix(name, remotes) && len > sizeof(head) - 1 &&
	    !strcmp(name + len - (sizeof(head) - 1), head);
}

static bool is_worktrees(const char *name)
{
	return !has_prefix(name, "refs/") || refd_refname_is_per_worktree(name);
}

/* False: the ref needs no change. */
static bool judge(const struct ref_then *ref, const struct ref_now *now,
    bool undo_git, struct plan_ref *out)
{
	*out = (struct plan_ref){ .name = ref->name };
	if (now)
		out->now = now->oid;
	out->then = ref->has_since ? ref->at : ref->before;
	out->verdict = PLAN_RESTORE;
	if (is_worktrees(ref->name)) {
		/* Its value now is not in the list of shared refs. */
		out->verdict = PLAN_LEFT_WORKTREE;
		return ref->has_since && !refd_oid_eq(&ref->at, &ref->last);
	}
	if (ref->is_symbolic || (now && now->is_symbolic) ||
	    is_remote_head(ref->name)) {
		out->verdict = PLAN_LEFT_SYMBOLIC;
		return ref->has_since;
	}
	if (refd_oid_eq(&out->now, &out->then))
		return false;
	if (!ref->has_since && !undo_git)
		out->verdict = PLAN_LEFT_GIT;
	out->git_since = !refd_oid_eq(&out->now, &ref->last);
	out->git_around = ref->has_since && ref->has_before &&
	    !refd_oid_eq(&ref->before, &ref->at);
	return true;
}

static void count(struct restore_plan *plan, const struct plan_ref *ref)
{
	if (ref->verdict != PLAN_RESTORE)
		return;
	if (refd_oid_is_null(&ref->now))
		plan->nr_made++;
	else if (refd_oid_is_null(&ref->then))
		plan->nr_deleted++;
	else
		plan->nr_moved++;
}

static bool is_meant(const char *name, const char *const *patterns, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		if (refd_pattern_matches(patterns[i], name))
			return true;
	return nr == 0;
}

void restore_plan_make(struct restore_plan *plan, const struct refs_then *then,
    const struct refs_now *now, bool undo_git, const char *const *patterns,
    size_t nr_patterns)
{
	size_t i;

	memset(plan, 0, sizeof(*plan));
	plan->object_format = now->object_format;
	plan->refs = xcalloc(then->nr + 1, sizeof(*plan->refs));
	for (i = 0; i < then->nr; i++)
		if (judge(then->refs[i],
			refs_now_find(now, then->refs[i]->name), undo_git,
			&plan->refs[plan->nr]))
			count(plan, &plan->refs[plan->nr++]);
	qsort(plan->refs, plan->nr, sizeof(*plan->refs), compare);
	for (i = 0; i < now->nr; i++)
		plan->nr_unknown += !now->refs[i].is_symbolic &&
		    !is_worktrees(now->refs[i].name) &&
		    !refs_then_find(then, now->refs[i].name) &&
		    is_meant(now->refs[i].name, patterns, nr_patterns);
}

static void add(struct changes *changes, const struct plan_ref *ref)
{
	/* If the ref becomes symbolic meanwhile, do not follow it. */
	struct refd_update u = { .action = REFD_UPDATE,
		.no_deref = true,
		.name = ref->name,
		.new_oid = ref->then,
		.has_old = true,
		.old_oid = ref->now };

	if (refd_oid_is_null(&ref->now)) {
		u.action = REFD_CREATE;
		u.has_old = false;
	} else if (refd_oid_is_null(&ref->then)) {
		u.action = REFD_DELETE;
	}
	changes_add(changes, &u);
}

void restore_plan_changes(const struct restore_plan *plan,
    struct changes *changes)
{
	int deletes;
	size_t i;

	for (deletes = 1; deletes >= 0; deletes--)
		for (i = 0; i < plan->nr; i++)
			if (plan->refs[i].verdict == PLAN_RESTORE &&
			    refd_oid_is_null(&plan->refs[i].then) == deletes)
				add(changes, &plan->refs[i]);
}

void restore_plan_done(struct restore_plan *plan)
{
	free(plan->refs);
	memset(plan, 0, sizeof(*plan));
}
