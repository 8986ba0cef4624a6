/*
 * What a client is told of a transaction. Pure but for what it fills in;
 * nothing is allocated, so answering can't fail. Texts stay the
 * transaction's: an answer is good for as long as that is.
 */
#ifndef ENGINE_ANSWER_H
#define ENGINE_ANSWER_H

#include "daemon/store/txn.h"

/* RESULTS has room for all of TXN's updates, which are decided; one that has
 * no text of its own gets TEXT, which may be NULL. */
void answer_results(struct refd_answer *ans, const struct txn *txn,
    struct refd_result *results, const char *text);
/* Of a session whose undecided updates are prepared. */
void answer_prepared(struct refd_answer *ans, const struct txn *txn,
    struct refd_result *results);
/* PENDING, NEVER_SEEN, EXPIRED. */
void answer_plain(struct refd_answer *ans, enum refd_answer_kind kind,
    const struct refd_txid *txid);
void answer_refused(struct refd_answer *ans, const struct refd_txid *txid,
    enum refd_status status, const char *text);

#endif
