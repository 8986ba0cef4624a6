#include "proto/pktline.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/hex.h"
#include "proto/limits.h"

#define FORMAT_GUESS 256 /* most packets are shorter */

long pkt_parse(const char *data, size_t len, struct pkt *pkt)
{
	size_t i, size = 0;
	int digit;

	for (i = 0; i < PKT_DIGITS; i++) {
		if (i == len)
			return 0;
		digit = refd_hex_digit(data[i]);
		if (digit < 0)
			return -1;
		size = size << 4 | (size_t)digit;
	}
	if (size <= 1) {
		pkt->kind = size == 0 ? PKT_FLUSH : PKT_DELIM;
		pkt->data = data + PKT_DIGITS;
		pkt->len = 0;
		return PKT_DIGITS;
	}
	if (size <= PKT_DIGITS || size > REFD_PACKET_MAX)
		return -1;
	if (len < size)
		return 0;
	pkt->kind = PKT_DATA;
	pkt->data = data + PKT_DIGITS;
	pkt->len = size - PKT_DIGITS;
	return (long)size;
}

void pkt_buf_done(struct pkt_buf *buf)
{
	free(buf->data);
	memset(buf, 0, sizeof(*buf));
}

bool pkt_buf_failed(const struct pkt_buf *buf)
{
	return buf->failed;
}

/* Makes room for MORE bytes behind the content. */
static bool reserve(struct pkt_buf *buf, size_t more)
{
	size_t size = buf->size != 0 ? buf->size : 512;
	char *data;

	if (buf->failed)
		return false;
	if (more <= buf->size - buf->len)
		return true;
	while (size - buf->len < more && size <= SIZE_MAX / 2)
		size *= 2;
	data = size - buf->len < more ? NULL : realloc(buf->data, size);
	if (data == NULL) {
		buf->failed = true;
		return false;
	}
	buf->data = data;
	buf->size = size;
	return true;
}

/* Writes the head of a packet. The LEN bytes of payload are already behind the
 * room for the head. */
static void seal(struct pkt_buf *buf, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	size_t size = len + PKT_DIGITS;
	char *head = buf->data + buf->len;

	head[0] = digits[size >> 12 & 15];
	head[1] = digits[size >> 8 & 15];
	head[2] = digits[size >> 4 & 15];
	head[3] = digits[size & 15];
	buf->len += size;
}

void pkt_put(struct pkt_buf *buf, const void *data, size_t len)
{
	if (len == 0 || len > REFD_PAYLOAD_MAX)
		buf->failed = true;
	if (!reserve(buf, PKT_DIGITS + len))
		return;
	memcpy(buf->data + buf->len + PKT_DIGITS, data, len);
	seal(buf, len);
}

static size_t part_len(const char *part)
{
	return part != NULL ? strlen(part) : 1;
}

void pkt_puts(struct pkt_buf *buf, const char *const *parts, size_t nr)
{
	size_t i, len, sum = 0;
	char *at;

	for (i = 0; i < nr; i++)
		sum += part_len(parts[i]);
	if (sum == 0 || sum > REFD_PAYLOAD_MAX)
		buf->failed = true;
	if (!reserve(buf, PKT_DIGITS + sum))
		return;
	at = buf->data + buf->len + PKT_DIGITS;
	for (i = 0; i < nr; i++, at += len) {
		len = part_len(parts[i]);
		memcpy(at, parts[i] != NULL ? parts[i] : "", len);
	}
	seal(buf, sum);
}

void pkt_putf(struct pkt_buf *buf, const char *fmt, ...)
{
	va_list ap, again;
	size_t room;
	int n;

	if (!reserve(buf, PKT_DIGITS + FORMAT_GUESS))
		return;
	room = buf->size - buf->len - PKT_DIGITS;
	va_start(ap, fmt);
	va_copy(again, ap);
	n = vsnprintf(buf->data + buf->len + PKT_DIGITS, room, fmt, ap);
	if (n <= 0 || n > REFD_PAYLOAD_MAX)
		buf->failed = true;
	else if ((size_t)n >= room && reserve(buf, PKT_DIGITS + (size_t)n + 1))
		vsnprintf(buf->data + buf->len + PKT_DIGITS, (size_t)n + 1, fmt,
		    again);
	va_end(again);
	va_end(ap);
	if (!buf->failed)
		seal(buf, (size_t)n);
}

static void put_special(struct pkt_buf *buf, const char *digits)
{
	if (!reserve(buf, PKT_DIGITS))
		return;
	memcpy(buf->data + buf->len, digits, PKT_DIGITS);
	buf->len += PKT_DIGITS;
}

void pkt_flush(struct pkt_buf *buf)
{
	put_special(buf, "0000");
}

void pkt_delim(struct pkt_buf *buf)
{
	put_special(buf, "0001");
}

void pkt_buf_move(struct pkt_buf *buf, struct pkt_buf *more)
{
	if (more->len > 0 && reserve(buf, more->len)) {
		memcpy(buf->data + buf->len, more->data, more->len);
		buf->len += more->len;
	}
	pkt_buf_done(more);
}
