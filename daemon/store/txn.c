/*
 * Happy path:
 *	new	takes over the request; makes room for a status per update
 *	lay out	makes all updates pending
 *	decide	sets the status of an update, once
 *	free	after the answer was given and the outcome recorded
 *
 * Failure modes:
 *	out of memory at new	NULL, and the request is unchanged
 *	... for a text		the status has no text: a failure can always be
 *				reported
 *
 * A worker lays the updates out, and not txn_new(), because very many updates
 * would take too long in the loop.
 */
#include "daemon/store/txn.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/busy_cause.h"
#include "daemon/store/objects/new_objects.h"
#include "proto/lib/pages.h"

static size_t updates_bytes(size_t nr_updates)
{
	/* Never 0. */
	return (nr_updates + 1) * sizeof(struct txn_update);
}

struct txn *txn_new(struct refd_request *req)
{
	struct txn *txn;

	txn = calloc(1, sizeof(*txn));
	if (txn == NULL)
		return NULL;
	txn->updates = pages_grow(NULL, 0, updates_bytes(req->nr_updates));
	if (txn->updates == NULL) {
		free(txn);
		return NULL;
	}
	txn->req = *req;
	memset(req, 0, sizeof(*req));
	txn->nr_updates = txn->req.nr_updates;
	return txn;
}

void txn_lay_out(struct txn *txn)
{
	size_t i;

	for (i = 0; i < txn->nr_updates && !txn->is_laid_out; i++)
		txn->updates[i] =
		    (struct txn_update){ .ask = &txn->req.updates[i],
			    .txn = txn,
			    .status = REFD_PENDING };
	txn->is_laid_out = true;
}

void txn_free(struct txn *txn)
{
	size_t i;

	if (txn == NULL)
		return;
	assert(txn->repo == NULL);
	assert(txn->prepared == NULL);
	for (i = 0; i < txn->nr_updates && txn->is_laid_out; i++) {
		free(txn->updates[i].text);
		free(txn->updates[i].locked_path);
		free(txn->updates[i].peeled);
		free(txn->updates[i].final_name);
	}
	pages_free(txn->updates, updates_bytes(txn->nr_updates));
	new_objects_free(txn->objects);
	if (txn->replica != NULL)
		txn->replica->free(txn->replica);
	free(txn->before);
	free(txn->peer.gids);
	free(txn->why);
	refd_request_done(&txn->req);
	free(txn);
}

const char *txn_update_place(const struct txn_update *u)
{
	return u->txn->is_own && u->final_name != NULL ? u->final_name :
							 u->ask->name;
}

static void set_status(struct txn_update *u, enum refd_status status)
{
	assert(u->status == REFD_PENDING && status != REFD_PENDING);
	u->status = status;
	u->txn->nr_decided++;
	u->txn->nr_of[status]++;
	u->again = TXN_AGAIN_NO;
}

void txn_acknowledge(struct txn_update *u)
{
	set_status(u, REFD_OK);
	u->text = NULL;
}

void txn_decide(struct txn_update *u, enum refd_status status, const char *text)
{
	assert(status != REFD_OK);
	set_status(u, status);
	u->text = text != NULL ? strdup(text) : NULL;
}

void txn_decidef(struct txn_update *u, enum refd_status status, const char *fmt,
    ...)
{
	char *text;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	txn_decide(u, status, NULL);
	u->text = text;
}

void txn_decide_detail(struct txn_update *u, enum refd_status status,
    enum refd_detail_kind kind, const char *a, const char *b, const char *c)
{
	const char *const args[REFD_DETAIL_ARGS] = { a, b, c };

	txn_decide(u, status, NULL);
	u->text = refd_detail_make(kind, args);
}

enum refd_status txn_status_of(int err)
{
	switch (err) {
	case -ENOSPC:
	case -EDQUOT:
		return REFD_NOSPACE;
	case -EACCES:
	case -EPERM:
		return REFD_DENIED;
	case -ELOOP:
		/* A link is on the way, which git may follow. */
		return REFD_UNSUPPORTED;
	case -ENOMEM:
		return busy_cause_count(BUSY_MEMORY);
	case -EMFILE:
	case -ENFILE:
		return busy_cause_count(BUSY_FILES);
	}
	return txn_io(err);
}

static _Atomic uint64_t disk_errors;

/* Counts only the errors of disks. ENXIO and similar errors do not count,
 * because a socket in the place of a file gives such an error, too. */
enum refd_status txn_io(int err)
{
	if (err == -EIO || err == -EROFS || err == -EUCLEAN)
		atomic_fetch_add_explicit(&disk_errors, 1,
		    memory_order_relaxed);
	return REFD_IO;
}

uint64_t txn_disk_errors(void)
{
	return atomic_load_explicit(&disk_errors, memory_order_relaxed);
}

enum refd_durability txn_durability(const struct txn *txn,
    enum refd_durability least)
{
	if (txn->least != REFD_DURABILITY_DEFAULT)
		least = txn->least;
	return txn->req.durability > least ? txn->req.durability : least;
}

const uint8_t *txn_objects(const struct txn *txn, size_t *len)
{
	if (txn->objects == NULL)
		return NULL;
	*len = txn->objects->len;
	return txn->objects->bytes;
}

void txn_drop_objects(struct txn *txn)
{
	new_objects_free(txn->objects);
	txn->objects = NULL;
}

/* After its own check of the objects, git may wait this long for
 * packed-refs.lock. So refd leaves no larger gap between check and update. */
#define FRESH_NS (1000 * 1000000LL)
/* The checks of a large transaction could take more time than its batches. */
#define FRESH_NS_PER_REF (100 * 1000LL)

bool txn_is_fresh(const struct txn *txn, int64_t now_ns)
{
	return now_ns - txn->times.checked_ns <=
	    FRESH_NS + (int64_t)txn->nr_updates * FRESH_NS_PER_REF;
}

uint8_t txn_fanout(const struct txn *txn)
{
	size_t nr = txn->nr_updates;

	return nr > 0 ? txn->updates[nr - 1].ask->new_oid.bytes[0] : 0;
}

void txn_count(struct txn *txn)
{
	enum refd_status status;
	size_t i;

	memset(txn->nr_of, 0, sizeof(txn->nr_of));
	txn->nr_decided = 0;
	for (i = 0; i < txn->nr_updates; i++) {
		status = txn->updates[i].status;
		if (status == REFD_PENDING)
			continue;
		txn->nr_decided++;
		if ((unsigned)status < REFD_STATUSES)
			txn->nr_of[status]++;
	}
}

enum refd_outcome txn_outcome(const struct txn *txn)
{
	return refd_outcome_of(txn->nr_updates, txn->nr_of[REFD_OK],
	    txn->nr_of[REFD_UNKNOWN]);
}

static void slice_lay_out(struct txn_slice *slice)
{
	struct txn_update *u = slice->txn->updates;
	size_t nr = 0;

	for (; nr < slice->nr_whole; u++) {
		if (u->status != REFD_PENDING)
			continue;
		txn_update_try(u);
		slice->updates[nr++] = u;
	}
	slice->nr_whole = 0;
}

void batch_lay_out(struct batch *b)
{
	size_t i;

	for (i = 0; i < b->nr_slices; i++)
		slice_lay_out(&b->slices[i]);
}

void txn_update_try(struct txn_update *u)
{
	u->again = TXN_AGAIN_NO;
	free(u->locked_path);
	u->locked_path = NULL;
	u->in_batch = true;
}

size_t batch_nr_updates(const struct batch *b)
{
	size_t i, nr = 0;

	for (i = 0; i < b->nr_slices; i++)
		nr += b->slices[i].nr;
	return nr;
}

void batch_free(struct batch *b)
{
	size_t i;

	if (b == NULL)
		return;
	for (i = 0; i < b->nr_slices; i++)
		free(b->slices[i].updates);
	free(b->slices);
	free(b);
}

bool txn_update_deletes(const struct txn_update *u)
{
	const struct refd_update *ask = u->ask;

	if (u->txn->req.gate != REFD_GATE_NONE)
		return false;
	return ask->action == REFD_DELETE ||
	    ask->action == REFD_SYMREF_DELETE ||
	    (ask->action == REFD_UPDATE && refd_oid_is_null(&ask->new_oid));
}
