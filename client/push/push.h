/*
 * What git's receive-pack says to the proc-receive hook and what it hears
 * from it: githooks(5), "proc-receive", version 1. The same words are used
 * with a hook that is called from this one.
 *
 * Blocking reads and writes; one thread. Errors are a false return with a
 * reason for people, which is static.
 */
#ifndef CLIENT_PUSH_PUSH_H
#define CLIENT_PUSH_PUSH_H

#include "client/base/cli.h"
#include "proto/oid.h"
#include "proto/pktline.h"

/* One "<old> <new> <ref>". Owns its strings. */
struct push_command {
	struct refd_oid old_oid, new_oid;
	char *name;
	char *ref; /* the same, in its namespace: what is written */
	/* The name has a byte that would break the report apart, so nothing
	 * can be reported on it: receive-pack calls it failed then. */
	bool unreportable;
	bool is_chained; /* another hook's to answer */

	/* The verdict: "ng" with a reason; another hook's packets; left to
	 * git; else "ok". */
	char *ng;
	struct pkt_buf said;
	bool is_gits;
};

/* Zero-initialised is empty. */
struct push {
	bool atomic;
	bool has_options; /* push options can be had */
	/* Ids of another length came: not a repository that refd can serve.
	 * Commands have null oids then. */
	bool other_hash;
	struct push_command *commands;
	size_t nr, size;
	struct text options; /* the push options, as packets */
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
/* The push options, where they were asked for. */
bool push_read_options(struct push_reader *in, struct push *push,
    const char **why);

/* Puts each command's ref below the namespaces of PATH, "a/b" as GIT_NAMESPACE
 * has them; NULL or empty: none. Once. */
void push_set_namespace(struct push *push, const char *path);

/* Gives every command that has none the verdict WHY. */
void push_refuse(struct push *push, const char *why);

void push_put_version(bool with_options, struct pkt_buf *out);
/* A verdict for each command, in their order. */
void push_put_report(const struct push *push, struct pkt_buf *out);

#endif
