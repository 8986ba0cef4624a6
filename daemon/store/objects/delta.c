#include "daemon/store/objects/delta.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Reads a size at the head of a delta, first the size of the base, then the
 * size of the result, and advances *P. -1: no complete size before END. */
static int read_size(const uint8_t **p, const uint8_t *end, uint64_t *size)
{
	uint64_t n = 0;
	unsigned shift;

	for (shift = 0; *p < end && shift < 63; shift += 7) {
		n |= (uint64_t)(**p & 0x7f) << shift;
		if ((*(*p)++ & 0x80) == 0) {
			*size = n;
			return 0;
		}
	}
	return -1;
}

/* The operands of a copy instruction: up to four bytes of the offset, then up
 * to three of the size. A byte is present if its bit in CMD is set. */
static int copy_operands(const uint8_t **p, const uint8_t *end, uint8_t cmd,
    size_t *offset, size_t *size)
{
	size_t value[2] = { 0, 0 };
	int bit;

	for (bit = 0; bit < 7; bit++) {
		if ((cmd >> bit & 1) == 0)
			continue;
		if (*p == end)
			return -1;
		value[bit >= 4] |= (size_t)**p << 8 * (bit & 3);
		(*p)++;
	}
	*offset = value[0];
	*size = value[1] != 0 ? value[1] : 0x10000;
	return 0;
}

static int build(const uint8_t *base, size_t base_len, const uint8_t *p,
    const uint8_t *end, uint8_t *out, size_t out_len)
{
	size_t at = 0, offset, size;
	const uint8_t *from;
	uint8_t cmd;

	while (p < end) {
		cmd = *p++;
		if (cmd & 0x80) {
			if (copy_operands(&p, end, cmd, &offset, &size) < 0 ||
			    offset > base_len || size > base_len - offset)
				return -EBADMSG;
			from = base + offset;
		} else {
			size = cmd;
			from = p;
			if (size == 0 || size > (size_t)(end - p))
				return -EBADMSG;
			p += size;
		}
		if (size > out_len - at)
			return -EBADMSG;
		memcpy(out + at, from, size);
		at += size;
	}
	return at == out_len ? 0 : -EBADMSG;
}

int delta_apply(const uint8_t *base, size_t base_len, const uint8_t *delta,
    size_t delta_len, size_t max, uint8_t **out, size_t *len)
{
	const uint8_t *p = delta, *end = delta + delta_len;
	uint64_t from_len, to_len;
	uint8_t *to;
	int r;

	if (read_size(&p, end, &from_len) < 0 ||
	    read_size(&p, end, &to_len) < 0 || from_len != base_len)
		return -EBADMSG;
	if (to_len > max)
		return -EFBIG;
	to = malloc((size_t)to_len + 1);
	if (to == NULL)
		return -ENOMEM;
	r = build(base, base_len, p, end, to, (size_t)to_len);
	if (r < 0) {
		free(to);
		return r;
	}
	*out = to;
	*len = (size_t)to_len;
	return 0;
}
