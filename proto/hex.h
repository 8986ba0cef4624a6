/*
 * Bytes as hexadecimal digits and back. Pure functions; any thread. Private
 * to proto/.
 */
#ifndef PROTO_HEX_H
#define PROTO_HEX_H

#include <stddef.h>
#include <stdint.h>

/* 0 to 15 for a digit of either case, or -1 for any other byte. */
int refd_hex_digit(char c);
/* Reads NR bytes from the first 2 * NR digits of HEX. Returns 0, or -1 with
 * BYTES half written. Never reads past a NUL. */
int refd_hex_parse(const char *hex, uint8_t *bytes, size_t nr);
/* Writes 2 * NR lower-case digits and a NUL, and returns HEX. */
char *refd_hex_put(const uint8_t *bytes, size_t nr, char *hex);

#endif
