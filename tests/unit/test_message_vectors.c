/*
 * Proves that proto/vectors.json agrees with the code of proto/. Every message
 * in the file has the bytes, and the decoded fields or the refusal, that the
 * test computes. Decoded messages are encoded to the same bytes. The clients in
 * other languages are tested by this file, so it has every verb, every status
 * and every detail.
 *
 * With REFD_WRITE_VECTORS in the environment, the test writes the file.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/detail.h"
#include "proto/message.h"
#include "tests/lib/message_json.h"
#include "tests/lib/message_vectors.h"
#include "tests/lib/suite.h"

#define FILE_NAME "proto/vectors.json"

/* ---- bytes ---- */

static void put_packets(const struct message_vector *v, struct pkt_buf *out)
{
	const char *const *packet;
	char bytes[512];
	size_t i, len;

	for (packet = v->packets; *packet != NULL; packet++) {
		len = strlen(*packet);
		ck_assert_uint_le(len, sizeof(bytes));
		for (i = 0; i < len; i++)
			bytes[i] = (*packet)[i] == '|' ? '\0' : (*packet)[i];
		if (strcmp(*packet, "--") == 0)
			pkt_delim(out);
		else
			pkt_put(out, bytes, len);
	}
	pkt_flush(out);
	ck_assert(!pkt_buf_failed(out));
}

static void put_bytes(struct json_out *j, const struct pkt_buf *buf)
{
	struct pkt pkt;
	size_t at;
	long n;

	json_open(j, "packets", '[');
	for (at = 0; at < buf->len; at += (size_t)n) {
		n = pkt_parse(buf->data + at, buf->len - at, &pkt);
		ck_assert_int_gt(n, 0);
		json_bytes(j, NULL, buf->data + at, (size_t)n);
	}
	json_close(j, ']');
}

static void check_same(const struct message_vector *v,
    const struct pkt_buf *heard, struct pkt_buf *said)
{
	ck_assert_msg(!pkt_buf_failed(said) && said->len == heard->len &&
		memcmp(said->data, heard->data, said->len) == 0,
	    "'%s' is encoded to other bytes", v->name);
	pkt_buf_done(said);
}

/* The name shows the expected result, so no refusal goes unnoticed. */
static void check_name(const struct message_vector *v, const char *prefix,
    bool is_so)
{
	ck_assert_msg((strncmp(v->name, prefix, strlen(prefix)) == 0) == is_so,
	    "'%s' is %s", v->name, is_so ? "not taken" : "taken");
}

/* ---- fields ---- */

static void put_hello(struct json_out *j, const struct message_vector *v,
    const struct pkt_buf *buf)
{
	struct refd_hello_decoder dec = { 0 };
	enum refd_decoded r = REFD_DECODE_MORE;
	struct refd_hello hello;
	const char *why;
	struct pkt pkt;
	size_t at = 0;

	while (r == REFD_DECODE_MORE) {
		at += (size_t)pkt_parse(buf->data + at, buf->len - at, &pkt);
		r = refd_hello_decode(&dec, &pkt, &hello, &why);
	}
	check_name(v, "fatal: ", r == REFD_DECODE_FATAL);
	if (r == REFD_DECODE_FATAL) {
		json_true(j, "fatal");
		return;
	}
	json_open(j, "hello", '{');
	message_json_hello(j, &hello);
	json_close(j, '}');
}

static void put_request(struct json_out *j, const struct message_vector *v,
    const struct pkt_buf *buf)
{
	struct refd_request_decoder *dec = refd_request_decoder_new();
	enum refd_decoded r = REFD_DECODE_MORE;
	struct pkt_buf said = { 0 };
	enum refd_status status;
	struct refd_request req;
	const char *why;
	struct pkt pkt;
	size_t at = 0;

	while (r == REFD_DECODE_MORE) {
		at += (size_t)pkt_parse(buf->data + at, buf->len - at, &pkt);
		r = refd_request_decode(dec, &pkt, &req, &status, &why);
	}
	refd_request_decoder_free(dec);
	ck_assert_uint_eq(at, buf->len);
	check_name(v, "refused: ", r == REFD_DECODE_REFUSED);
	if (r == REFD_DECODE_REFUSED) {
		json_open_inline(j, "refused", '{');
		json_number(j, "id", req.request_id);
		json_string(j, "status", refd_status_name(status));
		json_close(j, '}');
		return;
	}
	ck_assert_int_eq(r, REFD_DECODE_DONE);
	refd_request_encode(&req, &said);
	check_same(v, buf, &said);
	json_open(j, "request", '{');
	message_json_request(j, &req);
	json_close(j, '}');
	refd_request_done(&req);
}

static void put_answer(struct json_out *j, const struct message_vector *v,
    const struct pkt_buf *buf)
{
	struct refd_answer_decoder *dec = refd_answer_decoder_new();
	enum refd_decoded r = REFD_DECODE_MORE;
	struct pkt_buf said = { 0 };
	struct refd_answer ans;
	const char *why;
	struct pkt pkt;
	size_t at = 0;

	while (r == REFD_DECODE_MORE) {
		at += (size_t)pkt_parse(buf->data + at, buf->len - at, &pkt);
		r = refd_answer_decode(dec, &pkt, &ans, &why);
	}
	refd_answer_decoder_free(dec);
	check_name(v, "fatal: ", r == REFD_DECODE_FATAL);
	if (r == REFD_DECODE_FATAL) {
		json_true(j, "fatal");
		return;
	}
	ck_assert_int_eq(r, REFD_DECODE_DONE);
	refd_answer_encode(&ans, &said);
	check_same(v, buf, &said);
	json_open(j, "answer", '{');
	message_json_answer(j, &ans);
	json_close(j, '}');
	refd_answer_done(&ans);
}

static void put_vector(struct json_out *j, const struct message_vector *v)
{
	struct pkt_buf buf = { 0 };

	put_packets(v, &buf);
	json_open(j, NULL, '{');
	json_string(j, "name", v->name);
	json_string(j, "from",
	    v->what == MESSAGE_REQUEST ? "client" : "server");
	put_bytes(j, &buf);
	switch (v->what) {
	case MESSAGE_HELLO:
		put_hello(j, v, &buf);
		break;
	case MESSAGE_REQUEST:
		put_request(j, v, &buf);
		break;
	case MESSAGE_ANSWER:
		put_answer(j, v, &buf);
		break;
	}
	json_close(j, '}');
	pkt_buf_done(&buf);
}

static void put_all(FILE *f)
{
	struct json_out j = { .f = f };
	size_t i;

	json_open(&j, NULL, '[');
	for (i = 0; i < nr_message_vectors; i++)
		put_vector(&j, &message_vectors[i]);
	json_close(&j, ']');
	fputc('\n', f);
}

/* The number of the first line that differs, or 0. */
static size_t compare(FILE *a, FILE *b)
{
	char line_a[1024], line_b[1024];
	const char *has_a, *has_b;
	size_t nr = 0;

	do {
		nr++;
		has_a = fgets(line_a, sizeof(line_a), a);
		has_b = fgets(line_b, sizeof(line_b), b);
		if ((has_a == NULL) != (has_b == NULL) ||
		    (has_a != NULL && strcmp(line_a, line_b) != 0))
			return nr;
	} while (has_a != NULL);
	return 0;
}

CASE(.seconds = 60);

TEST(test_vectors)
{
	bool writes = getenv("REFD_WRITE_VECTORS") != NULL;
	FILE *made, *kept;
	size_t differs;

	made = writes ? fopen(FILE_NAME, "w+") : tmpfile();
	ck_assert_ptr_nonnull(made);
	put_all(made);
	rewind(made);
	kept = fopen(FILE_NAME, "r");
	ck_assert_msg(kept != NULL, "run from the root of the source tree");
	differs = compare(made, kept);
	ck_assert_msg(differs == 0,
	    FILE_NAME " differs in line %zu from what the code does: "
		      "REFD_WRITE_VECTORS=1 writes it anew",
	    differs);
	fclose(made);
	fclose(kept);
}

/* Does a message that is taken have a packet with the word between BEFORE and
 * '|', ' ' or its end? */
static bool has_word(const char *before, const char *word)
{
	const char *const *packet, *at;
	char wanted[64];
	size_t i, len;

	len = (size_t)snprintf(wanted, sizeof(wanted), "%s%s", before, word);
	for (i = 0; i < nr_message_vectors; i++) {
		if (strchr(message_vectors[i].name, ':') != NULL)
			continue;
		for (packet = message_vectors[i].packets; *packet != NULL;
		    packet++) {
			at = strstr(*packet, wanted);
			if (at != NULL && (at == *packet || *before == '|') &&
			    strchr("| ", at[len]) != NULL)
				return true;
		}
	}
	return false;
}

TEST(test_every_word)
{
	static const char *const details[] = {
#define X(symbol, word) word,
		REFD_DETAIL_TABLE(X)
#undef X
	};
	static const char *const verbs[] = {
#define X(symbol, word, ...) word,
		REFD_VERB_TABLE(X)
#undef X
	};
	const char *name;
	size_t i;

	for (i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		ck_assert_msg(has_word("", verbs[i]), "verb %s", verbs[i]);
	for (i = 1; i < REFD_STATUSES; i++) {
		name = refd_status_name((enum refd_status)i);
		ck_assert_msg(has_word("ng ", name), "status %s", name);
	}
	for (i = 0; i < sizeof(details) / sizeof(details[0]); i++)
		ck_assert_msg(has_word("|||", details[i]), "detail %s",
		    details[i]);
}
