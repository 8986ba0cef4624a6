/*
 * Proves that decoding reverses encoding, and that a second encoding gives the
 * same bytes, for thousands of random requests and answers.
 */
#include <string.h>

#include "proto/message.h"
#include "tests/lib/gen_message.h"
#include "tests/lib/suite.h"

#define ROUNDS 5000

/* Decodes the only request in BUF, which must be whole. */
static enum refd_decoded decode_request(struct refd_request_decoder *dec,
    const struct pkt_buf *buf, struct refd_request *req, const char **why)
{
	enum refd_decoded r = REFD_DECODE_MORE;
	enum refd_status status;
	struct pkt pkt;
	size_t at;
	long n;

	for (at = 0; at < buf->len; at += (size_t)n) {
		ck_assert_int_eq(r, REFD_DECODE_MORE);
		n = pkt_parse(buf->data + at, buf->len - at, &pkt);
		ck_assert_int_gt(n, 0);
		r = refd_request_decode(dec, &pkt, req, &status, why);
	}
	return r;
}

static enum refd_decoded decode_answer(struct refd_answer_decoder *dec,
    const struct pkt_buf *buf, struct refd_answer *ans, const char **why)
{
	enum refd_decoded r = REFD_DECODE_MORE;
	struct pkt pkt;
	size_t at;
	long n;

	for (at = 0; at < buf->len; at += (size_t)n) {
		ck_assert_int_eq(r, REFD_DECODE_MORE);
		n = pkt_parse(buf->data + at, buf->len - at, &pkt);
		ck_assert_int_gt(n, 0);
		r = refd_answer_decode(dec, &pkt, ans, why);
	}
	return r;
}

static void check_same_bytes(const struct pkt_buf *a, const struct pkt_buf *b)
{
	ck_assert(!pkt_buf_failed(a));
	ck_assert(!pkt_buf_failed(b));
	ck_assert_uint_eq(a->len, b->len);
	ck_assert_mem_eq(a->data, b->data, a->len);
}

CASE(.seconds = 60);

TEST(test_requests)
{
	struct refd_request_decoder *dec = refd_request_decoder_new();
	struct pkt_buf buf = { 0 }, again = { 0 };
	struct refd_request req, back;
	struct gen g = { 1 };
	const char *why;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		gen_request(&g, &req);
		buf.len = again.len = 0;
		refd_request_encode(&req, &buf);
		ck_assert_msg(decode_request(dec, &buf, &back, &why) ==
			REFD_DECODE_DONE,
		    "round %d: %s", i, why);
		ck_assert(request_eq(&req, &back));
		refd_request_encode(&back, &again);
		check_same_bytes(&buf, &again);
		refd_request_done(&req);
		refd_request_done(&back);
	}
	pkt_buf_done(&buf);
	pkt_buf_done(&again);
	refd_request_decoder_free(dec);
}

TEST(test_answers)
{
	struct refd_answer_decoder *dec = refd_answer_decoder_new();
	struct pkt_buf buf = { 0 }, again = { 0 };
	struct refd_answer ans, back;
	struct gen g = { 2 };
	const char *why;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		gen_answer(&g, &ans);
		buf.len = again.len = 0;
		refd_answer_encode(&ans, &buf);
		ck_assert_msg(decode_answer(dec, &buf, &back, &why) ==
			REFD_DECODE_DONE,
		    "round %d: %s", i, why);
		ck_assert(answer_eq(&ans, &back));
		refd_answer_encode(&back, &again);
		check_same_bytes(&buf, &again);
		refd_answer_done(&ans);
		refd_answer_done(&back);
	}
	pkt_buf_done(&buf);
	pkt_buf_done(&again);
	refd_answer_decoder_free(dec);
	refd_answer_decoder_free(NULL);
}

/* However long the text about a ref, the failure is reported. */
TEST(test_long_text)
{
	static char name[REFD_REFNAME_MAX + 1], text[100000];
	struct refd_result res = { .name = name, .has_found = true };
	struct refd_answer ans = { .request_id = 1, .nr_updates = 1 }, back;
	struct refd_answer_decoder *dec = refd_answer_decoder_new();
	struct pkt_buf buf = { 0 };
	const char *why;
	int status;

	memset(name, '/', sizeof(name) - 1);
	memset(text, 'e', sizeof(text) - 1);
	res.text = ans.text = text;
	ans.results = &res;
	ans.nr_results = 1;
	for (status = REFD_OK; status < REFD_STATUSES; status++) {
		res.status = (enum refd_status)status;
		buf.len = 0;
		refd_answer_encode(&ans, &buf);
		ck_assert(!pkt_buf_failed(&buf));
		ck_assert_int_eq(decode_answer(dec, &buf, &back, &why),
		    REFD_DECODE_DONE);
		ck_assert_int_eq(back.results[0].status, status);
		ck_assert_str_eq(back.results[0].name, name);
		ck_assert_uint_eq(strlen(back.results[0].text),
		    REFD_MESSAGE_MAX);
		refd_answer_done(&back);
	}
	ans.kind = REFD_ANSWER_REFUSED;
	ans.status = REFD_BUSY;
	buf.len = 0;
	refd_answer_encode(&ans, &buf);
	ck_assert_int_eq(decode_answer(dec, &buf, &back, &why),
	    REFD_DECODE_DONE);
	ck_assert_uint_eq(strlen(back.text), REFD_MESSAGE_MAX);
	refd_answer_done(&back);
	pkt_buf_done(&buf);
	refd_answer_decoder_free(dec);
}
