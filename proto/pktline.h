/*
 * pkt-line framing, as gitprotocol-common(5) has it: four hex digits of
 * length, themselves included, then the payload; 0000 is flush, 0001 delim.
 * 0002, 0003 and 0004 are refused.
 *
 * Pure functions over bytes; any thread; nothing blocks. Only struct pkt_buf
 * allocates, and its failures are sticky (see pkt_buf_failed).
 */
#ifndef PROTO_PKTLINE_H
#define PROTO_PKTLINE_H

#include <stdbool.h>
#include <stddef.h>

enum pkt_kind { PKT_DATA, PKT_FLUSH, PKT_DELIM };

struct pkt {
	enum pkt_kind kind;
	const char *data; /* borrowed from the input; not terminated */
	size_t len;
};

/*
 * Takes one packet off the front of DATA. Returns the bytes it took, 0 when
 * more input is needed, -1 when these bytes can never be a packet. A length
 * beyond REFD_PACKET_MAX is refused from its four digits alone.
 */
long pkt_parse(const char *data, size_t len, struct pkt *pkt);

/* A growing output buffer. Zero-initialised is empty. */
struct pkt_buf {
	char *data;
	size_t len, size;
	bool failed;
};

void pkt_buf_done(struct pkt_buf *buf);
/* Out of memory, or a packet too long or without payload, at any time since
 * it was empty. Nothing is added from then on. */
bool pkt_buf_failed(const struct pkt_buf *buf);
void pkt_put(struct pkt_buf *buf, const void *data, size_t len);
void pkt_putf(struct pkt_buf *buf, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void pkt_flush(struct pkt_buf *buf);
void pkt_delim(struct pkt_buf *buf);
/* Appends what MORE has, which is empty then. */
void pkt_buf_move(struct pkt_buf *buf, struct pkt_buf *more);

#endif
