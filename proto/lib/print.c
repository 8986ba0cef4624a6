#include "proto/lib/print.h"

#include "proto/lib/utf8.h"

void print_visible(FILE *to, const char *s)
{
	size_t len;

	while (*s) {
		len = utf8_len(s);
		if (!len || utf8_control(s))
			putc('?', to);
		else
			fwrite(s, 1, len, to);
		s += len ? len : 1;
	}
}

void print_json_string(FILE *to, const char *s)
{
	size_t len;

	putc('"', to);
	while (*s) {
		len = utf8_len(s);
		if (!len) {
			fputs("\\ufffd", to);
			s++;
		} else if (utf8_control(s)) {
			fprintf(to, "\\u%04x", utf8_control(s));
			s += len;
		} else {
			if (*s == '"' || *s == '\\')
				putc('\\', to);
			fwrite(s, 1, len, to);
			s += len;
		}
	}
	putc('"', to);
}
