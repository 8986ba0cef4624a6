/*
 * The stacks of a replay.
 *
 * Happy path: open, lock, read; a new table and a new list in each stack, all
 * flushed before the first rename; rename; unlock.
 *
 * Failures:
 *	a worktree is gone: its refs are left out
 *	a foreign lock, or a batch of this daemon at work: -EEXIST
 *	a table has lost its footer: mended (stack_mend.h)
 *	a list or a table is missing or damaged: reported, and nothing is
 *	written. Git would take a missing list for an empty repository, and
 *	begin a new stack
 *	a list that may have been renamed: its table, its lock and the token
 *	stay for the next attempt
 *	anything else: the errno. A list that was renamed already is right at
 *	the next attempt
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/tables/recovery/stack_replay.h"
#include "daemon/store/tables/stack/stack_mend.h"
#include "daemon/store/tables/stack/stack_set.h"
#include "daemon/store/tables/stack/stack_sweep.h"
#include "proto/lib/array.h"

#define LIST STACK_DIRECTORY "/" REFTABLE_LIST

/* A batch of this daemon has the turn for about a flush. */
#define TURN_MS 1000

/* ---- opening ---- */

struct stack_place *stack_places_find(const struct stack_replay *sr,
    const char *worktree)
{
	size_t i;

	for (i = 0; i < sr->nr_places; i++)
		if (strcmp(sr->places[i].worktree, worktree) == 0)
			return &sr->places[i];
	return NULL;
}

static int add_place(struct stack_replay *sr, const char *worktree)
{
	struct stack_place *place;

	if (stack_places_find(sr, worktree) != NULL)
		return 0;
	place = array_room(sr->places, sr->nr_places, &sr->places_size,
	    sizeof(*place));
	if (place == NULL)
		return -ENOMEM;
	sr->places = place;
	sr->places[sr->nr_places++] =
	    (struct stack_place){ .worktree = worktree, .git_fd = -1 };
	return 0;
}

static int add_places(struct stack_replay *sr, const struct replay_row *rows)
{
	const struct record_member *m;
	size_t i;
	int r = 0;

	for (; rows != NULL; rows = rows->next)
		for (i = 0; i < rows->rec.nr_members && r == 0; i++) {
			m = &rows->rec.members[i];
			if (m->status == REFD_OK && m->action != RECORD_NOTHING)
				r = add_place(sr, m->worktree);
		}
	return r;
}

static int compare_places(const void *va, const void *vb)
{
	const struct stack_place *a = va, *b = vb;

	return strcmp(a->worktree, b->worktree);
}

static int open_place(struct stack_replay *sr, struct stack_place *place,
    unsigned i)
{
	struct replay *rp = sr->rp;
	int r;

	r = repo_open_worktree(rp->sys, rp->repo, place->worktree);
	if (r == -ENOENT) {
		place->is_gone = true;
		return 0;
	}
	if (r < 0)
		return r;
	place->git_fd = r;
	r = stack_set_get(rp->repo->stacks, place->worktree, place->git_fd,
	    &place->stack);
	if (r < 0)
		return stack_places_fail(sr, place, NULL, r);
	place->held = leftover_locks_on(rp->leftover, place->worktree, LIST);
	stack_update_init(&place->update, place->stack, place->git_fd,
	    &rp->token, 2 * i);
	if (place->held != NULL) {
		place->update.list.progress = PROGRESS_LOCKED;
		place->update.list.is_earlier = true;
	}
	return 0;
}

/* A later table never gets an index of a row, because the rule (stack_rule.h)
 * could not tell the records of table and row apart. */
static void spend_indices(const struct stack_replay *sr,
    const struct replay_row *rows)
{
	const struct record_member *m;
	struct stack_place *place;
	size_t i;

	for (; rows != NULL; rows = rows->next)
		for (i = 0; i < rows->rec.nr_members; i++) {
			m = &rows->rec.members[i];
			if (m->status != REFD_OK || m->action == RECORD_NOTHING)
				continue;
			place = stack_places_find(sr, m->worktree);
			if (place->stack != NULL)
				stack_spend_index(place->stack,
				    m->update_index);
		}
}

int stack_places_open(struct stack_replay *sr, const struct replay_row *rows)
{
	const struct ref_places *places = &sr->rp->leftover->places;
	size_t i;
	int r = 0;

	for (i = 0; rows == NULL && i < places->nr && r == 0; i++)
		r = add_place(sr, places->list[i].worktree);
	if (r == 0)
		r = add_places(sr, rows);
	if (r == 0 && sr->nr_places > 0)
		qsort(sr->places, sr->nr_places, sizeof(*sr->places),
		    compare_places);
	for (i = 0; i < sr->nr_places && r == 0; i++)
		r = open_place(sr, &sr->places[i], (unsigned)i);
	if (r == 0)
		spend_indices(sr, rows);
	return r;
}

int stack_places_open_one(struct stack_replay *sr, const char *worktree)
{
	int r = add_place(sr, worktree);

	return r == 0 ? open_place(sr, &sr->places[0], 0) : r;
}

static int lock_list(struct replay *rp, struct stack_place *place)
{
	int r = stack_update_lock(&place->update);

	if (r == -EEXIST && redo_clear_dead(rp, place->git_fd, LIST))
		r = stack_update_lock(&place->update);
	return r;
}

int stack_places_lock(struct stack_replay *sr)
{
	struct stack_place *place;
	size_t i;
	int r = 0;

	for (i = 0; i < sr->nr_places && r == 0; i++) {
		place = &sr->places[i];
		if (place->stack == NULL)
			continue;
		if (!stack_update_turn(&place->update, TURN_MS)) {
			sr->rp->lock_stays = "a batch of refd is at work";
			return -EEXIST;
		}
		if (place->held == NULL)
			r = lock_list(sr->rp, place);
	}
	return r;
}

/* ---- reading ---- */

int stack_places_fail(struct stack_replay *sr, const struct stack_place *place,
    const struct reftable_fault *fault, int error)
{
	char text[REFTABLE_FAULT_TEXT], name[REFD_PATH_MAX];

	if (error != -EBADMSG && error != -ENOENT && error != -EFBIG &&
	    error != -ELOOP && error != -ENOTDIR)
		return error;
	snprintf(name, sizeof(name), "%s%s%s",
	    place->worktree[0] != '\0' ? "worktrees/" : "", place->worktree,
	    place->worktree[0] != '\0' ? "/" LIST : LIST);
	redo_report(sr->rp, STORE_CORRUPT, name,
	    fault != NULL ? reftable_stack_fault_text(fault, error, text) :
			    strerror(-error));
	return -EBADMSG;
}

/* After a failed sync the page cache may differ from the disk, so the files are
 * read from the disk. */
static int read_disk(struct stack_replay *sr, struct stack_place *place)
{
	const struct sys *sys = sr->rp->sys;
	size_t left = LOCK_WALK_WORK;
	struct sys_dirent entry;
	struct sys_dir *dir;
	int r;

	if (!sr->rp->is_memory_lost)
		return 0;
	stack_snapshot_forget(place->stack);
	r = SYS(sys, dir_open, place->stack->dirfd, ".", &dir);
	if (r < 0)
		return r;
	while ((r = SYS(sys, dir_next, dir, &entry)) > 0) {
		r = left-- > 0 ?
		    redo_read_disk(sr->rp, place->stack->dirfd, entry.name) :
		    -EUSERS;
		if (r < 0)
			break;
	}
	SYS(sys, dir_close, dir);
	return r;
}

int stack_places_sweep(struct stack_replay *sr, struct stack_place *place)
{
	const struct leftover_locks *leftover = sr->rp->leftover;
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
	array_sort_u64(inodes, leftover->nr_values);
	r = stack_sweep(place->stack, inodes, leftover->nr_values,
	    &place->update.fault);
	free(inodes);
	return r;
}

static void report_mended(struct stack_replay *sr,
    const struct stack_place *place, const struct stack_mended *mended)
{
	char name[REFD_PATH_MAX], text[200];

	snprintf(name, sizeof(name), "%s%s%s/%s",
	    place->worktree[0] != '\0' ? "worktrees/" : "", place->worktree,
	    place->worktree[0] != '\0' ? "/" STACK_DIRECTORY : STACK_DIRECTORY,
	    mended->was);
	snprintf(text, sizeof(text),
	    "its footer was lost; written again as %s%s", mended->is,
	    mended->may_lack_logs ?
		", and entries of logs may be missing at its end" :
		"");
	redo_report(sr->rp, STORE_TABLE_MENDED, name, text);
}

/* Takes the base of the update, and mends what can be mended. */
static int begin(struct stack_replay *sr, struct stack_place *place)
{
	struct stack_mended mended;
	int r = stack_update_begin(&place->update), n;

	if (r != -EBADMSG)
		return r;
	/* The table of a crashed batch may lie beside an empty list, which
	 * counts as damage. So the table goes first. */
	r = stack_places_sweep(sr, place);
	if (r < 0 && r != -EBADMSG && r != -ENOENT)
		return r;
	while ((n = stack_mend(&place->update, sr->rp->git_syncs, &mended)) > 0)
		report_mended(sr, place, &mended);
	return n < 0 ? n : stack_update_begin(&place->update);
}

int stack_places_are_sound(struct stack_replay *sr)
{
	struct stack_snapshot *snap;
	struct reftable_fault fault;
	size_t i;
	int r = 0;

	for (i = 0; i < sr->nr_places && r == 0; i++) {
		if (sr->places[i].stack == NULL)
			continue;
		r = stack_snapshot(sr->places[i].stack, &snap, &fault);
		stack_snapshot_put(snap);
	}
	return r == -EBADMSG ? 0 : r < 0 ? r : 1;
}

int stack_places_read(struct stack_replay *sr)
{
	struct stack_place *place;
	size_t i;
	int r = 0;

	for (i = 0; i < sr->nr_places && r == 0; i++) {
		place = &sr->places[i];
		if (place->stack == NULL)
			continue;
		r = read_disk(sr, place);
		if (r == 0)
			r = begin(sr, place);
		place->budget = REFTABLE_BUDGET(STACK_WORK_MAX);
		if (r == 0)
			r = stack_reader_init(&place->reader,
			    place->update.base, &place->budget);
		if (r < 0)
			return stack_places_fail(sr, place,
			    &place->update.fault, r);
	}
	return r;
}

/* ---- writing ---- */

/* stack_record_of_fn */
static void set_record(void *arg, size_t i, struct reftable_record *rec)
{
	const struct stack_entry *entry =
	    &((const struct stack_place *)arg)->entries[i];
	const struct record_member *m;

	rec->name = entry->name;
	rec->section =
	    entry->kind == STACK_ENTRY_VALUE ? REFTABLE_REFS : REFTABLE_LOGS;
	if (entry->kind == STACK_ENTRY_TOMBSTONE) {
		rec->update_index = entry->index;
		rec->is_deletion = true;
		return;
	}
	m = entry->record->member;
	if (entry->kind == STACK_ENTRY_LINE) {
		rec->update_index = m->update_index;
		stack_lines_entry(entry->record, &rec->log);
		return;
	}
	rec->is_deletion = m->action == RECORD_DELETE;
	if (rec->is_deletion)
		return;
	if (m->target != NULL) {
		rec->ref.kind = REFTABLE_REF_SYMREF;
		rec->ref.target.at = m->target;
		rec->ref.target.len = strlen(m->target);
		return;
	}
	rec->ref.kind = refd_oid_is_null(&entry->peeled) ? REFTABLE_REF_OID :
							   REFTABLE_REF_PEELED;
	rec->ref.oid = m->new_oid;
	rec->ref.peeled = entry->peeled;
}

static int stage(struct stack_place *place)
{
	struct stack_update *u = &place->update;
	int r;

	r = stack_table_make(u, place->nr, set_record, place);
	if (r == 0)
		r = stack_update_list(u);
	/* Nobody knows which tables of git are durable, so all are flushed. */
	return r == 0 ? stack_sync_all(u, NULL, INT64_MIN, false) : r;
}

int stack_places_write(struct stack_replay *sr)
{
	struct stack_place *place;
	size_t i;
	int r = 0;

	for (i = 0; i < sr->nr_places && r == 0; i++)
		if (sr->places[i].nr > 0)
			r = stage(&sr->places[i]);
	for (i = 0; i < sr->nr_places && r == 0; i++) {
		place = &sr->places[i];
		if (place->nr > 0)
			r = stack_update_place(&place->update);
	}
	return r;
}

static int close_place(struct stack_replay *sr, struct stack_place *place)
{
	struct replay *rp = sr->rp;
	int r = 0;

	if (place->stack != NULL) {
		stack_reader_done(&place->reader);
		r = stack_update_end(&place->update);
		/* The token identifies the files that could not be removed or
		 * that stay, so the token stays too. */
		rp->token_stays = rp->token_stays || r < 0 ||
		    place->update.list.progress == PROGRESS_DEFERRED;
		stack_put(place->stack);
	}
	if (place->git_fd >= 0 && place->git_fd != rp->repo->fd)
		SYS(rp->sys, close, place->git_fd);
	free(place->entries);
	return r;
}

int stack_places_done(struct stack_replay *sr, int r)
{
	int err;

	while (sr->nr_places > 0) {
		err = close_place(sr, &sr->places[--sr->nr_places]);
		r = r < 0 ? r : err;
	}
	free(sr->places);
	sr->places = NULL;
	return r;
}
