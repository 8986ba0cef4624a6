/*
 * A double of the store, which is linked in its place: tests of the scheduler
 * alone need no disk. Holds transactions, batches and look-ups until the test
 * returns them to the scheduler.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "tests/lib/scheduler_rig_internal.h"

/* Opaque to the scheduler. In the rig, each reference is a separate object. */
struct repo {
	uint64_t key;
	struct rig_ask *ask;
};

bool rig_takes, rig_keeps_checks;
bool rig_may_commit;
size_t rig_most_taken;
unsigned rig_nr_asked;
struct batch *rig_batches;
struct txn *rig_admissions;
struct store_question *rig_lookups;
void (*rig_on_question)(struct store_question *q);
size_t rig_nr_stops;
uint64_t rig_nr_batches, rig_nr_released;
size_t rig_nr_repos;

static struct txn *admitted;
static struct batch *applied;
static struct store_question *answered;

/* ---- calls of the scheduler ---- */

/* Completes B, as a worker of the store does. */
static void lay_out(struct batch *b)
{
	size_t i, nr = 0;

	for (i = 0; i < b->nr_slices; i++)
		nr += b->slices[i].nr - b->slices[i].nr_whole;
	if (nr > rig_most_taken && !rig_holds_no_names(b))
		rig_most_taken = nr;
	batch_lay_out(b);
}

void store_admit(struct store *store, struct txn *txn)
{
	(void)store;
	txn_lay_out(txn);
	if (txn->direct != NULL) {
		lay_out(txn->direct);
		rig_check_room(txn->direct);
	}
	LL_APPEND(rig_admissions, txn);
	if (rig_is_checked_again(txn) && !rig_keeps_checks)
		rig_admit(txn);
}

bool rig_has_admitted(void)
{
	return admitted != NULL;
}

void store_give_up(struct store *store, struct txn *txn)
{
	(void)store;
	atomic_store(&txn->is_given_up, true);
}

void store_discard(struct store *store, struct txn *txn)
{
	(void)store;
	txn_free(txn);
}

static void take_batch(struct batch *b)
{
	lay_out(b);
	rig_check_batch(b);
	LL_APPEND(rig_batches, b);
	rig_nr_batches++;
}

void store_apply(struct store *store, struct batch *b)
{
	(void)store;
	rig_check_room(b);
	take_batch(b);
}

bool store_may_commit(struct store *store, const struct txn *txn)
{
	(void)store;
	return txn->replica == NULL || rig_may_commit;
}

bool store_takes(struct store *store)
{
	(void)store;
	rig_nr_asked++;
	return rig_takes;
}

void store_ask(struct store *store, struct store_question *q)
{
	(void)store;
	if (q->kind == STORE_ASK_ID)
		LL_APPEND(rig_lookups, q);
	else if (rig_on_question)
		rig_on_question(q);
	else
		ck_abort_msg("a question that no test expects");
}

void store_tell_service(struct store *store, enum store_service service)
{
	(void)store;
	rig_nr_stops += service == STORE_STOPS;
}

bool store_reap(struct store *store, struct store_done *done)
{
	(void)store;
	memset(done, 0, sizeof(*done));
	if ((done->applied = applied) != NULL)
		LL_DELETE(applied, done->applied);
	else if ((done->admitted = admitted) != NULL)
		LL_DELETE(admitted, done->admitted);
	else if ((done->answered = answered) != NULL)
		LL_DELETE(answered, done->answered);
	else
		return false;
	return true;
}

void store_release(struct store *store, struct repo *repo)
{
	(void)store;
	MUST(repo->ask->repo == repo);
	repo->ask->repo = NULL;
	free(repo);
	rig_nr_repos--;
	rig_nr_released++;
}

uint64_t store_repo_key(const struct repo *repo)
{
	return repo->key;
}

bool store_writes_alone(const struct repo *repo)
{
	return repo->key == RIG_ALONE;
}

const char *store_repo_path(const struct repo *repo)
{
	static char path[32];

	snprintf(path, sizeof(path), "/srv/%u.git", (unsigned)repo->key);
	return path;
}

const uint8_t *store_journal_id(const struct store *store)
{
	static const uint8_t id[REFD_JOURNAL_ID_BYTES];

	(void)store;
	return id;
}

void store_token_log(struct store *store, uint8_t id[REFD_JOURNAL_ID_BYTES])
{
	(void)store;
	memset(id, 0, REFD_JOURNAL_ID_BYTES);
}

size_t store_max_batches(const struct store *store)
{
	(void)store;
	return rig_config.committers;
}

void rig_store_setup(void)
{
	rig_takes = true;
	rig_may_commit = true;
	rig_keeps_checks = false;
	rig_nr_asked = 0;
	rig_nr_stops = 0;
	rig_nr_batches = rig_nr_released = rig_nr_repos = 0;
}

/* ---- actions of a test ---- */

void rig_admit(struct txn *txn)
{
	LL_DELETE(rig_admissions, txn);
	LL_APPEND(admitted, txn);
	if (!rig_is_checked_again(txn))
		txn->peer.pid = ++rig_arrivals;
}

static void open_repo(struct txn *txn)
{
	struct rig_ask *ask = &rig_asks[txn->req.request_id];

	txn->repo = calloc(1, sizeof(*txn->repo));
	txn->repo->key = rig_repo_of(txn);
	txn->limits = rig_config.of_repo;
	txn->repo->ask = ask;
	rig_nr_repos++;
	ask->repo = txn->repo;
	ask->txn = txn;
}

void rig_admit_one(struct txn *txn)
{
	if (txn->repo == NULL)
		open_repo(txn);
	rig_admit(txn);
}

void rig_replace_repo(struct txn *txn, uint64_t key)
{
	store_release(NULL, txn->repo);
	open_repo(txn);
	txn->repo->key = key;
}

bool rig_admit_directly(struct txn *txn)
{
	if (txn->direct == NULL || txn->nr_decided > 0 || txn->replayed ||
	    txn->is_given_up)
		return false;
	open_repo(txn);
	MUST(txn->direct_repo == txn->repo->key);
	LL_DELETE(rig_admissions, txn);
	take_batch(txn->direct);
	return true;
}

void rig_admit_all(void)
{
	struct txn *txn;

	while ((txn = rig_admissions) != NULL)
		rig_admit_one(txn);
	rig_run();
}

void rig_refuse(struct txn *txn, enum refd_status status, const char *why)
{
	txn->refused = status;
	txn->why = why != NULL ? strdup(why) : NULL;
	/* The repository may have been opened before the refusal. */
	if (status == REFD_NOREPO)
		rig_admit(txn);
	else
		rig_admit_one(txn);
	rig_run();
}

/* Prepares all updates, or none if any must be tried again. */
static void prepare(struct txn_slice *slice)
{
	size_t i, nr = 0, nr_again = 0;

	for (i = 0; i < slice->nr; i++) {
		nr += slice->updates[i]->status == REFD_PENDING;
		nr_again += slice->updates[i]->again != TXN_AGAIN_NO;
	}
	for (i = 0; i < slice->nr && nr_again > 0; i++)
		if (slice->updates[i]->status == REFD_PENDING &&
		    slice->updates[i]->again == TXN_AGAIN_NO)
			slice->updates[i]->again = TXN_AGAIN_LATER;
	if (nr > 0 && nr_again == 0)
		slice->txn->prepared = slice;
}

/* Every ref has the value of NUL bytes but the first. */
static void look(struct txn_update *u)
{
	u->has_found = true;
	u->found.bytes[0] = 'L';
	txn_decide(u, REFD_ABORTED, NULL);
	u->txn->is_looked = true;
}

void rig_apply(struct batch *b)
{
	size_t i, k;

	if (b->session == BATCH_PREPARE)
		prepare(&b->slices[0]);
	else if (b->session != BATCH_WHOLE)
		b->slices[0].txn->prepared = NULL;
	if (b->session == BATCH_PREPARE || b->session == BATCH_ABORT)
		return;
	for (i = 0; i < b->nr_slices; i++) {
		for (k = 0; k < b->slices[i].nr; k++) {
			struct txn_update *u = b->slices[i].updates[k];

			if (b->session == BATCH_LOOK)
				look(u);
			else if (u->status == REFD_PENDING &&
			    u->again == TXN_AGAIN_NO)
				txn_acknowledge(u);
			u->recorded = u->status != REFD_PENDING;
		}
	}
}

void rig_back(struct batch *b)
{
	rig_check_back(b);
	LL_DELETE(rig_batches, b);
	b->next = NULL;
	LL_APPEND(applied, b);
}

void rig_back_all(void)
{
	struct batch *b;

	while ((b = rig_batches) != NULL) {
		rig_apply(b);
		rig_back(b);
	}
	rig_run();
}

void rig_expect_batch(enum batch_session session, size_t nr)
{
	ck_assert_ptr_nonnull(rig_batches);
	ck_assert_int_eq(rig_batches->session, session);
	ck_assert_uint_eq(rig_batches->nr_slices, 1);
	ck_assert_uint_eq(rig_count(rig_batches), nr);
	rig_apply(rig_batches);
	rig_back(rig_batches);
	rig_run();
}

void rig_give_back(const char *name, enum txn_again again)
{
	rig_find(rig_batches, name)->again = again;
}

struct txn_update *rig_find(struct batch *b, const char *name)
{
	size_t i, k;

	for (i = 0; b != NULL && i < b->nr_slices; i++)
		for (k = 0; k < b->slices[i].nr; k++)
			if (strcmp(b->slices[i].updates[k]->ask->name, name) ==
			    0)
				return b->slices[i].updates[k];
	return NULL;
}

size_t rig_count(const struct batch *b)
{
	size_t i, nr = 0;

	for (i = 0; b != NULL && i < b->nr_slices; i++)
		nr += b->slices[i].nr;
	return nr;
}

void rig_question_back(struct store_question *q)
{
	LL_APPEND(answered, q);
}

void rig_looked_up(struct store_question *q, bool found)
{
	LL_DELETE(rig_lookups, q);
	if (q->answer.status == REFD_OK)
		q->answer.kind =
		    found ? REFD_ANSWER_RESULTS : REFD_ANSWER_NEVER_SEEN;
	rig_question_back(q);
}

void rig_found(struct store_question *q, bool found)
{
	rig_looked_up(q, found);
	rig_run();
}
