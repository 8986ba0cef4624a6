/*
 * receive-pack runs one proc-receive hook, and this is refd. So refd runs a
 * further proc-receive hook for the refs in refd.chain. The hook's report goes
 * to receive-pack unchanged. To the hook, this program is receive-pack:
 * githooks(5), "proc-receive", version 1.
 *
 *	refd.chain	the refs, in the form of receive.procReceiveRefs;
 *			several values
 *	refd.chainHook	the hook; by default hooks/proc-receive of the
 *			repository, unless this file is refd
 *
 * Blocks while the hook runs, within a deadline; one thread.
 */
#ifndef CLIENT_PUSH_CHAIN_H
#define CLIENT_PUSH_CHAIN_H

#include "client/git/gitconfig.h"
#include "client/push/push.h"

bool chain_is_set(const struct gitconfig *config);

/* Marks the commands of PUSH for the hook. Returns their number. */
size_t chain_mark(const struct gitconfig *config, struct push *push);

/* Runs the hook on the marked commands, which all get a verdict. */
void chain_run(const struct gitconfig *config, const struct gitdir *gd,
    struct push *push);

#endif
