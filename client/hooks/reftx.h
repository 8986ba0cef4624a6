/*
 * The reference-transaction hook (githooks(5)), run by the client, as the
 * client. A transaction whose repository has one goes through a session:
 *
 *	preparing	before anything is locked (not in 2.39's way)
 *	prepared	while the daemon holds the locks
 *	committed	when it is durable
 *	aborted		when it did not come to that
 *
 * Deletions have git rewrite packed-refs in a transaction of its own, for
 * which the hook is called as well, in between. Here these calls come right
 * before those of the whole: then packed-refs.new exists already, or the
 * locks are gone.
 *
 * One thread; blocks while the hook runs.
 */
#ifndef CLIENT_HOOKS_REFTX_H
#define CLIENT_HOOKS_REFTX_H

#include "client/hooks/githook.h"
#include "client/request/changes.h"

/* Owns its strings. */
struct reftx {
	struct githook hook;
	bool as_2_39;
	const char *failed_in; /* the phase in which the hook said no */
	bool in_packed;        /* and that was packed-refs' */
	struct place place;
	struct text all, deleted; /* its input, since it is prepared */
	bool rewrites_packed;
	const struct gitdir *gd; /* borrowed */
};

/* NAMED: the repository, as the options or GIT_DIR have it, or NULL. Costs an
 * access(2) where there is none. */
void reftx_find(struct reftx *tx, const struct gitdir *gd,
    const struct gitconfig *config, const char *named, bool as_2_39);
/* Of a program that is itself one of git's hooks; where there is one to run,
 * asks git whether it is of 2.39's kind. */
void reftx_find_here(struct reftx *tx, const struct gitdir *gd,
    const struct gitconfig *config);
void reftx_done(struct reftx *tx);
bool reftx_exists(const struct reftx *tx);

/* Of a hook that is there and not executable, once, in git's words. */
void reftx_warn(struct reftx *tx);
/* False: the hook says no, and was told that it is aborted. */
bool reftx_preparing(struct reftx *tx, const struct changes *changes);
/* False: the hook says no; reftx_aborted() it, when the locks are gone. ANS
 * has a result for each of CHANGES. */
bool reftx_prepared(struct reftx *tx, const struct changes *changes,
    const struct refd_answer *ans);
/* What was prepared last came to this end. */
void reftx_committed(struct reftx *tx);
void reftx_aborted(struct reftx *tx);
/* It is aborted without having been prepared. */
void reftx_given_up(struct reftx *tx, const struct changes *changes);
/* git's words for a hook that said no. */
void reftx_why(const struct reftx *tx, struct text *why);

#endif
