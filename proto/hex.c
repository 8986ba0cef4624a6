#include "proto/hex.h"

int refd_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

int refd_hex_parse(const char *hex, uint8_t *bytes, size_t nr)
{
	int high, low;
	size_t i;

	for (i = 0; i < nr; i++) {
		high = refd_hex_digit(hex[2 * i]);
		if (high < 0)
			return -1;
		low = refd_hex_digit(hex[2 * i + 1]);
		if (low < 0)
			return -1;
		bytes[i] = (uint8_t)(high << 4 | low);
	}
	return 0;
}

char *refd_hex_put(const uint8_t *bytes, size_t nr, char *hex)
{
	static const char digits[] = "0123456789abcdef";
	size_t i;

	for (i = 0; i < nr; i++) {
		hex[2 * i] = digits[bytes[i] >> 4];
		hex[2 * i + 1] = digits[bytes[i] & 15];
	}
	hex[2 * nr] = '\0';
	return hex;
}
