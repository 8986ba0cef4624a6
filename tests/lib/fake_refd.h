/*
 * A scripted server for tests of the client. It listens on a Unix socket below
 * tmp_root and takes steps in its own thread. A few tests have a function in
 * place of the steps, because it looks into a request or answers in an unusual
 * way. Such a function can take steps, too.
 *
 * Every call fails the test instead of returning an error. Assertions of
 * libcheck must not be used in the script's thread, so the first error is kept,
 * and fake_stop() reports the error.
 */
#ifndef TESTS_LIB_FAKE_REFD_H
#define TESTS_LIB_FAKE_REFD_H

#include <pthread.h>

#include "proto/message.h"

#define FAKE_WHY "because of you"

struct fake {
	char path[512];
	void (*script)(struct fake *f);
	const char *steps; /* of fake_start() */
	pthread_t thread;
	int listener, conn;
	struct refd_request_decoder *dec;
	char *in;
	size_t in_len;
	struct refd_request first; /* transaction or session */
	struct refd_txid id;       /* of the first step that has one */
	/* The id of the last request of each verb without an answer. */
	uint32_t open[REFD_VERBS];
	uint32_t put_off_ms; /* by the last refusal */
	uint64_t not_before_ms;
	char wrong[256]; /* the first error in the script */
};

/* For the test. Needs tmp_setup(). STEPS: as of fake_play(). */
void fake_start(struct fake *f, const char *steps);
void fake_start_script(struct fake *f, void (*script)(struct fake *f));
/* Waits for the end of the script, and fails the test if there was an error. If
 * the script still waits for a client, connects a silent client. */
void fake_stop(struct fake *f);

/*
 * Takes steps, which are words:
 *
 *	serve		greets the next client
 *	serve-one	the same, and takes no request of two updates
 *	recover		greets the next client, but recovers
 *	accept		lets the next client wait for a greeting
 *	away=STATUS	greets the next client, refuses it and hangs up
 *	late=STATUS	the same, after the client has sent something
 *	hang-up		hangs up
 *	gone		stops listening
 *	end		waits until the client hangs up and has said no more
 *	garbage		sends a packet that belongs to no answer
 *	VERB		reads a request, which has this verb, without an answer
 *	VERB=ANSWER	reads and answers it
 *	later:VERB=ANSWER	answers the last VERB without an answer
 *	anew		the next request may be of another transaction
 *
 * All requests with an id must have that of the first one. An end or a query
 * must have an id. A request that comes again must have all updates and no more
 * time than at first. An answer is
 *
 *	KIND		a kind of answer, without further content
 *	STATUS		a refusal because of FAKE_WHY
 *	STATUS/MS	the same, and the request may come again after MS
 *	ok		ok for all updates of the request
 *	done		ok for all updates of the first request, because an end
 *			or a query has none; if nobody has sent any, for
 *			refs/heads/a
 *	undone		aborted for all of these
 *	prepared	all locks of these are held; HEAD leads to main
 *	prepared-packed	the same, and packed-refs will be rewritten
 *	[STATUS,...]	each result, of the same updates
 *	[STATUS,...]LSN	the same, with an LSN
 *	KEY:VALUE	a pair
 */
void fake_play(struct fake *f, const char *steps);
/* Gives such an answer to REQ. */
void fake_answer_as(struct fake *f, const struct refd_request *req,
    const char *answer);

/* For the script. */
void fake_accept(struct fake *f);
void fake_send(struct fake *f, const void *data, size_t len);
/* The next request; refd_request_done() it. */
void fake_read(struct fake *f, struct refd_request *req);
void fake_answer(struct fake *f, const struct refd_answer *ans);
void fake_expect(struct fake *f, int condition, const char *what);

/* Common steps: accept and a serving hello; an answer of KIND without further
 * content; a refusal, where TEXT may be NULL; an answer with all of REQ's
 * updates ok. */
void fake_serve(struct fake *f);
void fake_answer_kind(struct fake *f, const struct refd_request *req,
    enum refd_answer_kind kind);
void fake_refuse(struct fake *f, const struct refd_request *req,
    enum refd_status status, const char *text);
void fake_answer_ok(struct fake *f, const struct refd_request *req);
/* For a session: all locks are held. */
void fake_answer_prepared(struct fake *f, const struct refd_request *req);

#endif
