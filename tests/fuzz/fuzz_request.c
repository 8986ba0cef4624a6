/*
 * Any bytes as the messages of a client. The encoder must write accepted
 * requests with the same bytes, and a refusal has a reason. No read beyond the
 * input, and no leaks.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/message.h"
#include "tests/lib/gen_message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max,
    unsigned seed);

static void expect(bool ok)
{
	if (!ok)
		abort();
}

static void hear(struct pkt_buf *heard, const struct pkt *pkt)
{
	switch (pkt->kind) {
	case PKT_DATA:
		pkt_put(heard, pkt->data, pkt->len);
		break;
	case PKT_DELIM:
		pkt_delim(heard);
		break;
	case PKT_FLUSH:
		pkt_flush(heard);
		break;
	}
}

static void check_taken(struct refd_request *req, const struct pkt_buf *heard)
{
	struct pkt_buf said = { 0 };

	refd_request_encode(req, &said);
	expect(!pkt_buf_failed(&said) && said.len == heard->len);
	expect(memcmp(said.data, heard->data, said.len) == 0);
	pkt_buf_done(&said);
	refd_request_done(req);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct refd_request_decoder *dec = refd_request_decoder_new();
	enum refd_decoded r = REFD_DECODE_MORE;
	struct pkt_buf heard = { 0 };
	enum refd_status status;
	struct refd_request req;
	const char *why;
	struct pkt pkt;
	long n;

	for (; r != REFD_DECODE_FATAL; data += n, size -= (size_t)n) {
		n = pkt_parse((const char *)data, size, &pkt);
		if (n <= 0)
			break;
		hear(&heard, &pkt);
		status = REFD_OK;
		why = NULL;
		r = refd_request_decode(dec, &pkt, &req, &status, &why);
		if (r == REFD_DECODE_DONE)
			check_taken(&req, &heard);
		else if (r == REFD_DECODE_REFUSED)
			expect(status != REFD_OK && why != NULL);
		if (r != REFD_DECODE_MORE)
			heard.len = 0;
	}
	pkt_buf_done(&heard);
	refd_request_decoder_free(dec);
	return 0;
}

/* ---- the mutator ---- */

#define PACKETS_MAX 64

static size_t take_over(struct pkt_buf *made, uint8_t *data, size_t max,
    size_t size)
{
	if (!pkt_buf_failed(made) && made->len > 0 && made->len <= max) {
		memcpy(data, made->data, made->len);
		size = made->len;
	}
	pkt_buf_done(made);
	return size;
}

/* Makes complete messages that the decoder accepts. */
static size_t put_request(struct gen *g, uint8_t *data, size_t size, size_t max)
{
	struct pkt_buf made = { 0 };
	struct refd_request req;

	gen_request(g, &req);
	refd_request_encode(&req, &made);
	refd_request_done(&req);
	return take_over(&made, data, max, size);
}

static void put_mutated(struct pkt_buf *to, const struct pkt *pkt)
{
	uint8_t payload[4096];
	size_t len = pkt->len < 2048 ? pkt->len : 2048;

	memcpy(payload, pkt->data, len);
	len = LLVMFuzzerMutate(payload, len, sizeof(payload));
	if (len > 0)
		pkt_put(to, payload, len);
}

/* Changes, drops or doubles a packet. The framing stays valid; random changes
 * of bytes hardly ever leave a valid framing. */
static size_t change_packet(struct gen *g, uint8_t *data, size_t size,
    size_t max)
{
	struct pkt packets[PACKETS_MAX];
	struct pkt_buf made = { 0 };
	size_t at = 0, nr = 0, i, which;
	long n;

	while (nr < PACKETS_MAX &&
	    (n = pkt_parse((char *)data + at, size - at, &packets[nr])) > 0) {
		at += (size_t)n;
		nr++;
	}
	if (nr == 0)
		return put_request(g, data, size, max);
	which = gen_below(g, (uint32_t)nr);
	for (i = 0; i < nr; i++) {
		if (i != which || packets[i].kind != PKT_DATA) {
			hear(&made, &packets[i]);
			continue;
		}
		switch (gen_below(g, 4)) {
		case 0:
			break;
		case 1:
			hear(&made, &packets[i]);
			hear(&made, &packets[i]);
			break;
		default:
			put_mutated(&made, &packets[i]);
		}
	}
	return take_over(&made, data, max, size);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max,
    unsigned seed)
{
	struct gen g = { seed + 1u };

	gen_u64(&g);
	switch (gen_below(&g, 8)) {
	case 0:
		return put_request(&g, data, size, max);
	case 1:
		return LLVMFuzzerMutate(data, size, max);
	default:
		return change_packet(&g, data, size, max);
	}
}
