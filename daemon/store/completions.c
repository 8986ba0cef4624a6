/*
 * The queues back to the loop. A put into empty queues wakes the loop, and the
 * loop then takes until all queues are empty, so every element is seen.
 *
 * Nothing here can fail.
 */
#include "daemon/store/completions.h"

#include "daemon/store/parts.h"
#include "daemon/store/repos/repo.h"

void completions_init(struct completions *c, const struct sys *sys,
    void (*wake)(void *arg), void *wake_arg)
{
	*c = (struct completions){ .sys = sys,
		.wake = wake,
		.wake_arg = wake_arg };
	mutex_init(&c->mutex, MUTEX_INNER);
}

void completions_done(struct completions *c)
{
	mutex_destroy(&c->mutex);
}

/* Takes MUTEX. True: all queues are empty, so the loop may sleep. */
static bool begin_put(struct completions *c)
{
	mutex_lock(&c->mutex);
	return c->applied.head == NULL && c->admitted.head == NULL &&
	    c->answered.head == NULL;
}

static void end_put(struct completions *c, bool wake)
{
	mutex_unlock(&c->mutex);
	if (wake)
		c->wake(c->wake_arg);
}

void completions_put_batch(struct completions *c, struct batch *b)
{
	bool wake = begin_put(c);

	batch_fifo_put(&c->applied, b);
	end_put(c, wake);
}

static bool goes_directly(const struct completions *c, struct txn *txn)
{
	return txn->direct != NULL && txn->refused == REFD_OK &&
	    !txn->replayed && txn->nr_decided == 0 && txn->repo != NULL &&
	    txn->repo->id == txn->direct_repo &&
	    txn_is_fresh(txn, SYS(c->sys, now_mono)) &&
	    !atomic_load(&txn->is_given_up) &&
	    !atomic_exchange(&txn->direct_taken, true);
}

/* Removes the transaction with a batch for the direct way. NULL: none. */
static struct txn *take_direct(const struct completions *c,
    struct txn_fifo *txns)
{
	struct txn_fifo all = *txns;
	struct txn *txn, *direct = NULL;

	txns->head = NULL;
	while ((txn = txn_fifo_take(&all)) != NULL)
		if (goes_directly(c, txn))
			direct = txn;
		else
			txn_fifo_put(txns, txn);
	return direct;
}

/* Removes the transactions that are held. */
static void hold_some(struct completions *c, struct txn_fifo *txns)
{
	struct txn_fifo all = *txns;
	struct txn *txn;

	if (c->hold == NULL)
		return;
	txns->head = NULL;
	while ((txn = txn_fifo_take(&all)) != NULL)
		if (!c->hold(c->hold_arg, txn))
			txn_fifo_put(txns, txn);
}

static void put_txns(struct completions *c, struct txn_fifo *txns)
{
	bool wake;

	if (txns->head == NULL)
		return;
	wake = begin_put(c);
	txn_fifo_move(&c->admitted, txns);
	end_put(c, wake);
}

struct batch *completions_put_txns(struct completions *c, struct txn_fifo *txns)
{
	struct txn *direct;

	hold_some(c, txns);
	/* With HOLD this is a node, which has no direct way, because an
	 * admission worker must not wait for PostgreSQL. */
	direct = c->hold == NULL ? take_direct(c, txns) : NULL;
	put_txns(c, txns);
	return direct != NULL ? direct->direct : NULL;
}

void completions_put_held(struct completions *c, struct txn *txn)
{
	struct txn_fifo one = { .head = NULL };

	txn_fifo_put(&one, txn);
	put_txns(c, &one);
}

void completions_put_question(struct completions *c, struct store_question *q)
{
	bool wake = begin_put(c);

	question_fifo_put(&c->answered, q);
	end_put(c, wake);
}

bool store_reap(struct store *store, struct store_done *done)
{
	struct completions *c = store_parts(store)->completions;

	*done = (struct store_done){ 0 };
	mutex_lock(&c->mutex);
	if ((done->applied = batch_fifo_take(&c->applied)) == NULL &&
	    (done->admitted = txn_fifo_take(&c->admitted)) == NULL)
		done->answered = question_fifo_take(&c->answered);
	mutex_unlock(&c->mutex);
	return done->applied != NULL || done->admitted != NULL ||
	    done->answered != NULL;
}
