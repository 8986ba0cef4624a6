/*
 * Transaction ids: 128 bits, made by the client. The first 48 bits are the
 * birth time in milliseconds since the epoch, so ids sort by age, and an
 * expired id is recognised without a look-up. The other 80 bits are random.
 * Text: 32 lower-case hex digits. Any thread. Only refd_txid_make() may block,
 * early in a boot, until the kernel has random bits.
 */
#ifndef PROTO_TXID_H
#define PROTO_TXID_H

#include <stdbool.h>
#include <stdint.h>

#define REFD_TXID_BYTES 16
#define REFD_TXID_HEX   32

struct refd_txid {
	uint8_t bytes[REFD_TXID_BYTES];
};

/* Reads the wall clock and getrandom(2). Returns 0 or a negative errno. */
int refd_txid_make(struct refd_txid *id);
/* Exactly 32 hex digits; 0 or -1. */
int refd_txid_parse(const char *hex, struct refd_txid *id);
char *refd_txid_hex(const struct refd_txid *id, char hex[REFD_TXID_HEX + 1]);
uint64_t refd_txid_birth_ms(const struct refd_txid *id);
bool refd_txid_eq(const struct refd_txid *a, const struct refd_txid *b);

#endif
