/*
 * What the reference-transaction hook reads: a line for each ref of a
 * transaction, "<old> SP <new> SP <ref>", in the order that git's files
 * backend has them. Pure.
 */
#ifndef CLIENT_REFTX_LIST_H
#define CLIENT_REFTX_LIST_H

#include "client/changes.h"
#include "client/cli.h"

/* As they were asked for. */
void reftx_list_asked(const struct changes *changes, struct text *out);

/*
 * As they are prepared: where a symbolic ref led to another that one is
 * listed in its place, behind the others. 2.39 lists both, and HEAD behind
 * the branch that it points to: HEAD_TARGET is that, or NULL for the new way.
 */
void reftx_list_prepared(const struct changes *changes,
    const struct refd_answer *ans, const char *head_target, struct text *out);

/* Those that are deleted; false where there is none. */
bool reftx_list_deleted(const struct changes *changes,
    const struct refd_answer *ans, struct text *out);

#endif
