/*
 * What a client is told of a transaction. Pure but for what it fills in;
 * nothing is allocated, so answering can't fail. Texts stay the
 * transaction's: an answer is good for as long as that is.
 */
#ifndef SCHEDULER_ANSWER_H
#define SCHEDULER_ANSWER_H

#include "daemon/store/txn.h"

/* The loop must not stand still for the results of very many. */
#define ANSWER_PART 500

/* One part of an answer after the other: told as long as ANS goes on. Begins
 * with nothing TOLD. */
struct answer {
	struct refd_answer ans;
	size_t told; /* results, of this part and those before it */
	struct refd_result results[ANSWER_PART];
};

/* The next part of TXN's results, which is decided; an update that has no text
 * of its own gets TEXT, which may be NULL. JOURNAL: the id of that which has
 * its record. */
void answer_results(struct answer *a, const struct txn *txn,
    const uint8_t journal[REFD_JOURNAL_ID_BYTES], const char *text);
/* Of a session whose undecided updates are prepared. */
void answer_prepared(struct answer *a, const struct txn *txn);
/* PENDING, NEVER_SEEN, EXPIRED. */
void answer_plain(struct refd_answer *ans, enum refd_answer_kind kind,
    const struct refd_txid *txid);
void answer_refused(struct refd_answer *ans, const struct refd_txid *txid,
    enum refd_status status, const char *text);

#endif
