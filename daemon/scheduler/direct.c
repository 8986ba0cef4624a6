/*
 * Happy path:
 *	begin	the names are queued, and the batch is formed, as for an
 *		admitted transaction; the store gets the transaction and the
 *		batch
 *	applied	the batch comes back as any other batch does
 *
 * Failure modes:
 *	another transaction is at work or counts in the repository's quota, the
 *	number of the repository is not known here, a name is not free
 *			the ordinary way: admission first
 *	paused		the store only admits the transaction, unless the store
 *			has begun to apply the batch
 *	refused		the transaction comes back from admission: something is
 *			wrong, it arrived more than a second ago, its id is
 *			known, it was given up, or the path has a different
 *			repository. Its names become free again, and it goes the
 *			ordinary way
 *
 * Nothing else is at work, so the transaction delays nobody, and needs no
 * share.
 */
#include "daemon/scheduler/state.h"
#include "proto/refname.h"

/* Limit for updates that are queued at once. */
#define UPDATES_MAX 16

/* ---- the numbers of repositories ---- */

/* FNV-1a */
static uint64_t hash_path(const char *path)
{
	uint64_t hash = UINT64_C(14695981039346656037);

	for (; *path != '\0'; path++)
		hash = (hash ^ (unsigned char)*path) * UINT64_C(1099511628211);
	return hash;
}

void direct_learn(struct direct *d, const struct txn *txn)
{
	uint64_t hash = hash_path(txn->req.git_dir);

	d->paths[hash % DIRECT_PATHS] = (struct direct_path){ .hash = hash,
		.key = store_repo_key(txn->repo),
		.writes_alone = store_writes_alone(txn->repo) };
}

/* NULL: not remembered. */
static const struct direct_path *find_path(const struct direct *d,
    const struct txn *txn)
{
	uint64_t hash = hash_path(txn->req.git_dir);
	const struct direct_path *at = &d->paths[hash % DIRECT_PATHS];

	return at->hash == hash && at->key != 0 ? at : NULL;
}

/* ---- the way there and back ---- */

/* Has TXN deletions and other updates? On the direct way its deletions would
 * wait for the barrier of the new objects, although a deletion needs no
 * barrier. Meanwhile they would keep the other deletions of the repository
 * waiting. */
static bool mixes_deletions(const struct txn *txn)
{
	size_t i;

	for (i = 1; i < txn->nr_updates; i++)
		if (txn_update_deletes(&txn->updates[i]) !=
		    txn_update_deletes(&txn->updates[0]))
			return true;
	return false;
}

static bool may_begin(const struct scheduler *e, const struct entry *ent)
{
	size_t nr = ent->txn->nr_updates;

	return e->nr_batches + e->nr_admitting == 0 &&
	    e->fairness.ready == NULL && e->fairness.arriving == NULL &&
	    e->unrecorded.nr == 0 && !ref_queue_is_full(&e->ref_queues) &&
	    nr > 0 && nr <= UPDATES_MAX && !entry_is_session(ent) &&
	    ent->txn->req.gate != REFD_GATE_PREPARED;
}

/* Admission has not looked at the names yet, so bad names are found here. */
static bool queue_names(struct scheduler *e, struct entry *ent, int64_t now_ns)
{
	struct txn_update *u;
	size_t i;

	for (i = 0; i < ent->txn->nr_updates; i++) {
		u = &ent->txn->updates[i];
		if (!refd_refname_may_write(u->ask->name) ||
		    ref_queue_add(&e->ref_queues, ent->queue->key, u, now_ns) !=
			REFD_OK)
			return false;
	}
	return true;
}

/* ENT is in no queue any more. B, which holds names of ENT, is gone. */
static void undo(struct scheduler *e, struct entry *ent, struct batch *b,
    int64_t now_ns)
{
	struct txn *txn = ent->txn;
	size_t i;

	if (b != NULL) {
		e->nr_batches--;
		on_batch_done_queues(b, now_ns);
		batch_free(b);
	}
	for (i = 0; i < txn->nr_updates; i++)
		if (ref_queue_is_held(&txn->updates[i]))
			ref_queue_let_go(&e->ref_queues, &txn->updates[i],
			    now_ns);
		else if (txn->updates[i].ref_queue != NULL)
			ref_queue_remove(&e->ref_queues, &txn->updates[i],
			    now_ns);
	fairness_leave(ent);
}

bool direct_begin(struct scheduler *e, struct entry *ent, int64_t now_ns)
{
	struct txn *txn = ent->txn;
	const struct direct_path *path;
	struct batch *b = NULL;

	if (!may_begin(e, ent))
		return false;
	txn_lay_out(txn);
	if (mixes_deletions(txn))
		return false;
	path = find_path(&e->direct, txn);
	/* If other transactions count in the quota, admission must check the
	 * quota. */
	if (path == NULL || quota_is_used(&e->quotas, QUOTA_REPO, path->key) ||
	    !on_admitted_join(e, ent, path->key))
		return false;
	ent->queue->writes_alone = path->writes_alone;
	ent->nr_undecided = txn->nr_updates;
	entry_move(ent, ENTRY_WAITING);
	if (queue_names(e, ent, now_ns)) {
		fairness_arrived(ent);
		b = batch_next(e);
	}
	if (b == NULL || b->slices[0].nr < txn->nr_updates) {
		if (b != NULL)
			entry_move(ent, ENTRY_WAITING);
		undo(e, ent, b, now_ns);
		entry_move(ent, ENTRY_ADMITTING);
		return false;
	}
	txn->direct = b;
	txn->direct_repo = path->key;
	e->direct.entry = ent;
	e->direct.is_stopped = false;
	entry_move(ent, ENTRY_DIRECT);
	scheduler_admit(e, ent);
	return true;
}

void direct_stop(struct scheduler *e)
{
	struct entry *ent = e->direct.entry;

	if (ent != NULL && !e->direct.is_stopped)
		e->direct.is_stopped =
		    !atomic_exchange(&ent->txn->direct_taken, true);
}

bool direct_is_applied(const struct scheduler *e, const struct entry *ent)
{
	return ent == e->direct.entry && !e->direct.is_stopped &&
	    atomic_load(&ent->txn->direct_taken);
}

void direct_applied(struct scheduler *e, struct entry *ent)
{
	ent->txn->direct = NULL;
	e->direct.entry = NULL;
	e->stats.batches++;
	on_admitted_directly(e, ent);
	entry_move(ent, ENTRY_IN_BATCH);
}

void direct_refused(struct scheduler *e, struct entry *ent, int64_t now_ns)
{
	struct batch *b = ent->txn->direct;

	ent->txn->direct = NULL;
	e->direct.entry = NULL;
	undo(e, ent, b, now_ns);
	entry_move(ent, ENTRY_ADMITTING);
}
