/*
 * What git's receive-pack says to the proc-receive hook and what it hears
 * from it: githooks(5), "proc-receive", version 1.
 *
 * Blocking reads and writes; one thread. Errors are a false return with a
 * reason for people, which is static.
 */
#ifndef CLIENT_PUSH_H
#define CLIENT_PUSH_H

#include "client/cli.h"
#include "proto/oid.h"
#include "proto/pktline.h"

/* One "<old> <new> <ref>". */
struct push_command {
	struct refd_oid old_oid, new_oid;
	char *name;
	/* The name has a byte that would break the report apart, so nothing
	 * can be reported on it. */
	bool unreportable;
	/* After the verdict: NULL for "ok", else why not. Owned. */
	char *ng;
};

/* Zero-initialised is empty. */
struct push {
	bool atomic;
	/* Ids of another length came: not a repository that refd can serve.
	 * Commands have null oids then. */
	bool other_hash;
	struct push_command *commands;
	size_t nr, size;
};

void push_done(struct push *push);

struct push_reader {
	int fd;
	char *data;
	size_t begin, end, size;
};

void push_reader_done(struct push_reader *in);

/* The greeting, up to its flush. */
bool push_read_version(struct push_reader *in, struct push *push,
    const char **why);
/* All commands, up to the flush behind them. */
bool push_read_commands(struct push_reader *in, struct push *push,
    const char **why);

void push_put_version(struct pkt_buf *out);
/* A line for each command, by its ng. */
void push_put_report(const struct push *push, struct pkt_buf *out);
/* "ok, and git may do it itself", for each command. */
void push_put_fall_through(const struct push *push, struct pkt_buf *out);

/* A name that comes twice, or NULL. */
const char *push_find_duplicate(const struct push *push);

/* Gives every command that has none the verdict WHY. */
void push_refuse(struct push *push, const char *why);

#endif
