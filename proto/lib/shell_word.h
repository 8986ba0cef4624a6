/*
 * A text as one word of a command, for a person who copies the command into a
 * shell. A path belongs to the owner of a repository, and root may be the one
 * who copies, so no part of the path may be a command.
 *
 * Pure. A header, because librefd-git2 needs the function, too.
 */
#ifndef PROTO_LIB_SHELL_WORD_H
#define PROTO_LIB_SHELL_WORD_H

#include <stdbool.h>
#include <string.h>

/* Bytes of the word for a text of LEN bytes, with NUL. */
#define SHELL_WORD_MAX(len) (4 * (len) + 3)

/* Writes S to TO, which has SHELL_WORD_MAX(strlen(S)) bytes: with quotes if
 * needed, as sq_quote_buf_pretty() of git. Returns TO. */
static inline char *shell_word(char *to, const char *s)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789+,-./:=@_^";
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

#endif
