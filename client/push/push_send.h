/*
 * Sends the commands of a push to the daemon: one transaction, atomic if the
 * push is. A reference-transaction hook requires sessions, one for each
 * transaction of git: the whole atomic push; otherwise the deletions, then the
 * rest; before git 2.51, each ref.
 *
 *	open	decides whether the daemon or git does the push, or nobody
 *	next	the next batch of commands, until there is none
 *	put	gives a verdict to each command of the batch
 *	close
 *
 * The daemon may do a request that was sent, so the verdict is then the
 * daemon's answer or "unknown". All steps block, "put" within the deadline of
 * the hook; one thread.
 */
#ifndef CLIENT_PUSH_PUSH_SEND_H
#define CLIENT_PUSH_PUSH_SEND_H

#include "client/git/gitconfig.h"
#include "client/hooks/reftx.h"
#include "client/push/push.h"

/* The time limit of a connection. */
#define PUSH_CONNECT_MS (REFD_HOOK_DEADLINE_MS - 5000)

struct refd;

enum push_send_way { PUSH_SEND_WHOLE, PUSH_SEND_BY_KIND, PUSH_SEND_ONE_BY_ONE };

/* Borrows from the push, which must not grow, and from the other arguments. */
struct push_send {
	struct push_command **commands; /* in the order of execution */
	size_t nr;
	size_t at, nr_batch; /* the current batch */
	enum push_send_way way;
	bool atomic;
	const struct gitdir *gd;
	const struct gitconfig *config;
	char *committer;
	struct reftx hook;
	struct refd *daemon;
	uint32_t left_ms;  /* the rest of the time limit */
	uint64_t deadline; /* of the current batch */
	char *unserved;    /* why the daemon does not serve the push, or NULL */
};

enum push_writer {
	PUSH_BY_DAEMON,
	PUSH_BY_GIT,   /* the daemon is away, or the push is too large */
	PUSH_BY_NOBODY /* every command has a verdict */
};

/*
 * Takes the commands of PUSH that are not for a chained hook, and decides
 * whether the daemon or git does these commands, or nobody. HAS_RULES: some
 * hook sees the order of the commands. For PUSH_BY_GIT, *WHY is set to a static
 * text, unless the pusher was told the reason already.
 */
enum push_writer push_send_open(struct push_send *d, struct push *push,
    const struct gitdir *gd, const struct gitconfig *config, bool has_rules,
    const char **why);
/* The batch begins at commands + at. */
bool push_send_next(struct push_send *d);
/* Sends the commands without a verdict. False: nothing of the push is done, git
 * has to do it, and D->unserved is the reason. */
bool push_send_put(struct push_send *d);
void push_send_close(struct push_send *d);

#endif
