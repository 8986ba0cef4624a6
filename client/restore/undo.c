#include "client/restore/undo.h"

#include <stdlib.h>
#include <string.h>

#include "proto/pattern.h"
#include "proto/refname.h"

static int compare(const void *a, const void *b)
{
	const struct undo_ref *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* refs/remotes/<name>/HEAD is made by git as a symbolic ref, and deleted
 * through the daemon it leaves nothing that says so. */
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

/* False: it is as it was. */
static bool judge(const struct former_ref *ref, const struct present_ref *now,
    bool undo_git, struct undo_ref *out)
{
	*out = (struct undo_ref){ .name = ref->name };
	if (now)
		out->now = now->oid;
	out->then = ref->has_since ? ref->at : ref->before;
	out->verdict = UNDO_RESTORE;
	if (is_worktrees(ref->name)) {
		/* What it is now, is not among refs that all share. */
		out->verdict = UNDO_LEFT_WORKTREE;
		return ref->has_since && !refd_oid_eq(&ref->at, &ref->last);
	}
	if (ref->is_symbolic || (now && now->is_symbolic) ||
	    is_remote_head(ref->name)) {
		out->verdict = UNDO_LEFT_SYMBOLIC;
		return ref->has_since;
	}
	if (refd_oid_eq(&out->now, &out->then))
		return false;
	if (!ref->has_since && !undo_git)
		out->verdict = UNDO_LEFT_GIT;
	out->git_since = !refd_oid_eq(&out->now, &ref->last);
	out->git_around = ref->has_since && ref->has_before &&
	    !refd_oid_eq(&ref->before, &ref->at);
	return true;
}

static void count(struct undo *undo, const struct undo_ref *ref)
{
	if (ref->verdict != UNDO_RESTORE)
		return;
	if (refd_oid_is_null(&ref->now))
		undo->nr_made++;
	else if (refd_oid_is_null(&ref->then))
		undo->nr_deleted++;
	else
		undo->nr_moved++;
}

static bool is_meant(const char *name, const char *const *patterns, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		if (refd_pattern_matches(patterns[i], name))
			return true;
	return nr == 0;
}

void undo_make(struct undo *undo, const struct former *former,
    const struct present *now, bool undo_git, const char *const *patterns,
    size_t nr_patterns)
{
	size_t i;

	memset(undo, 0, sizeof(*undo));
	undo->refs = xcalloc(former->nr + 1, sizeof(*undo->refs));
	for (i = 0; i < former->nr; i++)
		if (judge(former->refs[i],
			present_find(now, former->refs[i]->name), undo_git,
			&undo->refs[undo->nr]))
			count(undo, &undo->refs[undo->nr++]);
	qsort(undo->refs, undo->nr, sizeof(*undo->refs), compare);
	for (i = 0; i < now->nr; i++)
		undo->nr_unknown += !now->refs[i].is_symbolic &&
		    !is_worktrees(now->refs[i].name) &&
		    !former_find(former, now->refs[i].name) &&
		    is_meant(now->refs[i].name, patterns, nr_patterns);
}

static void add(struct changes *changes, const struct undo_ref *ref)
{
	/* None is symbolic, and one that becomes it is not followed. */
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

void undo_changes(const struct undo *undo, struct changes *changes)
{
	int deletes;
	size_t i;

	for (deletes = 1; deletes >= 0; deletes--)
		for (i = 0; i < undo->nr; i++)
			if (undo->refs[i].verdict == UNDO_RESTORE &&
			    refd_oid_is_null(&undo->refs[i].then) == deletes)
				add(changes, &undo->refs[i]);
}

void undo_done(struct undo *undo)
{
	free(undo->refs);
	memset(undo, 0, sizeof(*undo));
}
