/*
 * A detail is a word with arguments, and says why a ref failed in cases for
 * which git has a sentence. This sentence depends on the version of git and on
 * the client's path of the repository. So the daemon sends the detail, and a
 * client that talks to people has the sentence.
 *
 * A detail replaces the text for people: REFD_DETAIL_MARK, the word, and the
 * arguments, with a mark before every argument. On the wire the marks are NUL
 * (PROTOCOL.md, "Details").
 *
 * Any thread; nothing blocks.
 */
#ifndef PROTO_DETAIL_H
#define PROTO_DETAIL_H

#include <stdbool.h>
#include <stddef.h>

/* X(symbol, word): PROTOCOL.md lists the arguments. The words are permanent on
 * the wire and in the journal, so new words may be added, but none changes. */
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
	/* A newer daemon may have a detail that this client does not know, so
	 * the usual text of the status is used. */
	REFD_DETAIL_UNKNOWN
};

#define REFD_DETAIL_MARK '\1'
#define REFD_DETAIL_ARGS 3

/* Borrowed from the text, and empty if an argument is missing. */
struct refd_detail {
	enum refd_detail_kind kind;
	struct refd_detail_arg {
		const char *data; /* not terminated */
		size_t len;
	} args[REFD_DETAIL_ARGS];
};

/* Allocated, or NULL when out of memory. The arguments end with a NULL. A mark
 * in an argument would end this argument, so the mark becomes a question
 * mark. */
char *refd_detail_make(enum refd_detail_kind kind,
    const char *const args[REFD_DETAIL_ARGS]);
/* Returns false if TEXT, which may be NULL, is no detail but a text for
 * people. */
bool refd_detail_read(const char *text, struct refd_detail *detail);

#endif
