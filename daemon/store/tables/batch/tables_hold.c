/*
 * Tables: reads refs and logs from the snapshot of a round, and looks for
 * conflicting names.
 *
 * The happy path: the names of the updates are read, and the names to which
 * they lead. Nothing is locked, so if another writer changes the list before
 * the lock of refd, the round is repeated (tables_seal.c).
 *
 * What fails:
 *	a session of this daemon holds	the change is given back, as if a lock
 *	the name, or a change of a	was held
 *	different transaction does
 *	a damaged table			the update fails, or its atomic
 *					transaction
 */
#include <errno.h>
#include <string.h>

#include "daemon/store/tables/batch/tables.h"

/* ---- names ---- */

/* Does an update of a different transaction, which can be committed, name NAME
 * in the directory of C? */
static bool is_asked(const struct pass *p, const struct change *c,
    const char *name)
{
	const struct change *other;
	size_t i;

	for (i = pass_first_asked(p, c, name); i < p->nr_asked; i++) {
		other = p->changes[i];
		if (other->repo_slice != c->repo_slice ||
		    other->edit.dirfd != c->edit.dirfd ||
		    strcmp(other->edit.name, name) != 0)
			break;
		if (other->slice != c->slice && change_is_live(other))
			return true;
	}
	return false;
}

/* Has a different transaction found NAME in the directory of C, as the end of a
 * symbolic ref or as HEAD? */
static bool is_found(const struct pass *p, const struct change *c,
    const char *name)
{
	const struct change *other;

	HASH_FIND_STR(p->found, name, other);
	for (; other != NULL; other = other->next_same)
		if (other->repo_slice == c->repo_slice &&
		    other->edit.dirfd == c->edit.dirfd &&
		    other->slice != c->slice && change_is_live(other))
			return true;
	return false;
}

/* Does a different transaction name or find NAME? The scheduler keeps the
 * requested names of different transactions apart, but does not know the found
 * names. So two transactions may meet at a found name. */
static bool is_met(const struct pass *p, const struct change *c,
    const char *name)
{
	return is_found(p, c, name) || (!c->is_asked && is_asked(p, c, name));
}

/* Does a later change ask for the place of C, which was asked, too? HEAD and
 * main-worktree/HEAD of two transactions are different names for the scheduler,
 * but can be one place. The last of these changes holds the place. */
static bool is_asked_again(const struct change *c)
{
	const struct change *next = c->next_in_repo;

	return next != NULL && next->is_asked &&
	    next->edit.dirfd == c->edit.dirfd && change_is_live(next) &&
	    strcmp(next->edit.name, c->edit.name) == 0;
}

/* false: C was given back, because a session holds the name
 * (tables_hold_names()), or because a different transaction of this pass has
 * the name. A batch that is no session holds no name, because batches take
 * turns. */
static bool name_is_free(const struct pass *p, const struct tables_part *part,
    struct change *c)
{
	if (stack_is_held(part->update.stack, c->edit.name) ||
	    (c->is_asked ? is_asked_again(c) : is_met(p, c, c->edit.name))) {
		change_locked(c, c->edit.name);
		return false;
	}
	return true;
}

/* ---- values ---- */

/* Git keeps these two names as files, so they are no refs of a stack. */
static bool stays_a_file(const char *name)
{
	return strcmp(name, "FETCH_HEAD") == 0 ||
	    strcmp(name, "MERGE_HEAD") == 0;
}

bool tables_hold(struct pass *p, struct change *c, struct loose_value *value)
{
	struct tables_part *part;
	int r;

	if (stays_a_file(c->edit.name)) {
		change_cant_lock(c, REFD_BADNAME,
		    "git keeps '%s' as a file, not in the reftables",
		    c->edit.name);
		return false;
	}
	r = tables_part(p, c, &part);
	if (r == 0 && !name_is_free(p, part, c))
		return false;
	if (r == 0)
		r = stack_look_value(&part->reader, c->edit.name, value,
		    &c->old_index);
	if (r < 0)
		tables_fail(c, part, r, "can't read the reference");
	return r == 0;
}

/* Nothing is left to read, because the snapshot has all values. */
void tables_held(struct pass *p, struct repo_slice *g)
{
	(void)p;
	(void)g;
}

int tables_look(struct pass *p, const struct change *at,
    struct loose_value *value)
{
	struct tables_part *part;
	uint64_t index;
	int r = tables_part(p, at, &part);

	return r < 0 ?
	    r :
	    stack_look_value(&part->reader, at->edit.name, value, &index);
}

/* ---- a gate ---- */

/* The last stack of a gate, and the budget of all. */
struct glance {
	const char *worktree; /* of LOOK; NULL: none */
	struct stack_look look;
};

static int glance_at(struct glance *glance, const struct change *at,
    struct loose_value *value)
{
	struct stack_look *look = &glance->look;
	uint64_t index;
	int r = 0;

	if (glance->worktree == NULL ||
	    strcmp(glance->worktree, at->worktree) != 0) {
		stack_look_end(look);
		r = stack_look_begin(look, at->repo_slice->repo->stacks,
		    at->worktree, at->edit.dirfd, look->budget.work);
		glance->worktree = r == 0 ? at->worktree : NULL;
	}
	return r < 0 ?
	    r :
	    stack_look_value(&look->reader, at->edit.name, value, &index);
}

/* Reads the values for a gate, but takes no turn of a stack: a batch keeps the
 * turn for a whole flush, and git holds its lock meanwhile. */
void tables_glance(struct pass *p, struct repo_slice *g)
{
	struct glance glance = { .look.budget.work = TABLES_WORK };
	struct loose_value value;
	struct change *c;

	(void)p;
	for (c = g->changes; c != NULL; c = c->next_in_repo)
		if (change_has_place(c) && glance_at(&glance, c, &value) == 0)
			change_glanced(c, &value);
	stack_look_end(&glance.look);
}

/* ---- conflicts ---- */

/* Looks for a ref above C in the same batch. If it belongs to a different
 * transaction, C waits. One look at each pair is enough, so the ref above does
 * not look for refs below itself. But change_check_siblings() looks for asked
 * names below C. */
static void check_above(struct pass *p, struct change *c)
{
	char above[REFD_REFNAME_MAX + 1];
	const struct change at = { .slice = c->slice,
		.edit = { .dirfd = c->edit.dirfd, .name = above } };
	const struct change *own;
	char *slash;

	strcpy(above, c->edit.name);
	while ((slash = strrchr(above, '/')) != NULL) {
		*slash = '\0';
		own = c->is_asked ? NULL : pass_find_same(p, &at);
		if (own != NULL && change_is_live(own))
			change_fail_detail(c, REFD_CONFLICT,
			    c->u < own->u ? REFD_DETAIL_NAMES_CLASH :
					    REFD_DETAIL_NAMES_CLASH_EARLY,
			    c->u->ask->name, c->edit.name, above);
		if (is_met(p, c, above))
			change_locked(c, above);
	}
}

void tables_conflict(struct pass *p, struct change *c)
{
	char found[REFD_PATH_MAX];
	struct tables_part *part;
	int r;

	r = tables_part(p, c, &part);
	if (r == 0)
		r = stack_reader_conflict(&part->reader, c->edit.name, NULL,
		    NULL, found);
	if (r < 0)
		tables_fail(c, part, r, "can't look for conflicting names");
	else if (r > 0)
		change_fail_detail(c, REFD_CONFLICT, REFD_DETAIL_NAME_TAKEN,
		    c->u->ask->name, found, change_shown_name(c));
	else
		check_above(p, c);
	change_check_siblings(p, c);
}

/* ---- logs ---- */

int tables_has_log(struct pass *p, const struct change *at)
{
	struct tables_part *part;
	int r = tables_part(p, at, &part);

	return r < 0 ? r : stack_reader_has_log(&part->reader, at->edit.name);
}

void tables_log(struct pass *p, struct change *c, bool create)
{
	struct tables_part *part;
	int r;

	c->log = create && c->action != CHANGE_DELETE;
	if (create || c->action == CHANGE_DELETE)
		return;
	r = tables_part(p, c, &part);
	if (r == 0)
		r = stack_reader_has_log(&part->reader, c->edit.name);
	if (r < 0)
		tables_fail(c, part, r, "can't look for the reflog");
	c->log = r > 0;
}
