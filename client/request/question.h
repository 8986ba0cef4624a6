/*
 * Requests to the daemon without a repository of the caller. An unavailable
 * daemon ends the program. Blocking; one thread.
 */
#ifndef CLIENT_REQUEST_QUESTION_H
#define CLIENT_REQUEST_QUESTION_H

#include "client/refd.h"
#include "proto/lib/cli.h"

/* The time for an answer, unless the request waits for something. */
#define QUESTION_MS 10000

/* The options of the commands that ask the daemon one question. */
struct question {
	const char *socket;
	bool all, html, json, prometheus, once, verbose;
	int wait_s;     /* until the daemon serves; 0: one attempt */
	int timeout_s;  /* of the answer; -1: as question_call() */
	int interval_s; /* between the frames of top */
};

#define QUESTION_SOCKET                                                        \
	{ OPTION_STRING("socket", 0, "PATH",                                   \
	    "the daemon's socket, if not the configured one", struct question, \
	    socket) }
#define QUESTION_JSON                                                          \
	{ OPTION_FLAG("json", 0, "print JSON, for programs", struct question,  \
	      json),                                                           \
		.excludes = 'f' }
/* --json and --socket; the same and --color. */
extern const struct command_option question_json[], question_shown[];

/*
 * Connects. The program ends with 75 if the daemon is away, and with 128 if
 * the daemon denies this user. OPTION: --socket, or NULL. If WAIT_MS is 0, one
 * attempt is made, and a daemon that recovers or drains is available.
 */
struct refd *question_connect(const char *option, int wait_ms);
/* The same, but DIR is a repository that a person has named (daemon_of()), or
 * NULL. */
struct refd *question_connect_of(const char *option, const char *dir,
    int wait_ms);
/* The same for the socket for administration beside it. */
struct refd *question_connect_admin(const char *option);
/* As question_connect_admin(). If that socket is missing, or closed to this
 * user, connects to the ordinary one. A daemon that is away does not end the
 * program: the result is NULL, and WHY gets the reason and, if known, the
 * command that starts the daemon. */
struct refd *question_try(const char *option, struct text *why);
/* Waits for the answer. A failure or a refusal ends the program. If TIMEOUT_MS
 * is negative, waits while a daemon is there or comes back within ten seconds.
 */
void question_call(struct refd *r, struct refd_request *req, int timeout_ms,
    struct refd_answer *ans);
/* Ends the program because of ERR of the last call of R: see question_connect.
 */
void question_failed(struct refd *r, int err) __attribute__((noreturn));
/* A REFUSED answer ends the program. */
void question_refused(const struct refd_answer *ans);
/* Connects to the socket where VERB may be asked, as question_connect() with
 * OPTION and one attempt. Gets an answer of kind PAIRS. */
void question_ask(const char *option, enum refd_verb verb, int timeout_ms,
    struct refd_answer *ans);

#endif
