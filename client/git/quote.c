#include "client/git/quote.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "proto/lib/shell_word.h"

static bool is_octal(char c)
{
	return c >= '0' && c <= '7';
}

/* Three octal digits, from 001 to 377, because a name contains no NUL. */
static const char *take_octal(const char *s, struct text *out)
{
	if (s[0] > '3' || !is_octal(s[0]) || !is_octal(s[1]) ||
	    !is_octal(s[2]) || !strncmp(s, "000", 3))
		return NULL;
	text_addc(out,
	    (char)((s[0] - '0') << 6 | (s[1] - '0') << 3 | (s[2] - '0')));
	return s + 3;
}

const char *quote_read(const char *s, struct text *out)
{
	static const char letters[] = "abfnrtv\\\"";
	static const char meanings[] = "\a\b\f\n\r\t\v\\\"";
	const char *letter;

	for (s++; s && *s && *s != '"';) {
		if (*s != '\\') {
			text_addc(out, *s++);
			continue;
		}
		s++;
		letter = *s ? strchr(letters, *s) : NULL;
		if (letter) {
			text_addc(out, meanings[letter - letters]);
			s++;
		} else {
			s = take_octal(s, out);
		}
	}
	return s && *s == '"' ? s + 1 : NULL;
}

void quote_shell(const char *s, struct text *out)
{
	char *word = xcalloc(SHELL_WORD_MAX(strlen(s)), 1);

	text_adds(out, shell_word(word, s));
	free(word);
}

char *quote_command(const char *word, ...)
{
	struct text command = { 0 };
	va_list more;

	va_start(more, word);
	for (; word; word = va_arg(more, const char *)) {
		text_adds(&command, command.len ? " " : "");
		quote_shell(word, &command);
	}
	va_end(more);
	return command.data;
}
