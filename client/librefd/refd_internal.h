/*
 * A struct refd, for the files that share it: refd.c (requests), connect.c
 * (connections come and go), receive.c (what the daemon says).
 *
 * One thread at a time. 0 or a negative errno, whose text refd_error() has.
 */
#ifndef CLIENT_LIBREFD_REFD_INTERNAL_H
#define CLIENT_LIBREFD_REFD_INTERNAL_H

#include "client/librefd/conn.h"
#include "client/librefd/flight.h"
#include "client/librefd/sessions.h"
#include "client/refd.h"

/* Before another attempt to connect, the first time. */
#define NAP_MIN_MS 5

struct refd {
	char *path;
	struct refd_conn conn;
	struct refd_answer_decoder *dec;
	struct refd_hello hello;
	bool has_hello;
	enum refd_status refusal; /* of the last connection; REFD_OK: none */
	struct sessions sessions; /* prepared on this connection */
	struct flight *flights[REFD_REQUESTS_MAX];
	size_t nr_flights;
	uint32_t last_id;
	unsigned nap_ms;     /* before the next attempt to connect */
	unsigned nr_misfits; /* answers not understood, in a row */
	char error[512];
};

/* Returns ERR. */
int refd_fail(struct refd *r, int err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Takes all packets that are there to what they answer. */
int refd_take_packets(struct refd *r);
/* What it means that the daemon has turned this connection away; 0 if it has
 * not. The text is told already. */
int refd_refusal_error(const struct refd *r);

void refd_hang_up(struct refd *r);
/* Once lost: until the daemon serves again, or the time is up. -EPERM where
 * it does not want us, -ECONNRESET whatever else the reason. Sends again what
 * is in flight. Blocks until DEADLINE. */
int refd_reconnect(struct refd *r, uint64_t deadline);
/* Blocks for a while, longer each time nothing came of it. */
void refd_back_off(struct refd *r, uint64_t deadline);

#endif
