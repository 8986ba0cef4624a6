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
	/* Called for each transaction before it is put, and does not block.
	 * True: the callee has the transaction now, and calls
	 * completions_put_held() later. On a node HOLD is hold() of
	 * group_replica.c. On a single machine HOLD is NULL, and only then may
	 * a transaction go the direct way (txn.direct). */
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
/* Puts TXNS, except for one transaction that may go the direct way
 * (txn.direct). Such a transaction was admitted unchanged, and the check of its
 * objects is not too old. For this transaction the function returns the batch.
 * The caller then owns batch and transaction, and calls pipeline_apply_here()
 * without a lock. NULL: all of TXNS were put. */
struct batch *completions_put_txns(struct completions *c,
    struct txn_fifo *txns);
/* Puts TXN, which was held and does not go the direct way. */
void completions_put_held(struct completions *c, struct txn *txn);
void completions_put_question(struct completions *c, struct store_question *q);

#endif
