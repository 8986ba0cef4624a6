/*
 * Parses the input of "git update-ref --stdin", with and without -z. Commands,
 * quoting, order and messages are those of git's builtin/update-ref.c.
 *
 * Pure except for reading its input and calling resolve(). One thread.
 */
#ifndef CLIENT_UPDATE_STDIN_H
#define CLIENT_UPDATE_STDIN_H

#include <stdio.h>

#include "client/request/git_messages.h"
#include "proto/lib/cli.h"
#include "proto/message.h"

enum stdin_event {
	STDIN_CHANGE, /* an update of one ref, in parser->update */
	STDIN_START,
	STDIN_PREPARE,
	STDIN_COMMIT,
	STDIN_ABORT,
	STDIN_EOF_COMMIT, /* the end; the changes are not in a transaction */
	STDIN_EOF,        /* the end; an open transaction is dropped */
	STDIN_ERROR       /* parser->error has git's message */
};

enum stdin_state { STDIN_OPEN, STDIN_STARTED, STDIN_PREPARED, STDIN_CLOSED };

/* The caller sets the first six members and zeroes the others. */
struct stdin_parser {
	FILE *in;
	char end;      /* '\n', or '\0' for -z */
	bool no_deref; /* for every command */
	enum git_messages_version messages;
	bool (*resolve)(void *ctx, const char *name, struct refd_oid *oid);
	void *ctx;

	enum stdin_state state;
	bool next_no_deref; /* "option no-deref" came before */
	struct refd_update
	    update; /* borrows from the parser until the next call */
	struct text line, ref, target, old, arg, error;
	const char *at; /* in line */
	char *read;     /* the buffer of getdelim() */
	size_t read_size;
};

enum stdin_event stdin_next(struct stdin_parser *p);
void stdin_done(struct stdin_parser *p);

#endif
