/*
 * The way to the daemon: where its socket is, whether it serves, what may be
 * done when it is away, and one transaction put through.
 *
 * Blocking, within deadlines of refd_now_ms()'s clock; one thread.
 */
#ifndef CLIENT_REQUEST_CONNECT_H
#define CLIENT_REQUEST_CONNECT_H

#include "client/git/gitconfig.h"
#include "client/git/gitdir.h"
#include "client/refd.h"

enum fallback {
	FALLBACK_REFUSE, /* say so and do nothing */
	FALLBACK_GIT     /* let git do it */
};

/*
 * OPTION, else REFD_SOCKET, else refd.socket, else $XDG_RUNTIME_DIR/refd.sock
 * if it exists, else /run/refd/refd.sock. CONFIG may be NULL. Owned by the
 * caller.
 */
char *connect_socket(const char *option, const struct gitconfig *config);

/* refd.fallback, or UNSET; any value but "git" and "refuse" ends the
 * program. */
enum fallback connect_fallback(const struct gitconfig *config,
    enum fallback unset);

/*
 * May git write to the repository while the daemon is away? Not while refs
 * may await replay: then git would compare with stale values, and recovery
 * would take its writes for the truth. It may where the repository was never
 * served (<common-dir>/refd/id, which the daemon makes before its first
 * batch there, is missing). It may also where <socket>.replayed, which the
 * daemon writes after recovery, lies in a tmpfs or names this boot, and does
 * not list the repository by its uuid: some of its records could not be redone
 * yet. See docs/decisions/008-replayed-marker.md.
 */
bool connect_may_bypass(const char *socket, const struct gitdir *gd);

enum connect_result {
	CONNECT_SERVED,  /* connected, and it serves */
	CONNECT_USE_GIT, /* the daemon is away and git may do it */
	CONNECT_FAILED,  /* *WHY says why nothing can be done */
	CONNECT_DENIED   /* nor later; *WHY says why */
};

/*
 * Tries until DEADLINE wherever waiting can help. A daemon that denies this
 * peer, or whose socket the peer may not open, is not away: its repositories
 * are to be written through it, and what is wrong is the configuration. Were
 * git to step in, nobody would notice that updates have stopped being durable.
 */
enum connect_result connect_daemon(struct refd *r, const char *socket,
    enum fallback fallback, const struct gitdir *gd, uint64_t deadline,
    struct text *why);

/*
 * Puts REQ through on a connected R. What the daemon is too busy for, or
 * would not begin because it stops, it is asked again until DEADLINE, under the
 * same id; by then it is asked to be done, and its
 * answer is waited for GRACE_MS longer. *ANS is always filled in: with
 * "unknown" where nothing could be learnt, or, of a session, that it was given
 * up.
 */
void connect_call(struct refd *r, struct refd_request *req, uint64_t deadline,
    int grace_ms, struct refd_answer *ans);

/* How much of DEADLINE is left, at least 1. */
uint32_t connect_ms_left(uint64_t deadline);

#endif
