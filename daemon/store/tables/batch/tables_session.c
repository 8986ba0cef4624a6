/*
 * Tables: sessions, which hold no lock while they wait for the client, because
 * git waits only 100 ms for a lock.
 *
 * The happy path: a prepared session holds its names among the updates of this
 * daemon. Git sees no lock and may change a ref meanwhile, so the commit is a
 * new round.
 *
 * What fails:
 *	a session holds a name		the updates are given back
 *	git changed a ref		`stale`, or another status that the new
 *					round finds
 *	another batch has the turn	the commit waits (pass_resume())
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/tables/batch/tables.h"

struct tables_held {
	struct tables_held *next;
	struct stack *stack; /* a reference */
	char name[];
};

static int hold_name(struct repo_slice *g, struct stack *stack,
    const char *name)
{
	const size_t size = strlen(name) + 1;
	struct tables_held *held = malloc(sizeof(*held) + size);
	int r = held != NULL ? stack_hold_name(stack, name) : -ENOMEM;

	if (r < 0) {
		free(held);
		return r;
	}
	stack_hold(stack);
	held->stack = stack;
	memcpy(held->name, name, size);
	held->next = g->tables.held;
	g->tables.held = held;
	return 0;
}

void tables_hold_names(struct pass *p, struct repo_slice *g)
{
	struct tables_part *part;
	struct change *c;
	int r;

	for (c = g->changes; c != NULL; c = c->next_in_repo) {
		if (!change_is_live(c))
			continue;
		r = tables_part(p, c, &part);
		if (r == 0)
			r = hold_name(g, part->update.stack, c->edit.name);
		if (r == -EEXIST)
			change_locked(c, c->edit.name);
		else if (r < 0)
			tables_fail(c, part, r, "can't hold the reference");
	}
}

void tables_drop_names(struct repo_slice *g)
{
	struct tables_held *held;

	while ((held = g->tables.held) != NULL) {
		g->tables.held = held->next;
		stack_drop_name(held->stack, held->name);
		stack_put(held->stack);
		free(held);
	}
}

void tables_wait(struct pass *p, struct repo_slice *g)
{
	bool rest = false;

	tables_drop_parts(p, g, false, &rest);
}

bool tables_resume(struct pass *p, struct repo_slice *g)
{
	const struct change at = { .repo_slice = g, .worktree = "" };
	struct tables_part *part;
	int r;

	/* An earlier try that found a lock may have taken a slot for much work.
	 * The slot goes back, because the next try asks for it again. */
	tables_end_round(p, g);
	apply_give_large(g);
	tables_begin_reading(p, g);
	r = tables_part(p, &at, &part);
	/* The names may go, because with the turn no other batch takes them. */
	if (r == 0)
		tables_drop_names(g);
	else
		tables_fail_all(g, part, r, "can't read the reftables");
	return true;
}
