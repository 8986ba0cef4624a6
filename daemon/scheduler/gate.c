#include "daemon/scheduler/gate.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "daemon/base/hash.h"

/* Room for the refs of a few large transactions, or for many small ones. */
#define NOTES_BYTES_MAX ((size_t)16 << 20)
/* A process of git has one transaction at a time, in a few parts, and at most
 * one inner transaction. So more notes of a process are of no use. */
#define NOTES_OF_PROCESS 64

/* Parts of a key: the process of git, and the transaction. */
#define PROCESS_BYTES 8
#define WHOLE_BYTES   14

/* No padding: hashed as bytes. */
struct gate_list_key {
	uint64_t uid, id;
};

/* The notes of a user, of a process of git, or the open notes of a
 * repository. Exists while a note is in the list. */
struct gate_list {
	struct gate_list_key key;
	struct gate_note *first; /* the oldest */
	size_t nr, bytes;
	UT_hash_handle hh;
};

struct gate_note {
	struct refd_txid key;
	uint32_t uid;
	unsigned prepared; /* without an end */
	/* The id of the last request that looked at the values. A client sends
	 * the request again after a lost connection. Then git has begun no
	 * second transaction, so the request is not counted twice. */
	struct refd_txid looked;
	bool is_recording; /* COMMITTED came, and is not decided yet */
	int64_t at_ns;
	struct {
		struct gate_list *list; /* NULL: in none */
		struct gate_note *prev, *next;
	} in[GATE_LISTS];
	size_t nr;
	struct txn_before before[];
};

static size_t bytes_of(size_t nr)
{
	return sizeof(struct gate_note) +
	    GATE_LISTS * sizeof(struct gate_list) +
	    nr * sizeof(struct txn_before);
}

/* ---- lists ---- */

static struct gate_list *list_find(const struct gate *g, enum gate_of of,
    uint64_t uid, uint64_t id)
{
	const struct gate_list_key key = { uid, id };
	struct gate_list *list;

	HASH_FIND(hh, g->lists[of], &key, sizeof(key), list);
	return list;
}

static struct gate_list *list_get(struct gate *g, enum gate_of of, uint64_t uid,
    uint64_t id)
{
	struct gate_list *list = list_find(g, of, uid, id);

	if (list != NULL)
		return list;
	list = calloc(1, sizeof(*list));
	if (list == NULL)
		return NULL;
	list->key = (struct gate_list_key){ uid, id };
	HASH_ADD(hh, g->lists[of], key, sizeof(list->key), list);
	if (list->hh.tbl != NULL)
		return list;
	free(list);
	return NULL;
}

/* False: no memory. */
static bool join(struct gate *g, struct gate_note *note, enum gate_of of,
    uint64_t uid, uint64_t id)
{
	struct gate_list *list = list_get(g, of, uid, id);

	if (list == NULL)
		return false;
	note->in[of].list = list;
	DL_APPEND2(list->first, note, in[of].prev, in[of].next);
	list->nr++;
	list->bytes += bytes_of(note->nr);
	return true;
}

static void leave(struct gate *g, struct gate_note *note, enum gate_of of)
{
	struct gate_list *list = note->in[of].list;

	if (list == NULL)
		return;
	note->in[of].list = NULL;
	DL_DELETE2(list->first, note, in[of].prev, in[of].next);
	list->nr--;
	list->bytes -= bytes_of(note->nr);
	if (list->first != NULL)
		return;
	HASH_DEL(g->lists[of], list);
	free(list);
}

static struct gate_list *largest_user(struct gate *g)
{
	struct gate_list *user, *most = g->lists[GATE_OF_USER];

	for (user = most; user != NULL; user = user->hh.next) {
		g->steps++;
		if (user->bytes > most->bytes)
			most = user;
	}
	return most;
}

/* ---- notes ---- */

static uint64_t process_of(const struct refd_txid *key)
{
	uint64_t process;

	_Static_assert(sizeof(process) == PROCESS_BYTES, "the whole part");
	memcpy(&process, key->bytes, sizeof(process));
	return process;
}

/* NULL: none, or of a transaction with other updates. */
static struct gate_note *find(struct gate *g, const struct txn *txn)
{
	const struct refd_txid *key = &txn->req.gate_key;
	const struct gate_list *process =
	    list_find(g, GATE_OF_PROCESS, txn->peer.uid, process_of(key));
	struct gate_note *note = process != NULL ? process->first : NULL;

	for (; note != NULL; note = note->in[GATE_OF_PROCESS].next) {
		g->steps++;
		if (refd_txid_eq(&note->key, key))
			return note;
	}
	return NULL;
}

static void leave_if_over(struct gate *g, struct gate_note *note)
{
	if (note->prepared == 0 && !note->is_recording)
		leave(g, note, GATE_OPEN_IN_REPO);
}

static void forget(struct gate *g, struct gate_note *note)
{
	enum gate_of of;

	for (of = 0; of < GATE_LISTS; of++)
		leave(g, note, of);
	g->bytes -= bytes_of(note->nr);
	free(note);
}

void gate_done(struct gate *g)
{
	while (g->lists[GATE_OF_USER] != NULL)
		forget(g, g->lists[GATE_OF_USER]->first);
}

static struct gate_note *note_new(const struct txn *txn)
{
	const struct txn_update *u = txn->updates;
	struct gate_note *note = calloc(1,
	    sizeof(*note) + txn->nr_updates * sizeof(struct txn_before));
	size_t i;

	if (note == NULL)
		return NULL;
	note->key = txn->req.gate_key;
	note->uid = txn->peer.uid;
	note->nr = txn->nr_updates;
	for (i = 0; i < note->nr; i++, u++)
		note->before[i] = (struct txn_before){ u->has_found, u->found };
	return note;
}

void gate_note(struct gate *g, const struct txn *txn, uint64_t repo_key,
    int64_t now_ns)
{
	struct gate_note *note = find(g, txn);
	const struct gate_list *process;
	unsigned prepared = 1;

	if (note != NULL) {
		if (memcmp(&note->looked, &txn->req.txid,
			sizeof(note->looked)) == 0)
			prepared = 0;
		prepared += note->prepared;
		forget(g, note);
	}
	note = note_new(txn);
	if (note == NULL)
		return;
	note->looked = txn->req.txid;
	note->prepared = prepared;
	note->at_ns = now_ns;
	g->bytes += bytes_of(note->nr);
	if (!join(g, note, GATE_OF_USER, note->uid, 0) ||
	    !join(g, note, GATE_OF_PROCESS, note->uid,
		process_of(&note->key)) ||
	    !join(g, note, GATE_OPEN_IN_REPO, 0, repo_key)) {
		forget(g, note);
		return;
	}
	process = note->in[GATE_OF_PROCESS].list;
	if (process->nr > NOTES_OF_PROCESS)
		forget(g, process->first);
	while (g->bytes > NOTES_BYTES_MAX)
		forget(g, largest_user(g)->first);
}

bool gate_is_open(struct gate *g, uint64_t repo_key, int64_t at_ns,
    int64_t now_ns)
{
	const struct gate_list *repo;

	while ((repo = list_find(g, GATE_OPEN_IN_REPO, 0, repo_key)) != NULL &&
	    now_ns - repo->first->at_ns >= GATE_OPEN_NS) {
		g->steps++;
		leave(g, repo->first, GATE_OPEN_IN_REPO);
	}
	return repo != NULL && repo->first->at_ns <= at_ns;
}

/* Has the process of NOTE prepared a different transaction since? */
static bool is_within_other(struct gate *g, const struct gate_note *note)
{
	const struct gate_note *n = note;
	const uint8_t *key = note->key.bytes;

	while ((n = n->in[GATE_OF_PROCESS].next) != NULL) {
		g->steps++;
		if (n->prepared > 0 &&
		    memcmp(n->key.bytes, key, WHOLE_BYTES) != 0)
			return true;
	}
	return false;
}

/* An inner transaction only deletes, so only deletions are counted. */
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
	/* Only a note of deletions can count an inner transaction. So the note
	 * of TXN has one open transaction. A greater count is of an earlier
	 * attempt of the same process, whose end never came. */
	if (!are_deletions(txn))
		note->prepared = 1;
	if (--note->prepared > 0)
		return true;
	note->is_recording = !is_within_other(g, note);
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

void gate_fill(struct gate *g, struct txn *txn)
{
	const struct gate_note *note = find(g, txn);
	const size_t bytes = txn->nr_updates * sizeof(*txn->before);

	if (note == NULL || note->nr != txn->nr_updates || note->nr == 0)
		return;
	txn->before = malloc(bytes);
	if (txn->before != NULL)
		memcpy(txn->before, note->before, bytes);
}

/* NULL: there is no note. */
static struct gate_note *end_recording(struct gate *g, const struct txn *txn)
{
	struct gate_note *note = find(g, txn);

	if (note != NULL) {
		note->is_recording = false;
		leave_if_over(g, note);
	}
	return note;
}

void gate_refused(struct gate *g, const struct txn *txn)
{
	end_recording(g, txn);
}

void gate_recorded(struct gate *g, const struct txn *txn)
{
	struct gate_note *note = end_recording(g, txn);
	const struct txn_update *u = txn->updates;
	size_t i;

	if (note == NULL)
		return;
	for (i = 0; i < note->nr && note->nr == txn->nr_updates; i++, u++)
		if (u->status == REFD_OK)
			note->before[i] =
			    (struct txn_before){ u->has_found, u->found };
}
