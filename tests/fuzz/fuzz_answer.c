/*
 * Any bytes as the messages of a server: as hello and, independently, as
 * answers. The encoder must write accepted answers with the same bytes. An
 * accepted hello may have ignored lines, so its content must survive encoding
 * and decoding. No read beyond the input, and no leaks.
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

/* Reads a hello from the front. Returns true if it is complete and accepted. */
static bool read_hello(const char *data, size_t size, struct refd_hello *hello)
{
	struct refd_hello_decoder dec = { 0 };
	enum refd_decoded r = REFD_DECODE_MORE;
	const char *why;
	struct pkt pkt;
	long n;

	for (; r == REFD_DECODE_MORE; data += n, size -= (size_t)n) {
		n = pkt_parse(data, size, &pkt);
		if (n <= 0)
			return false;
		r = refd_hello_decode(&dec, &pkt, hello, &why);
	}
	return r == REFD_DECODE_DONE;
}

static void check_hello(const char *data, size_t size)
{
	struct refd_hello hello, again;
	struct pkt_buf said = { 0 };

	if (!read_hello(data, size, &hello))
		return;
	refd_hello_encode(&hello, &said);
	expect(!pkt_buf_failed(&said));
	expect(read_hello(said.data, said.len, &again));
	expect(hello.version == again.version && hello.state == again.state &&
	    hello.horizon_ms == again.horizon_ms && hello.pid == again.pid &&
	    hello.max_updates == again.max_updates &&
	    hello.max_bytes == again.max_bytes &&
	    strcmp(hello.software, again.software) == 0);
	pkt_buf_done(&said);
}

static void check_taken(struct refd_answer *ans, const struct pkt_buf *heard)
{
	struct pkt_buf said = { 0 };

	refd_answer_encode(ans, &said);
	expect(!pkt_buf_failed(&said) && said.len == heard->len);
	expect(memcmp(said.data, heard->data, said.len) == 0);
	pkt_buf_done(&said);
	refd_answer_done(ans);
}

static void check_answers(const char *data, size_t size)
{
	struct refd_answer_decoder *dec = refd_answer_decoder_new();
	enum refd_decoded r = REFD_DECODE_MORE;
	struct pkt_buf heard = { 0 };
	struct refd_answer ans;
	const char *why;
	struct pkt pkt;
	long n;

	for (; r != REFD_DECODE_FATAL; data += n, size -= (size_t)n) {
		n = pkt_parse(data, size, &pkt);
		if (n <= 0)
			break;
		/* No accepted answer contains a delimiter. */
		if (pkt.kind == PKT_FLUSH)
			pkt_flush(&heard);
		else if (pkt.kind == PKT_DATA)
			pkt_put(&heard, pkt.data, pkt.len);
		r = refd_answer_decode(dec, &pkt, &ans, &why);
		expect(r != REFD_DECODE_REFUSED);
		if (r == REFD_DECODE_DONE) {
			check_taken(&ans, &heard);
			heard.len = 0;
		}
	}
	pkt_buf_done(&heard);
	refd_answer_decoder_free(dec);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_hello((const char *)data, size);
	check_answers((const char *)data, size);
	return 0;
}
