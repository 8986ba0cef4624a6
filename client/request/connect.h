/*
 * Finds the daemon's socket, connects, and sends one transaction. Decides
 * whether git may write while the daemon is away.
 *
 * Blocking, within deadlines of the clock of clock_now_ms(); one thread.
 */
#ifndef CLIENT_REQUEST_CONNECT_H
#define CLIENT_REQUEST_CONNECT_H

#include "client/git/gitconfig.h"
#include "client/git/gitdir.h"
#include "client/refd.h"

/* Of the daemons of refd@ACCOUNT.service: before the account. */
#define CONNECT_ACCOUNT_BEGIN "/run/refd-"

enum fallback {
	FALLBACK_REFUSE, /* report an error */
	FALLBACK_GIT     /* git writes */
};

struct daemon_socket {
	char *path; /* owned */
	/* The repository's own configuration names the socket, and whoever
	 * writes to the repository may have put a daemon there. So only daemons
	 * of root, of this user or of OWNER are asked (refd_accept_only()). */
	bool is_guarded;
	uid_t owner; /* of the repository */
};

/*
 * OPTION, or else REFD_SOCKET, refd.socket, $XDG_RUNTIME_DIR/refd.sock if
 * directory and socket belong to the caller or root, /run/refd/refd.sock.
 * CONFIG may be NULL. GD is the repository of CONFIG, or NULL. The caller frees
 * the path.
 */
void connect_choose(struct daemon_socket *s, const char *option,
    const struct gitconfig *config, const struct gitdir *gd);
/* Sets the guard of S, for a socket that the repository GD with CONFIG names or
 * is about to name. Only the repository's own choice needs a guard. The user or
 * the system may name the same socket, and then the choice is theirs. The
 * socket that needs no name is not guarded either, because only root can make
 * /run/refd. */
void connect_guard(struct daemon_socket *s, const struct gitconfig *config,
    const struct gitdir *gd);
/* Not yet connected. Never NULL. */
struct refd *connect_new(const struct daemon_socket *s);

/*
 * The sockets of the daemons that a question may concern. Usually PATH is the
 * only one. But if PATH is /run/refd/refd.sock and does not exist, the sockets
 * are those of the daemons of accounts, /run/refd-ACCOUNT/refd.sock.
 *
 * Updates must not use this function, because a repository without refd.socket
 * belongs to the system's daemon. Returns the number of sockets, at least 1.
 * The caller owns the array and the strings.
 */
size_t connect_running_sockets(const char *path, char ***sockets);
/* Puts the only one of these sockets into S. Several end the program with a
 * list. */
void connect_choose_running(struct daemon_socket *s);

/* refd.fallback, or UNSET if there is none. A value other than "git" and
 * "refuse" ends the program. */
enum fallback connect_fallback(const struct gitconfig *config,
    enum fallback unset);

/* Do other nodes have the repository? They would never get what git writes.
 * The daemon and refd-group make <common-dir>/refd/group. */
bool connect_is_in_group(const struct gitdir *gd);

/* Has no daemon ever begun to serve the repository? If a daemon then refuses
 * the repository or the user, the set-up is wrong, and nothing has to be
 * recovered. So git may write, as before the set-up. */
bool connect_is_untouched(const struct gitdir *gd);

/*
 * May git write to the repository while the daemon is away? Not while refs may
 * await replay: git would compare stale values, and recovery would keep git's
 * writes.
 *
 * The daemon makes <common-dir>/refd/id before its first batch there, so
 * without this file the repository was never served, and git may write. Git may
 * also write after recovery, which a marker proves: <socket>.replayed. A marker
 * counts only for this boot, so the file is in a tmpfs, or names the boot. The
 * marker lists the uuids of repositories with records that could not be redone
 * yet, and there git may not write. See docs/decisions/008-replayed-marker.md.
 *
 * Git may never write to a repository that other nodes have, too, because the
 * other nodes would not learn of the change.
 */
bool connect_may_bypass(const char *socket, const struct gitdir *gd);

enum connect_result {
	CONNECT_SERVED,  /* connected, and the daemon serves */
	CONNECT_USE_GIT, /* the daemon is away or denies, and git may write */
	CONNECT_FAILED,  /* neither may write now: *WHY */
	CONNECT_DENIED   /* the daemon denies this user: *WHY */
};

/*
 * Tries until DEADLINE if waiting can help. A daemon that denies this peer, or
 * a socket that the peer may not open, is an error of the configuration. Git
 * must not write then, because nobody would notice that updates are no longer
 * durable. But git may write to an untouched repository, because nothing there
 * was ever durable, unless the repository names a socket that is not believed.
 */
enum connect_result connect_daemon(struct refd *r, const char *socket,
    enum fallback fallback, const struct gitdir *gd, uint64_t deadline,
    struct text *why);

/*
 * May git do what refd cannot do for REASON? Every caller that leaves work to
 * git asks here. Git may do the work if connect_may_bypass(). Otherwise a
 * daemon has to serve by DEADLINE, and its marker must not list the repository.
 * If the client accepts no marker, the daemon itself must say that no
 * repository awaits recovery.
 *
 * OPTION and CONFIG are those of connect_choose(). The result is
 * CONNECT_USE_GIT, CONNECT_FAILED or CONNECT_DENIED. After the last two, *WHY
 * has the reason, too.
 */
enum connect_result connect_may_leave(const char *option,
    const struct gitconfig *config, const struct gitdir *gd, uint64_t deadline,
    const char *reason, struct text *why);

/*
 * Sends REQ through the connected R. If the daemon is busy or stops, REQ is
 * sent again under its id until shortly before DEADLINE: after 50 ms, and then
 * after longer pauses, up to 800 ms. Every two seconds the client also asks
 * whether the daemon follows another node. A follower is not asked again,
 * because its answer names the leader.
 *
 * The daemon has to finish by DEADLINE, and the client awaits the answer for
 * GRACE_MS longer. *ANS is always filled in. Without an answer, the outcome is
 * "unknown", but a session has REFD_DEADLINE.
 */
void connect_call(struct refd *r, struct refd_request *req, uint64_t deadline,
    int grace_ms, struct refd_answer *ans);

/* The node that leads, by the daemon's answer; owned. NULL: the daemon does not
 * follow, or has not answered in TIMEOUT_MS. */
char *connect_leader(struct refd *r, int timeout_ms);

/* Ends SESSION with COMMIT or ABORT. A refused end leaves the locks, so a busy
 * daemon gets the end again, as in connect_call(), until shortly before
 * DEADLINE. The daemon does what it was told even if nobody waits, so the
 * client awaits the answer for GRACE_MS longer. Without an answer, *ANS is
 * "unknown". */
void connect_end_session(struct refd *r, const struct refd_request *session,
    enum refd_verb verb, uint64_t deadline, int grace_ms,
    struct refd_answer *ans);

/* The time until DEADLINE, at least 1. */
uint32_t connect_ms_left(uint64_t deadline);

#endif
