/*
 * A session of two updates and its end, from librefd to a scripted server, for
 * the tests of sessions. Every failure fails the test. One session per test.
 */
#ifndef TESTS_LIB_SESSION_RIG_H
#define TESTS_LIB_SESSION_RIG_H

#include "client/refd.h"
#include "tests/lib/fake_refd.h"

#define SES_NR 2

extern struct fake ses_fake;
extern struct refd_update ses_updates[SES_NR];
/* The session, and the last end by ses_end_by(). */
extern struct refd_request ses_req, ses_end;
extern struct refd_answer ses_ans; /* the last one */
extern struct refd *ses_refd;

/* Makes the session, and connects to SCRIPT. Needs tmp_setup(). */
void ses_begin(void (*script)(struct fake *f));
void ses_finish(void);
/* Sends the session, and gets the answer that it is prepared. */
void ses_prepare(void);
/* Makes ses_end of the session, and sends nothing. */
struct refd_request *ses_end_by(enum refd_verb verb);
/* Sends an end. Returns the error of refd_call(). */
int ses_finish_by(enum refd_verb verb, int timeout_ms);
/* Sends an end, and waits beyond timeouts. Returns the error of the last
 * refd_wait(). */
int ses_finish_in_vain(enum refd_verb verb);
/* The last answer: the session did nothing. */
void ses_check_over(void);
/* The last answer: the result of each update is STATUS. */
void ses_check_all(enum refd_status status);

/* ---- in the script ---- */

/* Reads a request, which must be of VERB, and of the session that was taken
 * before. */
void ses_take(struct fake *f, enum refd_verb verb, struct refd_request *got);
/* Greets the client, takes the session, and answers that it is prepared. */
void ses_take_session(struct fake *f);

#endif
