#include "daemon/store/following/row_txn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/arena.h"

/* ---- the updates ---- */

/* The member that changes the ref of update INDEX; NULL: none. In a group, no
 * symbolic ref is followed, so this is the member with the answer. */
static bool changes_ref(const struct record_member *m)
{
	return m->status == REFD_OK &&
	    (m->action == RECORD_WRITE || m->action == RECORD_DELETE);
}

/* The leader has compared the old value under the lock, so this node does. */
static void ask_of(const struct record_member *m, struct refd_update *ask)
{
	*ask = (struct refd_update){ .action = REFD_UPDATE,
		.no_deref = true,
		.name = m->name,
		.has_old = true,
		.old_oid = m->old_oid };
	if (m->action == RECORD_DELETE) {
		ask->action = REFD_DELETE;
	} else if (m->target != NULL) {
		ask->action = REFD_SYMREF_UPDATE;
		ask->target = m->target;
	} else {
		ask->new_oid = m->new_oid;
	}
}

/* A member that has failed has no worktree. */
static bool is_elsewhere(const struct record_member *m)
{
	return m->status == REFD_OK && m->worktree[0] != '\0';
}

static bool may_follow(const struct record *rec)
{
	size_t i;

	for (i = 0; i < rec->nr_members; i++)
		if (is_elsewhere(&rec->members[i]) ||
		    rec->members[i].index >= rec->nr_updates)
			return false;
	return !rec->is_gated;
}

/* Updates of other rows have no name, and are decided. */
static int make_request(const struct record *rec, const struct group_row *row,
    const char *path, struct refd_request *req)
{
	size_t i;

	*req = (struct refd_request){ .verb = REFD_VERB_TRANSACTION,
		.txid = row->txid,
		.object_format = rec->object_format,
		.atomic = rec->atomic,
		.umask = ~rec->dir_mode & 0777,
		.message = rec->message[0] != '\0' ? rec->message : NULL,
		.committer = rec->committer[0] != '\0' ? rec->committer : NULL,
		.nr_identities = rec->nr_identities,
		.digest = rec->digest,
		.arena = refd_arena_new() };
	if (req->arena == NULL)
		return -ENOMEM;
	memcpy(req->identities, rec->identities, sizeof(req->identities));
	req->git_dir = refd_arena_string(req->arena, path, strlen(path));
	req->updates = refd_arena_array(req->arena, rec->nr_updates + 1,
	    sizeof(*req->updates));
	if (req->git_dir == NULL || req->updates == NULL)
		return -ENOMEM;
	req->nr_updates = rec->nr_updates;
	for (i = 0; i < req->nr_updates; i++)
		req->updates[i] = (struct refd_update){ .name = "" };
	return 0;
}

/* ---- the outcomes ---- */

/* M has the answer of U. */
static int take_outcome(struct txn_update *u, const struct record_member *m)
{
	u->status = m->status;
	u->has_found = m->has_found;
	u->found = m->found;
	u->recorded = false;
	if (m->text != NULL && (u->text = strdup(m->text)) == NULL)
		return -ENOMEM;
	return 0;
}

static int lay_out(struct row_txn *rt)
{
	const struct record_member *m;
	struct txn *txn = rt->txn;
	struct txn_update *u;
	size_t i;
	int r = 0;

	txn_lay_out(txn);
	for (i = 0; i < txn->nr_updates; i++) {
		txn->updates[i].status = REFD_OK;
		txn->updates[i].recorded = true;
	}
	for (i = 0; i < rt->record.nr_members && r == 0; i++) {
		m = &rt->record.members[i];
		u = &txn->updates[m->index];
		if (!m->answers)
			continue;
		ask_of(m, &txn->req.updates[m->index]);
		if (changes_ref(m))
			u->status = REFD_PENDING;
		else
			r = take_outcome(u, m);
		if (r == 0)
			rt->batch->slices[0]
			    .updates[rt->batch->slices[0].nr++] = u;
	}
	txn_count(txn);
	return r;
}

static int make_batch(struct row_txn *rt)
{
	struct batch *b = calloc(1, sizeof(*b));

	rt->batch = b;
	if (b == NULL)
		return -ENOMEM;
	b->slices = calloc(1, sizeof(*b->slices));
	if (b->slices == NULL)
		return -ENOMEM;
	b->nr_slices = 1;
	b->slices[0].txn = rt->txn;
	b->slices[0].updates =
	    calloc(rt->record.nr_members + 1, sizeof(*b->slices[0].updates));
	return b->slices[0].updates != NULL ? 0 : -ENOMEM;
}

static int make_txn(struct row_txn *rt, const struct group_row *row,
    const char *path)
{
	struct refd_request req;
	int r = make_request(&rt->record, row, path, &req);

	if (r == 0)
		rt->txn = txn_new(&req);
	if (rt->txn == NULL) {
		refd_request_done(&req);
		return -ENOMEM;
	}
	group_txn_lend(rt->txn, &rt->kept);
	rt->txn->peer.uid = row->uid;
	/* The id may have other rows in the journal. */
	rt->txn->readmitted = true;
	return 0;
}

int row_txn_init(struct row_txn *rt, const struct group_row *row, uint64_t lsn,
    const char *path)
{
	int r;

	*rt = (struct row_txn){ .kept = { .lsn = lsn,
				    .is_final = row->is_final,
				    .record = &rt->record,
				    .row_objects = row->objects.data,
				    .row_objects_len = row->objects.len } };
	r = record_decode(row->record.data, row->record.len, &rt->record);
	if (r == 0 && !may_follow(&rt->record))
		r = -ENOTSUP;
	if (r == 0)
		r = make_txn(rt, row, path);
	if (r == 0)
		r = make_batch(rt);
	if (r == 0)
		r = lay_out(rt);
	if (r < 0)
		row_txn_done(rt);
	return r;
}

void row_txn_done(struct row_txn *rt)
{
	batch_free(rt->batch);
	txn_free(rt->txn);
	record_done(&rt->record);
	*rt = (struct row_txn){ .txn = NULL };
}
