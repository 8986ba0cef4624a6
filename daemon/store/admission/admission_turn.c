/*
 * A turn: one worker admits waiting transactions of one path.
 *
 * The happy path:
 *	open	the repository at the path, or finds it open, and claims it: no
 *		other worker is in it
 *	admit	reads a bounded number of objects, so that a transaction of very
 *		many objects keeps no other repository waiting (admit.c)
 *	split	once for all transactions that are through: are their objects
 *		durable? If not, the transactions go to the barrier
 *	back	all other transactions go to the completions together
 *
 * A turn looks once, for several transactions, at the path, at an object, and
 * at the directories of the objects. Each look follows the arrival of all these
 * transactions. So whatever a client had written before its request is found.
 * The directories come last, after every object of the turn was read.
 *
 * Failures cost the transaction (admit.c). A transaction that is given up is
 * not begun, or not continued.
 */
#include "daemon/store/admission/admissions_internal.h"

#include <stdlib.h>

#include "daemon/base/probe.h"
#include "daemon/store/deferred/deferred_fs.h"
#include "daemon/store/repos/repo_moved.h"
#include "daemon/store/sync_failures/suspect_store.h"

/* The number of objects of one repository that are read per turn: about a
 * millisecond. */
#define RUN_OBJECTS 128
/* Updates whose names cost as much as an object. */
#define NAMES_PER_OBJECT 16

/* ---- the current work of a worker ---- */

void admission_begin_at(struct admissions *a, size_t slot, const char *path)
{
	mutex_lock(&a->mutex);
	admission_queues_begin_other(&a->queues, slot, path,
	    SYS(a->cfg->sys, now_mono));
	mutex_unlock(&a->mutex);
}

bool admission_claim(struct admissions *a, size_t slot, const struct repo *repo)
{
	bool is_ours;

	mutex_lock(&a->mutex);
	is_ours = admission_queues_claim(&a->queues, slot, repo->id);
	if (is_ours && a->queues.slots[slot].queue != NULL)
		a->queues.slots[slot].queue->place = repo->fs;
	/* The queue no longer counts for its root but for its file system, so a
	 * different queue below the root may be permitted now. */
	if (admission_queues_has_work(&a->queues))
		workers_wake(a->cfg->workers, &a->source);
	mutex_unlock(&a->mutex);
	return is_ours;
}

void admission_end(struct admissions *a, size_t slot)
{
	mutex_lock(&a->mutex);
	admission_queues_end(&a->queues, slot);
	if (admission_queues_has_work(&a->queues))
		workers_wake(a->cfg->workers, &a->source);
	mutex_unlock(&a->mutex);
}

/* ---- the turn's queue ---- */

static struct txn *take(struct admission_worker *w, uint64_t before)
{
	struct admissions *a = w->admissions;
	struct txn *txn;

	mutex_lock(&a->mutex);
	txn = admission_queues_take(&a->queues, w->slot, before);
	mutex_unlock(&a->mutex);
	return txn;
}

/* TXN continues with the next turn, unless its client has given up TXN
 * meanwhile. */
static void put_back(struct admission_worker *w, struct txn *txn)
{
	struct admissions *a = w->admissions;
	bool goes_on;

	mutex_lock(&a->mutex);
	goes_on = !atomic_load(&txn->is_given_up);
	if (goes_on)
		admission_queues_put_back(&a->queues, w->slot, txn);
	mutex_unlock(&a->mutex);
	if (goes_on)
		return;
	txn_lay_out(txn);
	txn_fifo_put(&w->admitted, txn);
}

/* ---- the turn's repository ---- */

/* The question of a turn whether its repository may be served. */
struct asking {
	struct admission_worker *w;
	uint64_t before; /* as admission_turn() */
	struct txn *refused;
};

/* Asks whether a repository may be served, for repo_first. Another thread may
 * give up a transaction in the queue, and free the transaction. So the first
 * transaction is taken from its queue for the question. */
static enum refd_status may_be_served(void *arg, const struct repo *repo,
    char **why)
{
	struct asking *asking = arg;
	struct txn *txn = take(asking->w, asking->before);
	enum refd_status status;

	/* All were given up, so nobody gets an answer. */
	if (txn == NULL)
		return REFD_NOREPO;
	status = admit_first(asking->w, txn, repo, why);
	if (status == REFD_OK)
		put_back(asking->w, txn);
	else
		asking->refused = txn;
	return status;
}

/* Opens the repository of Q. False: a different worker is in the repository.
 * *REFUSED: a transaction whose refusal keeps the repository closed, taken from
 * the queue; or NULL. A failed file system can be opened again only after it
 * was closed, and the checkpointer may come much later. So failed file systems
 * that nobody uses are closed first. */
static bool open_repo(struct admission_worker *w,
    const struct admission_queue *q, uint64_t before, struct txn **refused)
{
	struct asking asking = { .w = w, .before = before };
	struct repo_first first = { .may = may_be_served, .arg = &asking };

	deferred_fs_let_go(w->cfg->deferred);
	w->repo =
	    repos_get(w->cfg->repos, q->git_dir, &first, &w->status, &w->why);
	*refused = asking.refused;
	return w->repo == NULL ||
	    admission_claim(w->admissions, w->slot, w->repo);
}

static void forget_repo(struct admission_worker *w)
{
	if (w->repo != NULL)
		repo_put(w->cfg->repos, w->repo);
	w->repo = NULL;
	free(w->why);
	w->why = NULL;
}

/* ---- objects ---- */

static struct admission_object *object_of(struct admission_worker *w,
    struct repo *repo, const struct refd_oid *oid)
{
	size_t i =
	    (oid->bytes[0] | (size_t)oid->bytes[1] << 8) % ADMISSION_OBJECTS;
	struct admission_object *object = &w->objects[i];

	if (object->run != w->run || !refd_oid_eq(&object->oid, oid))
		*object = (struct admission_object){ .run = w->run,
			.oid = *oid,
			.type = odb_type(repo->odb, oid) };
	return object;
}

/* True: all objects of TXN were read, or need not be read. */
static bool check_some(struct admission_worker *w, struct txn *txn, size_t *nr)
{
	struct txn_update *u;

	while (txn->nr_checked < txn->nr_updates && *nr < RUN_OBJECTS &&
	    !atomic_load(&txn->is_given_up)) {
		u = &txn->updates[txn->nr_checked++];
		/* Git has checked the objects of a gate, so they are not
		 * read. */
		if (admit_wants_object(u) && txn->req.gate == REFD_GATE_NONE)
			admit_object(u, txn->repo->object_format,
			    object_of(w, txn->repo, &u->ask->new_oid));
		*nr += odb_take_work(txn->repo->odb);
	}
	return txn->nr_checked == txn->nr_updates ||
	    atomic_load(&txn->is_given_up);
}

/* ---- durable? ---- */

struct copied_objects {
	bool is_tried, is_possible;
	struct new_objects *objects; /* owned */
};

static bool names_objects(const struct txn *txn)
{
	size_t i;

	for (i = 0; i < txn->nr_updates; i++)
		if (admit_wants_object(&txn->updates[i]))
			return true;
	return false;
}

/* A client can send many updates of old objects, and each row has the bytes
 * again. So a repository may put only this many bytes of objects into the log
 * until the barrier or the checkpoint makes the objects durable. */
#define COPIES_BYTES (512 * 1024)
/* Each update of a transaction can have a record of its own, with the same
 * objects, so all its records have this many bytes of objects at most. */
#define COPIES_OF_TXN (1024 * 1024)

/* The modes batch and fsync promise files that need no recovery, and a session
 * would hold the objects for long, so both need the barrier. */
static bool may_copy(const struct txn *txn, enum refd_durability mode)
{
	return mode == REFD_DURABILITY_JOURNAL &&
	    txn->req.verb != REFD_VERB_SESSION;
}

/* The record of TXN will contain the new objects of REPO. *COPIED has them for
 * the whole turn. False: TXN waits at the barrier. */
static bool copy_objects(struct admission_worker *w, struct repo *repo,
    struct txn *txn, struct copied_objects *copied)
{
	size_t len;

	if (!copied->is_tried) {
		copied->is_tried = true;
		copied->is_possible =
		    barrier_copy(w->cfg->barriers, repo, &copied->objects);
	}
	if (!copied->is_possible || copied->objects == NULL)
		return copied->is_possible;
	len = copied->objects->len;
	if (txn->nr_updates > COPIES_OF_TXN / len ||
	    repo->copied_bytes + len > COPIES_BYTES)
		return false;
	repo->copied_bytes += len;
	txn->objects = new_objects_copy(copied->objects);
	return txn->objects != NULL;
}

/* TXNS are in REPO, and all their objects were read. If the objects are
 * durable, a transaction is admitted; otherwise it goes to the barrier. */
static void split_by_barrier(struct admission_worker *w, struct repo *repo,
    struct txn_fifo *txns)
{
	enum { NOT_ASKED, CLEAN, NOT_CLEAN } state = NOT_ASKED;
	struct copied_objects copied = { .objects = NULL };
	struct barriers *barriers = w->cfg->barriers;
	bool settled = barrier_is_settled(barriers, repo);
	bool waits = barriers_has(barriers, repo) || !settled;
	enum refd_durability mode;
	struct txn *txn;

	while ((txn = txn_fifo_take(txns)) != NULL) {
		/* Of an earlier admission. */
		txn_drop_objects(txn);
		if (settled && !names_objects(txn)) {
			txn_fifo_put(&w->admitted, txn);
			continue;
		}
		/* If earlier transactions of REPO wait at the barrier, TXN
		 * waits behind them. Mode none may lose the ref, and mode
		 * periodic promises the ref only from the next syncfs on. Their
		 * objects need no stronger promise, so both modes need no
		 * barrier. But the next syncfs does not bring back objects that
		 * an earlier syncfs lost. So in mode periodic such objects need
		 * the barrier. */
		mode = txn_durability(txn, w->cfg->config->durability);
		if (mode == REFD_DURABILITY_PERIODIC && !waits)
			waits =
			    suspect_store_any_of(w->cfg->repos->sync_failures,
				odb_stores(repo->odb));
		if (mode >= REFD_DURABILITY_JOURNAL && !waits) {
			if (state == NOT_ASKED)
				state = barrier_is_clean(barriers, repo,
					    txn_fanout(txn)) ?
				    CLEAN :
				    NOT_CLEAN;
			waits = state == NOT_CLEAN &&
			    !(may_copy(txn, mode) &&
				copy_objects(w, repo, txn, &copied));
		}
		if (!waits) {
			txn_fifo_put(&w->admitted, txn);
			continue;
		}
		PROBE_BARRIER_BEGIN(&txn->req.txid, txn->repo_id);
		txn->times.barrier_ns -= SYS(w->cfg->sys, now_mono);
		txn_fifo_put(&w->to_barrier, txn);
	}
	new_objects_free(copied.objects);
}

/* ---- a turn ---- */

static void give_back(struct admission_worker *w)
{
	struct txn *txn;

	for (txn = w->admitted.head; txn != NULL; txn = txn->next)
		repo_moved_refuse(w->cfg->repos, txn);
	/* The transactions for the barrier came later, and the barrier may give
	 * them back at once, so admitted transactions go first. */
	w->direct = completions_put_txns(w->cfg->completions, &w->admitted);
	barriers_put(w->cfg->barriers, &w->to_barrier);
}

/* False: TXN names objects that can't be read, and is refused. */
static bool can_read_objects(struct admission_worker *w, struct txn *txn)
{
	return !names_objects(txn) ||
	    admit_objects_begin(w->cfg->sys, txn, w->objects_err);
}

/* False: TXN continues with the next turn. */
static bool admit(struct admission_worker *w, struct txn *txn,
    struct txn_fifo *through, size_t *nr)
{
	bool is_begun = txn->repo != NULL;

	/* The updates are laid out first, because the scheduler also reads the
	 * updates of a given-up transaction. */
	txn_lay_out(txn);
	if (!is_begun) {
		PROBE_ADMISSION_BEGIN(&txn->req.txid, txn->nr_updates);
		*nr += 1 + txn->nr_updates / NAMES_PER_OBJECT;
	}
	if (atomic_load(&txn->is_given_up) ||
	    (!is_begun && !admit_begin(w, txn)) || !can_read_objects(w, txn))
		txn_fifo_put(&w->admitted, txn);
	else if (!check_some(w, txn, nr))
		return false;
	else {
		admit_copies_exist(txn);
		REPLICA(w->cfg->replica, collect, txn);
		*nr += odb_take_work(txn->repo->odb);
		txn_fifo_put(through, txn);
	}
	PROBE_ADMISSION_END(&txn->req.txid, txn->repo_id, txn->nr_updates,
	    txn->refused);
	return true;
}

/* The repository at the path was replaced between two turns, so TXN begins
 * again, with the repository that is there now. */
static void leave_repo(struct admission_worker *w, struct txn *txn)
{
	repo_put(w->cfg->repos, txn->repo);
	txn->repo = NULL;
}

/* Admits transactions with a number below BEFORE, and REFUSED before them, or
 * NULL. At least one transaction makes progress. */
static void admit_some(struct admission_worker *w, struct txn *refused,
    uint64_t before)
{
	struct txn_fifo through = { .head = NULL };
	struct txn *txn = refused != NULL ? refused : take(w, before);
	size_t nr = 0;

	w->run++;
	if (w->repo != NULL)
		w->objects_err = odb_refresh(w->repo->odb);
	for (; txn != NULL; txn = nr < RUN_OBJECTS ? take(w, before) : NULL) {
		/* Another repository is at the path now. */
		if (txn->repo != NULL && txn->repo != w->repo)
			leave_repo(w, txn);
		if (!admit(w, txn, &through, &nr)) {
			put_back(w, txn);
			break;
		}
		/* The next transaction has to open the repository again, so the
		 * turn ends. */
		if (w->repo == NULL)
			break;
	}
	if (through.head != NULL)
		split_by_barrier(w, w->repo, &through);
}

void admission_turn(struct admission_worker *w, const struct admission_queue *q,
    uint64_t before)
{
	struct txn *refused;

	if (open_repo(w, q, before, &refused))
		admit_some(w, refused, before);
	/* Another worker may have the next turn as soon as this turn ends, so
	 * the transactions go back before. */
	give_back(w);
	forget_repo(w);
	admission_end(w->admissions, w->slot);
}
