/*
 * The journal record of a batch: one row per transaction, one flush, or none
 * where every one of them is of a mode that promises nothing (none) or later
 * (periodic); and beside it packed-refs.new is synced.
 *
 * What fails:
 *	no room in the journal, or a	definitely nothing happened: each
 *	failed write			transaction is tried alone, so that
 *					one too large costs only itself
 *	a failed sync			nobody knows: the applier's commit
 *					brings the journal back and finds out;
 *					if it can't, every update of the batch
 *					is of unknown outcome
 * Those of one repository that are in packed-refs.new share it, and it can't
 * be taken apart any more: where they can't be recorded together they fail
 * together.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/store/window/batch.h"

char *change_log_line(const struct change *c, size_t *len)
{
	static const struct refd_oid null_oid;

	if (c->of != NULL)
		c = c->of;
	return reflog_line(c->exists ? &c->old_oid : &null_oid,
	    c->action == CHANGE_DELETE ? &null_oid : &c->new_oid,
	    c->share->committer, c->share->message, len);
}

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
	/* What confirms a value confirms what another may not have synced: a
	 * replay has to write it. */
	return c->is_end && !change_only_looks(c) ? RECORD_WRITE :
						    RECORD_NOTHING;
}

/* What is asked for under the name of another worktree is answered under
 * that, and written under its own. */
static bool has_own_answer(const struct change *c)
{
	return c->is_asked && strcmp(c->name, c->u->ask->name) != 0;
}

/* One member, or two, or none: *NR grows. */
static void add_change(const struct change *c, struct record_member *members,
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
	m->name = c->name;
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
	++*nr;
}

/* One row in the making: its share, and what its body says. */
struct row {
	struct share *share;
	struct record_member *members;
	size_t nr, nr_answers;
	uint8_t *body;
};

/* Every decided update of SHARE that isn't recorded yet, and the live ones. */
static bool row_init(struct row *row, struct batch *b, struct share *share)
{
	size_t i, room = share->part->nr + 1;

	memset(row, 0, sizeof(*row));
	row->share = share;
	for (i = 0; i < b->nr_changes; i++)
		room += b->changes[i]->share == share ? 2 : 0;
	row->members = calloc(room, sizeof(*row->members));
	if (row->members == NULL)
		return false;
	for (i = 0; i < b->nr_changes; i++)
		if (b->changes[i]->share == share &&
		    change_is_live(b->changes[i]))
			add_change(b->changes[i], row->members, &row->nr);
	for (i = 0; i < share->part->nr; i++)
		if (share->part->updates[i]->status != REFD_PENDING)
			member_of_update(share->part->updates[i],
			    &row->members[row->nr++]);
	for (i = 0; i < row->nr; i++)
		row->nr_answers += row->members[i].answers;
	return true;
}

static bool is_final(const struct share *share, size_t nr_decided)
{
	size_t i, decided = 0;

	for (i = 0; i < share->txn->nr_updates; i++)
		if (share->txn->updates[i].status != REFD_PENDING)
			decided++;
	/* The live ones of this row are decided by it. */
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

static bool row_encode(struct row *row, struct batch *b,
    struct journal_row *out)
{
	struct txn *txn = row->share->txn;
	const struct repo *repo = row->share->repo;
	struct group *g = group_of(b, row->share);
	struct record rec = {
		.committer = row->share->committer,
		.message =
		    row->share->message != NULL ? row->share->message : "",
		.file_mode = row->share->file_mode,
		.dir_mode = row->share->dir_mode,
		.nr_updates = (uint32_t)txn->nr_updates,
		.atomic = txn->req.atomic,
		.digest = txn->req.digest,
		.nr_identities = txn->req.nr_identities,
		.members = row->members,
		.nr_members = row->nr,
	};

	memcpy(rec.identities, txn->req.identities, sizeof(rec.identities));
	memset(out, 0, sizeof(*out));
	row->body = record_encode(&rec, &out->len);
	if (row->body == NULL)
		return false;
	out->body = row->body;
	out->kind = JOURNAL_PART;
	out->txid = txn->req.txid;
	out->uid = txn->peer.uid;
	out->pid = txn->peer.pid;
	out->repo = repo != NULL ? repo->id : txn->repo_id;
	out->mount = repo != NULL ? repo->fs->mount : txn->repo_mount;
	out->token = g != NULL && g->has_token ? g->token.id : 0;
	out->locked_at_ns = g != NULL ? g->locked_at_ns : 0;
	out->time_us = SYS(b->sys, now_wall) / 1000;
	out->final = is_final(row->share, row->nr_answers);
	return true;
}

/* The row is in the journal: its live changes may be published. */
static void row_committed(struct row *row, uint64_t lsn)
{
	struct txn_part *part = row->share->part;
	size_t i;

	row->share->lsn = lsn;
	part->lsn = lsn;
	for (i = 0; i < part->nr; i++)
		if (part->updates[i]->again == TXN_AGAIN_NO)
			part->updates[i]->recorded = true;
}

static void row_failed(struct batch *b, struct row *row, int err)
{
	struct change *c;
	size_t i;

	for (i = 0; i < b->nr_changes; i++) {
		c = b->changes[i];
		if (c->share == row->share)
			c->keep = err == JOURNAL_UNKNOWN && change_is_live(c);
	}
	for (i = 0; i < b->nr_changes; i++) {
		c = b->changes[i];
		if (c->share != row->share)
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

/* It is in a packed-refs.new together with others. */
static bool is_bound(struct batch *b, const struct row *row)
{
	struct group *g = group_of(b, row->share);
	size_t i;

	if (g == NULL || !g->packed_changed)
		return false;
	for (i = 0; i < b->nr_changes; i++)
		if (b->changes[i]->share == row->share &&
		    b->changes[i]->in_rewrite)
			return true;
	return false;
}

static void commit_rows(struct batch *b, struct row *rows,
    struct journal_row *out, size_t nr)
{
	bool flush = false;
	size_t i;
	int r;

	for (i = 0; i < nr; i++)
		flush = flush || share_lasts(rows[i].share);
	r = b->ap->commit(b->ap->arg, out, nr, flush);
	for (i = 0; i < nr; i++) {
		if (r < 0 && nr > 1 && !is_bound(b, &rows[i]))
			commit_rows(b, &rows[i], &out[i], 1);
		else if (r != 0)
			row_failed(b, &rows[i], r);
		else
			row_committed(&rows[i], out[i].lsn);
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

void batch_commit(struct batch *b)
{
	struct journal_row *out;
	struct row *rows;
	size_t i, nr = 0;

	if (!is_worth_a_flush(b))
		return;
	rows = calloc(b->nr_shares, sizeof(*rows));
	out = calloc(b->nr_shares, sizeof(*out));
	for (i = 0; i < b->nr_shares && rows != NULL && out != NULL; i++) {
		if (!row_init(&rows[nr], b, &b->shares[i]) ||
		    (rows[nr].nr > 0 && !row_encode(&rows[nr], b, &out[nr]))) {
			rows[nr].share = &b->shares[i];
			row_failed(b, &rows[nr], -ENOMEM);
			free(rows[nr].members);
		} else if (rows[nr].nr == 0) {
			free(rows[nr].members);
		} else {
			nr++;
		}
	}
	if (rows == NULL || out == NULL)
		for (i = 0; i < b->nr_changes; i++)
			change_fail_errno(b->changes[i], -ENOMEM,
			    "can't write the journal");
	batch_sync_packed(b);
	if (nr > 0)
		commit_rows(b, rows, out, nr);
	batch_synced_packed(b);
	for (i = 0; i < nr; i++) {
		free(rows[i].members);
		free(rows[i].body);
	}
	free(rows);
	free(out);
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
	memset(out, 0, sizeof(*out));
	out->body = record_encode(&rec, &out->len);
	free(members);
	if (out->body == NULL)
		return -ENOMEM;
	out->kind = JOURNAL_VOID;
	out->txid = share->txn->req.txid;
	out->uid = share->txn->peer.uid;
	out->pid = share->txn->peer.pid;
	out->repo = share->repo->id;
	out->mount = share->repo->fs->mount;
	out->voids = share->lsn;
	out->time_us = SYS(b->sys, now_wall) / 1000;
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
	for (i = 0; i < rows; i++)
		free((void *)(uintptr_t)out[i].body);
	free(out);
	return r;
}

int batch_park_line(struct batch *b, const struct change *c)
{
	const struct share *share = c->share;
	const struct change *end = c->of != NULL ? c->of : c;
	struct record_member m;
	struct record rec = { .committer = share->committer,
		.message = share->message != NULL ? share->message : "",
		.file_mode = share->file_mode,
		.dir_mode = share->dir_mode,
		.nr_updates = (uint32_t)share->txn->nr_updates,
		.digest = share->txn->req.digest,
		.members = &m,
		.nr_members = 1 };
	struct journal_row out = { .kind = JOURNAL_PARKED,
		.txid = share->txn->req.txid,
		.uid = share->txn->peer.uid,
		.pid = share->txn->peer.pid,
		.repo = share->repo->id,
		.voids = share->lsn,
		.time_us = SYS(b->sys, now_wall) / 1000 };
	int r;

	member_of_update(c->u, &m);
	m.status = REFD_OK;
	m.answers = false;
	m.name = c->name;
	m.worktree = c->worktree;
	m.action = RECORD_LOG;
	m.log = true;
	if (end->action != CHANGE_DELETE)
		m.new_oid = end->new_oid;
	m.had_old = end->exists;
	m.old_oid = end->old_oid;
	out.body = record_encode(&rec, &out.len);
	if (out.body == NULL)
		return -ENOMEM;
	r = b->ap->commit(b->ap->arg, &out, 1, share_lasts(share));
	free((void *)(uintptr_t)out.body);
	return r;
}
