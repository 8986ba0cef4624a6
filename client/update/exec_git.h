/*
 * git in refd's place: what refd does not do, or can't just now, git's own
 * update-ref does, with the same arguments and the same standard input.
 * Nothing was submitted to a daemon before.
 */
#ifndef CLIENT_UPDATE_EXEC_GIT_H
#define CLIENT_UPDATE_EXEC_GIT_H

#include "client/base/cli.h"
#include "client/git/gitconfig.h"
#include "client/git/gitdir.h"
#include "client/update/update.h"

/* Why it is plain beforehand that only git can do it, or NULL. Static. */
const char *exec_git_reason(const struct update_options *opt,
    const struct gitdir *gd, const struct gitconfig *config);

/*
 * Runs git in this program's place and does not return. WHY is said with
 * --verbose. Where the options ask for what git does not have, or forbid it, the
 * program ends with STATUS instead. READ is what was read of standard input and git
 * must read again; NULL: nothing was.
 */
void exec_git(const struct update_options *opt, const char *why, int status,
    const struct text *read) __attribute__((noreturn));

#endif
