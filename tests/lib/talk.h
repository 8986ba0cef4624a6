/*
 * A conversation of librefd with a scripted server, as words for both sides:
 * the server takes the steps of fake_play(), and the client makes calls.
 *
 *	TALK(test_commit_lost_and_done,
 *	    "serve session=prepared commit serve query=pending query=done",
 *	    "connect session=prepared commit=ok");
 *
 * Every failure fails the test. One conversation at a time. Needs tmp_setup().
 */
#ifndef TESTS_LIB_TALK_H
#define TESTS_LIB_TALK_H

#include "client/refd.h"
#include "tests/lib/fake_refd.h"
#include "tests/lib/suite.h"

#define TALK_NR 3

struct talk {
	struct fake fake;
	struct refd *refd;
	struct refd_update updates[TALK_NR]; /* refs/heads/a, b and c */
	/* A transaction of all updates, an atomic session of them, and others.
	 * An end of the session is made with each call. */
	struct refd_request requests[REFD_VERBS];
	struct refd_answer answer; /* the last one */
	int timeout_ms;            /* of each call */
	bool is_stopped;
};
extern struct talk talk;

/* Defines a test which is such a conversation. */
#define TALK(test, steps, calls)                                               \
	TEST(test)                                                             \
	{                                                                      \
		talk_through(steps, calls);                                    \
	}                                                                      \
	struct suite_case

/* There is no connection yet. */
void talk_begin(const char *steps);
void talk_begin_script(void (*script)(struct fake *f));

/*
 * Makes calls, which are words:
 *
 *	connect			refd_connect(), which has to succeed
 *	connect=ERRNO		or to fail, as with EPERM
 *	VERB=RESULT		refd_call()
 *	VERB!RESULT		refd_submit(), and refd_wait() again after each
 *				timeout, because the server goes at some time
 *	submit:VERB		refd_submit(), which has to succeed
 *	wait:VERB=RESULT	refd_wait()
 *	@MS			the time of each call from here on
 *	why			refd_error() has FAKE_WHY
 *	restart			the program starts again
 *	remember		it makes the transaction again, with the old id
 *	new-id			the transaction gets another id
 *	no-updates		the session has none
 *	stop			the server has come to its end
 *
 * A result is
 *
 *	STATUS			the status of each update, in their order
 *	[STATUS,...]		if they differ
 *	refused:STATUS		a refusal
 *	because:STATUS		the same, with FAKE_WHY
 *	KIND			another kind of answer
 *	ERRNO			an error
 *
 * The answer has the id of the request, and the outcome of its results. A
 * transaction that is done is not in doubt any more.
 */
void talk_calls(const char *calls);
void talk_end(void);

/* All of these. */
void talk_through(const char *steps, const char *calls);
void talk_through_script(void (*script)(struct fake *f), const char *calls);

#endif
