#include "proto/txid.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "proto/hex.h"

#define BIRTH_BYTES 6

int refd_txid_make(struct refd_txid *id)
{
	struct refd_txid made;
	struct timespec now;
	uint64_t ms;
	ssize_t n;
	int i;

	/* The kernel gives such a small number of bytes completely or not at
	 * all. EINTR is possible only early in a boot, before the kernel's pool
	 * is ready, so the loop ends. */
	do
		n = getrandom(made.bytes, sizeof(made.bytes), 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (n != (ssize_t)sizeof(made.bytes))
		return -EIO;
	if (clock_gettime(CLOCK_REALTIME, &now) < 0)
		return -errno;
	ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
	for (i = BIRTH_BYTES - 1; i >= 0; i--) {
		made.bytes[i] = (uint8_t)ms;
		ms >>= 8;
	}
	*id = made;
	return 0;
}

int refd_txid_parse(const char *hex, struct refd_txid *id)
{
	struct refd_txid parsed;

	if (refd_hex_parse(hex, parsed.bytes, REFD_TXID_BYTES) < 0 ||
	    hex[REFD_TXID_HEX] != '\0')
		return -1;
	*id = parsed;
	return 0;
}

char *refd_txid_hex(const struct refd_txid *id, char hex[REFD_TXID_HEX + 1])
{
	return refd_hex_put(id->bytes, REFD_TXID_BYTES, hex);
}

uint64_t refd_txid_birth_ms(const struct refd_txid *id)
{
	uint64_t ms = 0;
	size_t i;

	for (i = 0; i < BIRTH_BYTES; i++)
		ms = ms << 8 | id->bytes[i];
	return ms;
}

bool refd_txid_eq(const struct refd_txid *a, const struct refd_txid *b)
{
	return memcmp(a->bytes, b->bytes, REFD_TXID_BYTES) == 0;
}
