/*
 * What the reference-transaction hook reads: a line for each ref of a
 * transaction, "<old> SP <new> SP <ref>", in the order that git's files
 * backend has them. One thread.
 */
#ifndef CLIENT_HOOKS_REFTX_LIST_H
#define CLIENT_HOOKS_REFTX_LIST_H

#include "client/base/cli.h"
#include "client/git/gitdir.h"
#include "client/request/changes.h"

/* As they were asked for. */
void reftx_list_asked(const struct changes *changes, struct text *out);

/*
 * As they are prepared. Where a symbolic ref leads to another, that one comes
 * in its place, behind all the others; link by link, as it is read here, while
 * the locks stand. 2.39 lists all the links, and HEAD behind the branch that
 * it points to.
 */
struct reftx_list {
	struct reftx_entry *entries; /* owned */
	size_t nr, size;
	bool as_2_39;
};

/* Blocks. ANS has a result for each of CHANGES; the list borrows from both. */
void reftx_list_make(struct reftx_list *list, const struct gitdir *gd,
    const struct changes *changes, const struct refd_answer *ans, bool as_2_39);
void reftx_list_done(struct reftx_list *list);

void reftx_list_all(const struct reftx_list *list, struct text *out);
/* Those that are deleted. */
void reftx_list_deleted(const struct reftx_list *list, struct text *out);

#endif
