#include "daemon/group/own_txn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/arena.h"
#include "proto/refname.h"

/* ---- the updates ---- */

/* The leader has compared the old value under the lock, so this node does the
 * same. */
static void ask_of(const struct record_member *m, const char *name,
    struct refd_update *ask)
{
	*ask = (struct refd_update){ .action = REFD_UPDATE,
		.no_deref = true,
		.name = name,
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

/* The updates that another row of the transaction has get no name here, and
 * count as decided, because this row says nothing about them. */
static int make_row_request(const struct record *rec,
    const struct group_row *row, const char *path, struct refd_request *req)
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

/* M changes the ref of U. If another member of U has given the answer, the name
 * in the request is that of a symbolic ref, which this node need not have. Then
 * final_name is the name of M, which is the ref at the end. */
static int take_change(struct txn_update *u, const struct record_member *m,
    struct refd_update *ask)
{
	const char *name = m->answers ? m->name : ask->name;

	ask_of(m, name, ask);
	u->status = REFD_PENDING;
	u->recorded = true;
	u->has_found = false;
	if (m->answers || strcmp(name, m->name) == 0)
		return 0;
	u->final_name = strdup(m->name);
	return u->final_name != NULL ? 0 : -ENOMEM;
}

static int lay_out(struct own_txn *ot)
{
	struct txn_slice *slice = &ot->slice;
	const struct record_member *m;
	struct refd_update *ask;
	struct txn *txn = ot->txn;
	struct txn_update *u;
	size_t i;
	int r = 0;

	for (i = 0; i < txn->nr_updates; i++) {
		txn->updates[i].status = REFD_OK;
		txn->updates[i].recorded = true;
	}
	for (i = 0; i < ot->record.nr_members && r == 0; i++) {
		m = &ot->record.members[i];
		u = &txn->updates[m->index];
		ask = &txn->req.updates[m->index];
		if (m->answers)
			slice->updates[slice->nr++] = u;
		if (record_changes_ref(m)) {
			r = take_change(u, m, ask);
		} else if (m->answers) {
			ask_of(m, m->name, ask);
			r = take_outcome(u, m);
		}
	}
	txn_count(txn);
	return r;
}

/* Room for NR updates, and no update. */
static int make_slice(struct own_txn *ot, size_t nr)
{
	ot->slice.txn = ot->txn;
	ot->slice.updates = calloc(nr + 1, sizeof(*ot->slice.updates));
	return ot->slice.updates != NULL ? 0 : -ENOMEM;
}

/* Takes over the content of REQ. */
static int make_txn(struct own_txn *ot, struct refd_request *req)
{
	ot->txn = txn_new(req);
	if (ot->txn == NULL)
		return -ENOMEM;
	group_txn_lend(ot->txn, &ot->kept);
	/* No look-up by id is needed, because the id is new, or has other rows
	 * in the journal. */
	ot->txn->readmitted = true;
	txn_lay_out(ot->txn);
	return 0;
}

int own_txn_of_row(struct own_txn *ot, const struct group_row *row,
    uint64_t lsn, const char *path)
{
	struct refd_request req = { .arena = NULL };
	int r;

	*ot = (struct own_txn){ .from = row,
		.kept = { .lsn = lsn,
		    .is_final = row->is_final,
		    .record = &ot->record,
		    .row_objects = row->objects.data,
		    .row_objects_len = row->objects.len } };
	r = record_decode(row->record.data, row->record.len, &ot->record);
	if (r == 0 && !may_follow(&ot->record))
		r = -ENOTSUP;
	if (r == 0)
		r = make_row_request(&ot->record, row, path, &req);
	if (r == 0)
		r = make_txn(ot, &req);
	if (r == 0)
		r = make_slice(ot, ot->record.nr_members);
	if (r == 0) {
		ot->txn->peer.uid = row->uid;
		r = lay_out(ot);
	}
	refd_request_done(&req);
	if (r < 0)
		own_txn_done(ot);
	return r;
}

/* ---- of this node alone ---- */

static const char *copy(struct refd_arena *arena, const char *text, bool *ok)
{
	const char *made = NULL;

	if (text != NULL) {
		made = refd_arena_string(arena, text, strlen(text));
		*ok = *ok && made != NULL;
	}
	return made;
}

static int make_node_request(const struct repo *repo,
    const struct refd_update *updates, size_t nr, struct refd_request *req)
{
	struct refd_update *u;
	bool ok = true;

	*req = (struct refd_request){ .verb = REFD_VERB_TRANSACTION,
		.object_format = repo->object_format,
		.atomic = true,
		.umask = 022,
		.message = "refd: written by another program",
		.nr_updates = nr,
		.arena = refd_arena_new() };
	if (req->arena == NULL)
		return -ENOMEM;
	if (refd_txid_make(&req->txid) < 0)
		return -EIO;
	req->git_dir = copy(req->arena, repo->path, &ok);
	req->updates = refd_arena_array(req->arena, nr, sizeof(*req->updates));
	for (u = req->updates; ok && u != NULL && u < req->updates + nr; u++) {
		*u = updates[u - req->updates];
		u->name = copy(req->arena, u->name, &ok);
		u->old_target = copy(req->arena, u->old_target, &ok);
		u->target = copy(req->arena, u->target, &ok);
	}
	return ok && req->updates != NULL ? 0 : -ENOMEM;
}

int own_txn_of_node(struct own_txn *ot, const struct repo *repo,
    const struct refd_update *updates, size_t nr, bool is_brief)
{
	struct refd_request req = { .arena = NULL };
	struct txn_update *u;
	int r;

	*ot = (struct own_txn){ .kept = { .is_final = true,
				    .is_brief = is_brief } };
	r = make_node_request(repo, updates, nr, &req);
	if (r == 0)
		r = make_txn(ot, &req);
	if (r == 0)
		r = make_slice(ot, nr);
	refd_request_done(&req);
	if (r < 0) {
		own_txn_done(ot);
		return r;
	}
	ot->txn->peer.uid = geteuid();
	ot->txn->peer.pid = getpid();
	for (u = ot->txn->updates; u < ot->txn->updates + nr; u++) {
		/* A kept value stays, so admission looks for its object. */
		u->is_brief = is_brief && !refd_refname_is_kept(u->ask->name);
		ot->slice.updates[ot->slice.nr++] = u;
	}
	return 0;
}

void own_txn_done(struct own_txn *ot)
{
	free(ot->slice.updates);
	txn_free(ot->txn);
	record_done(&ot->record);
	*ot = (struct own_txn){ .txn = NULL };
}
