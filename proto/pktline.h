/*
 * pkt-line framing, as in gitprotocol-common(5): four hex digits of length,
 * including the digits, then the payload. 0000 is flush, and 0001 is delim.
 * 0002, 0003 and 0004 are refused.
 *
 * Pure functions over bytes; any thread; nothing blocks. Only struct pkt_buf
 * allocates, and its failures are sticky (see pkt_buf_failed).
 */
#ifndef PROTO_PKTLINE_H
#define PROTO_PKTLINE_H

#include <stdbool.h>
#include <stddef.h>

/* The length digits of a packet. */
#define PKT_DIGITS 4

enum pkt_kind { PKT_DATA, PKT_FLUSH, PKT_DELIM };

struct pkt {
	enum pkt_kind kind;
	const char *data; /* borrowed from the input; not terminated */
	size_t len;
};

/*
 * Takes one packet from the front of DATA. Returns the length of the packet, 0
 * if more input is needed, or -1 if the bytes can never become a packet. A
 * length above REFD_PACKET_MAX is refused as soon as the four digits are read.
 */
long pkt_parse(const char *data, size_t len, struct pkt *pkt);

/* A growing output buffer, which is empty when zero-initialised. */
struct pkt_buf {
	char *data;
	size_t len, size;
	bool failed;
};

void pkt_buf_done(struct pkt_buf *buf);
/* True if, since the buffer was last empty, memory ran out, a packet was too
 * long or had no payload, or an encoder could not express a value. Nothing is
 * added after the failure. */
bool pkt_buf_failed(const struct pkt_buf *buf);
void pkt_put(struct pkt_buf *buf, const void *data, size_t len);
/* A packet of the NR strings at PARTS; a NULL among them is a NUL byte. */
void pkt_puts(struct pkt_buf *buf, const char *const *parts, size_t nr);
void pkt_putf(struct pkt_buf *buf, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void pkt_flush(struct pkt_buf *buf);
void pkt_delim(struct pkt_buf *buf);
/* Appends the content of MORE, and empties MORE. */
void pkt_buf_move(struct pkt_buf *buf, struct pkt_buf *more);

#endif
