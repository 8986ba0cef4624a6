/*
 * Runs git's update-ref in place of refd, with the same arguments and the same
 * standard input, if refd cannot do the updates. Nothing was submitted to a
 * daemon before.
 */
#ifndef CLIENT_UPDATE_EXEC_GIT_H
#define CLIENT_UPDATE_EXEC_GIT_H

#include "client/git/gitconfig.h"
#include "client/git/gitdir.h"
#include "client/update/update.h"
#include "proto/lib/cli.h"

/* Why only git can do the updates, or NULL. Static. */
const char *exec_git_reason(const struct update_options *opt,
    const struct gitdir *gd, const struct gitconfig *config);

/* If git lacks an option that was given, or an option forbids git, the program
 * ends with WHY and STATUS. */
void exec_git_check(const struct update_options *opt, const char *why,
    int status);

/* Replaces this program with git. Prints WHY with --verbose. READ is the part
 * of standard input that was read already, or NULL. */
void exec_git(const struct update_options *opt, const char *why,
    const struct text *read) __attribute__((noreturn));

#endif
