#include "daemon/scheduler/gate.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "daemon/base/hash.h"

/* Room for the refs of a few large transactions, or for many small ones. */
#define NOTES_BYTES_MAX ((size_t)16 << 20)

/* Parts of a key: the process of git, and the transaction. */
#define PROCESS_BYTES 8
#define WHOLE_BYTES   14

/* No padding: hashed as bytes. */
struct note_key {
	uint32_t uid;
	struct refd_txid key;
};

struct gate_note {
	struct note_key key;
	unsigned prepared; /* without an end */
	bool is_recording; /* COMMITTED came, and is not decided yet */
	bool is_open;      /* in the list */
	uint64_t repo_key;
	int64_t at_ns;
	size_t nr;
	UT_hash_handle hh;
	struct gate_note *prev, *next;
	struct txn_before before[];
};

static size_t bytes_of(size_t nr)
{
	return sizeof(struct gate_note) + nr * sizeof(struct txn_before);
}

/* NULL: none, or of a transaction with other updates. */
static struct gate_note *find(const struct gate *g, const struct txn *txn)
{
	const struct note_key key = { txn->peer.uid, txn->req.gate_key };
	struct gate_note *note;

	HASH_FIND(hh, g->notes, &key, sizeof(key), note);
	return note;
}

static void leave_open(struct gate *g, struct gate_note *note)
{
	if (note->is_open)
		DL_DELETE(g->open, note);
	note->is_open = false;
}

static void leave_if_over(struct gate *g, struct gate_note *note)
{
	if (note->prepared == 0 && !note->is_recording)
		leave_open(g, note);
}

static void forget(struct gate *g, struct gate_note *note)
{
	leave_open(g, note);
	HASH_DEL(g->notes, note);
	g->bytes -= bytes_of(note->nr);
	free(note);
}

void gate_done(struct gate *g)
{
	while (g->notes != NULL)
		forget(g, g->notes);
}

static struct gate_note *note_new(const struct txn *txn)
{
	const struct txn_update *u = txn->updates;
	struct gate_note *note = calloc(1, bytes_of(txn->nr_updates));
	size_t i;

	if (note == NULL)
		return NULL;
	note->key = (struct note_key){ txn->peer.uid, txn->req.gate_key };
	note->nr = txn->nr_updates;
	for (i = 0; i < note->nr; i++, u++)
		note->before[i] = (struct txn_before){ u->has_found, u->found };
	return note;
}

void gate_note(struct gate *g, const struct txn *txn, uint64_t repo_key,
    int64_t now_ns)
{
	struct gate_note *note = find(g, txn);
	unsigned prepared = 1;

	if (note != NULL) {
		prepared += note->prepared;
		forget(g, note);
	}
	note = note_new(txn);
	if (note == NULL)
		return;
	note->prepared = prepared;
	note->repo_key = repo_key;
	note->at_ns = now_ns;
	HASH_ADD(hh, g->notes, key, sizeof(note->key), note);
	if (note->hh.tbl == NULL) {
		free(note);
		return;
	}
	DL_APPEND(g->open, note);
	note->is_open = true;
	g->bytes += bytes_of(note->nr);
	while (g->bytes > NOTES_BYTES_MAX && g->notes != note)
		forget(g, g->notes);
}

bool gate_is_open(struct gate *g, uint64_t repo_key, int64_t at_ns,
    int64_t now_ns)
{
	const struct gate_note *note;

	while (g->open != NULL && now_ns - g->open->at_ns >= GATE_OPEN_NS)
		leave_open(g, g->open);
	DL_FOREACH(g->open, note)
		if (note->repo_key == repo_key && note->at_ns <= at_ns)
			return true;
	return false;
}

/* Has the process of NOTE prepared a different transaction since? All younger
 * notes are of this moment, so there are few. */
static bool is_within_other(const struct gate_note *note)
{
	const struct gate_note *n = note;
	const uint8_t *key = note->key.key.bytes;

	while ((n = n->hh.next) != NULL)
		if (n->prepared > 0 && n->key.uid == note->key.uid &&
		    memcmp(n->key.key.bytes, key, PROCESS_BYTES) == 0 &&
		    memcmp(n->key.key.bytes, key, WHOLE_BYTES) != 0)
			return true;
	return false;
}

/* Only these can be lines of an inner transaction. */
static bool are_deletions(const struct txn *txn)
{
	const struct refd_update *u = txn->req.updates;
	size_t i;

	for (i = 0; i < txn->req.nr_updates; i++, u++)
		if (u->target != NULL || !refd_oid_is_null(&u->new_oid))
			return false;
	return true;
}

bool gate_is_nested(struct gate *g, const struct txn *txn)
{
	struct gate_note *note = find(g, txn);

	if (note == NULL || note->prepared == 0)
		return false;
	/* An earlier attempt of the same process may not have had its end. */
	if (!are_deletions(txn))
		note->prepared = 1;
	if (--note->prepared > 0)
		return true;
	note->is_recording = !is_within_other(note);
	leave_if_over(g, note);
	return !note->is_recording;
}

void gate_aborted(struct gate *g, const struct txn *txn)
{
	struct gate_note *note = find(g, txn);

	if (note == NULL || note->prepared == 0)
		return;
	note->prepared--;
	leave_if_over(g, note);
}

void gate_fill(const struct gate *g, struct txn *txn)
{
	const struct gate_note *note = find(g, txn);
	const size_t bytes = txn->nr_updates * sizeof(*txn->before);

	if (note == NULL || note->nr != txn->nr_updates || note->nr == 0)
		return;
	txn->before = malloc(bytes);
	if (txn->before != NULL)
		memcpy(txn->before, note->before, bytes);
}

void gate_recorded(struct gate *g, const struct txn *txn)
{
	struct gate_note *note = find(g, txn);
	const struct txn_update *u = txn->updates;
	size_t i;

	if (note == NULL)
		return;
	note->is_recording = false;
	leave_if_over(g, note);
	for (i = 0; i < note->nr && note->nr == txn->nr_updates; i++, u++)
		if (u->status == REFD_OK)
			note->before[i] =
			    (struct txn_before){ u->has_found, u->found };
}
