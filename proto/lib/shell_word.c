#include "proto/lib/shell_word.h"

#include <stdbool.h>
#include <string.h>

static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
			    "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
			    "0123456789+,-./:=@_^";

char *shell_word(char *to, const char *s)
{
	bool is_plain = *s != '\0' && s[strspn(s, plain)] == '\0';
	char *p = to;

	if (is_plain)
		return strcpy(to, s);
	*p++ = '\'';
	for (; *s != '\0'; s++)
		if (*s == '\'' || *s == '!') {
			*p++ = '\'';
			*p++ = '\\';
			*p++ = *s;
			*p++ = '\'';
		} else {
			*p++ = *s;
		}
	*p++ = '\'';
	*p = '\0';
	return to;
}
