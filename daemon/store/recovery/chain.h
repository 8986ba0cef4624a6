/*
 * The records of one file, in LSN order, and the log lines they owe. Private
 * to replay.c, redo*.c and chain.c.
 *
 * A file is a ref, HEAD of a worktree, a symbolic ref: whatever has a lock
 * and a log of its own. Its links say what was written or deleted there, or
 * that a line alone went to its log.
 *
 * In memory alone: one thread at a time, and nothing blocks. 0 or -ENOMEM.
 */
#ifndef STORE_CHAIN_H
#define STORE_CHAIN_H

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "daemon/store/recovery/replay.h"

struct chain_link {
	const struct replay_row *row;
	const struct record_member *member;
};

struct chain {
	char *key;            /* worktree id, "/", name */
	const char *worktree; /* "" for the common dir; else its id */
	const char *name;
	struct chain_link *links;
	size_t nr, size;
	bool has_log_links; /* RECORD_LOG among them */
	UT_hash_handle hh;
};

/* Builds the chains of ROWS that REPLAY has to look at: members of status OK
 * that are not dropped. */
int chains_build(struct chain **chains, const struct replay_row *rows);
void chains_free(struct chain **chains);

/* The newest link that is not passed over by now; one that says what is in
 * the file. NULL: none. */
const struct chain_link *chain_last(const struct chain *chain);
const struct chain_link *chain_value(const struct chain *chain);

/* Was OID ever the ref's value, by the chain or by packed-refs as seen then? */
bool chain_knows(const struct chain *chain, const struct refd_oid *oid);

/* What a chain owes to its log; strings and array malloc'd. */
struct chain_lines {
	bool deletes; /* what is there goes first */
	char **lines; /* must be there, in order: a cut's */
	size_t nr, size;
	char *last; /* must be the last one: a kill's; or NULL */
	const struct replay_row *row; /* the newest that owes one */
};

/* The lines of those links that come after AFTER (NULL: of all) and after the
 * last deletion among them. HELD: the lock of the last one's window stands;
 * without, what a kill left is finished. */
int chain_log_lines(const struct chain *chain, const struct chain_link *after,
    bool held, struct chain_lines *out);
void chain_lines_done(struct chain_lines *lines);

#endif
