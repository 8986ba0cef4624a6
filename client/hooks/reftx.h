/*
 * The reference-transaction hook (githooks(5)), run by the client with the
 * client's rights. The hook runs between the steps of a transaction, so in a
 * repository with this hook a transaction is sent as a session:
 *
 *	preparing	before any lock is taken (not in git 2.39)
 *	prepared	while the daemon holds the locks
 *	committed	when the transaction is durable
 *	aborted		after any failure
 *
 * For deletions, git rewrites packed-refs in a transaction of its own, and
 * calls the hook for this inner transaction, too. Git makes these calls in
 * between. Here each of these calls comes right before the same call for the
 * whole transaction. At "prepared", packed-refs.new already exists then, and at
 * the end, the locks are gone. Reftables have no such calls.
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
	enum refd_object_format object_format;
	const char *failed_in; /* phase in which the hook refused */
	bool in_packed;        /* in the transaction of packed-refs */
	struct place place;
	struct text all, deleted; /* input of the hook since prepared */
	bool rewrites_packed;
	const struct gitdir *gd; /* borrowed */
};

/* NAMED: the repository as in the options or GIT_DIR, or NULL. Needs an
 * access(2) if there is no hook. */
void reftx_find(struct reftx *tx, const struct gitdir *gd,
    const struct gitconfig *config, const char *named, bool as_2_39);
/* For a program that git runs as a hook. The calls depend on git's version, so
 * git is asked for it if there is a reference-transaction hook (as_2_39). */
void reftx_find_here(struct reftx *tx, const struct gitdir *gd,
    const struct gitconfig *config);
void reftx_done(struct reftx *tx);
bool reftx_exists(const struct reftx *tx);

/* If the hook is not executable, prints git's warning once. */
void reftx_warn(struct reftx *tx);
/* Returns false if the hook refuses, after a further call with "aborted". */
bool reftx_preparing(struct reftx *tx, const struct changes *changes);
/* Returns false if the hook refuses; call reftx_aborted() when the locks are
 * gone. ANS has a result for each of CHANGES. */
bool reftx_prepared(struct reftx *tx, const struct changes *changes,
    const struct refd_answer *ans);
/* The result of the last prepared transaction. */
void reftx_committed(struct reftx *tx);
void reftx_aborted(struct reftx *tx);
/* Calls the hook with the outcome of COMMIT, unless the outcome is unknown.
 * WAS_HELD: the daemon held locks. */
void reftx_ended(struct reftx *tx, const struct refd_answer *ans,
    bool was_held);
/* The transaction was aborted before it was prepared. */
void reftx_given_up(struct reftx *tx, const struct changes *changes);
/* git's message for a refusal. */
void reftx_why(const struct reftx *tx, struct text *why);

#endif
