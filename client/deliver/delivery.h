/*
 * One attempt to deliver one change: an HTTP request or a command, the
 * signature of the request, and the pause after a failure.
 *
 *	delivery_start -> delivery_tick, delivery_http_ended ... -> has_ended
 *
 * One thread; nothing blocks. An error in the answer of an attempt is the
 * result of the attempt.
 */
#ifndef CLIENT_DELIVER_DELIVERY_H
#define CLIENT_DELIVER_DELIVERY_H

#include <curl/curl.h>

#include "client/deliver/outbox.h"
#include "client/deliver/streams.h"
#include "proto/lib/launch.h"
#include "proto/lib/sha.h"

#define ATTEMPT_FIRST_MS 1000
#define ATTEMPT_MOST_MS  (5 * 60 * 1000)

#define SIGNATURE_LEN (sizeof("sha256=") - 1 + 2 * SHA256_BYTES)

struct delivery {
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
	struct delivery *prev, *next;
};

/* Takes ROW over. MULTI performs HTTP requests, and CURLOPT_PRIVATE is the
 * attempt. */
struct delivery *delivery_start(CURLM *multi, struct stream *stream,
    struct outbox_row *row);
/* MULTI reports the end of the request of A. */
void delivery_http_ended(struct delivery *a, CURLcode result);
/* Passes on the output of A's command, and ends A with the command. */
void delivery_tick(struct delivery *a);
void delivery_free(struct delivery *a);

/* As GitHub's X-Hub-Signature-256: the HMAC (RFC 2104) of the body with
 * SHA-256, as "sha256=<hex digits>". Returns TEXT. Pure. */
char *delivery_sign(const void *key, size_t key_len, const void *body,
    size_t len, char text[SIGNATURE_LEN + 1]);
/*
 * The pause after FAILURES failures of a change, at least 1. The full pause is
 * 1 s, 2 s, 4 s ... up to 5 min. Streams that failed together would otherwise
 * try together, so the result lies between half of the full pause and the full
 * pause, as RANDOM decides, which is any number. Pure.
 */
uint64_t delivery_pause_ms(uint64_t failures, uint32_t random);

#endif
