/*
 * Completions: the queues from the threads of the store back to the loop. The
 * loop owns an element from the put on, so the thread that puts an element no
 * longer touches it.
 *
 * Any thread may put, and the loop thread takes by store_reap(). MUTEX is an
 * innermost lock. Under MUTEX no other lock is taken and no callback is called,
 * so no function blocks for longer than for MUTEX.
 */
#ifndef STORE_COMPLETIONS_H
#define STORE_COMPLETIONS_H

#include "daemon/base/mutex.h"
#include "daemon/base/sys.h"
#include "daemon/store/fifos.h"

struct completions {
	const struct sys *sys;
	/* As in store_config, and called without MUTEX after something was put
	 * while all queues were empty. In the daemon: server_wake() wakes the
	 * loop, which then calls server_turn(). */
	void (*wake)(void *arg);
	void *wake_arg;
	/* Called for each transaction before it is put. True: the callee, which
	 * does not block, has the transaction, and calls completions_put_held()
	 * later. This is hold() of group_replica.c on a node, and NULL on a
	 * single machine, where the direct way is open. */
	bool (*hold)(void *arg, struct txn *txn);
	void *hold_arg;

	/* All members below: under MUTEX. */
	struct mutex mutex;
	struct batch_fifo applied;
	struct txn_fifo admitted;
	struct question_fifo answered;
};

void completions_init(struct completions *c, const struct sys *sys,
    void (*wake)(void *arg), void *wake_arg);
void completions_done(struct completions *c);

void completions_put_batch(struct completions *c, struct batch *b);
/* Takes all of TXNS, but one transaction may stay: a transaction that was
 * admitted unchanged and goes the direct way (txn.direct), unless the check of
 * its objects is too old. The function returns the batch of this transaction.
 * The caller then owns batch and transaction, and calls pipeline_apply_here()
 * without a lock. NULL: there is no such transaction. */
struct batch *completions_put_txns(struct completions *c,
    struct txn_fifo *txns);
/* Puts TXN, which was held and does not go the direct way. */
void completions_put_held(struct completions *c, struct txn *txn);
void completions_put_question(struct completions *c, struct store_question *q);

#endif
