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
#ifndef CLIENT_PUSH_PUSH_SEND_H
#define CLIENT_PUSH_PUSH_SEND_H

#include "client/git/gitconfig.h"
#include "client/hooks/reftx.h"
#include "client/push/push.h"

struct refd;

enum push_send_way { PUSH_SEND_WHOLE, PUSH_SEND_BY_KIND, PUSH_SEND_ONE_BY_ONE };

/* Borrows from the push, which must not grow, and from the others. */
struct push_send {
	struct push_command **commands; /* what is to be done, in its order */
	size_t nr;
	size_t at, nr_batch; /* the batch */
	enum push_send_way way;
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

enum push_writer {
	PUSH_BY_DAEMON,
	PUSH_BY_GIT,   /* it is away, or the push is too much for it */
	PUSH_BY_NOBODY /* which each command has as its verdict */
};

/*
 * For those commands of PUSH that are not another hook's. HAS_RULES: somebody
 * looks on as they are judged, one after the other. *WHY is set for BY_GIT
 * unless it was said; static.
 */
enum push_writer push_send_open(struct push_send *d, struct push *push,
    const struct gitdir *gd, const struct gitconfig *config, bool has_rules,
    const char **why);
/* The batch is at commands + at. */
bool push_send_next(struct push_send *d);
/* Puts through what has no verdict by now. False: nothing was done of the
 * push, and git is to do it; D->unserved is the reason. */
bool push_send_put(struct push_send *d);
void push_send_close(struct push_send *d);

#endif
