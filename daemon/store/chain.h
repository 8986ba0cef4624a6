/*
 * The records of one ref, in LSN order, and the log lines they owe. Private
 * to replay.c and chain.c.
 */
#ifndef STORE_CHAIN_H
#define STORE_CHAIN_H

#include <uthash.h>

#include "daemon/store/replay.h"

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
	UT_hash_handle hh;
};

/* Builds the chains of ROWS that REPLAY has to look at: members of status OK
 * that are not dropped. */
int chains_build(struct chain **chains, const struct replay_row *rows);
void chains_free(struct chain **chains);

/* Was OID ever the ref's value, by the chain or by packed-refs as seen then? */
bool chain_knows(const struct chain *chain, const struct refd_oid *oid);
/* The lines its log must hold, in order: those after the last deletion (after
 * a kill: the last record's alone, older ones were written). *DELETES: there
 * was one. For HEAD: of every branch it pointed to; after a kill only where
 * HEAD.lock still stands. Strings and array malloc'd. */
int chain_log_lines(const struct chain *chain, char ***lines, size_t *nr,
    bool *deletes);
int chain_head_lines(const struct replay_row *rows, struct stale *stale,
    const char *worktree, char ***lines, size_t *nr);
void chain_lines_free(char **lines, size_t nr);

#endif
