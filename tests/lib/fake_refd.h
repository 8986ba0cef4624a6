/*
 * A scripted server for tests of the client. It listens on a Unix socket below
 * tmp_root and runs a function in its own thread. Most functions only play the
 * steps of a FAKE_SCRIPT. Others accept, read requests, answer, or hang up call
 * by call, because they look into a request or answer in an unusual way.
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
	pthread_t thread;
	int listener, conn;
	struct refd_request_decoder *dec;
	char *in;
	size_t in_len;
	struct refd_request first; /* transaction or session */
	struct refd_txid id;       /* of the first step that has one */
	char wrong[256];           /* the first error in the script */
};

/* For the test. Needs tmp_setup(). */
void fake_start(struct fake *f, void (*script)(struct fake *f));
/* Waits for the end of the script, and fails the test if there was an error. If
 * the script still waits for a client, connects a silent client. */
void fake_stop(struct fake *f);

/*
 * Takes steps, which are words:
 *
 *	serve		greets the next client
 *	recover		greets the next client, but recovers
 *	away=STATUS	greets the next client, refuses it and hangs up
 *	late=STATUS	the same, after the client has sent something
 *	hang-up		hangs up
 *	gone		stops listening
 *	end		waits until the client hangs up and has said no more
 *	VERB		reads a request, which has this verb, without an answer
 *	VERB=ANSWER	reads and answers it
 *
 * All requests with an id must have that of the first one. An end or a query
 * must have an id. An answer is
 *
 *	KIND		a kind of answer, without further content
 *	STATUS		a refusal
 *	ok		ok for all updates of the request
 *	done		ok for all updates of the first request, because an end
 *			or a query has none
 *	[STATUS,...]	each result, of the same updates
 *	KEY:VALUE	a pair
 */
void fake_play(struct fake *f, const char *steps);
/* Gives such an answer to REQ. */
void fake_answer_as(struct fake *f, const struct refd_request *req,
    const char *answer);

/* Defines the script NAME, which takes STEPS. */
#define FAKE_SCRIPT(name, steps)                                               \
	static void name(struct fake *f)                                       \
	{                                                                      \
		fake_play(f, steps);                                           \
	}                                                                      \
	static void name(struct fake *f)

/* For the script. */
void fake_accept(struct fake *f);
void fake_hello(struct fake *f, enum refd_server_state state);
void fake_send(struct fake *f, const void *data, size_t len);
/* The next request; refd_request_done() it. */
void fake_read(struct fake *f, struct refd_request *req);
void fake_answer(struct fake *f, const struct refd_answer *ans);
void fake_hang_up(struct fake *f);
void fake_stop_listening(struct fake *f);
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
/* Greets the next client, refuses with STATUS and FAKE_WHY, and hangs up. */
void fake_turn_away(struct fake *f, enum refd_status status);
/* A complete script: the first client is turned away as busy, and the second
 * gets no data. */
void fake_is_full_and_hangs(struct fake *f);
/* For a session: all locks are held. */
void fake_answer_prepared(struct fake *f, const struct refd_request *req);

#endif
