/*
 * Another proc-receive hook behind this one: what refd.chain names goes to it,
 * and what it says of those refs goes to receive-pack as it is. For it, this
 * is receive-pack: githooks(5), "proc-receive", version 1.
 *
 *	refd.chain	which refs, as receive.procReceiveRefs has them;
 *			several values
 *	refd.chainHook	the hook; else hooks/proc-receive of the repository,
 *			unless that is refd itself
 *
 * Blocks while that hook runs, within a deadline; one thread.
 */
#ifndef CLIENT_PUSH_CHAIN_H
#define CLIENT_PUSH_CHAIN_H

#include "client/git/gitconfig.h"
#include "client/push/push.h"

bool chain_is_set(const struct gitconfig *config);

/* Marks what of PUSH is that hook's; how much. */
size_t chain_mark(const struct gitconfig *config, struct push *push);

/* Runs it on what is marked, and gives each of those a verdict. */
void chain_run(const struct gitconfig *config, const struct gitdir *gd,
    struct push *push);

#endif
