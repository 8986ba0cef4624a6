/*
 * Builds the answers about a transaction (decide.c). The functions read the
 * transaction and fill an answer. They allocate nothing, so they cannot fail.
 * An answer points into the transaction, so it is valid only as long as the
 * transaction.
 */
#ifndef SCHEDULER_ANSWER_H
#define SCHEDULER_ANSWER_H

#include "daemon/scheduler/scheduler.h"
#include "daemon/store/txn.h"

/* Results in one part of an answer. The number is limited, because the loop
 * must not stand still for the results of a large transaction. */
#define ANSWER_PART 500

/* An answer, sent part by part as long as ans.is_continued is set. TOLD is 0
 * before the first part. */
struct answer {
	struct refd_answer ans;
	size_t told; /* results in this part and the parts before */
	struct refd_result results[ANSWER_PART];
};

/* Fills A with the next part of the results of TXN, which is decided. An update
 * without a text of its own gets TEXT, which may be NULL. The answer also names
 * the log that the LSN belongs to; STORE knows that log. */
void answer_results(struct answer *a, const struct txn *txn,
    struct store *store, const char *text);
/* KIND is PENDING, NEVER_SEEN or EXPIRED. */
void answer_plain(struct refd_answer *ans, enum refd_answer_kind kind,
    const struct refd_txid *txid);
void answer_refused(struct refd_answer *ans, const struct refd_txid *txid,
    enum refd_status status, const char *text);

#endif
