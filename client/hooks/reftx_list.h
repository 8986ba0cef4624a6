/*
 * The input of the reference-transaction hook: a line for each ref of a
 * transaction, "<old> SP <new> SP <ref>", in the order of git's files backend.
 * One thread.
 */
#ifndef CLIENT_HOOKS_REFTX_LIST_H
#define CLIENT_HOOKS_REFTX_LIST_H

#include "client/git/gitdir.h"
#include "client/request/changes.h"
#include "proto/lib/cli.h"

/* The updates as requested. */
void reftx_list_asked(const struct changes *changes,
    enum refd_object_format format, struct text *out);

/*
 * The updates as prepared. A symbolic ref is replaced by its target, at the end
 * of the list. The links are read here, one by one, while the locks are held.
 * git 2.39 lists all links, and HEAD behind the branch to which HEAD points.
 */
struct reftx_list {
	struct reftx_entry *entries; /* owned */
	size_t nr, size;
	enum refd_object_format object_format;
	bool as_2_39;
};

/* Blocks. ANS has a result for each of CHANGES; the list borrows from both. */
void reftx_list_make(struct reftx_list *list, const struct gitdir *gd,
    enum refd_object_format format, const struct changes *changes,
    const struct refd_answer *ans, bool as_2_39);
void reftx_list_done(struct reftx_list *list);

void reftx_list_all(const struct reftx_list *list, struct text *out);
/* Only the deletions. */
void reftx_list_deleted(const struct reftx_list *list, struct text *out);

#endif
