/*
 * A question of a client, in one struct for all kinds, because every kind has
 * the same way. The scheduler makes the question, the store (store_ask()) hands
 * it to the part that knows the answer, and the question comes back with the
 * answer in it, once, through the completions.
 *
 * Owned by one side at a time, by the scheduler and in between by the store, so
 * no lock is needed. Nothing here blocks or logs.
 */
#ifndef STORE_QUESTION_H
#define STORE_QUESTION_H

#include <stdatomic.h>

#include "daemon/store/txn.h"

enum store_question_kind {
	STORE_ASK_ID,         /* for the outcome of REQ.txid */
	STORE_ASK_HISTORY,    /* a LOG or a WATCH */
	STORE_ASK_CHECKPOINT, /* until no earlier update needs replay */
	STORE_ASK_PACK,       /* of the loose refs of TXN's repository */
	STORE_ASK_LOOK        /* the first member of a struct store_look */
};

struct store_question {
	enum store_question_kind kind;
	struct refd_request req; /* owned; ID: only the txid */
	struct txn_peer peer;    /* owned; root may ask for all ids */
	/* Filled in; owned. ID: RESULTS, NEVER_SEEN or REFUSED. HISTORY:
	 * RECORDS or REFUSED. CHECKPOINT, PACK: PAIRS or REFUSED. */
	struct refd_answer answer;
	char *why; /* owned; the text of the answer, or NULL */
	struct refd_pair pairs[3];
	char numbers[3][24];                /* of the pairs */
	struct store_question *next, *prev; /* queue of the owner */

	/* CHECKPOINT: up to this LSN; for the checkpointer. */
	uint64_t lsn;
	/* PACK: admitted, with the reference to its repository; owned. */
	struct txn *txn;

	/* HISTORY: the connection; compared only. */
	const void *client;
	int64_t deadline_ns; /* of a WATCH: monotonic */
	/* Nobody waits for the answer, so the question may come back early. Set
	 * by the scheduler. */
	atomic_bool is_dropped;
	uint64_t repo;                   /* for the historian */
	uint64_t user_turn, client_turn; /* for the historian */

	/* For the scheduler. */
	void *waiter;
	struct quota *quota;
	size_t bytes; /* that the question holds */
	struct store_question *next_asked, *prev_asked;
	size_t told;
	bool is_stale;
};

/* Takes over nothing, and returns NULL when out of memory. */
struct store_question *question_new(enum store_question_kind kind);
/* The reference to a repository must have been given back. */
void question_free(struct store_question *q);
/* Makes the answer REFUSED with TEXT, which is static, or NULL. */
void question_refuse(struct store_question *q, enum refd_status status,
    const char *text);
/* The same, but takes WHY over, which is NULL when out of memory. */
void question_refuse_for(struct store_question *q, enum refd_status status,
    char *why);
/* Adds a pair to the answer, of a static KEY and a static VALUE. */
void question_tell(struct store_question *q, const char *key,
    const char *value);
void question_tell_number(struct store_question *q, const char *key,
    uint64_t number);

#endif
