#include "proto/utf8.h"

#include <string.h>

size_t utf8_decode(const char *s, size_t len, uint32_t *code)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *u = (const unsigned char *)s;
	size_t size, i;
	uint32_t c = u[0];

	if (c >= 0x80) {
		if (c < 0xc2 || c > 0xf4)
			return 0;
		size = c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
		c &= 0xffU >> (size + 1);
		for (i = 1; i < size; i++) {
			if (i == len || (u[i] & 0xc0) != 0x80)
				return 0;
			c = c << 6 | (u[i] & 0x3f);
		}
		if (c < least[size] || (c >= 0xd800 && c < 0xe000) ||
		    c > 0x10ffff)
			return 0;
	} else {
		size = 1;
	}
	*code = c;
	return size;
}

/* The bytes of the character at S. */
static size_t step(const char *s)
{
	uint32_t code;
	size_t len = utf8_decode(s, strnlen(s, 4), &code);

	return len > 0 ? len : 1;
}

size_t utf8_width(const char *s)
{
	size_t width;

	for (width = 0; *s; width++)
		s += step(s);
	return width;
}

size_t utf8_skip(const char *s, size_t nr)
{
	size_t at;

	for (at = 0; s[at] && nr > 0; nr--)
		at += step(s + at);
	return at;
}

size_t utf8_cut(const char *s, size_t max)
{
	size_t at = 0, len;

	while (s[at]) {
		len = step(s + at);
		if (at + len > max)
			break;
		at += len;
	}
	return at;
}
