/*
 * The language of "git update-ref --stdin", with and without -z: words,
 * quoting, order and complaints as in git's builtin/update-ref.c.
 *
 * Pure but for reading its input and calling resolve(). One thread.
 */
#ifndef CLIENT_UPDATE_STDIN_H
#define CLIENT_UPDATE_STDIN_H

#include <stdio.h>

#include "client/base/cli.h"
#include "client/request/git_messages.h"
#include "proto/message.h"

enum stdin_event {
	STDIN_CHANGE, /* an update of one ref, in parser->update */
	STDIN_START,
	STDIN_PREPARE,
	STDIN_COMMIT,
	STDIN_ABORT,
	STDIN_EOF_COMMIT, /* the end, with changes that nobody began or ended */
	STDIN_EOF,        /* the end; what was begun and not ended is dropped */
	STDIN_ERROR       /* parser->error has git's words */
};

enum stdin_state { STDIN_OPEN, STDIN_STARTED, STDIN_PREPARED, STDIN_CLOSED };

/* The first six are the caller's to set, the rest zero at first. */
struct stdin_parser {
	FILE *in;
	char end;      /* '\n', or '\0' for -z */
	bool no_deref; /* for every command */
	enum git_messages_version messages;
	bool (*resolve)(void *ctx, const char *name, struct refd_oid *oid);
	void *ctx;

	enum stdin_state state;
	bool next_no_deref;        /* "option no-deref" came before */
	struct refd_update update; /* borrows from here until the next call */
	struct text line, ref, target, old, arg, error;
	const char *at; /* in line */
	char *read;     /* getdelim()'s */
	size_t read_size;
};

enum stdin_event stdin_next(struct stdin_parser *p);
void stdin_done(struct stdin_parser *p);

#endif
