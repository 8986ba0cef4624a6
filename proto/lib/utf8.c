#include "proto/lib/utf8.h"

size_t utf8_len(const char *s)
{
	const unsigned char *u = (const unsigned char *)s;
	size_t len, i;
	unsigned c;

	if (u[0] < 0x80)
		return 1;
	if (u[0] < 0xc2 || u[0] > 0xf4)
		return 0;
	len = u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : 4;
	c = u[0] & (0xffU >> (len + 1));
	for (i = 1; i < len; i++) {
		if ((u[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (u[i] & 0x3f);
	}
	if ((len == 3 && c < 0x800) || (len == 4 && c < 0x10000) ||
	    (c >= 0xd800 && c < 0xe000) || c > 0x10ffff)
		return 0;
	return len;
}

unsigned utf8_control(const char *s)
{
	const unsigned char *u = (const unsigned char *)s;

	if (u[0] < ' ' || u[0] == 0x7f)
		return u[0];
	return u[0] == 0xc2 && u[1] >= 0x80 && u[1] < 0xa0 ? u[1] : 0;
}

void utf8_hide_controls(char *s)
{
	for (; *s; s++)
		if (utf8_control(s) >= 0x80)
			s[0] = s[1] = '?';
		else if (utf8_control(s) && *s != '\t' && *s != '\n')
			*s = '?';
}
