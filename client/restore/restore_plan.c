#include "client/restore/restore_plan.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "proto/pattern.h"
#include "proto/refname.h"

/* ---- the values then ---- */

static int compare_then(const void *a, const void *b)
{
	const struct ref_then *x = a, *y = b;

	return strcmp(x->name, y->name);
}

const struct ref_then *refs_then_find(const struct refs_then *p,
    const char *name)
{
	struct ref_then key = { .name = (char *)name };
	void *const *found = tfind(&key, &p->tree, compare_then);

	return found ? *found : NULL;
}

static struct ref_then *get(struct refs_then *p, const char *name)
{
	struct ref_then *ref = (struct ref_then *)refs_then_find(p, name);

	if (ref)
		return ref;
	ref = xcalloc(1, sizeof(*ref));
	ref->name = xstrdup(name);
	p->refs = xroom(p->refs, p->nr, &p->size, sizeof(*p->refs));
	p->refs[p->nr++] = ref;
	if (!tsearch(ref, &p->tree, compare_then))
		die("out of memory");
	return ref;
}

static bool is_since(const struct refs_then *p, const struct refd_change *c)
{
	if (c->record->lsn != p->point.lsn)
		return c->record->lsn > p->point.lsn;
	return p->point.nr && c->nr > p->point.nr;
}

void refs_then_add(struct refs_then *p, const struct refd_change *c)
{
	struct ref_then *ref;

	if (c->status != REFD_OK)
		return;
	ref = get(p, c->name);
	if (c->target || !c->has_old || !c->has_new)
		ref->is_symbolic = true;
	if (!is_since(p, c)) {
		ref->has_before = true;
		ref->before = c->new_oid;
	} else if (!ref->has_since) {
		ref->has_since = true;
		ref->at = c->old_oid;
	}
	ref->last = c->new_oid;
}

static void keep(void *ref)
{
	(void)ref; /* owned by the array */
}

void refs_then_done(struct refs_then *p)
{
	size_t i;

	tdestroy(p->tree, keep);
	for (i = 0; i < p->nr; i++) {
		free(p->refs[i]->name);
		free(p->refs[i]);
	}
	free(p->refs);
	memset(p, 0, sizeof(*p));
}

/* ---- the plan ---- */

static int compare(const void *a, const void *b)
{
	const struct plan_ref *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* git makes refs/remotes/<name>/HEAD as a symbolic ref. The record of its
 * deletion does not say that the ref was symbolic, so the name decides. */
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
		/* The list has only shared refs, so the value now is not in
		 * it. */
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
	/* Without no_deref the update would follow a ref that becomes symbolic
	 * meanwhile. */
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
