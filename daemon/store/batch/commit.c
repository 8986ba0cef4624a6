/*
 * Commits a pass to the log, with one row per transaction and one flush. There
 * is no flush if all transactions have mode none or periodic, because these
 * modes do not promise a durable answer. The backend's file is synced at the
 * same time.
 *
 * What fails:
 *	no room in the journal, or a	definitely nothing happened: each
 *	failed write			transaction is tried alone, so that
 *					a large one fails alone
 *	a failed sync			the outcome is unknown: the applier's
 *					commit reopens the journal and looks;
 *					if that fails, every update of the
 *					pass is answered `unknown`
 * Transactions of one repository that share a file of the backend are committed
 * together or fail together, because the file is already written. So are
 * transactions of the store's own: they are rows of other machines, and the log
 * takes no row before the row that precedes it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/busy_cause.h"
#include "daemon/store/batch/backend.h"
#include "proto/lib/pages.h"

static void member_of_update(const struct txn_update *u,
    struct record_member *m)
{
	memset(m, 0, sizeof(*m));
	m->index = (uint32_t)(u - u->txn->updates);
	m->status = u->status;
	m->answers = true;
	m->name = u->ask->name;
	m->text = u->text;
	m->has_found = u->has_found;
	m->found = u->found;
	m->worktree = "";
}

static enum record_action action_of(const struct change *c)
{
	if (change_is_gated(c))
		return c->exists ? RECORD_WRITE : RECORD_DELETE;
	switch (c->action) {
	case CHANGE_WRITE:
		return RECORD_WRITE;
	case CHANGE_DELETE:
		return RECORD_DELETE;
	case CHANGE_LOG:
		return c->log ? RECORD_LOG : RECORD_NOTHING;
	case CHANGE_NOTHING:
		break;
	}
	/* The confirmed value may be of another writer and not synced, so a
	 * replay has to write the value. */
	return c->is_end && !change_only_looks(c) ? RECORD_WRITE :
						    RECORD_NOTHING;
}

/* Does C have two names, so that the record needs a member for each? A ref of a
 * different worktree has two names, and so has the end of a symbolic ref in a
 * shared row. The member for the answer has the name in the request, because
 * the client knows no other name. The member for the file has the name of the
 * place. */
static bool has_own_answer(const struct change *c)
{
	return c->is_asked && strcmp(c->edit.name, c->u->ask->name) != 0;
}

/* Appends zero, one or two members, and adds their number to *NR. A symbolic
 * ref on the way, or HEAD, gets the values of END, the ref that it leads to. */
static void add_change(struct change *c, struct record_member *members,
    size_t *nr)
{
	const struct change *end = c->of != NULL ? c->of : c;
	enum record_action action = action_of(c);
	struct record_member *m = &members[*nr];

	if (has_own_answer(c)) {
		member_of_update(c->u, m);
		m->status = REFD_OK;
		m->action = RECORD_NOTHING;
		m = &members[++*nr];
	}
	if (action == RECORD_NOTHING && (!c->is_asked || has_own_answer(c)))
		return;
	member_of_update(c->u, m);
	m->status = REFD_OK;
	m->answers = c->is_asked && !has_own_answer(c);
	m->name = c->edit.name;
	m->worktree = c->worktree;
	m->action = action;
	if (action == RECORD_WRITE)
		m->target =
		    change_is_gated(c) ? c->target : change_new_target(c);
	if (end->action != CHANGE_DELETE)
		m->new_oid = end->new_oid;
	m->is_line = c->to_packed;
	m->had_old = end->exists && !end->hides_old;
	if (m->had_old)
		m->old_oid = end->old_oid;
	m->old_mtime_ns = c->old_mtime_ns;
	m->had_packed = c->had_packed;
	m->packed_oid = c->packed_oid;
	m->log = c->log;
	m->has_before = c->has_before;
	m->before = c->before;
	m->update_index = c->update_index;
	m->old_index = c->old_index;
	m->base_index = c->base_index;
	c->plan = m;
	++*nr;
}

/* U was decided before, and no row has the outcome. The failure of a gate
 * rejects nothing. */
static bool is_note(const struct txn_update *u)
{
	return u->txn->req.gate == REFD_GATE_NONE &&
	    u->status != REFD_PENDING && !u->recorded;
}

/* The plan has every live change of SLICE, and every decided update that is not
 * recorded yet. Log lines, deferred lines and abort records derive from the
 * plan, so the plan never changes after the commit. */
static int make_plan(struct pass *p, struct slice *slice)
{
	const struct txn *txn = slice->txn;
	struct record *plan = &slice->plan;
	size_t i, room = p->has_notes ? slice->txn_slice->nr + 1 : 1;

	*plan = (struct record){
		/* Git writes the log lines, so a gate has none. */
		.committer =
		    txn->req.gate == REFD_GATE_NONE ? slice->committer : "",
		.message = slice->message != NULL ? slice->message : "",
		.file_mode = slice->file_mode,
		.dir_mode = slice->dir_mode,
		.nr_updates = (uint32_t)txn->nr_updates,
		.object_format = txn->req.object_format,
		.atomic = txn->req.atomic,
		.is_gated = txn->req.gate != REFD_GATE_NONE,
		.is_seen = txn->req.gate == REFD_GATE_SEEN,
		.has_indices =
		    slice->repo != NULL && slice->repo->format == REPO_REFTABLE,
		.digest = txn->req.digest,
		.nr_identities = txn->req.nr_identities,
	};
	memcpy(plan->identities, txn->req.identities, sizeof(plan->identities));
	for (i = 0; i < p->nr_changes; i++)
		if (p->changes[i]->slice == slice)
			room += has_own_answer(p->changes[i]) ? 2 : 1;
	slice->plan_bytes = room * sizeof(*plan->members);
	plan->members = pages_grow(NULL, 0, slice->plan_bytes);
	if (plan->members == NULL)
		return -ENOMEM;
	for (i = 0; i < p->nr_changes; i++)
		if (p->changes[i]->slice == slice &&
		    change_is_live(p->changes[i]))
			add_change(p->changes[i], plan->members,
			    &plan->nr_members);
	for (i = 0; i < slice->txn_slice->nr; i++)
		if (is_note(slice->txn_slice->updates[i]))
			member_of_update(slice->txn_slice->updates[i],
			    &plan->members[plan->nr_members++]);
	return 0;
}

static bool is_final(const struct slice *slice)
{
	size_t i, decided = 0, nr_decided = 0;

	for (i = 0; i < slice->plan.nr_members; i++)
		nr_decided += slice->plan.members[i].answers;
	for (i = 0; i < slice->txn->nr_updates; i++)
		if (slice->txn->updates[i].status != REFD_PENDING)
			decided++;
	/* This row decides its own live updates. */
	for (i = 0; i < slice->txn_slice->nr; i++)
		if (is_note(slice->txn_slice->updates[i]))
			nr_decided--;
	return decided + nr_decided == slice->txn->nr_updates;
}

static struct repo_slice *repo_slice_of(struct pass *p,
    const struct slice *slice)
{
	size_t i;

	for (i = 0; i < p->nr_repo_slices; i++)
		if (p->repo_slices[i].repo == slice->repo)
			return &p->repo_slices[i];
	return NULL;
}

/* Sets the fields that all rows of SLICE have in common. */
static void start_row(struct pass *p, const struct slice *slice,
    enum journal_kind kind, struct journal_row *row)
{
	const struct txn *txn = slice->txn;

	memset(row, 0, sizeof(*row));
	row->kind = kind;
	row->txid = txn->req.txid;
	row->uid = txn->peer.uid;
	row->pid = txn->peer.pid;
	row->repo = slice->repo != NULL ? slice->repo->id : txn->repo_id;
	row->time_us = SYS(p->sys, now_wall) / 1000;
}

/* Makes ROW from SLICE: the plan as bytes, the new objects, the token and the
 * time of the locks. The caller owns the body. 0 or -ENOMEM; 1: there is no
 * row, because the changes of SLICE have failed, or are given back. */
static int make_row(struct pass *p, struct slice *slice,
    struct journal_row *row)
{
	struct repo_slice *g = repo_slice_of(p, slice);

	start_row(p, slice, JOURNAL_SLICE, row);
	row->slice = slice;
	row->final = is_final(slice);
	if (!REPLICA(p->ap->replica, fill, slice, row))
		return 1;
	if (record_has_value(&slice->plan))
		row->objects = txn_objects(slice->txn, &row->objects_len);
	slice->plan.has_objects = row->objects != NULL;
	row->body = record_encode(&slice->plan, &row->len);
	row->mount = slice->repo != NULL ? slice->repo->fs->mount :
					   slice->txn->repo_mount;
	row->token = g != NULL && g->has_token ? g->token.id : 0;
	row->locked_at_ns = g != NULL ? g->locked_at_ns : 0;
	return row->body != NULL ? 0 : -ENOMEM;
}

static void free_bodies(struct journal_row *rows, size_t nr)
{
	while (nr > 0)
		free((void *)(uintptr_t)rows[--nr].body);
}

/* ROW is in the journal, so the live changes of SLICE may be published. */
static void slice_committed(struct slice *slice, const struct journal_row *row)
{
	struct txn_slice *txn_slice = slice->txn_slice;
	size_t i;

	slice->lsn = row->lsn;
	txn_slice->lsn = row->shared_lsn != 0 ? row->shared_lsn : row->lsn;
	for (i = 0; i < txn_slice->nr; i++)
		if (txn_slice->updates[i]->again == TXN_AGAIN_NO)
			txn_slice->updates[i]->recorded = true;
}

static void slice_failed(struct pass *p, const struct slice *slice, int err)
{
	struct change *c;
	size_t i;

	for (i = 0; i < p->nr_changes; i++) {
		c = p->changes[i];
		/* The changes of a gate or a look can be without a lock, so
		 * only an edit with a lock is deferred. */
		if (c->slice == slice && err == JOURNAL_UNKNOWN &&
		    change_is_live(c) && edit_is_locked(&c->edit))
			edit_to(&c->edit, PROGRESS_DEFERRED);
	}
	for (i = 0; i < p->nr_changes; i++) {
		c = p->changes[i];
		if (c->slice != slice)
			continue;
		if (err == -EREMOTE)
			change_fail(c, busy_cause_count(BUSY_GROUP), "%s",
			    busy_cause_text(BUSY_GROUP));
		else if (err == JOURNAL_UNKNOWN)
			change_fail(c, REFD_UNKNOWN,
			    "the journal could not "
			    "be synced; whether this update happened is not "
			    "known yet");
		else
			change_fail_errno(c, err, "can't write the journal");
	}
}

/* Do SLICE and another slice have changes in one prepared file? */
static bool is_bound(struct pass *p, const struct slice *slice)
{
	struct repo_slice *g = repo_slice_of(p, slice);
	bool is_in = false, are_others = false;
	const struct change *c;

	if (g == NULL || !g->is_bound)
		return false;
	for (c = g->changes; c != NULL; c = c->next_in_repo)
		if (c->in_rewrite && c->slice == slice)
			is_in = true;
		else if (c->in_rewrite)
			are_others = true;
	return is_in && are_others;
}

/* Gives SLICE back if it shares a table with others. */
static bool goes_apart(struct pass *p, const struct slice *slice)
{
	struct repo_slice *g = repo_slice_of(p, slice);

	return g != NULL && g->backend->has_rounds &&
	    (slice->txn_slice->apart == TXN_APART_NEEDED ||
		pass_go_apart(p, g));
}

/* If the result is below 0, the log has definitely taken no row. So each slice
 * that shares no file with others is tried alone. JOURNAL_UNKNOWN is above
 * 0. */
static void commit_rows(struct pass *p, struct slice **slices,
    struct journal_row *rows, size_t nr)
{
	bool flush = false;
	size_t i;
	int r;

	for (i = 0; i < nr; i++)
		flush = flush || slice_lasts(slices[i]);
	r = p->ap->commit(p->ap->arg, rows, nr, flush);
	for (i = 0; i < nr; i++) {
		if (r < 0 && nr > 1 && !slices[i]->txn->is_own &&
		    !is_bound(p, slices[i]))
			commit_rows(p, &slices[i], &rows[i], 1);
		else if (r < 0 && goes_apart(p, slices[i]))
			continue;
		else if (r != 0)
			slice_failed(p, slices[i], r);
		else
			slice_committed(slices[i], &rows[i]);
	}
}

static bool is_worth_a_flush(const struct pass *p)
{
	size_t i;

	for (i = 0; i < p->nr_changes; i++)
		if (change_is_live(p->changes[i]))
			return true;
	return p->has_notes;
}

/* Makes the rows of all slices; *NR is their number. */
static void make_rows(struct pass *p, struct slice **slices,
    struct journal_row *rows, size_t *nr)
{
	struct slice *slice;
	size_t i;
	int r;

	for (i = 0; i < p->nr_slices; i++) {
		slice = &p->slices[i];
		r = make_plan(p, slice);
		if (r == 0 && slice->plan.nr_members == 0)
			continue;
		if (r == 0)
			r = make_row(p, slice, &rows[*nr]);
		if (r == 0)
			slices[(*nr)++] = slice;
		else if (r < 0)
			slice_failed(p, slice, r);
	}
}

/* Shared rows can't be taken back, so the prepared files become durable
 * before them. */
static void sync_first(struct pass *p)
{
	struct repo_slice *g;
	struct change *c;
	size_t i;
	int r;

	for (g = p->repo_slices; g < p->repo_slices + p->nr_repo_slices; g++) {
		g->backend->sync(p, g);
		g->backend->synced(p, g);
	}
	for (i = 0; i < p->nr_changes; i++) {
		c = p->changes[i];
		r = c->repo_slice->backend->sync_error(c->repo_slice);
		if (c->in_rewrite && r < 0)
			change_fail_errno(c, r,
			    "can't sync packed-refs.new or the reftables");
	}
	pass_settle(p);
}

/* Rows of other machines, which are transactions of the store's own, go into
 * the log in their order, so a later row cannot go before an earlier one. If P
 * has such transactions, and not all of them are among the NR that can be
 * committed, gives all changes back. */
static bool lacks_row(struct pass *p, size_t nr)
{
	size_t i;

	if (!p->slices[0].txn->is_own || nr == p->nr_slices)
		return false;
	for (i = 0; i < p->nr_changes; i++)
		change_again(p->changes[i], TXN_AGAIN_LATER);
	return true;
}

void pass_commit(struct pass *p)
{
	const bool shares_rows = p->ap->replica->ops->shares_rows;
	struct journal_row *rows;
	struct slice **slices;
	size_t i, nr = 0;

	if (!is_worth_a_flush(p))
		return;
	if (shares_rows)
		sync_first(p);
	slices = calloc(p->nr_slices, sizeof(*slices));
	rows = calloc(p->nr_slices, sizeof(*rows));
	if (slices != NULL && rows != NULL)
		make_rows(p, slices, rows, &nr);
	else
		for (i = 0; i < p->nr_changes; i++)
			change_fail_errno(p->changes[i], -ENOMEM,
			    "can't write the journal");
	for (i = 0; i < p->nr_repo_slices && !shares_rows; i++)
		p->repo_slices[i].backend->sync(p, &p->repo_slices[i]);
	if (nr > 0 && !lacks_row(p, nr))
		commit_rows(p, slices, rows, nr);
	for (i = 0; i < p->nr_repo_slices; i++)
		p->repo_slices[i].backend->synced(p, &p->repo_slices[i]);
	free_bodies(rows, nr);
	free(rows);
	free(slices);
	pass_settle(p);
}

/* ---- taking back ---- */

static int abort_row(struct pass *p, struct slice *slice,
    struct change **failed, size_t nr, struct journal_row *out)
{
	struct record_member *members;
	struct record rec = { .committer = "",
		.message = "",
		.nr_updates = (uint32_t)slice->txn->nr_updates,
		.object_format = slice->txn->req.object_format,
		.atomic = slice->txn->req.atomic,
		.digest = slice->txn->req.digest };
	size_t i;

	members = calloc(nr, sizeof(*members));
	if (members == NULL)
		return -ENOMEM;
	for (i = 0; i < nr; i++) {
		if (failed[i]->slice != slice)
			continue;
		member_of_update(failed[i]->u, &members[rec.nr_members]);
		members[rec.nr_members].status = failed[i]->abort.status;
		members[rec.nr_members++].text = failed[i]->abort.text;
	}
	rec.members = members;
	start_row(p, slice, JOURNAL_ABORT, out);
	out->body = record_encode(&rec, &out->len);
	free(members);
	if (out->body == NULL)
		return -ENOMEM;
	out->mount = slice->repo->fs->mount;
	out->refers_to = slice->lsn;
	return 0;
}

int pass_abort(struct pass *p, struct change **failed, size_t nr)
{
	struct journal_row *out;
	size_t i, k, rows = 0;
	bool flush = false;
	int r = 0;

	out = calloc(p->nr_slices, sizeof(*out));
	if (out == NULL)
		return -ENOMEM;
	for (i = 0; i < p->nr_slices && r == 0; i++)
		for (k = 0; k < nr; k++)
			if (failed[k]->slice == &p->slices[i]) {
				r = abort_row(p, &p->slices[i], failed, nr,
				    &out[rows]);
				rows += r == 0;
				flush = flush || slice_lasts(&p->slices[i]);
				break;
			}
	if (r == 0)
		r = p->ap->commit(p->ap->arg, out, rows, flush);
	free_bodies(out, rows);
	free(out);
	return r;
}

int pass_defer_line(struct pass *p, const struct change *c)
{
	const struct slice *slice = c->slice;
	struct record_member line = *c->plan;
	struct record rec = slice->plan;
	struct journal_row row;
	int r;

	line.answers = false;
	line.action = RECORD_LOG;
	line.target = NULL;
	line.is_line = false;
	line.had_packed = false;
	rec.atomic = rec.has_objects = false;
	rec.nr_identities = 0;
	rec.members = &line;
	rec.nr_members = 1;
	start_row(p, slice, JOURNAL_DEFERRED, &row);
	row.refers_to = slice->lsn;
	row.body = record_encode(&rec, &row.len);
	if (row.body == NULL)
		return -ENOMEM;
	r = p->ap->commit(p->ap->arg, &row, 1, slice_lasts(slice));
	free_bodies(&row, 1);
	return r;
}
