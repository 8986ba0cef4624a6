/*
 * Redoes the records of one repository whose refs are in reftables.
 *
 * Happy path:
 *	lock	the list of each stack: the standing lock of a crash, or a new
 *		one
 *	read	the surviving stacks
 *	decide	stack_refs.c
 *	plan	stack_plan.c
 *	write	one new table per stack, by the steps of a batch
 *	sweep	later, before the locks and the names in stage/ go: tables of
 *		ended batches
 *
 * A stopped replay begins again: the rule finds the values in the new tables.
 *
 * Failures:
 *	a foreign lock: everything is deferred
 *	a missing or damaged list or table, the disk: the errno, and nothing was
 *	written, or only whole tables
 */
#include <errno.h>
#include <stdlib.h>

#include "daemon/store/recovery/stack_replay.h"
#include "daemon/store/stack/stack_sweep.h"

static int replay_locked(struct stack_replay *sr)
{
	int r;

	r = stack_places_read(sr);
	if (r == 0)
		r = stack_refs_list(sr);
	if (r == 0)
		r = stack_refs_decide(sr);
	if (r == 0)
		r = stack_plan_refs(sr);
	if (r == 0)
		r = stack_places_write(sr);
	if (r == 0)
		stack_plan_report(sr);
	return r;
}

int replay_stacks(struct replay *rp, struct replay_row *rows)
{
	struct stack_replay sr = { .rp = rp };
	int r;

	r = ref_records_build(&rp->ref_records, rows);
	if (r == 0)
		r = stack_places_open(&sr, rows);
	if (r == 0) {
		r = stack_places_lock(&sr);
		if (r == 0) {
			r = replay_locked(&sr);
		} else if (r == -EEXIST) {
			redo_report(rp, STORE_DEFERRED,
			    STACK_DIRECTORY "/" REFTABLE_LIST,
			    "another writer's lock stands; tried again later");
			stack_refs_defer(&sr);
			r = 0;
		}
	}
	stack_refs_done(&sr);
	return stack_places_done(&sr, r);
}

/* ---- the sweep ---- */

static int compare_inodes(const void *va, const void *vb)
{
	const uint64_t *a = va, *b = vb;

	return (*a > *b) - (*a < *b);
}

/* A table that stays is removed by git once its index is old enough. */
static int sweep(struct stack_replay *sr, const uint64_t *inodes, size_t nr)
{
	struct stack_place *place;
	size_t i;
	int r;

	r = stack_places_open(sr, NULL);
	if (r == 0)
		r = stack_places_lock(sr);
	for (i = 0; i < sr->nr_places && r == 0; i++) {
		place = &sr->places[i];
		if (place->stack != NULL)
			r = stack_sweep(place->stack, inodes, nr,
			    &place->update.fault);
	}
	return r;
}

int replay_stacks_sweep(struct replay *rp)
{
	const struct leftover_locks *leftover = rp->leftover;
	struct stack_replay sr = { .rp = rp };
	char token[TOKEN_NAME_MAX];
	uint64_t *inodes;
	size_t i;
	int r;

	if (leftover->nr_values == 0)
		return 0;
	inodes = calloc(leftover->nr_values, sizeof(*inodes));
	if (inodes == NULL)
		return -ENOMEM;
	for (i = 0; i < leftover->nr_values; i++)
		inodes[i] = leftover->values[i].ino;
	qsort(inodes, leftover->nr_values, sizeof(*inodes), compare_inodes);
	/* The replay may have failed to remove its token. */
	token_name(token, rp->token_id, 0);
	if (!rp->token_stays)
		SYS(rp->sys, unlinkat, rp->repo->stage_fd, token);
	r = token_init(&rp->token, rp->sys, rp->repo->stage_fd, rp->token_id);
	if (r == 0)
		r = sweep(&sr, inodes, leftover->nr_values);
	r = stack_places_done(&sr, r);
	if (!rp->token_stays)
		token_done(&rp->token);
	free(inodes);
	return r == -EEXIST || r == -EBADMSG ? 0 : r;
}
