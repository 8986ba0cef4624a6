/*
 * Any bytes as pkt-lines. An accepted packet is encoded as the same bytes
 * (except the case of the digits). An incomplete packet needs more input and
 * gives no error. No read beyond the input.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"
#include "proto/pktline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool ok)
{
	if (!ok)
		abort();
}

static void put(const struct pkt *pkt, struct pkt_buf *out)
{
	switch (pkt->kind) {
	case PKT_DATA:
		expect(pkt->len > 0 && pkt->len <= REFD_PACKET_MAX - 4);
		pkt_put(out, pkt->data, pkt->len);
		break;
	case PKT_FLUSH:
		pkt_flush(out);
		break;
	case PKT_DELIM:
		pkt_delim(out);
		break;
	}
}

/* Copies DATA to an allocation of the exact size, so the sanitizer detects a
 * read beyond the end. */
static long parse_exactly(const char *data, size_t len)
{
	char *exact = malloc(len > 0 ? len : 1);
	struct pkt pkt;
	long taken;

	expect(exact != NULL);
	memcpy(exact, data, len);
	taken = pkt_parse(exact, len, &pkt);
	free(exact);
	return taken;
}

static void check_packet(const char *data, const struct pkt *pkt, long taken)
{
	struct pkt_buf again = { 0 };
	int i;

	put(pkt, &again);
	expect(!pkt_buf_failed(&again) && (long)again.len == taken);
	for (i = 0; i < 4; i++)
		expect(again.data[i] == tolower((unsigned char)data[i]));
	expect(memcmp(again.data + 4, data + 4, again.len - 4) == 0);
	pkt_buf_done(&again);
	expect(parse_exactly(data, (size_t)taken) == taken);
	expect(parse_exactly(data, (size_t)taken - 1) == 0);
	expect(parse_exactly(data, 3) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *at = (const char *)data;
	struct pkt pkt;
	long taken;

	while ((taken = pkt_parse(at, size, &pkt)) > 0) {
		expect((size_t)taken <= size);
		check_packet(at, &pkt, taken);
		at += taken;
		size -= (size_t)taken;
	}
	if (taken == 0)
		expect(size < REFD_PACKET_MAX);
	return 0;
}
