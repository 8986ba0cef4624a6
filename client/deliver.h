/*
 * A push's commands on their way to the daemon: one transaction, atomic when
 * the push is. Where there is a reference-transaction hook, in sessions: one
 * for an atomic push, else one for each ref, deletions first.
 *
 *	open	the daemon is there, or git is to do it, or nobody can
 *	put	each command gets its verdict
 *	close
 *
 * Once something was submitted the answer is the daemon's own or "unknown".
 * Both steps block, each within the hook's deadline; one thread.
 */
#ifndef CLIENT_DELIVER_H
#define CLIENT_DELIVER_H

#include "client/gitconfig.h"
#include "client/push.h"
#include "client/reftx.h"

struct refd;

/* Borrows from the push, which must not grow, and from the others. */
struct delivery {
	struct push_command **commands; /* what is to be done, in its order */
	size_t nr;
	bool atomic;
	const struct gitdir *gd;
	const struct gitconfig *config;
	char *committer;
	struct reftx hook;
	struct refd *daemon;
	uint64_t deadline;
};

enum deliverer {
	DELIVER_BY_DAEMON,
	DELIVER_BY_GIT,   /* it is away, or the push is too much for it */
	DELIVER_BY_NOBODY /* which each command has as its verdict */
};

/* For those commands of PUSH that are not another hook's. */
enum deliverer deliver_open(struct delivery *d, struct push *push,
    const struct gitdir *gd, const struct gitconfig *config);
/* Puts through what has no verdict by now. False: nothing was done, and git is
 * to do it. */
bool deliver_put(struct delivery *d);
void deliver_close(struct delivery *d);

#endif
