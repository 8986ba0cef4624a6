/*
 * Commits a batch to the log: one row per transaction, and one flush. There is
 * no flush if all transactions have mode none or periodic. packed-refs.new is
 * synced at the same time.
 *
 * What fails:
 *	no room in the journal, or a	definitely nothing happened: each
 *	failed write			transaction is tried alone, so that
 *					a large one fails alone
 *	a failed sync			the outcome is unknown: the applier's
 *					commit reopens the journal and looks;
 *					if that fails, every update of the
 *					batch is answered `unknown`
 * Transactions of one repository that share a packed-refs.new are committed
 * together or fail together, because the file is already written.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/store/window/batch.h"

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
	/* The confirmed value may be another writer's and not synced. A replay
	 * has to write the value. */
	return c->is_end && !change_only_looks(c) ? RECORD_WRITE :
						    RECORD_NOTHING;
}

/* A ref of another worktree has two names. The answer uses the asked name, and
 * the record uses the name in the worktree. */
static bool has_own_answer(const struct change *c)
{
	return c->is_asked && strcmp(c->edit.name, c->u->ask->name) != 0;
}

/* Appends zero, one or two members, and adds their number to *NR. */
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
		m->target = change_new_target(c);
	if (end->action != CHANGE_DELETE)
		m->new_oid = end->new_oid;
	m->had_old = end->exists;
	m->old_oid = end->old_oid;
	m->had_packed = c->had_packed;
	m->packed_oid = c->packed_oid;
	m->log = c->log;
	c->plan = m;
	++*nr;
}

/* The plan has every live change of SHARE, and every decided update that is
 * not recorded yet. The plan never changes after the commit. */
static int make_plan(struct batch *b, struct share *share)
{
	const struct txn *txn = share->txn;
	struct record *plan = &share->plan;
	size_t i, room = share->part->nr + 1;

	*plan = (struct record){
		.committer = share->committer,
		.message = share->message != NULL ? share->message : "",
		.file_mode = share->file_mode,
		.dir_mode = share->dir_mode,
		.nr_updates = (uint32_t)txn->nr_updates,
		.atomic = txn->req.atomic,
		.digest = txn->req.digest,
		.nr_identities = txn->req.nr_identities,
	};
	memcpy(plan->identities, txn->req.identities, sizeof(plan->identities));
	for (i = 0; i < b->nr_changes; i++)
		room += b->changes[i]->share == share ? 2 : 0;
	plan->members = calloc(room, sizeof(*plan->members));
	if (plan->members == NULL)
		return -ENOMEM;
	for (i = 0; i < b->nr_changes; i++)
		if (b->changes[i]->share == share &&
		    change_is_live(b->changes[i]))
			add_change(b->changes[i], plan->members,
			    &plan->nr_members);
	for (i = 0; i < share->part->nr; i++)
		if (share->part->updates[i]->status != REFD_PENDING)
			member_of_update(share->part->updates[i],
			    &plan->members[plan->nr_members++]);
	return 0;
}

static bool is_final(const struct share *share)
{
	size_t i, decided = 0, nr_decided = 0;

	for (i = 0; i < share->plan.nr_members; i++)
		nr_decided += share->plan.members[i].answers;
	for (i = 0; i < share->txn->nr_updates; i++)
		if (share->txn->updates[i].status != REFD_PENDING)
			decided++;
	/* This row decides its own live updates. */
	for (i = 0; i < share->part->nr; i++)
		if (share->part->updates[i]->status != REFD_PENDING)
			nr_decided--;
	return decided + nr_decided == share->txn->nr_updates;
}

static struct group *group_of(struct batch *b, const struct share *share)
{
	size_t i;

	for (i = 0; i < b->nr_groups; i++)
		if (b->groups[i].repo == share->repo)
			return &b->groups[i];
	return NULL;
}

/* Sets the fields that all rows of SHARE have in common. */
static void start_row(struct batch *b, const struct share *share,
    enum journal_kind kind, struct journal_row *row)
{
	const struct txn *txn = share->txn;

	memset(row, 0, sizeof(*row));
	row->kind = kind;
	row->txid = txn->req.txid;
	row->uid = txn->peer.uid;
	row->pid = txn->peer.pid;
	row->repo = share->repo != NULL ? share->repo->id : txn->repo_id;
	row->time_us = SYS(b->sys, now_wall) / 1000;
}

/* The body is owned by the caller. */
static int make_row(struct batch *b, struct share *share,
    struct journal_row *row)
{
	struct group *g = group_of(b, share);

	start_row(b, share, JOURNAL_PART, row);
	row->body = record_encode(&share->plan, &row->len);
	row->mount = share->repo != NULL ? share->repo->fs->mount :
					   share->txn->repo_mount;
	row->token = g != NULL && g->has_token ? g->token.id : 0;
	row->locked_at_ns = g != NULL ? g->locked_at_ns : 0;
	row->final = is_final(share);
	return row->body != NULL ? 0 : -ENOMEM;
}

static void free_bodies(struct journal_row *rows, size_t nr)
{
	while (nr > 0)
		free((void *)(uintptr_t)rows[--nr].body);
}

/* The row is in the journal. The live changes of SHARE may be published. */
static void share_committed(struct share *share, uint64_t lsn)
{
	struct txn_part *part = share->part;
	size_t i;

	share->lsn = lsn;
	part->lsn = lsn;
	for (i = 0; i < part->nr; i++)
		if (part->updates[i]->again == TXN_AGAIN_NO)
			part->updates[i]->recorded = true;
}

static void share_failed(struct batch *b, const struct share *share, int err)
{
	struct change *c;
	size_t i;

	for (i = 0; i < b->nr_changes; i++) {
		c = b->changes[i];
		if (c->share == share && err == JOURNAL_UNKNOWN &&
		    change_is_live(c))
			edit_to(&c->edit, PROGRESS_DEFERRED);
	}
	for (i = 0; i < b->nr_changes; i++) {
		c = b->changes[i];
		if (c->share != share)
			continue;
		if (err == JOURNAL_UNKNOWN)
			change_fail(c, REFD_UNKNOWN,
			    "the journal could not "
			    "be synced; whether this update happened is not "
			    "known yet");
		else
			change_fail_errno(c, err, "can't write the journal");
	}
}

/* Does SHARE have a change in a packed-refs.new? */
static bool is_bound(struct batch *b, const struct share *share)
{
	struct group *g = group_of(b, share);
	size_t i;

	if (g == NULL || !g->packed_changed)
		return false;
	for (i = 0; i < b->nr_changes; i++)
		if (b->changes[i]->share == share && b->changes[i]->in_rewrite)
			return true;
	return false;
}

static void commit_rows(struct batch *b, struct share **shares,
    struct journal_row *rows, size_t nr)
{
	bool flush = false;
	size_t i;
	int r;

	for (i = 0; i < nr; i++)
		flush = flush || share_lasts(shares[i]);
	r = b->ap->commit(b->ap->arg, rows, nr, flush);
	for (i = 0; i < nr; i++) {
		if (r < 0 && nr > 1 && !is_bound(b, shares[i]))
			commit_rows(b, &shares[i], &rows[i], 1);
		else if (r != 0)
			share_failed(b, shares[i], r);
		else
			share_committed(shares[i], rows[i].lsn);
	}
}

static bool is_worth_a_flush(const struct batch *b)
{
	size_t i;

	for (i = 0; i < b->nr_changes; i++)
		if (change_is_live(b->changes[i]))
			return true;
	return b->has_notes;
}

/* Makes the rows of all shares; *NR is their number. */
static void make_rows(struct batch *b, struct share **shares,
    struct journal_row *rows, size_t *nr)
{
	struct share *share;
	size_t i;
	int r;

	for (i = 0; i < b->nr_shares; i++) {
		share = &b->shares[i];
		r = make_plan(b, share);
		if (r == 0 && share->plan.nr_members == 0)
			continue;
		if (r == 0)
			r = make_row(b, share, &rows[*nr]);
		if (r == 0)
			shares[(*nr)++] = share;
		else
			share_failed(b, share, r);
	}
}

void batch_commit(struct batch *b)
{
	struct journal_row *rows;
	struct share **shares;
	size_t i, nr = 0;

	if (!is_worth_a_flush(b))
		return;
	shares = calloc(b->nr_shares, sizeof(*shares));
	rows = calloc(b->nr_shares, sizeof(*rows));
	if (shares != NULL && rows != NULL)
		make_rows(b, shares, rows, &nr);
	else
		for (i = 0; i < b->nr_changes; i++)
			change_fail_errno(b->changes[i], -ENOMEM,
			    "can't write the journal");
	batch_sync_packed(b);
	if (nr > 0)
		commit_rows(b, shares, rows, nr);
	batch_synced_packed(b);
	free_bodies(rows, nr);
	free(rows);
	free(shares);
	batch_settle(b);
}

/* ---- taking back ---- */

static int void_row(struct batch *b, struct share *share,
    struct change **failed, size_t nr, struct journal_row *out)
{
	struct record_member *members;
	struct record rec = { .committer = "",
		.message = "",
		.nr_updates = (uint32_t)share->txn->nr_updates,
		.atomic = share->txn->req.atomic,
		.digest = share->txn->req.digest };
	size_t i;

	members = calloc(nr, sizeof(*members));
	if (members == NULL)
		return -ENOMEM;
	for (i = 0; i < nr; i++) {
		if (failed[i]->share != share)
			continue;
		member_of_update(failed[i]->u, &members[rec.nr_members]);
		members[rec.nr_members].status = failed[i]->void_status;
		members[rec.nr_members++].text = failed[i]->void_text;
	}
	rec.members = members;
	start_row(b, share, JOURNAL_ABORT, out);
	out->body = record_encode(&rec, &out->len);
	free(members);
	if (out->body == NULL)
		return -ENOMEM;
	out->mount = share->repo->fs->mount;
	out->refers_to = share->lsn;
	return 0;
}

int batch_void(struct batch *b, struct change **failed, size_t nr)
{
	struct journal_row *out;
	size_t i, k, rows = 0;
	bool flush = false;
	int r = 0;

	out = calloc(b->nr_shares, sizeof(*out));
	if (out == NULL)
		return -ENOMEM;
	for (i = 0; i < b->nr_shares && r == 0; i++)
		for (k = 0; k < nr; k++)
			if (failed[k]->share == &b->shares[i]) {
				r = void_row(b, &b->shares[i], failed, nr,
				    &out[rows]);
				rows += r == 0;
				flush = flush || share_lasts(&b->shares[i]);
				break;
			}
	if (r == 0)
		r = b->ap->commit(b->ap->arg, out, rows, flush);
	free_bodies(out, rows);
	free(out);
	return r;
}

int batch_defer_line(struct batch *b, const struct change *c)
{
	const struct share *share = c->share;
	struct record_member line = *c->plan;
	struct record rec = share->plan;
	struct journal_row row;
	int r;

	line.answers = false;
	line.action = RECORD_LOG;
	line.target = NULL;
	line.had_packed = false;
	rec.atomic = false;
	rec.nr_identities = 0;
	rec.members = &line;
	rec.nr_members = 1;
	start_row(b, share, JOURNAL_DEFERRED, &row);
	row.refers_to = share->lsn;
	row.body = record_encode(&rec, &row.len);
	if (row.body == NULL)
		return -ENOMEM;
	r = b->ap->commit(b->ap->arg, &row, 1, share_lasts(share));
	free_bodies(&row, 1);
	return r;
}
