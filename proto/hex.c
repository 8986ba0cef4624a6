#include "proto/hex.h"

/* The value of a digit plus 1; 0: no digit. */
static const uint8_t digits[256] = {
	['0'] = 1,
	['1'] = 2,
	['2'] = 3,
	['3'] = 4,
	['4'] = 5,
	['5'] = 6,
	['6'] = 7,
	['7'] = 8,
	['8'] = 9,
	['9'] = 10,
	['a'] = 11,
	['b'] = 12,
	['c'] = 13,
	['d'] = 14,
	['e'] = 15,
	['f'] = 16,
	['A'] = 11,
	['B'] = 12,
	['C'] = 13,
	['D'] = 14,
	['E'] = 15,
	['F'] = 16,
};

int refd_hex_digit(char c)
{
	return digits[(unsigned char)c] - 1;
}

int refd_hex_parse(const char *hex, uint8_t *bytes, size_t nr)
{
	unsigned high, low;
	size_t i;

	for (i = 0; i < nr; i++) {
		high = digits[(unsigned char)hex[2 * i]];
		if (high == 0)
			return -1;
		low = digits[(unsigned char)hex[2 * i + 1]];
		if (low == 0)
			return -1;
		bytes[i] = (uint8_t)((high - 1) << 4 | (low - 1));
	}
	return 0;
}

char *refd_hex_put(const uint8_t *bytes, size_t nr, char *hex)
{
	static const char lower[] = "0123456789abcdef";
	size_t i;

	for (i = 0; i < nr; i++) {
		hex[2 * i] = lower[bytes[i] >> 4];
		hex[2 * i + 1] = lower[bytes[i] & 15];
	}
	hex[2 * nr] = '\0';
	return hex;
}
