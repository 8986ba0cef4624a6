#include "daemon/base/quote.h"

#include <stdbool.h>
#include <string.h>

static bool continues(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* The length of the printable character at S; 0: not printable. */
static size_t printable(const char *s)
{
	unsigned char c = (unsigned char)s[0];
	size_t len, i;

	if (c < 0x80)
		return c >= ' ' && c != 0x7f;
	/* C2 80 to C2 9F are controls, C0 and C1 and F5 never occur. */
	if (c < 0xc2 || c > 0xf4 || (c == 0xc2 && (unsigned char)s[1] < 0xa0))
		return 0;
	len = c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
	for (i = 1; i < len; i++)
		if (!continues(s[i]))
			return 0;
	return len;
}

/* Writes the escaped character at S to OUT, at most 4 bytes. *USED: bytes of
 * S. */
static size_t spell(const char *s, char out[4], size_t *used)
{
	static const char hex[] = "0123456789abcdef";
	static const char plain[] = "\"\\\n\t", letters[] = "\"\\nt";
	const char *at = strchr(plain, *s);
	unsigned char c = (unsigned char)*s;

	*used = 1;
	out[0] = '\\';
	if (at != NULL) {
		out[1] = letters[at - plain];
		return 2;
	}
	*used = printable(s);
	if (*used > 0) {
		memcpy(out, s, *used);
		return *used;
	}
	*used = 1;
	out[1] = 'x';
	out[2] = hex[c >> 4];
	out[3] = hex[c & 15];
	return 4;
}

char *quote(char *to, size_t size, const char *s)
{
	size_t at = 0, len, used;
	char out[4];

	to[at++] = '"';
	for (; *s != '\0'; s += used) {
		len = spell(s, out, &used);
		if (at + len + 2 > size)
			break;
		memcpy(to + at, out, len);
		at += len;
	}
	to[at++] = '"';
	to[at] = '\0';
	return to;
}
