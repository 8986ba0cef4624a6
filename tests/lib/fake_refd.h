/*
 * A server with a script, for tests of the client: it listens on a Unix
 * socket below tmp_root and runs one function in a thread of its own, which
 * accepts, reads requests, answers, or hangs up, as the test wants it.
 *
 * Every call fails the test rather than returning an error. Assertions of
 * libcheck must not be used in the script's thread, so what it finds wrong is
 * kept and reported by fake_stop().
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
	char wrong[256]; /* what the script found wrong, first of all */
};

/* In the test. Needs tmp_setup(). */
void fake_start(struct fake *f, void (*script)(struct fake *f));
/* Waits for the script's end and fails the test if it found anything. Whom it
 * still waits for comes, and says nothing. */
void fake_stop(struct fake *f);

/* In the script. */
void fake_accept(struct fake *f);
void fake_hello(struct fake *f, enum refd_server_state state);
void fake_send(struct fake *f, const void *data, size_t len);
/* The next request; refd_request_done() it. */
void fake_read(struct fake *f, struct refd_request *req);
void fake_answer(struct fake *f, const struct refd_answer *ans);
void fake_hang_up(struct fake *f);
void fake_stop_listening(struct fake *f);
void fake_expect(struct fake *f, int condition, const char *what);

/* Often wanted together: accept and a serving hello; an answer of KIND that
 * has nothing more to say; all of REQ's updates ok. */
void fake_serve(struct fake *f);
void fake_answer_kind(struct fake *f, const struct refd_request *req,
    enum refd_answer_kind kind);
void fake_answer_ok(struct fake *f, const struct refd_request *req);
/* Whoever comes next is greeted, refused with STATUS and FAKE_WHY, and hung up
 * on. */
void fake_turn_away(struct fake *f, enum refd_status status);
/* A whole script: one is turned away as busy, the next hears nothing. */
void fake_is_full_and_hangs(struct fake *f);
/* A session's: all locks are held. */
void fake_answer_prepared(struct fake *f, const struct refd_request *req);

#endif
