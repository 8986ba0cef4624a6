/*
 * A transaction of three updates, from librefd to a scripted server, for the
 * tests of broken connections. Every failure fails the test. One transaction
 * per test.
 */
#ifndef TESTS_LIB_RESEND_RIG_H
#define TESTS_LIB_RESEND_RIG_H

#include "client/refd.h"
#include "tests/lib/fake_refd.h"

#define RSD_NR 3

extern struct fake rsd_fake;
extern struct refd_update rsd_updates[RSD_NR];
extern struct refd_request rsd_req;
extern struct refd_answer rsd_ans; /* the last one */
/* The id of the first request, as the script saw it. */
extern struct refd_txid rsd_seen;

/* Makes the transaction, and starts SCRIPT. Needs tmp_setup(). There is no
 * connection yet. To be given to rsd_stop(). */
struct refd *rsd_start_away(void (*script)(struct fake *f));
/* The same, and connects. */
struct refd *rsd_start(void (*script)(struct fake *f));
/* Returns ERR. */
int rsd_stop(struct refd *r, int err);
/* Sends the transaction to SCRIPT. Returns the error of refd_call(). */
int rsd_run_for(void (*script)(struct fake *f), int timeout_ms);
/* The last answer: the result of each update is STATUS. */
void rsd_check_all(enum refd_status status);

/* ---- in the script ---- */

/* The first connection takes the transaction and breaks. */
void rsd_take_and_break(struct fake *f);
/* The next request has to be the query. */
void rsd_expect_query(struct fake *f, struct refd_request *got);
/* Answers the query with the outcome. The query has no updates. */
void rsd_answer_done(struct fake *f, struct refd_request *got);

#endif
