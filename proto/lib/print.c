#include "proto/lib/print.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/utf8.h"

/* "\u001b" with NUL. */
#define SPELLED_MAX 7

static bool is_obeyed(uint32_t c)
{
	return c < ' ' || (c >= 0x7f && c < 0xa0) || c == 0x61c ||
	    c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) ||
	    (c >= 0x2066 && c <= 0x2069);
}

static bool has_meaning(enum print_as as, char c)
{
	return (c == '"' || c == '\\') &&
	    (as == PRINT_AS_QUOTED || as == PRINT_AS_JSON);
}

/* Sets TEXT to the spelling of the character CODE, which has USED bytes at S.
 * With USED 0, TEXT is for the byte at S, which is not UTF-8. Returns the
 * number of bytes of S for which TEXT stands. */
static size_t spell(enum print_as as, const char *s, size_t used, uint32_t code,
    char text[SPELLED_MAX])
{
	static const char plain[] = "\"\\\n\t", letters[] = "\"\\nt";
	const char *letter = memchr(plain, *s, sizeof(plain) - 1);
	bool ends = *s == '\n' || *s == '\t';

	switch (as) {
	case PRINT_AS_LINE:
	case PRINT_AS_LINES:
		text[0] = !ends ? '?' : as == PRINT_AS_LINE ? ' ' : *s;
		text[1] = '\0';
		break;
	case PRINT_AS_QUOTED:
		if (letter)
			snprintf(text, SPELLED_MAX, "\\%c",
			    letters[letter - plain]);
		else
			snprintf(text, SPELLED_MAX, "\\x%02x",
			    (unsigned char)*s);
		return 1;
	case PRINT_AS_JSON:
		if (used && !is_obeyed(code))
			snprintf(text, SPELLED_MAX, "\\%c", *s);
		else
			snprintf(text, SPELLED_MAX, "\\u%04x",
			    used ? (unsigned)code : 0xfffd);
		break;
	}
	return used ? used : 1;
}

void print_through(enum print_as as, const char *s, size_t len,
    void (*put)(void *to, const char *bytes, size_t len), void *to)
{
	char text[SPELLED_MAX];
	uint32_t code = 0;
	size_t used;

	for (; len > 0; s += used, len -= used) {
		used = utf8_decode(s, len, &code);
		if (used && !is_obeyed(code) && !has_meaning(as, *s)) {
			put(to, s, used);
		} else {
			used = spell(as, s, used, code, text);
			put(to, text, strlen(text));
		}
	}
}

/* ---- to a stream ---- */

struct gathered {
	FILE *to;
	size_t len;
	char bytes[PRINT_ROOM];
};

static void gather(void *arg, const char *bytes, size_t len)
{
	struct gathered *g = arg;

	if (len > sizeof(g->bytes) - g->len) {
		print_bytes(g->to, g->bytes, g->len);
		g->len = 0;
	}
	memcpy(g->bytes + g->len, bytes, len);
	g->len += len;
}

void print_text(FILE *to, enum print_as as, const char *s, size_t len)
{
	struct gathered g = { .to = to };

	print_through(as, s, len, gather, &g);
	print_bytes(to, g.bytes, g.len);
}

void print_bytes(FILE *to, const void *bytes, size_t len)
{
	if (len > 0)
		fwrite(bytes, 1, len, to);
}

/* Without memory, the text is cut. */
static void PRINTF_LIKE(4, 0) print(FILE *to, enum print_as as, const char *end,
    const char *fmt, va_list ap)
{
	struct gathered g = { .to = to };
	char some[PRINT_ROOM], *all = NULL;
	const char *s = some;
	va_list again;
	int len;

	va_copy(again, ap);
	len = vsnprintf(some, sizeof(some), fmt, ap);
	if (len >= (int)sizeof(some) && vasprintf(&all, fmt, again) >= 0)
		s = all;
	va_end(again);
	print_through(as, s, strlen(s), gather, &g);
	gather(&g, end, strlen(end));
	print_bytes(to, g.bytes, g.len);
	free(all);
}

void print_line(FILE *to, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	print(to, PRINT_AS_LINE, "\n", fmt, ap);
	va_end(ap);
}

void print_part(FILE *to, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	print(to, PRINT_AS_LINE, "", fmt, ap);
	va_end(ap);
}

void print_lines(FILE *to, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	print(to, PRINT_AS_LINES, "", fmt, ap);
	va_end(ap);
}

/* ---- to a buffer ---- */

struct buffer {
	char *at, *end; /* END: the closing quote at the latest */
};

static void put_in_buffer(void *arg, const char *bytes, size_t len)
{
	struct buffer *b = arg;

	if (len > (size_t)(b->end - b->at))
		b->end = b->at; /* nothing follows a cut */
	else
		b->at = mempcpy(b->at, bytes, len);
}

char *print_quoted(char *to, size_t size, const char *s)
{
	struct buffer b = { .at = to + 1, .end = to + size - 2 };

	to[0] = '"';
	print_through(PRINT_AS_QUOTED, s, strlen(s), put_in_buffer, &b);
	memcpy(b.at, "\"", 2);
	return to;
}
