/*
 * A push's commands on their way to the daemon: one transaction, atomic when
 * the push is. Where there is a reference-transaction hook it is in sessions,
 * each of what git has in one transaction: all of an atomic push, else the
 * deletions and then the rest; before git 2.51, each ref.
 *
 *	open	the daemon is there, or git is to do it, or nobody can
 *	next	the batch to be done now, until there is none
 *	put	each command of the batch gets its verdict
 *	close
 *
 * Once something was submitted the answer is the daemon's own or "unknown".
 * All steps block, the puts within the hook's deadline; one thread.
 */
#ifndef CLIENT_PUSH_DELIVER_H
#define CLIENT_PUSH_DELIVER_H

#include "client/git/gitconfig.h"
#include "client/hooks/reftx.h"
#include "client/push/push.h"

struct refd;

enum delivery_way { DELIVERY_WHOLE, DELIVERY_BY_KIND, DELIVERY_ONE_BY_ONE };

/* Borrows from the push, which must not grow, and from the others. */
struct delivery {
	struct push_command **commands; /* what is to be done, in its order */
	size_t nr;
	size_t at, nr_batch; /* the batch */
	enum delivery_way way;
	bool atomic;
	const struct gitdir *gd;
	const struct gitconfig *config;
	char *committer;
	struct reftx hook;
	struct refd *daemon;
	uint32_t left_ms;  /* for all that is put */
	uint64_t deadline; /* of the batch */
	char *unserved;    /* why the daemon does not serve the push, or NULL */
};

enum deliverer {
	DELIVER_BY_DAEMON,
	DELIVER_BY_GIT,   /* it is away, or the push is too much for it */
	DELIVER_BY_NOBODY /* which each command has as its verdict */
};

/*
 * For those commands of PUSH that are not another hook's. HAS_RULES: somebody
 * looks on as they are judged, one after the other. *WHY is set for BY_GIT
 * unless it was said; static.
 */
enum deliverer deliver_open(struct delivery *d, struct push *push,
    const struct gitdir *gd, const struct gitconfig *config, bool has_rules,
    const char **why);
/* The batch is at commands + at. */
bool deliver_next(struct delivery *d);
/* Puts through what has no verdict by now. False: nothing was done of the
 * push, and git is to do it; D->unserved is the reason. */
bool deliver_put(struct delivery *d);
void deliver_close(struct delivery *d);

#endif
