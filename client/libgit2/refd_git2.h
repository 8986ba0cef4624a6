/*
 * librefd-git2: libgit2 programs write refs through refd.
 *
 *	git_repository *repo;
 *	git_repository_open(&repo, "/srv/git/a.git");
 *	if (refd_git2_attach(repo, NULL) < 0)
 *		puts(git_error_last()->message);
 *	git_reference_create(...);	durable when the call returns 0
 *
 * One call replaces the ref database of an open repository. From then on all
 * calls of libgit2 that write a ref of REPO go to the daemon: references,
 * branches, tags, commits, HEAD, fetch, reset, checkout, stash, transactions.
 * libgit2 still reads the files by itself. Without a daemon nothing is written,
 * and there is no way around refd, because the program would not notice that
 * its writes are no longer durable.
 *
 * Ownership: the repository owns the new ref database. git_repository_free()
 * frees everything. git_repository__cleanup() removes the ref database (so does
 * pygit2's Repository.free()): libgit2 then writes the files by itself again,
 * until the next call of refd_git2_attach(). Also not attached are repositories
 * that libgit2 opens by itself: the linked worktrees whose HEAD follows a
 * renamed branch, submodules, and a clone before refd_git2_attach().
 *
 * Threads: as many as libgit2 allows to share REPO. Call refd_git2_attach()
 * before REPO is shared. Every write has a connection of its own, so that a
 * program may also fork. A write blocks for up to 40 seconds.
 *
 * Errors of all writes, with a sentence in git_error_last():
 *	GIT_EEXISTS	the ref exists, and force is 0
 *	GIT_EMODIFIED	the ref does not have the expected old value
 *	GIT_ENOTFOUND	the ref does not exist
 *	GIT_ELOCKED	another writer holds the lock, or the daemon is busy: a
 *			later attempt may succeed
 *	GIT_EDIRECTORY	the name conflicts with another ref (a and a/b)
 *	GIT_EINVALIDSPEC	git does not accept the name
 *	REFD_GIT2_EUNKNOWN	see below
 *	GIT_ERROR	everything else, for example no daemon
 * After every error but REFD_GIT2_EUNKNOWN, the ref is unchanged. The exception
 * is git_transaction: the call writes ref after ref, as always in libgit2, and
 * may fail to complete a log. The message then says that the ref is written.
 * The locks of a git_transaction last 30 s (session.timeout, refd.conf(5)).
 */
#ifndef CLIENT_LIBGIT2_REFD_GIT2_H
#define CLIENT_LIBGIT2_REFD_GIT2_H

#include <git2.h>

/* The outcome is not known: the write may have been done, or may still be done.
 * This is neither success nor failure. No call of libgit2 has this code. Some
 * callers of libgit2 replace codes, so the message tells the outcome too: the
 * message begins with REFD_GIT2_UNKNOWN and ends with the command that asks
 * this daemon: `refd query`. */
#define REFD_GIT2_EUNKNOWN (-7333)
#define REFD_GIT2_UNKNOWN  "refd: outcome unknown: "

/*
 * SOCKET is copied. NULL: REFD_SOCKET, refd.socket of the repository's
 * configuration, $XDG_RUNTIME_DIR/refd.sock if directory and file belong to
 * this user or root, or /run/refd/refd.sock. If only the repository itself
 * names the socket, writes go to daemons of root, of this user or of the
 * repository's owner alone. Does not connect. REPO may be attached again.
 *
 * GIT_EINVALID: libgit2 cannot read the refs of this repository (reftables,
 * SHA-256), REPO has a namespace or is only in memory, or this library was
 * built for another version of libgit2. The repository is then unchanged.
 */
int refd_git2_attach(git_repository *repo, const char *socket);

#endif
