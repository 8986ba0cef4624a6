/*
 * One attempt to deliver one change: an HTTP request or a command.
 *
 *	attempt_start -> attempt_tick, attempt_http_ended ... -> has_ended
 *
 * One thread; nothing blocks. An error in the answer of an attempt is the
 * result of the attempt.
 */
#ifndef CLIENT_DELIVER_ATTEMPT_H
#define CLIENT_DELIVER_ATTEMPT_H

#include <curl/curl.h>

#include "client/deliver/outbox.h"
#include "client/deliver/streams.h"
#include "proto/lib/launch.h"

struct attempt {
	struct stream *stream; /* busy */
	struct outbox_row row; /* owned */
	uint64_t began_ms;     /* of clock_now_ms() */
	bool has_ended, is_success;
	char error[160]; /* of a failure; without url and secret */
	size_t received; /* bytes of the answer, or of the output */
	/* HTTP */
	CURLM *multi;
	CURL *easy;
	struct curl_slist *headers;
	/* A command; its process is -1 if none runs */
	struct launched command;
	int output;   /* of the command: the end of a pipe; -1: none */
	bool was_cut; /* the rest of the output is thrown away */
	struct attempt *prev, *next;
};

/* Takes ROW over. MULTI performs HTTP requests; CURLOPT_PRIVATE is the
 * attempt. */
struct attempt *attempt_start(CURLM *multi, struct stream *stream,
    struct outbox_row *row);
/* MULTI reports the end of the request of A. */
void attempt_http_ended(struct attempt *a, CURLcode result);
/* Passes on the output of A's command, and ends A with the command. */
void attempt_tick(struct attempt *a);
void attempt_free(struct attempt *a);

#endif
