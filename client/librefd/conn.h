/*
 * A connection to the daemon's socket: bytes out, packets in.
 *
 * One thread at a time. Only open and pump block, and only until their deadline
 * (clock_now_ms(); CLOCK_FOREVER: no limit). If both sides only wrote, they
 * would wait for each other, so pump also reads while there are unsent bytes.
 * Errors are negative errnos, and after an error the connection is unusable.
 * The end of the connection is reported only after all received bytes were
 * read.
 */
#ifndef CLIENT_LIBREFD_CONN_H
#define CLIENT_LIBREFD_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/pktline.h"

struct refd_conn {
	int fd;       /* -1: closed */
	bool is_deaf; /* takes no more bytes, but may have sent some */
	struct pkt_buf out;
	size_t sent;       /* of out */
	uint64_t out_base; /* bytes queued before out was last empty */
	char *in;
	size_t in_start, in_end, in_size;
};

void refd_conn_init(struct refd_conn *conn);
void refd_conn_done(struct refd_conn *conn);
bool refd_conn_is_open(const struct refd_conn *conn);

/* -ENOENT, -ECONNREFUSED: no listener. -ETIMEDOUT. -ENAMETOOLONG. */
int refd_conn_open(struct refd_conn *conn, const char *path, uint64_t deadline);
void refd_conn_close(struct refd_conn *conn);

/* Puts the content of PACKETS behind the unsent bytes, and may take their
 * memory. *BEGIN is their place in the stream, for comparison with
 * refd_conn_written(). -ENOMEM. */
int refd_conn_queue(struct refd_conn *conn, struct pkt_buf *packets,
    uint64_t *begin);
/* Bytes that the kernel has taken since the connection was opened. */
uint64_t refd_conn_written(const struct refd_conn *conn);

/* Waits until the socket is readable or writable, and reads or writes. */
int refd_conn_pump(struct refd_conn *conn, uint64_t deadline);
/* Writes as much as possible without blocking. pump reports errors. */
void refd_conn_flush(struct refd_conn *conn);

/* Returns 1 and a packet, borrowed until the next pump; 0 if no packet is
 * complete; -EPROTO if the bytes are not pkt-lines. */
int refd_conn_packet(struct refd_conn *conn, struct pkt *pkt);

#endif
