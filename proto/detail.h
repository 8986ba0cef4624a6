/*
 * What git has words for: why a ref failed, as a word with arguments. The
 * daemon says which; whoever shows it to people has the sentence.
 *
 * A detail stands in the place of a text for people: REFD_DETAIL_MARK, the
 * word, and each argument behind a mark of its own. On the wire the marks are
 * NUL (PROTOCOL.md, "Details").
 *
 * Any thread; nothing blocks.
 */
#ifndef PROTO_DETAIL_H
#define PROTO_DETAIL_H

#include <stdbool.h>
#include <stddef.h>

/* X(symbol, word): the arguments are in PROTOCOL.md. On the wire and in the
 * journal for ever; added to, never changed. */
#define REFD_DETAIL_TABLE(X)                                                   \
	X(DIFFERS, "differs")                                                  \
	X(SYMREF_DIFFERS, "symref-differs")                                    \
	X(EXISTS, "exists")                                                    \
	X(DANGLING, "dangling")                                                \
	X(UNRESOLVED, "unresolved")                                            \
	X(ABSENT, "absent")                                                    \
	X(NOT_SYMREF, "not-symref")                                            \
	X(BROKEN, "broken")                                                    \
	X(UNREADABLE, "unreadable")                                            \
	X(LOCKED, "locked")                                                    \
	X(PACKED_LOCKED, "packed-locked")                                      \
	X(NAME_TAKEN, "name-taken")                                            \
	X(NAME_TAKEN_EARLY, "name-taken-early")                                \
	X(NAMES_CLASH, "names-clash")                                          \
	X(NAMES_CLASH_EARLY, "names-clash-early")                              \
	X(DIRECTORY, "directory")                                              \
	X(NOT_DIRECTORY, "not-directory")                                      \
	X(LOGS_BELOW, "logs-below")                                            \
	X(LOG_BLOCKED, "log-blocked")                                          \
	X(DUPLICATE, "duplicate")                                              \
	X(DUPLICATE_HEAD, "duplicate-head")                                    \
	X(DUPLICATE_SYMREF, "duplicate-symref")                                \
	X(NO_OBJECT, "no-object")                                              \
	X(NO_COMMIT, "no-commit")                                              \
	X(BAD_NAME, "bad-name")                                                \
	X(BAD_TARGET, "bad-target")                                            \
	X(FUNNY_NAME, "funny-name")

enum refd_detail_kind {
#define X(symbol, word) REFD_DETAIL_##symbol,
	REFD_DETAIL_TABLE(X)
#undef X
	/* A later daemon's: the usual text of the status has to do. */
	REFD_DETAIL_UNKNOWN
};

#define REFD_DETAIL_MARK '\1'
#define REFD_DETAIL_ARGS 3

/* Borrowed from the text. An argument that is not there is empty. */
struct refd_detail {
	enum refd_detail_kind kind;
	struct refd_detail_arg {
		const char *data; /* not terminated */
		size_t len;
	} args[REFD_DETAIL_ARGS];
};

/* Allocated; NULL when out of memory. The arguments end with a NULL; a mark in
 * one of them becomes a question mark. */
char *refd_detail_make(enum refd_detail_kind kind,
    const char *const args[REFD_DETAIL_ARGS]);
/* False: TEXT, which may be NULL, is for people. */
bool refd_detail_read(const char *text, struct refd_detail *detail);

#endif
