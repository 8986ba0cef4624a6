/*
 * The lane threads: admissions (admit.c) and look-ups.
 *
 * The happy path of a transaction:
 *	sort	by one thread at a time: is its id in the journal? then that
 *		is the answer. It waits in its path's queue (admission.c)
 *	turn	of that queue, for what is in it by then: the repository is
 *		opened or found open, and nobody else is in it; objects are
 *		looked at, a few, so that one transaction with very many keeps
 *		no other repository waiting; then, once for all that are
 *		through, whether they are durable or must go through the
 *		barrier
 *	back	to the scheduler, together
 *
 * Whatever is looked at once for several was looked at after all of them had
 * come: a path, what is at it; an object; the directories that objects are
 * in, these last and so after any object of the turn was seen. What a client
 * knew to be there when he asked is therefore found.
 *
 * What fails costs its transaction (admit.c). One that is given up is not
 * begun, or not gone on with. A disk that hangs keeps one thread for each
 * repository that was at work there, two at most.
 */
#include "daemon/store/lane.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/base/busy_cause.h"
#include "daemon/store/deferred/deferred_fs.h"
#include "daemon/store/sync_failures/doubted.h"

#define REPO_IDLE_NS (60LL * 1000000000)
#define TRIM_S       10
/* Objects of one repository that are asked for before it is another's turn:
 * a millisecond or so. */
#define RUN_OBJECTS 128
/* Updates whose names cost as much as an object. */
#define NAMES_PER_OBJECT 16

/* ---- the turn's repository ---- */

/* Where the next checkpoint is far off, nobody else lets go of a file system
 * that failed, and nobody gets a repository there before. */
static bool open_repo(struct lane *l, const struct admission_queue *q)
{
	struct store *s = l->store;

	deferred_fs_let_go(s->deferred);
	l->repo = repos_get(&s->repos, q->git_dir, &l->status, &l->why);
	return l->repo == NULL || lane_claim(s, l->slot, l->repo);
}

struct repo *lane_repo(struct lane *l, enum refd_status *status, char **why)
{
	if (l->repo != NULL) {
		repo_hold(&l->store->repos, l->repo);
		return l->repo;
	}
	*status = l->status;
	*why = l->why;
	l->why = NULL;
	return NULL;
}

static void forget_repo(struct lane *l)
{
	if (l->repo != NULL)
		repo_put(&l->store->repos, l->repo);
	l->repo = NULL;
	free(l->why);
	l->why = NULL;
}

bool lane_claim(struct store *s, size_t slot, const struct repo *repo)
{
	bool is_ours;

	pthread_mutex_lock(&s->mutex);
	is_ours = admission_queues_claim(&s->admission, slot, repo->id);
	if (is_ours && s->admission.slots[slot].queue != NULL)
		s->admission.slots[slot].queue->place = repo->fs;
	/* The place that it was in has room for another. */
	if (admission_queues_has_work(&s->admission))
		pthread_cond_signal(&s->lane_cond);
	pthread_mutex_unlock(&s->mutex);
	return is_ours;
}

void lane_begin_at(struct store *s, size_t slot, const char *path)
{
	pthread_mutex_lock(&s->mutex);
	admission_queues_begin_other(&s->admission, slot, path,
	    SYS(s->sys, now_mono));
	pthread_mutex_unlock(&s->mutex);
}

void lane_let_go(struct store *s, size_t slot)
{
	pthread_mutex_lock(&s->mutex);
	admission_queues_end(&s->admission, slot);
	if (admission_queues_has_work(&s->admission))
		pthread_cond_signal(&s->lane_cond);
	pthread_mutex_unlock(&s->mutex);
}

/* ---- objects ---- */

static struct lane_object *object_of(struct lane *l, struct repo *repo,
    const struct refd_oid *oid)
{
	size_t i = (oid->bytes[0] | (size_t)oid->bytes[1] << 8) % LANE_OBJECTS;
	struct lane_object *object = &l->objects[i];

	if (object->run != l->run || !refd_oid_eq(&object->oid, oid))
		*object = (struct lane_object){ .run = l->run,
			.oid = *oid,
			.type = odb_type(repo->odb, oid) };
	return object;
}

/* True: all of TXN's were looked at, or need not be. */
static bool check_some(struct lane *l, struct txn *txn, size_t *nr)
{
	struct txn_update *u;

	while (txn->nr_checked < txn->nr_updates && *nr < RUN_OBJECTS &&
	    !atomic_load(&txn->is_given_up)) {
		u = &txn->updates[txn->nr_checked++];
		if (admit_wants_object(u))
			admit_object(u,
			    object_of(l, txn->repo, &u->ask->new_oid));
		*nr += odb_take_work(txn->repo->odb);
	}
	return txn->nr_checked == txn->nr_updates ||
	    atomic_load(&txn->is_given_up);
}

/* ---- durable? ---- */

static bool names_objects(const struct txn *txn)
{
	size_t i;

	for (i = 0; i < txn->nr_updates; i++)
		if (admit_wants_object(&txn->updates[i]))
			return true;
	return false;
}

/* All of TXNS are REPO's, and all their objects were looked at. */
static void pass_on(struct lane *l, struct repo *repo, struct txn_fifo *txns)
{
	enum { NOT_ASKED, CLEAN, NOT_CLEAN } state = NOT_ASKED;
	struct store *s = l->store;
	bool settled = barrier_is_settled(s, repo);
	bool waits = barriers_has(&s->barriers, repo) || !settled;
	enum refd_durability mode;
	struct txn *txn;

	while ((txn = txn_fifo_take(txns)) != NULL) {
		if (settled && !names_objects(txn)) {
			txn_fifo_put(&l->admitted, txn);
			continue;
		}
		/* Those that wait go first. Where the ref may be lost, or is
		 * not promised before the next syncfs, so may the objects; but
		 * no syncfs brings back what one has lost. */
		mode = txn_durability(txn, s->cfg.durability);
		if (mode == REFD_DURABILITY_PERIODIC && !waits)
			waits =
			    doubted_any_of(s->doubts, odb_stores(repo->odb));
		if (mode >= REFD_DURABILITY_JOURNAL && !waits) {
			if (state == NOT_ASKED)
				state = barrier_is_clean(s, repo) ? CLEAN :
								    NOT_CLEAN;
			waits = state == NOT_CLEAN;
		}
		if (!waits) {
			txn_fifo_put(&l->admitted, txn);
			continue;
		}
		txn->times.barrier_ns -= SYS(s->sys, now_mono);
		txn_fifo_put(&l->to_barrier, txn);
	}
}

/* ---- a turn ---- */

static void give_back(struct lane *l)
{
	struct store *s = l->store;
	struct txn *txn;

	for (txn = l->admitted.head; txn != NULL; txn = txn->next)
		admit_end(s, txn);
	/* First: the barrier gives back those that came after these. */
	completions_put_txns(&s->completions, &l->admitted);
	barriers_put(&s->barriers, &l->to_barrier);
}

static bool may_look(struct lane *l, struct txn *txn)
{
	return !names_objects(txn) ||
	    admit_objects_begin(l->store, txn, l->objects_err);
}

/* False: TXN goes on with the next turn. */
static bool admit(struct lane *l, struct txn *txn, struct txn_fifo *through,
    size_t *nr)
{
	bool is_begun = txn->repo != NULL;

	if (!is_begun)
		*nr += 1 + txn->nr_updates / NAMES_PER_OBJECT;
	if (atomic_load(&txn->is_given_up) ||
	    (!is_begun && !admit_begin(l, txn)) || !may_look(l, txn))
		txn_fifo_put(&l->admitted, txn);
	else if (!check_some(l, txn, nr))
		return false;
	else
		txn_fifo_put(through, txn);
	return true;
}

/* The repository at its path was replaced between two turns. */
static void begin_again(struct lane *l, struct txn *txn)
{
	repo_put(&l->store->repos, txn->repo);
	txn->repo = NULL;
}

static struct txn *take(struct lane *l, uint64_t before)
{
	struct txn *txn;

	pthread_mutex_lock(&l->store->mutex);
	txn = admission_queues_take(&l->store->admission, l->slot, before);
	pthread_mutex_unlock(&l->store->mutex);
	return txn;
}

/* Those that were there before the first BEFORE. At least one is gone on
 * with. */
static void admit_some(struct lane *l, uint64_t before)
{
	struct txn_fifo through = { .head = NULL };
	struct store *s = l->store;
	struct txn *txn;
	size_t nr = 0;

	l->run++;
	if (l->repo != NULL)
		l->objects_err = odb_refresh(l->repo->odb);
	while (nr < RUN_OBJECTS && (txn = take(l, before)) != NULL) {
		/* It began in one that was replaced since. */
		if (txn->repo != NULL && txn->repo != l->repo)
			begin_again(l, txn);
		if (!admit(l, txn, &through, &nr)) {
			pthread_mutex_lock(&s->mutex);
			admission_queues_put_back(&s->admission, l->slot, txn);
			pthread_mutex_unlock(&s->mutex);
			break;
		}
		/* The next one tries for itself. */
		if (l->repo == NULL)
			break;
	}
	if (through.head != NULL)
		pass_on(l, l->repo, &through);
}

static void turn(struct lane *l, const struct admission_queue *q,
    uint64_t before)
{
	if (open_repo(l, q))
		admit_some(l, before);
	/* In this order: the next turn may be another thread's. */
	give_back(l);
	forget_repo(l);
	lane_let_go(l->store, l->slot);
}

/* ---- what needs no repository ---- */

/* Equal for what may hang together. */
static const void *place_of(struct store *s, const char *git_dir)
{
	const void *place = repos_place(&s->repos, git_dir);
	size_t i, len, longest = 0;

	for (i = 0; place == NULL && i < s->cfg.nr_roots; i++) {
		len = strlen(s->roots[i]);
		if (len > longest && strncmp(git_dir, s->roots[i], len) == 0)
			longest = len;
	}
	for (i = 0; place == NULL && longest > 0 && i < s->cfg.nr_roots; i++)
		if (strlen(s->roots[i]) == longest &&
		    strncmp(git_dir, s->roots[i], longest) == 0)
			place = s->roots[i];
	return place;
}

/* False: it is done with. Once it is queued it may be anybody's. */
static bool put(struct store *s, struct txn *txn)
{
	const void *place = place_of(s, txn->req.git_dir);
	bool is_wanted;
	int r = 0;

	pthread_mutex_lock(&s->mutex);
	is_wanted = !atomic_load(&txn->is_given_up);
	if (is_wanted)
		r = admission_queues_put(&s->admission, txn, place);
	pthread_mutex_unlock(&s->mutex);
	if (is_wanted && r == 0)
		return true;
	txn_lay_out(txn);
	if (r < 0)
		txn->refused = busy_cause_count(BUSY_MEMORY);
	return false;
}

static void sort(struct store *s, struct txn_fifo *txns)
{
	struct txn_fifo done = { .head = NULL };
	struct txn *txn;

	while ((txn = txn_fifo_take(txns)) != NULL) {
		/* Of one that is admitted again the journal may hold parts. */
		if (!txn->is_looked_up && !txn->readmitted &&
		    admit_is_seen(s, txn)) {
			txn_fifo_put(&done, txn);
			continue;
		}
		txn->is_looked_up = true;
		if (!put(s, txn))
			txn_fifo_put(&done, txn);
	}
	completions_put_txns(&s->completions, &done);
}

/* All that came; false: nothing, or another thread is at it. Under MUTEX, as
 * all of these. */
static bool sort_some(struct store *s)
{
	struct txn_fifo txns = { .head = NULL };
	struct query_fifo queries = { .head = NULL };
	struct store_query *query;

	if (s->is_sorting ||
	    (s->to_admit.head == NULL && s->to_look_up.head == NULL))
		return false;
	txn_fifo_move(&txns, &s->to_admit);
	query_fifo_move(&queries, &s->to_look_up);
	s->is_sorting = true;
	s->sorting_ns = SYS(s->sys, now_mono);
	pthread_mutex_unlock(&s->mutex);
	/* Before the transactions that came with them: what of these can be
	 * read already need not be on disk yet. */
	while ((query = query_fifo_take(&queries)) != NULL)
		lookup_answer(s, query);
	sort(s, &txns);
	pthread_mutex_lock(&s->mutex);
	s->is_sorting = false;
	return true;
}

static bool discard_some(struct store *s)
{
	struct txn_fifo txns = { .head = NULL };
	struct txn *txn;

	if (s->to_discard.head == NULL)
		return false;
	txn_fifo_move(&txns, &s->to_discard);
	pthread_mutex_unlock(&s->mutex);
	while ((txn = txn_fifo_take(&txns)) != NULL)
		txn_free(txn);
	pthread_mutex_lock(&s->mutex);
	return true;
}

static bool retry_some(struct lane *l)
{
	struct store *s = l->store;

	if (!deferred_take_turn(s->deferred))
		return false;
	pthread_mutex_unlock(&s->mutex);
	lane_retry_some(s, l->slot);
	pthread_mutex_lock(&s->mutex);
	deferred_end_turn(s->deferred);
	return true;
}

/* ---- the threads ---- */

static bool turn_some(struct lane *l)
{
	struct store *s = l->store;
	uint64_t before = s->admission.nr_put;
	const struct admission_queue *q = admission_queues_begin(&s->admission,
	    l->slot, SYS(s->sys, now_mono));

	if (q == NULL)
		return false;
	if (admission_queues_has_work(&s->admission))
		pthread_cond_signal(&s->lane_cond);
	pthread_mutex_unlock(&s->mutex);
	turn(l, q, before);
	pthread_mutex_lock(&s->mutex);
	return true;
}

/* Under load no thread waits for long, so the time to trim is noted. */
static void wait_for_work(struct store *s)
{
	int64_t now_ns = SYS(s->sys, now_mono);
	struct timespec until;

	if (now_ns < s->trim_ns) {
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec += TRIM_S;
		pthread_cond_timedwait(&s->lane_cond, &s->mutex, &until);
		return;
	}
	s->trim_ns = now_ns + TRIM_S * INT64_C(1000000000);
	pthread_mutex_unlock(&s->mutex);
	repos_trim(&s->repos, REPO_IDLE_NS);
	pthread_mutex_lock(&s->mutex);
}

void *lane_main(void *arg)
{
	struct lane l = { .store = arg };
	struct store *s = arg;

	pthread_mutex_lock(&s->mutex);
	l.slot = s->nr_lanes++;
	for (;;) {
		if (sort_some(s) || retry_some(&l) || turn_some(&l) ||
		    discard_some(s))
			continue;
		if (s->stopping)
			break;
		wait_for_work(s);
	}
	pthread_mutex_unlock(&s->mutex);
	return NULL;
}

void lane_begin(struct store *s)
{
	struct refd_txid newest, secret;

	s->nr_lanes = 0;
	if (lookup_newest(s, &newest) == 0 && refd_txid_make(&secret) == 0)
		txid_filter_begin(&s->txid_filter, &newest, &secret);
}
