/*
 * Proves that lack of memory is reported like any other error. If any
 * allocation fails, a request is refused as busy with its framing intact, a
 * decoder of answers gives up, the buffer of an encoder reports the failure,
 * and nothing leaks. Decoding is linear: 100,000 updates take few allocations.
 *
 * The two files with allocations are compiled into this program a second time,
 * over an allocator that fails on demand.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static long allocations, fail_at = -1;

static bool may_allocate(void);
static void *test_malloc(size_t size);
static void *test_calloc(size_t nr, size_t size);
static void *test_realloc(void *p, size_t size);

#define malloc  test_malloc
#define calloc  test_calloc
#define realloc test_realloc
#include "proto/arena.c"
#include "proto/pktline.c"
#undef malloc
#undef calloc
#undef realloc

#include "proto/message.h"
#include "tests/lib/gen_message.h"
#include "tests/lib/suite.h"

static bool may_allocate(void)
{
	return allocations++ != fail_at;
}

static void *test_malloc(size_t size)
{
	return may_allocate() ? malloc(size) : NULL;
}

static void *test_calloc(size_t nr, size_t size)
{
	return may_allocate() ? calloc(nr, size) : NULL;
}

static void *test_realloc(void *p, size_t size)
{
	return may_allocate() ? realloc(p, size) : NULL;
}

static enum refd_decoded decode_request(struct refd_request_decoder *dec,
    const struct pkt_buf *buf, struct refd_request *req,
    enum refd_status *status)
{
	enum refd_decoded r = REFD_DECODE_MORE;
	const char *why;
	struct pkt pkt;
	size_t at;
	long n;

	for (at = 0; at < buf->len; at += (size_t)n) {
		ck_assert_int_eq(r, REFD_DECODE_MORE);
		n = pkt_parse(buf->data + at, buf->len - at, &pkt);
		r = refd_request_decode(dec, &pkt, req, status, &why);
	}
	return r;
}

CASE(.seconds = 60);

TEST(test_request)
{
	struct refd_request_decoder *dec = refd_request_decoder_new();
	struct pkt_buf buf = { 0 };
	struct refd_request req, back;
	enum refd_status status;
	struct gen g = { 3 };
	enum refd_decoded r;
	int i, refused = 0;
	long n;

	for (i = 0; i < 300; i++) {
		fail_at = -1;
		gen_request(&g, &req);
		buf.len = 0;
		refd_request_encode(&req, &buf);
		for (n = 0;; n++) {
			allocations = 0;
			fail_at = n;
			r = decode_request(dec, &buf, &back, &status);
			if (allocations <= n)
				break;
			ck_assert_int_eq(r, REFD_DECODE_REFUSED);
			ck_assert_int_eq(status, REFD_BUSY);
			ck_assert_uint_eq(back.request_id, req.request_id);
			ck_assert_ptr_null(back.arena);
			refused++;
		}
		/* The last run of the sweep met no failure. */
		ck_assert_int_eq(r, REFD_DECODE_DONE);
		ck_assert(request_eq(&req, &back));
		refd_request_done(&req);
		refd_request_done(&back);
	}
	ck_assert_int_gt(refused, 300);
	pkt_buf_done(&buf);
	refd_request_decoder_free(dec);
}

static enum refd_decoded decode_answer(const struct pkt_buf *buf,
    struct refd_answer *ans)
{
	struct refd_answer_decoder *dec = refd_answer_decoder_new();
	enum refd_decoded r = REFD_DECODE_MORE;
	const char *why = NULL;
	struct pkt pkt;
	size_t at;
	long n;

	for (at = 0; at < buf->len; at += (size_t)n) {
		n = pkt_parse(buf->data + at, buf->len - at, &pkt);
		r = refd_answer_decode(dec, &pkt, ans, &why);
	}
	if (r == REFD_DECODE_FATAL)
		ck_assert_str_eq(why, "out of memory");
	refd_answer_decoder_free(dec);
	return r;
}

TEST(test_answer)
{
	struct pkt_buf buf = { 0 };
	struct refd_answer ans, back;
	struct gen g = { 4 };
	int i, fatal = 0;
	enum refd_decoded r;
	long n;

	for (i = 0; i < 300; i++) {
		fail_at = -1;
		gen_answer(&g, &ans);
		buf.len = 0;
		refd_answer_encode(&ans, &buf);
		for (n = 0;; n++) {
			allocations = 0;
			fail_at = n;
			r = decode_answer(&buf, &back);
			if (allocations <= n)
				break;
			ck_assert_int_eq(r, REFD_DECODE_FATAL);
			fatal++;
		}
		ck_assert_int_eq(r, REFD_DECODE_DONE);
		ck_assert(answer_eq(&ans, &back));
		refd_answer_done(&ans);
		refd_answer_done(&back);
	}
	ck_assert_int_gt(fatal, 300);
	pkt_buf_done(&buf);
}

TEST(test_encoders)
{
	static char name[500];
	struct refd_update update = { .action = REFD_DELETE, .name = name };
	struct refd_request req = { .request_id = 1,
		.git_dir = "/r",
		.updates = &update,
		.nr_updates = 1 };
	struct pkt_buf buf;
	long n;

	memset(name, 'n', sizeof(name) - 1);
	for (n = 0;; n++) {
		memset(&buf, 0, sizeof(buf));
		allocations = 0;
		fail_at = n;
		refd_request_encode(&req, &buf);
		if (allocations <= n)
			break;
		ck_assert(pkt_buf_failed(&buf));
		pkt_buf_done(&buf);
	}
	ck_assert(!pkt_buf_failed(&buf));
	/* The buffer had to grow at least once in between. */
	ck_assert_int_ge(n, 2);
	pkt_buf_done(&buf);
}

TEST(test_linear)
{
	struct refd_update *updates;
	struct refd_request req = { .request_id = 1,
		.git_dir = "/r",
		.nr_updates = REFD_UPDATES_MAX },
			    back;
	struct refd_request_decoder *dec = refd_request_decoder_new();
	struct pkt_buf buf = { 0 };
	enum refd_status status;
	size_t i;

	updates = calloc(req.nr_updates, sizeof(*updates));
	ck_assert_ptr_nonnull(updates);
	for (i = 0; i < req.nr_updates; i++) {
		updates[i].name = "refs/heads/a-name-of-a-usual-length";
		updates[i].has_old = true;
	}
	req.updates = updates;
	fail_at = -1;
	refd_request_encode(&req, &buf);
	ck_assert(!pkt_buf_failed(&buf));
	allocations = 0;
	ck_assert_int_eq(decode_request(dec, &buf, &back, &status),
	    REFD_DECODE_DONE);
	ck_assert_uint_eq(back.nr_updates, REFD_UPDATES_MAX);
	ck_assert_int_lt(allocations, 100);
	refd_request_done(&back);
	free(updates);
	pkt_buf_done(&buf);
	refd_request_decoder_free(dec);
}
