/*
 * Any bytes as what a client sends. What the decoder takes must be what the
 * encoder writes; what it refuses has a reason; whatever it says, nothing is
 * read outside of the input or left behind.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
