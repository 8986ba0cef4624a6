/*
 * The happy path: a transaction comes from admission. Other nodes fetch its
 * objects, and the transaction goes on to the completions. Nothing is locked
 * meanwhile, so a slow fetch holds up no other repository.
 *
 * Transactions of a repository keep their order: each waits for those before
 * it.
 *
 * Failures: a node that cannot get the objects, a lost connection, no memory.
 * No row is written, so the transaction is refused with `busy`.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/busy_cause.h"
#include "daemon/group/group_internal.h"
#include "daemon/store/repos/repo.h"

/* ---- the frame ---- */

static bool brings_object(const struct txn_update *u)
{
	return u->status == REFD_PENDING &&
	    (u->ask->action == REFD_UPDATE || u->ask->action == REFD_CREATE) &&
	    !refd_oid_is_null(&u->ask->new_oid);
}

static size_t list_oids(const struct txn *txn, struct refd_oid *oids)
{
	size_t i, nr = 0;

	for (i = 0; i < txn->nr_updates; i++)
		if (brings_object(&txn->updates[i]))
			oids[nr++] = txn->updates[i].ask->new_oid;
	return nr;
}

/* Values that other nodes probably have. */
static size_t list_bases(const struct txn *txn, struct refd_oid *oids)
{
	const struct refd_update *ask;
	size_t i, nr = 0;

	for (i = 0; i < txn->nr_updates; i++) {
		ask = txn->updates[i].ask;
		if (ask->has_old && !refd_oid_is_null(&ask->old_oid) &&
		    !refd_oid_eq(&ask->old_oid, &ask->new_oid))
			oids[nr++] = ask->old_oid;
	}
	return nr;
}

/* Under MUTEX. */
static int send_hold(struct group *g, const struct txn *txn, uint64_t number)
{
	struct group_frame f = { .type = GROUP_HOLD, .hold.number = number };
	struct refd_oid *oids = calloc(txn->nr_updates + 1, sizeof(*oids));
	struct refd_oid *bases = calloc(txn->nr_updates + 1, sizeof(*bases));
	int r = -ENOMEM;

	memcpy(f.hold.repo, txn->repo->uuid, sizeof(f.hold.repo));
	f.hold.is_new = txn->repo->is_new;
	f.hold.object_format = txn->repo->object_format;
	if (oids != NULL && bases != NULL) {
		f.hold.oids = oids;
		f.hold.nr_oids = list_oids(txn, oids);
		f.hold.bases = bases;
		f.hold.nr_bases = list_bases(txn, bases);
		r = group_path_below(g, txn->repo->path, &f.hold.path);
	}
	if (r == 0)
		r = group_send(g, &f);
	free(oids);
	free(bases);
	return r;
}

void group_fetch(struct group *g, const uint8_t repo[GROUP_UUID_BYTES],
    const struct group_bytes *path, enum refd_object_format format,
    const struct refd_oid *oids, size_t nr)
{
	struct group_frame f = { .type = GROUP_HOLD,
		.hold = { .path = *path,
		    .is_fetch = true,
		    .object_format = format,
		    .oids = oids,
		    .nr_oids = nr } };

	memcpy(f.hold.repo, repo, sizeof(f.hold.repo));
	mutex_lock(&g->mutex);
	f.hold.number = ++g->next_number;
	group_send(g, &f);
	mutex_unlock(&g->mutex);
}

void group_fetch_here(struct group *g, const struct repo *repo,
    const struct refd_oid *oid)
{
	struct group_bytes path;

	if (group_path_below(g, repo->path, &path) == 0)
		group_fetch(g, repo->uuid, &path, repo->object_format, oid, 1);
}

/* ---- the list ---- */

static bool is_first_of_its_repo(const struct group *g,
    const struct group_hold *hold)
{
	const struct group_hold *h;

	TAILQ_FOREACH(h, &g->holds, link) {
		if (h == hold)
			return true;
		if (h->txn->repo == hold->txn->repo)
			return false;
	}
	return true;
}

static void put_back(struct group *g, struct group_hold *hold)
{
	struct txn *txn = hold->txn;

	TAILQ_REMOVE(&g->holds, hold, link);
	free(hold);
	completions_put_held(g->base.host->completions, txn);
}

static void put_back_ready(struct group *g)
{
	struct group_hold *h, *next;

	for (h = TAILQ_FIRST(&g->holds); h != NULL; h = next) {
		next = TAILQ_NEXT(h, link);
		if (h->is_done && is_first_of_its_repo(g, h))
			put_back(g, h);
	}
}

static void refuse(struct txn *txn, const char *why)
{
	txn->refused = busy_cause_count(BUSY_GROUP);
	free(txn->why);
	txn->why = strdup(why);
}

static bool goes_on(const struct txn *txn)
{
	return txn->repo != NULL && txn->refused == REFD_OK && !txn->replayed &&
	    txn->req.verb != REFD_VERB_PACK;
}

static bool is_repo_waiting(const struct group *g, const struct repo *repo)
{
	const struct group_hold *h;

	TAILQ_FOREACH(h, &g->holds, link)
		if (h->txn->repo == repo)
			return true;
	return false;
}

/* True: TXN is held. False: TXN need not wait, or is refused. A transaction
 * without new objects is held, too, because every transaction may write a row,
 * and followers need the repository of a row. Under MUTEX. */
static bool take(struct group *g, struct txn *txn)
{
	struct group_hold *hold;
	const bool is_in_row =
	    txn->replica != NULL && group_txn_of(txn)->is_in_row;

	/* group_give_up() may have come before, and then has found no TXN in
	 * the list. */
	if (atomic_load(&txn->is_given_up) ||
	    (is_in_row && !is_repo_waiting(g, txn->repo)))
		return false;
	hold = calloc(1, sizeof(*hold));
	if (hold == NULL) {
		refuse(txn, busy_cause_text(BUSY_MEMORY));
		return false;
	}
	hold->txn = txn;
	hold->is_done = is_in_row;
	hold->number = ++g->next_number;
	if (!hold->is_done && send_hold(g, txn, hold->number) < 0) {
		free(hold);
		refuse(txn,
		    "refd-group can't be asked to bring the objects "
		    "to other nodes");
		return false;
	}
	TAILQ_INSERT_TAIL(&g->holds, hold, link);
	return true;
}

bool group_hold(struct group *g, struct txn *txn)
{
	bool is_taken;

	if (!goes_on(txn))
		return false;
	mutex_lock(&g->mutex);
	is_taken = take(g, txn);
	mutex_unlock(&g->mutex);
	return is_taken;
}

void group_give_up(struct replica *r, struct txn *txn)
{
	struct group *g = group_of(r);
	struct group_hold *h;

	mutex_lock(&g->mutex);
	TAILQ_FOREACH(h, &g->holds, link)
		if (h->txn == txn)
			break;
	if (h != NULL) {
		put_back(g, h);
		put_back_ready(g);
	}
	mutex_unlock(&g->mutex);
}

void group_held(struct group *g, uint64_t number, const char *why)
{
	struct group_hold *h;

	TAILQ_FOREACH(h, &g->holds, link)
		if (h->number == number)
			break;
	/* The transaction may have been given up. */
	if (h == NULL)
		return;
	h->is_done = true;
	if (why != NULL)
		refuse(h->txn, why);
	put_back_ready(g);
}

void group_refuse_holds(struct group *g, const char *why)
{
	struct group_hold *h;

	while ((h = TAILQ_FIRST(&g->holds)) != NULL) {
		refuse(h->txn, why);
		put_back(g, h);
	}
}
