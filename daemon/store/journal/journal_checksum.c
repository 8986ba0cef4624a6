/*
 * The checksum of a row, which is stored beside it: SQLite's pages have none.
 *
 * Happy path: the CRC-32 of zlib, which the daemon has for objects, over all
 * that the row says: the numbers, each as eight bytes little-endian, the
 * transaction's id, the body. It finds every error of up to 32 bits in a row,
 * and any other but for one in four thousand million.
 *
 * Failure modes: none. A row that was written before format 2 has no checksum,
 * and is believed.
 */
#include <zlib.h>

#include "daemon/store/journal/journal_internal.h"

#define NUMBERS 12

uint32_t journal_checksum(const struct journal_row *row)
{
	const uint64_t numbers[NUMBERS] = { row->lsn, row->kind, row->uid,
		(uint64_t)row->pid, row->repo, row->start, row->token,
		row->mount, (uint64_t)row->locked_at_ns, (uint64_t)row->time_us,
		row->voids, row->final };
	uint8_t bytes[8 * NUMBERS];
	uLong sum = crc32(0, NULL, 0);
	size_t i;

	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(numbers[i / 8] >> (8 * (i % 8)));
	sum = crc32_z(sum, bytes, sizeof(bytes));
	sum = crc32_z(sum, row->txid.bytes, sizeof(row->txid.bytes));
	/* Of NULL, as SQLite gives an empty body, zlib would begin anew. */
	if (row->len > 0)
		sum = crc32_z(sum, row->body, row->len);
	return (uint32_t)sum;
}
