/*
 * Finds the daemon's socket, connects, and sends one transaction. Decides
 * whether git may write while the daemon is away.
 *
 * Blocking, within deadlines of the clock of refd_now_ms(); one thread.
 */
#ifndef CLIENT_REQUEST_CONNECT_H
#define CLIENT_REQUEST_CONNECT_H

#include "client/git/gitconfig.h"
#include "client/git/gitdir.h"
#include "client/refd.h"

enum fallback {
	FALLBACK_REFUSE, /* report an error */
	FALLBACK_GIT     /* git writes */
};

/*
 * OPTION, or else REFD_SOCKET, refd.socket, $XDG_RUNTIME_DIR/refd.sock if it
 * exists, /run/refd/refd.sock. CONFIG may be NULL. Owned by the caller.
 */
char *connect_socket(const char *option, const struct gitconfig *config);

/*
 * The sockets of the daemons that a question may concern: as connect_socket().
 * But if /run/refd/refd.sock is the answer and does not exist, the sockets of
 * the daemons of accounts, /run/refd-ACCOUNT/refd.sock. Not for updates:
 * without refd.socket, a repository belongs to the system's daemon. Returns
 * their number, at least 1. The caller owns the array and the strings.
 */
size_t connect_running_sockets(const char *option,
    const struct gitconfig *config, char ***sockets);
/* The only one of these sockets. Several end the program with a list. */
char *connect_running_socket(const char *option,
    const struct gitconfig *config);

/* refd.fallback, or UNSET. A value other than "git" and "refuse" ends the
 * program. */
enum fallback connect_fallback(const struct gitconfig *config,
    enum fallback unset);

/* Is the repository in a group of nodes? Other nodes would never get what git
 * writes. The daemon and refd-group make <common-dir>/refd/group. */
bool connect_is_in_group(const struct gitdir *gd);

/*
 * May git write to the repository while the daemon is away? Not while refs may
 * await replay: git would compare stale values, and recovery would keep git's
 * writes.
 *
 * Git may write if the repository was never served: the daemon makes
 * <common-dir>/refd/id before its first batch there. Git may also write after
 * recovery: <socket>.replayed is in a tmpfs or names this boot, and does not
 * list the uuid of the repository. A listed repository has records that could
 * not be redone yet. See docs/decisions/008-replayed-marker.md.
 *
 * Git may never write in a group of nodes.
 */
bool connect_may_bypass(const char *socket, const struct gitdir *gd);

enum connect_result {
	CONNECT_SERVED,  /* connected, and the daemon serves */
	CONNECT_USE_GIT, /* the daemon is away, and git may write */
	CONNECT_FAILED,  /* neither may write now: *WHY */
	CONNECT_DENIED   /* the daemon denies this user: *WHY */
};

/*
 * Tries until DEADLINE if waiting can help. A daemon that denies this peer, or
 * a socket that the peer may not open, is an error of the configuration. Git
 * must not write then: nobody would notice that updates are no longer durable.
 */
enum connect_result connect_daemon(struct refd *r, const char *socket,
    enum fallback fallback, const struct gitdir *gd, uint64_t deadline,
    struct text *why);

/*
 * Sends REQ through the connected R. If the daemon is busy or stops, REQ is
 * sent again under its id until shortly before DEADLINE: after 50 ms, and then
 * after longer pauses, up to 800 ms. The daemon has to finish by then, and the
 * answer is awaited for GRACE_MS longer. *ANS is always filled in: the outcome
 * is "unknown" without an answer; a session without an answer has
 * REFD_DEADLINE.
 */
void connect_call(struct refd *r, struct refd_request *req, uint64_t deadline,
    int grace_ms, struct refd_answer *ans);

/* Ends SESSION with COMMIT or ABORT. *ANS is "unknown" without an answer. */
void connect_end_session(struct refd *r, const struct refd_request *session,
    enum refd_verb verb, int timeout_ms, struct refd_answer *ans);

/* The time until DEADLINE, at least 1. */
uint32_t connect_ms_left(uint64_t deadline);

#endif
