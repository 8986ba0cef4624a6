/*
 * A scripted server for tests of the client. It listens on a Unix socket below
 * tmp_root and runs a function in its own thread. The function accepts, reads
 * requests, answers, or hangs up, as the test needs.
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
	char wrong[256]; /* the first error in the script */
};

/* For the test. Needs tmp_setup(). */
void fake_start(struct fake *f, void (*script)(struct fake *f));
/* Waits for the end of the script, and fails the test if there was an error. If
 * the script still waits for a client, connects a silent client. */
void fake_stop(struct fake *f);

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
