/*
 * Happy path:
 *	admit		the store looks the id up, opens the repository, checks
 *	admitted	the entry joins the queue of its repository
 *	enqueue		its updates are queued at their names, about a hundred
 *			per call: the loop must not stand still for a large
 *			push. Entries of a repository arrive in their order;
 *			other repositories do not wait. The entry may go when
 *			all its updates have arrived.
 *
 * Failure modes:
 *	refused		every update gets the status; nothing is recorded
 *	its id is known	answered with the results of the first time
 *	single updates rejected	recorded with the other updates; the siblings
 *			in an atomic transaction are aborted
 *	the repository's quota is used up	refused, with a time to retry
 *	cancelled, stopping	decided with the status of the cancel or stop
 *	the deadline passes meanwhile	the store is asked to give the
 *			transaction back
 *	a session without updates	prepared at once
 *	no memory	busy
 *	a different repository at the path	admitted again, a few times
 *	waited for long, or through a pause	the store checks the objects
 *			again, because somebody may have removed some of them;
 *			meanwhile the entry keeps its place at all names
 */
#include "daemon/base/busy_cause.h"
#include "daemon/scheduler/state.h"

#define REOPENS_MAX 3
/* Updates of one entry per turn of its repository. */
#define ARRIVE_AT_ONCE 64
/* Updates of all entries per turn of the loop. */
#define ARRIVE_MAX 128

void on_admitted_give_up(struct scheduler *e, struct entry *ent,
    enum refd_status status, const char *text)
{
	entry_give_up(ent, status, text);
	scheduler_time(e, ent, false);
	store_give_up(e->store, ent->txn);
}

bool on_admitted_join(struct scheduler *e, struct entry *ent, uint64_t repo_key)
{
	ent->arrival = e->arrivals;
	e->arrivals += ent->txn->nr_updates;
	return fairness_join(&e->fairness, ent, repo_key) == 0;
}

/* Counts ENT in the quota of its repository, or refuses the transaction if the
 * quota is used up. An entry that is admitted again has passed the check of the
 * quota before. */
static void share_repo(struct scheduler *e, struct entry *ent)
{
	struct txn *txn = ent->txn;
	uint64_t key;

	if (txn->repo == NULL || txn->refused != REFD_OK || txn->replayed)
		return;
	key = store_repo_key(txn->repo);
	if (!txn->readmitted)
		ent->quota.retry_after_ms =
		    quota_put_off(&e->quotas, &e->cfg.quotas, QUOTA_REPO, key,
			txn, ent->quota.sender, scheduler_memory(e));
	if (ent->quota.retry_after_ms != 0) {
		txn->refused = busy_cause_count(BUSY_REPOSITORY);
		return;
	}
	ent->quota.of_repo =
	    quota_take(&e->quotas, QUOTA_REPO, key, txn, ent->quota.sender);
	if (ent->quota.of_repo == NULL)
		txn->refused = busy_cause_count(BUSY_MEMORY);
}

/* Ends an entry that need not wait. */
static void end_early(struct scheduler *e, struct entry *ent, int64_t now_ns)
{
	struct txn *txn = ent->txn;

	if (txn->refused != REFD_OK)
		decide_end(e, ent, txn->refused, NULL, now_ns);
	else if (txn->replayed)
		decide_end(e, ent, REFD_UNKNOWN,
		    "sent before; the journal has no outcome for it", now_ns);
	else if (ent->end_status != REFD_OK)
		decide_end(e, ent, ent->end_status, ent->end_text, now_ns);
	else
		decide_siblings(e, ent, now_ns);
}

/* An empty session locks nothing, so it is prepared at once. */
static bool is_empty_session(const struct entry *ent)
{
	return entry_is_session(ent) && ent->txn->nr_updates == 0 &&
	    ent->txn->refused == REFD_OK && ent->end_status == REFD_OK;
}

void on_admitted_directly(struct scheduler *e, struct entry *ent)
{
	struct txn *txn = ent->txn;

	e->nr_admitting--;
	scheduler_time(e, ent, false);
	/* If memory is out, ENT does not count in the quota: the batch is
	 * applied already, so ENT cannot be refused. */
	ent->quota.of_repo = quota_take(&e->quotas, QUOTA_REPO,
	    store_repo_key(txn->repo), txn, ent->quota.sender);
}

/* Reads the values of the refs in phase PREPARED of a gate. Git holds the locks
 * of the refs, so ENT waits for no other transaction. */
static void look(struct scheduler *e, struct entry *ent, int64_t now_ns)
{
	struct batch *b = batch_of_whole(ent);

	if (b == NULL) {
		decide_end(e, ent, BUSY(MEMORY), now_ns);
		return;
	}
	b->session = BATCH_LOOK;
	entry_move(ent, ENTRY_WAITING);
	entry_move(ent, ENTRY_IN_BATCH);
	e->nr_batches++;
	store_apply(e->store, b);
}

/* ENT waits for the names of its updates, so on_admitted_enqueue() queues them
 * there. */
static void begin_waiting(struct scheduler *e, struct entry *ent)
{
	ent->queue->writes_alone = store_writes_alone(ent->txn->repo);
	entry_move(ent, ENTRY_WAITING);
	scheduler_time(e, ent, true);
	ent->nr_arrived = 0;
}

/* Updates without their objects are decided. */
static void remove_decided(struct scheduler *e, struct entry *ent,
    int64_t now_ns)
{
	struct txn *txn = ent->txn;
	struct txn_update *u = txn->updates;

	for (; ent->nr_undecided + txn->nr_decided > txn->nr_updates; u++)
		if (u->status != REFD_PENDING && u->ref_queue != NULL) {
			ref_queue_remove(&e->ref_queues, u, now_ns);
			decide_count(u);
		}
}

/* ENT has its place in all queues. */
static void checked_again(struct scheduler *e, struct entry *ent,
    int64_t now_ns)
{
	remove_decided(e, ent, now_ns);
	end_early(e, ent, now_ns);
	if (ent->state != ENTRY_ADMITTING)
		return;
	if (ent->nr_undecided == 0) {
		decide_finish(e, ent);
		return;
	}
	entry_move(ent, ENTRY_WAITING);
	if (store_repo_key(ent->txn->repo) != ent->queue->key) {
		on_admitted_again(e, ent, now_ns);
		return;
	}
	scheduler_time(e, ent, true);
	/* ENT goes first, because behind others it could wait until this check
	 * counts no more. */
	ent->goes_first = true;
	fairness_refresh(ent);
}

void on_admitted(struct scheduler *e, struct txn *txn, int64_t now_ns)
{
	struct entry *ent = txn->scheduler;

	/* The member is no entry. */
	if (txn->req.verb == REFD_VERB_PACK) {
		ask_pack_admitted(e, txn);
		return;
	}
	if (txn->req.verb == REFD_VERB_LOOK) {
		look_admitted(txn);
		return;
	}
	e->nr_admitting--;
	scheduler_time(e, ent, false);
	if (ent->state == ENTRY_DIRECT)
		direct_refused(e, ent, now_ns);
	/* The first check counts from the arrival, because TXN may have waited
	 * for long since, at the barrier, or for other nodes. A later check
	 * counts from its end, because otherwise a slow disk could keep TXN for
	 * ever. */
	if (txn->readmitted)
		txn->times.checked_ns = now_ns;
	/* ENT still has its place at all names, because only its objects were
	 * checked again (batch_next()). */
	if (ent->queue != NULL) {
		checked_again(e, ent, now_ns);
		return;
	}
	/* If other machines share the rows of TXN, it may have to wait for
	 * these machines, and the store would refuse the direct way. */
	if (txn->repo != NULL && txn->refused == REFD_OK &&
	    txn->replica == NULL)
		direct_learn(&e->direct, txn);
	share_repo(e, ent);
	if (txn->times.admitted_ns == 0)
		txn->times.admitted_ns = now_ns;
	ent->nr_undecided = txn->nr_updates - txn->nr_decided;
	unrecorded_collect(ent);
	end_early(e, ent, now_ns);
	if (ent->state != ENTRY_ADMITTING)
		return;
	if (is_empty_session(ent))
		session_hold(e, ent, NULL, now_ns);
	else if (ent->nr_undecided == 0)
		decide_finish(e, ent);
	else if (txn->req.gate == REFD_GATE_PREPARED)
		look(e, ent, now_ns);
	else if (on_admitted_join(e, ent, store_repo_key(txn->repo)))
		begin_waiting(e, ent);
	else
		decide_end(e, ent, BUSY(MEMORY), now_ns);
}

void on_admitted_again(struct scheduler *e, struct entry *ent, int64_t now_ns)
{
	struct txn *txn = ent->txn;
	size_t i;

	for (i = 0; i < txn->nr_updates; i++)
		if (txn->updates[i].ref_queue != NULL)
			ref_queue_remove(&e->ref_queues, &txn->updates[i],
			    now_ns);
	fairness_leave(ent);
	scheduler_time(e, ent, false);
	quota_give(&e->quotas, ent->quota.of_repo, txn, ent->quota.sender);
	ent->quota.of_repo = NULL;
	store_release(e->store, txn->repo);
	txn->repo = NULL;
	txn->readmitted = true;
	if (++ent->reopens > REOPENS_MAX) {
		decide_end(e, ent, BUSY(REPLACED), now_ns);
		return;
	}
	entry_move(ent, ENTRY_ADMITTING);
	scheduler_admit(e, ent);
}

static void queue_update(struct scheduler *e, struct txn_update *u,
    int64_t now_ns)
{
	enum refd_status status;

	status =
	    ref_queue_add(&e->ref_queues, entry_of(u)->queue->key, u, now_ns);
	if (status == REFD_DUPLICATE) {
		txn_decide_detail(u, status, REFD_DETAIL_DUPLICATE,
		    u->ask->name, NULL, NULL);
		decide_count(u);
	} else if (status != REFD_OK) {
		decide(e, u, status,
		    status != REFD_BUSY ? NULL :
			ref_queue_is_full(&e->ref_queues) ?
					  busy_cause_text(BUSY_NAMES) :
					  busy_cause_text(BUSY_MEMORY),
		    now_ns);
	}
}

static size_t queue_some(struct scheduler *e, struct entry *ent, int64_t now_ns)
{
	struct txn *txn = ent->txn;
	size_t nr = 0;

	while (nr < ARRIVE_AT_ONCE && ent->nr_arrived < txn->nr_updates) {
		struct txn_update *u = &txn->updates[ent->nr_arrived++];

		nr++;
		if (u->status == REFD_PENDING)
			queue_update(e, u, now_ns);
	}
	if (ent->nr_arrived == txn->nr_updates)
		fairness_arrived(ent);
	return nr;
}

bool on_admitted_enqueue(struct scheduler *e, int64_t now_ns)
{
	struct entry *ent;
	size_t nr = 0;

	while (nr < ARRIVE_MAX &&
	    (ent = fairness_next_arriving(&e->fairness)) != NULL) {
		nr += queue_some(e, ent, now_ns);
		if (!decide_siblings(e, ent, now_ns) && ent->nr_undecided == 0)
			decide_finish(e, ent);
	}
	return e->fairness.arriving != NULL;
}
