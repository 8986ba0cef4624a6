/*
 * The states of an entry. Only entry_move() changes a state, so every move is
 * here.
 *
 * Happy path of an entry:
 *	ADMITTING	the store looks up the id, the repository, the objects
 *	WAITING		its updates are queued at their names
 *	IN_BATCH	some updates are in the store's hands; then WAITING
 *			again, until no update is undecided
 *	ENDING		the undecided updates get a status outside of batches
 *	DECIDED		answered; stays until all updates are recorded
 * An entry on the direct way (direct.c) passes ADMITTING, WAITING and IN_BATCH
 * at once to
 *	DIRECT		the store admits and applies; then IN_BATCH, or
 *			ADMITTING if nothing was applied
 * A session, after its first IN_BATCH (without updates, after ADMITTING):
 *	PREPARED	the store holds its locks, the client is told
 *	IN_BATCH	being committed; then DECIDED
 *
 * Failure modes:
 *	refused or replayed at admission	ADMITTING -> ENDING -> DECIDED
 *	its repository was replaced	WAITING -> ADMITTING
 *	its objects may be gone		WAITING -> ADMITTING -> WAITING, in its
 *			place at all names
 *	deadline, cancel, stop		WAITING -> ENDING -> DECIDED
 *	abort, client gone, time over	PREPARED -> IN_BATCH, to release the
 *			locks, -> DECIDED; directly to DECIDED if empty
 * The rejections of a DECIDED entry may go along with a batch of other entries
 * (unrecorded.c). Meanwhile the store has the transaction, but the entry stays
 * DECIDED. Then is_kept is false, and no waiter is left.
 */
#include "daemon/scheduler/table.h"

#include <assert.h>
#include <stdlib.h>

#define TO(state) (1u << ENTRY_##state)

static const unsigned allowed[] = {
	[ENTRY_ADMITTING] =
	    TO(WAITING) | TO(PREPARED) | TO(ENDING) | TO(DECIDED),
	[ENTRY_DIRECT] = TO(ADMITTING) | TO(IN_BATCH),
	[ENTRY_WAITING] =
	    TO(ADMITTING) | TO(IN_BATCH) | TO(ENDING) | TO(DECIDED),
	[ENTRY_ENDING] = TO(DECIDED),
	[ENTRY_PREPARED] = TO(IN_BATCH) | TO(DECIDED),
	[ENTRY_IN_BATCH] =
	    TO(DIRECT) | TO(WAITING) | TO(PREPARED) | TO(DECIDED),
	[ENTRY_DECIDED] = 0,
};

void entry_move(struct entry *ent, enum entry_state to)
{
	assert((allowed[ent->state] & (1u << to)) != 0);
	ent->table->nr_in[ent->state]--;
	ent->table->nr_in[to]++;
	ent->state = to;
}

bool entry_is_lent(const struct entry *ent)
{
	switch (ent->state) {
	case ENTRY_ADMITTING:
	case ENTRY_DIRECT:
	case ENTRY_IN_BATCH:
		return true;
	case ENTRY_WAITING:
	case ENTRY_PREPARED:
	case ENTRY_ENDING:
	case ENTRY_DECIDED:
		break;
	}
	return false;
}

void entry_give_up(struct entry *ent, enum refd_status status, const char *text)
{
	if (ent->end_status != REFD_OK)
		return;
	ent->end_status = status;
	ent->end_text = text;
}

void entry_wait(struct entry *ent, struct waiter *a)
{
	waiter_set_entry(a, ent);
	waiter_push(&ent->waiters, a);
}

static void key_set(struct entry_key *key, uint32_t uid,
    const struct refd_txid *txid)
{
	_Static_assert(sizeof(*key) == sizeof(key->uid) + sizeof(key->txid),
	    "hashed as bytes");
	key->uid = uid;
	key->txid = *txid;
}

static void entry_free(struct entry *ent)
{
	if (ent == NULL)
		return;
	txn_free(ent->txn);
	batch_free(ent->session.batch);
	free(ent);
}

struct entry *table_add(struct table *t, struct txn *txn)
{
	struct entry *ent;

	ent = calloc(1, sizeof(*ent));
	if (ent == NULL)
		return NULL;
	key_set(&ent->key, txn->peer.uid, &txn->req.txid);
	HASH_ADD(hh, t->head, key, sizeof(ent->key), ent);
	if (ent->hh.tbl == NULL) {
		entry_free(ent);
		return NULL;
	}
	t->nr_in[ent->state]++;
	ent->table = t;
	ent->txn = txn;
	ent->nr_undecided = txn->nr_updates;
	ent->held_from = SIZE_MAX;
	ent->goes_whole = txn->req.atomic || entry_is_session(ent);
	ent->goes_in_order = txn->req.push && !ent->goes_whole;
	txn->scheduler = ent;
	return ent;
}

struct txn *table_remove(struct table *t, struct entry *ent)
{
	struct txn *txn = ent->txn;

	assert(ent->nr_up == 0 && ent->queue == NULL && !ent->is_arriving &&
	    !ent->is_timed && !ent->notes.is_kept && ent->waiters == NULL);
	HASH_DEL(t->head, ent);
	t->nr_in[ent->state]--;
	ent->txn = NULL;
	entry_free(ent);
	return txn;
}

void table_done(struct table *t)
{
	struct entry *ent, *next;

	HASH_ITER(hh, t->head, ent, next) {
		HASH_DEL(t->head, ent);
		entry_free(ent);
	}
}

struct entry *table_find(const struct table *t, uint32_t uid,
    const struct refd_txid *txid)
{
	struct entry_key key;
	struct entry *ent;

	key_set(&key, uid, txid);
	HASH_FIND(hh, t->head, &key, sizeof(key), ent);
	return ent;
}

/* Root seldom asks, so the search of all transactions in flight may be slow. */
struct entry *table_find_for(const struct table *t, uint32_t peer,
    const struct refd_txid *txid)
{
	struct entry *ent = table_find(t, peer, txid);

	if (ent != NULL || peer != 0)
		return ent;
	for (ent = t->head; ent != NULL; ent = ent->hh.next)
		if (refd_txid_eq(&ent->key.txid, txid))
			return ent;
	return NULL;
}
