/*
 * Calls of libgit2 that both repositories of a comparison get. A call returns
 * libgit2's code. One thread.
 */
#ifndef TESTS_LIBGIT2_CALLS_H
#define TESTS_LIBGIT2_CALLS_H

#include <git2.h>

struct call {
	const char *name;
	int (*run)(git_repository *repo);
};

/* They end with a NULL. */
extern const struct call calls_refs[], calls_logs[];

extern git_oid calls_one, calls_two; /* HEAD~1, HEAD */
extern git_signature *calls_who;
extern const char *calls_other_repo; /* for fetch */

/* NULL: no such ref. */
git_reference *calls_look(git_repository *repo, const char *name);
int calls_create(git_repository *repo, const char *name, const git_oid *id,
    int force);

#endif
