/*
 * Proves that damaged messages do not mislead the decoders. After any
 * truncation of a conversation, the decoder waits. A changed byte is accepted
 * only if the encoders would have written the same bytes. No read goes beyond
 * the received bytes: every packet is a separate heap block, for the
 * sanitizers. The messages do not depend on the way in which the bytes arrive.
 */
#include <stdlib.h>
#include <string.h>

#include "proto/message.h"
#include "tests/lib/gen_message.h"
#include "tests/lib/suite.h"
#include "tests/lib/sweep.h"

/* A peer that receives messages. */
struct frame_listener {
	bool to_requests;
	struct refd_request_decoder *requests;
	struct refd_answer_decoder *answers;
	struct pkt_buf heard; /* the packets of this message */
	size_t nr_done, nr_refused;
	bool dead;
};

static void listener_init(struct frame_listener *l, bool to_requests)
{
	memset(l, 0, sizeof(*l));
	l->to_requests = to_requests;
	l->requests = refd_request_decoder_new();
	l->answers = refd_answer_decoder_new();
}

static void listener_done(struct frame_listener *l)
{
	refd_request_decoder_free(l->requests);
	refd_answer_decoder_free(l->answers);
	pkt_buf_done(&l->heard);
}

/* The encoder would have written the accepted bytes. */
static void check_canonical(const struct pkt_buf *heard, struct pkt_buf *said)
{
	ck_assert(!pkt_buf_failed(said));
	ck_assert_uint_eq(heard->len, said->len);
	ck_assert_mem_eq(heard->data, said->data, said->len);
	pkt_buf_done(said);
}

static void hear_request(struct frame_listener *l, const struct pkt *pkt)
{
	struct pkt_buf said = { 0 };
	enum refd_status status = REFD_PENDING;
	struct refd_request req;
	const char *why = NULL;

	switch (refd_request_decode(l->requests, pkt, &req, &status, &why)) {
	case REFD_DECODE_MORE:
		return;
	case REFD_DECODE_DONE:
		refd_request_encode(&req, &said);
		check_canonical(&l->heard, &said);
		refd_request_done(&req);
		l->nr_done++;
		break;
	case REFD_DECODE_REFUSED:
		ck_assert_ptr_nonnull(why);
		ck_assert(status == REFD_BADREQUEST || status == REFD_LIMIT);
		l->nr_refused++;
		break;
	case REFD_DECODE_FATAL:
		ck_assert_ptr_nonnull(why);
		l->dead = true;
		break;
	}
	l->heard.len = 0;
}

static void hear_answer(struct frame_listener *l, const struct pkt *pkt)
{
	struct pkt_buf said = { 0 };
	struct refd_answer ans;
	const char *why = NULL;

	switch (refd_answer_decode(l->answers, pkt, &ans, &why)) {
	case REFD_DECODE_MORE:
		return;
	case REFD_DECODE_DONE:
		refd_answer_encode(&ans, &said);
		check_canonical(&l->heard, &said);
		refd_answer_done(&ans);
		l->nr_done++;
		break;
	case REFD_DECODE_REFUSED:
		ck_abort_msg("an answer was refused");
	case REFD_DECODE_FATAL:
		ck_assert_ptr_nonnull(why);
		l->dead = true;
		break;
	}
	l->heard.len = 0;
}

static void hear_packet(struct frame_listener *l, struct pkt pkt)
{
	char *copy = malloc(pkt.len != 0 ? pkt.len : 1);

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, pkt.data, pkt.len);
	pkt.data = copy;
	switch (pkt.kind) {
	case PKT_DATA:
		pkt_put(&l->heard, pkt.data, pkt.len);
		break;
	case PKT_DELIM:
		pkt_delim(&l->heard);
		break;
	case PKT_FLUSH:
		pkt_flush(&l->heard);
		break;
	}
	if (l->to_requests)
		hear_request(l, &pkt);
	else
		hear_answer(l, &pkt);
	free(copy);
}

/* Takes the complete packets in DATA. Returns the number of their bytes. */
static size_t hear(struct frame_listener *l, const char *data, size_t len)
{
	struct pkt pkt;
	size_t at = 0;
	long n;

	while (!l->dead) {
		n = pkt_parse(data + at, len - at, &pkt);
		if (n == 0)
			break;
		if (n < 0) {
			l->dead = true;
			break;
		}
		hear_packet(l, pkt);
		at += (size_t)n;
	}
	return at;
}

/* Makes NR small messages, of all kinds in turn. */
static void make_stream(struct pkt_buf *out, bool of_requests, int nr)
{
	struct gen g = { 9 };
	struct refd_request req;
	struct refd_answer ans;
	size_t before;
	int kind = 0;

	while (kind < nr) {
		before = out->len;
		if (of_requests) {
			gen_request(&g, &req);
			refd_request_encode(&req, out);
			if ((int)req.verb != kind % (REFD_VERB_WATCH + 1))
				out->len = before;
			refd_request_done(&req);
		} else {
			gen_answer(&g, &ans);
			refd_answer_encode(&ans, out);
			if ((int)ans.kind != kind % (REFD_ANSWER_RECORDS + 1))
				out->len = before;
			refd_answer_done(&ans);
		}
		if (out->len - before > 400)
			out->len = before;
		if (out->len > before)
			kind++;
	}
	ck_assert(!pkt_buf_failed(out));
}

/* Number of the messages that end within the first LEN bytes. */
static size_t count_flushes(const struct pkt_buf *buf, size_t len)
{
	size_t at = 0, nr = 0;
	struct pkt pkt;
	long n;

	while ((n = pkt_parse(buf->data + at, len - at, &pkt)) > 0) {
		at += (size_t)n;
		nr += pkt.kind == PKT_FLUSH;
	}
	return nr;
}

CASE(.seconds = 120);

TEST(test_truncated, .times = 2)
{
	struct pkt_buf buf = { 0 };
	struct frame_listener l;
	size_t len;
	char *copy;

	make_stream(&buf, _i != 0, 9);
	for (len = 0; len < buf.len; len += sweep_step()) {
		copy = malloc(len + 1);
		ck_assert_ptr_nonnull(copy);
		memcpy(copy, buf.data, len);
		listener_init(&l, _i != 0);
		hear(&l, copy, len);
		ck_assert(!l.dead);
		ck_assert_uint_eq(l.nr_done, count_flushes(&buf, len));
		ck_assert_uint_eq(l.nr_refused, 0);
		listener_done(&l);
		free(copy);
	}
	pkt_buf_done(&buf);
}

TEST(test_flipped, .times = 2)
{
	static const char other[] = "\0\n \r0159afzA~\x7f\x80\xff";
	struct pkt_buf buf = { 0 };
	size_t at, way, refused = 0, dead = 0;
	struct frame_listener l;
	char was;

	make_stream(&buf, _i != 0, 9);
	for (at = 0; at < buf.len; at += sweep_step()) {
		was = buf.data[at];
		for (way = 0; way < 8 + sizeof(other) - 1; way++) {
			buf.data[at] =
			    way < 8 ? (char)(was ^ 1 << way) : other[way - 8];
			listener_init(&l, _i != 0);
			hear(&l, buf.data, buf.len);
			refused += l.nr_refused;
			dead += l.dead;
			listener_done(&l);
		}
		buf.data[at] = was;
	}
	/* Most damage is refused. */
	ck_assert_uint_gt(refused + dead, buf.len / sweep_step());
	pkt_buf_done(&buf);
}

/* In pieces of any size. The rest of a piece is joined to the next piece. */
TEST(test_split, .times = 2)
{
	struct pkt_buf buf = { 0 };
	struct gen g = { 5 };
	struct frame_listener l;
	size_t at, end;
	int round;

	make_stream(&buf, _i != 0, 60);
	for (round = 0; round < 200; round++) {
		listener_init(&l, _i != 0);
		at = end = 0;
		while (end < buf.len) {
			end += 1 + gen_below(&g, round < 100 ? 7 : 3000);
			if (end > buf.len)
				end = buf.len;
			at += hear(&l, buf.data + at, end - at);
		}
		ck_assert_uint_eq(at, buf.len);
		ck_assert_uint_eq(l.nr_done, 60);
		ck_assert(!l.dead);
		listener_done(&l);
	}
	pkt_buf_done(&buf);
}

enum mangling { CUT_OUT, DOUBLED, SWAPPED };

/* Packet J of PKTS as received, if packet HERE is mangled in this WAY. */
static void hear_mangled(struct frame_listener *l, const struct pkt *pkts,
    size_t j, size_t here, enum mangling way)
{
	switch (way) {
	case CUT_OUT:
		if (j != here)
			hear_packet(l, pkts[j]);
		break;
	case DOUBLED:
		hear_packet(l, pkts[j]);
		if (j == here && !l->dead)
			hear_packet(l, pkts[j]);
		break;
	case SWAPPED:
		if (j == here)
			j = here + 1;
		else if (j == here + 1)
			j = here;
		hear_packet(l, pkts[j]);
		break;
	}
}

/* Packets removed, doubled, or exchanged. */
TEST(test_shuffled, .times = 2)
{
	struct pkt_buf buf = { 0 };
	struct pkt pkts[400];
	struct frame_listener l;
	size_t nr = 0, i, j, at = 0;
	int way;

	make_stream(&buf, _i != 0, 18);
	for (; at < buf.len; nr++) {
		ck_assert_uint_lt(nr, 400);
		at += (size_t)pkt_parse(buf.data + at, buf.len - at, &pkts[nr]);
	}
	for (way = CUT_OUT; way <= SWAPPED; way++) {
		for (i = 0; i + 1 < nr; i++) {
			listener_init(&l, _i != 0);
			for (j = 0; j < nr && !l.dead; j++)
				hear_mangled(&l, pkts, j, i,
				    (enum mangling)way);
			listener_done(&l);
		}
	}
	pkt_buf_done(&buf);
}

/* A hello with every byte changed: accepted or not, but without a read
 * outside. */
TEST(test_hello)
{
	struct refd_hello hello = { .version = 1,
		.state = REFD_SERVING,
		.software = "refd/0.1",
		.done = 3,
		.total = 10,
		.max_updates = 1,
		.max_bytes = 1,
		.pid = 17 },
			  back;
	struct refd_hello_decoder dec;
	struct pkt_buf buf = { 0 };
	enum refd_decoded r;
	struct pkt pkt;
	size_t at, i, fatal = 0;
	char *copy;
	const char *why;
	long n;
	int bit;

	refd_hello_encode(&hello, &buf);
	for (i = 0; i < buf.len * 8; i++) {
		bit = (int)(i % 8);
		buf.data[i / 8] ^= (char)(1 << bit);
		memset(&dec, 0, sizeof(dec));
		r = REFD_DECODE_MORE;
		for (at = 0; r == REFD_DECODE_MORE; at += (size_t)n) {
			n = pkt_parse(buf.data + at, buf.len - at, &pkt);
			if (n <= 0)
				break;
			copy = malloc(pkt.len + 1);
			ck_assert_ptr_nonnull(copy);
			pkt.data = memcpy(copy, pkt.data, pkt.len);
			r = refd_hello_decode(&dec, &pkt, &back, &why);
			free(copy);
		}
		fatal += r == REFD_DECODE_FATAL;
		buf.data[i / 8] ^= (char)(1 << bit);
	}
	ck_assert_uint_gt(fatal, buf.len);
	pkt_buf_done(&buf);
}
