/*
 * A text as one word of a command, for a person who copies the command into a
 * shell. A path belongs to the owner of a repository, and root may be the one
 * who copies.
 *
 * Pure.
 */
#ifndef PROTO_LIB_SHELL_WORD_H
#define PROTO_LIB_SHELL_WORD_H

/* Bytes of the word for a text of LEN bytes, with NUL. */
#define SHELL_WORD_MAX(len) (4 * (len) + 3)

/* Writes S to TO, which has SHELL_WORD_MAX(strlen(S)) bytes: with quotes if
 * needed, as sq_quote_buf_pretty() of git. Returns TO. */
char *shell_word(char *to, const char *s);

#endif
