/*
 * The lane thread: admissions (admit.c) and look-ups, in rounds.
 *
 * The happy path of a round:
 *	take	all that came since the last one
 *	begin	each transaction, up to its objects
 *	run	of each repository: objects are looked at, a few of each
 *		repository, so that one with very many keeps nobody waiting;
 *		then, once for all that are through, whether they are durable
 *		or must go through the barrier
 *	back	to the engine, together
 *
 * Whatever is looked at once for several was looked at after all of them had
 * come: a path, what is at it; an object; the directories that objects are
 * in, these last and so after any object of the run was seen. What a client
 * knew to be there when he asked is therefore found.
 *
 * What fails costs its transaction (admit.c); memory for what is looked at
 * once: it is looked at again.
 */
#include "daemon/store/lane.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/store/doubted.h"

#define REPO_IDLE_NS (60LL * 1000000000)
#define TRIM_S       10
/* Objects of one repository that are asked for before it is another's turn:
 * a millisecond or so. */
#define RUN_OBJECTS 128

/* ---- repositories of a round ---- */

static void look_remember(struct lane *l, const char *git_dir,
    struct repo *repo)
{
	struct lane_look *look = malloc(sizeof(*look));
	size_t before = HASH_COUNT(l->looks);

	if (look == NULL)
		return;
	look->git_dir = git_dir;
	look->repo = repo;
	HASH_ADD_KEYPTR(hh, l->looks, git_dir, strlen(git_dir), look);
	if (HASH_COUNT(l->looks) == before)
		free(look);
	else
		repo_hold(&l->store->repos, repo);
}

struct repo *lane_repo(struct lane *l, const char *git_dir,
    enum refd_status *status, char **why)
{
	struct lane_look *look;
	struct repo *repo;

	HASH_FIND_STR(l->looks, git_dir, look);
	if (look != NULL) {
		repo_hold(&l->store->repos, look->repo);
		return look->repo;
	}
	/* Where the next checkpoint is far off, nobody else lets go of a file
	 * system that failed, and nobody gets a repository there before. */
	failed_park(l->store);
	repo = repos_get(&l->store->repos, git_dir, status, why);
	if (repo != NULL)
		look_remember(l, git_dir, repo);
	return repo;
}

static void forget_looks(struct lane *l)
{
	struct lane_look *look, *next;

	HASH_ITER(hh, l->looks, look, next) {
		HASH_DEL(l->looks, look);
		repo_put(&l->store->repos, look->repo);
		free(look);
	}
}

/* ---- objects ---- */

static enum gitrepo_object object_of(struct lane *l, struct repo *repo,
    const struct refd_oid *oid, size_t *nr)
{
	size_t i = (oid->bytes[0] | (size_t)oid->bytes[1] << 8) % LANE_OBJECTS;

	if (l->objects[i].run != l->run ||
	    !refd_oid_eq(&l->objects[i].oid, oid)) {
		l->objects[i].object = gitrepo_object(repo->git, oid);
		l->objects[i].oid = *oid;
		l->objects[i].run = l->run;
		++*nr;
	}
	return l->objects[i].object;
}

/* True: all of TXN's were looked at. */
static bool check_some(struct lane *l, struct txn *txn, size_t *nr)
{
	struct repo *repo = txn->repo;
	struct txn_update *u;

	while (repo->nr_checked < txn->nr_updates && *nr < RUN_OBJECTS) {
		u = &txn->updates[repo->nr_checked++];
		if (admit_wants_object(u) &&
		    admit_object(u, object_of(l, repo, &u->ask->new_oid, nr)))
			++*nr;
	}
	return repo->nr_checked == txn->nr_updates;
}

static void check_later(struct lane *l, struct repo *repo)
{
	repo->next_to_check = NULL;
	*l->to_check_end = repo;
	l->to_check_end = &repo->next_to_check;
}

static void put_to_check(struct lane *l, struct txn *txn)
{
	struct repo *repo = txn->repo;

	txn->next = NULL;
	if (repo->to_check == NULL) {
		repo->to_check = txn;
		repo->nr_checked = 0;
		check_later(l, repo);
	} else {
		repo->last_to_check->next = txn;
	}
	repo->last_to_check = txn;
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

static bool somebody_waits(struct store *s, const struct repo *repo)
{
	bool waits;

	pthread_mutex_lock(&s->repos.mutex);
	waits = repo->waiting_barrier > 0;
	pthread_mutex_unlock(&s->repos.mutex);
	return waits;
}

/* All of TXNS are REPO's, and all their objects were looked at. */
static void pass_on(struct lane *l, struct repo *repo, struct txn_fifo *txns)
{
	enum { NOT_ASKED, CLEAN, NOT_CLEAN } state = NOT_ASKED;
	struct store *s = l->store;
	bool settled = barrier_is_settled(s, repo);
	bool waits = somebody_waits(s, repo) || !settled;
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
			waits = doubted_has(s, repo);
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
		pthread_mutex_lock(&s->repos.mutex);
		repo->waiting_barrier++;
		pthread_mutex_unlock(&s->repos.mutex);
		txn->times.barrier_ns -= SYS(s->sys, now_mono);
		txn_fifo_put(&l->to_barrier, txn);
	}
}

/* ---- a round ---- */

static void run(struct lane *l, struct repo *repo)
{
	struct txn_fifo through = { .head = NULL };
	struct txn *txn;
	size_t nr = 0;

	l->run++;
	admit_refresh(l->store, repo);
	while ((txn = repo->to_check) != NULL && check_some(l, txn, &nr)) {
		repo->to_check = txn->next;
		repo->nr_checked = 0;
		txn_fifo_put(&through, txn);
	}
	if (repo->to_check != NULL)
		check_later(l, repo);
	pass_on(l, repo, &through);
}

static void run_all(struct lane *l)
{
	struct repo *repo = l->to_check, *next;

	l->to_check = NULL;
	l->to_check_end = &l->to_check;
	for (; repo != NULL; repo = next) {
		next = repo->next_to_check;
		run(l, repo);
	}
}

static void give_back(struct lane *l)
{
	struct store *s = l->store;

	if (l->to_barrier.head != NULL) {
		pthread_mutex_lock(&s->mutex);
		txn_fifo_move(&s->to_barrier, &l->to_barrier);
		pthread_cond_signal(&s->barrier_cond);
		pthread_mutex_unlock(&s->mutex);
	}
	store_admitted(s, &l->admitted);
}

static void make_round(struct lane *l, struct txn_fifo *came)
{
	struct txn *txn;

	while ((txn = txn_fifo_take(came)) != NULL)
		if (admit_begin(l, txn))
			put_to_check(l, txn);
		else
			txn_fifo_put(&l->admitted, txn);
	/* The paths are the transactions'. */
	forget_looks(l);
	run_all(l);
	give_back(l);
}

/* ---- the thread ---- */

static void wait_for_work(struct store *s)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += TRIM_S;
	if (pthread_cond_timedwait(&s->lane_cond, &s->mutex, &until) == 0)
		return;
	pthread_mutex_unlock(&s->mutex);
	repos_trim(&s->repos, REPO_IDLE_NS);
	pthread_mutex_lock(&s->mutex);
}

/* What came, under MUTEX. False: the thread is to end. */
static bool take_work(struct lane *l, struct txn_fifo *txns,
    struct query_fifo *queries, bool *retries)
{
	struct store *s = l->store;

	for (;;) {
		txn_fifo_move(&l->discarded, &s->to_discard);
		txn_fifo_move(txns, &s->to_admit);
		query_fifo_move(queries, &s->to_look_up);
		*retries = s->retry_parked;
		s->retry_parked = false;
		if (txns->head != NULL || queries->head != NULL || *retries ||
		    l->to_check != NULL || l->discarded.head != NULL)
			return true;
		if (s->stopping)
			return false;
		wait_for_work(s);
	}
}

static void work(struct lane *l)
{
	struct txn_fifo txns = { .head = NULL };
	struct query_fifo queries = { .head = NULL };
	struct store *s = l->store;
	struct store_query *query;
	struct txn *txn;
	bool goes_on, retries;

	for (;;) {
		pthread_mutex_lock(&s->mutex);
		goes_on = take_work(l, &txns, &queries, &retries);
		pthread_mutex_unlock(&s->mutex);
		if (!goes_on)
			return;
		if (retries)
			parked_retry_some(s);
		/* Before the transactions that came with them: what of these
		 * can be read already need not be on disk yet. */
		while ((query = query_fifo_take(&queries)) != NULL)
			lookup_answer(s, query);
		make_round(l, &txns);
		while ((txn = txn_fifo_take(&l->discarded)) != NULL)
			txn_free(txn);
	}
}

void *lane_main(void *arg)
{
	struct lane l = { .store = arg };
	struct refd_txid newest, secret;

	l.to_check_end = &l.to_check;
	if (lookup_newest(l.store, &newest) == 0 &&
	    refd_txid_make(&secret) == 0)
		fresh_begin(&l.fresh, &newest, &secret);
	work(&l);
	fresh_done(&l.fresh);
	return NULL;
}
