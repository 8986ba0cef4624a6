/*
 * The checksums of a row and of meta, stored beside the data, because SQLite's
 * pages have none.
 *
 * Happy path: the CRC-32 of zlib, which the daemon already uses for objects,
 * over all data of the row: the numbers, each as eight bytes little-endian, the
 * transaction's id, the body. The checksum finds every error of up to 32 bits
 * in a row, and all but one in four thousand million of the others.
 *
 * Failure modes: none.
 */
#include <string.h>
#include <zlib.h>

#include "daemon/store/journal/journal_internal.h"

#define NUMBERS 13

_Static_assert(JOURNAL_HEAD_BYTES == 8 * NUMBERS + sizeof(struct refd_txid),
    "a head is the numbers and the id");

/* At most NUMBERS of them. */
static void put_numbers(uint8_t *bytes, const uint64_t *numbers, size_t nr)
{
	size_t i;

	for (i = 0; i < 8 * nr; i++)
		bytes[i] = (uint8_t)(numbers[i / 8] >> (8 * (i % 8)));
}

static uLong add_numbers(uLong sum, const uint64_t *numbers, size_t nr)
{
	uint8_t bytes[8 * NUMBERS];

	put_numbers(bytes, numbers, nr);
	return crc32_z(sum, bytes, 8 * nr);
}

void journal_put_head(const struct journal_row *row,
    uint8_t head[JOURNAL_HEAD_BYTES])
{
	const uint64_t numbers[NUMBERS] = { row->lsn, row->kind, row->uid,
		(uint64_t)row->pid, row->repo, row->start, row->token,
		row->mount, (uint64_t)row->locked_at_ns, (uint64_t)row->time_us,
		row->refers_to, row->final, row->shared_lsn };

	put_numbers(head, numbers, NUMBERS);
	memcpy(head + 8 * NUMBERS, row->txid.bytes, sizeof(row->txid.bytes));
}

uint32_t journal_checksum(const struct journal_row *row)
{
	uint8_t head[JOURNAL_HEAD_BYTES];
	uLong sum = crc32(0, NULL, 0);

	journal_put_head(row, head);
	sum = crc32_z(sum, head, sizeof(head));
	/* SQLite gives NULL for an empty body, and for NULL zlib would begin
	 * anew. */
	if (row->len > 0)
		sum = crc32_z(sum, row->body, row->len);
	return (uint32_t)sum;
}

uint32_t journal_objects_checksum(uint64_t lsn, const uint8_t *bytes,
    size_t len)
{
	uLong sum = add_numbers(crc32(0, NULL, 0), &lsn, 1);

	return (uint32_t)crc32_z(sum, bytes, len);
}

static void put_big_endian(uint8_t *p, uint32_t value)
{
	p[0] = (uint8_t)(value >> 24);
	p[1] = (uint8_t)(value >> 16);
	p[2] = (uint8_t)(value >> 8);
	p[3] = (uint8_t)value;
}

void journal_seal(const struct journal *j, const struct journal_meta *meta,
    uint64_t flushed, uint8_t seal[JOURNAL_SEAL_BYTES])
{
	const uint64_t numbers[] = { meta->forgotten, meta->trimmed,
		meta->shared.lsn, flushed };
	uLong sum = crc32(0, NULL, 0);

	sum = add_numbers(sum, numbers, sizeof(numbers) / sizeof(numbers[0]));
	if (meta->shared.joined_ms != 0)
		sum = add_numbers(sum, &meta->shared.joined_ms, 1);
	sum = crc32_z(sum, meta->shared.uuid, sizeof(meta->shared.uuid));
	sum = crc32_z(sum, j->uuid, sizeof(j->uuid));
	sum = crc32_z(sum, (const uint8_t *)j->machine, strlen(j->machine) + 1);
	put_big_endian(seal, (uint32_t)(flushed >> 32));
	put_big_endian(seal + 4, (uint32_t)flushed);
	put_big_endian(seal + 8, (uint32_t)sum);
}
