#include "daemon/server/clients.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/base/busy_cause.h"
#include "daemon/server/peer.h"
#include "daemon/server/requests.h"
#include "daemon/server/server_internal.h"

/* Connections of administrators, in addition to all others. */
#define ADMINS_MAX 32

/* ---- admission ---- */

/* Sends a refusal and hangs up. The buffer of a new socket has room for the
 * whole answer, so nothing of it is cut off. */
static void turn_away(struct server *server, int fd, enum refd_status status,
    const char *why)
{
	struct refd_answer ans = { .kind = REFD_ANSWER_REFUSED,
		.status = status,
		.text = why };
	struct pkt_buf out = { 0 };
	struct refd_hello hello;

	server->clients.turned_away++;
	requests_hello(server, &hello);
	refd_hello_encode(&hello, &out);
	refd_answer_encode(&ans, &out);
	if (!pkt_buf_failed(&out))
		send(fd, out.data, out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
	pkt_buf_done(&out);
	close(fd);
}

static void log_full(struct server *server)
{
	log_limited(&server->clients.full_limit, LOG_LEVEL_WARNING,
	    "connections-full",
	    LOG_NUM("connections", server->cfg.settings.connections_max),
	    LOG_TEXT("all are taken, others are turned away: see "
		     "limits.connections, and the limit of open files"));
}

/* Limited, because a denied client can try again and again. */
static void log_denied(struct server *server, const struct txn_peer *peer)
{
	log_limited(&server->clients.denied_limit, LOG_LEVEL_WARNING, "denied",
	    LOG_NUM("uid", peer->uid), LOG_NUM("pid", peer->pid),
	    LOG_TEXT("turned away: neither the daemon's own user nor root, "
		     "nor allowed by daemon.allowUser or daemon.allowGroup"));
}

static struct client_user *find_client_user(const struct server *server,
    uint32_t uid)
{
	struct client_user *user;

	HASH_FIND(hh, server->clients.users, &uid, sizeof(uid), user);
	return user;
}

/* Root and the daemon's own account have no limits. */
static bool is_unlimited(uint32_t uid)
{
	return uid == 0 || uid == (uint32_t)geteuid();
}

static bool add_to_user(struct server *server, struct conn *conn)
{
	uint32_t uid = conn->peer.uid;
	struct client_user *user = find_client_user(server, uid);

	if (user == NULL) {
		user = calloc(1, sizeof(*user));
		if (user == NULL)
			return false;
		user->uid = uid;
		HASH_ADD(hh, server->clients.users, uid, sizeof(user->uid),
		    user);
		if (user->hh.tbl == NULL) {
			free(user);
			return false;
		}
	}
	user->nr_conns++;
	if (!is_unlimited(uid))
		conn->user = &user->of_conns;
	return true;
}

static void remove_from_user(struct server *server, uint32_t uid)
{
	struct client_user *user = find_client_user(server, uid);

	if (--user->nr_conns > 0)
		return;
	HASH_DEL(server->clients.users, user);
	free(user);
}

/* Has user UID as many connections as allowed? There may be a limit for each
 * user. Also, a user with half of all connections cannot use the last eighth,
 * because otherwise one user could keep out all others. */
static bool has_enough(const struct server *server, uint32_t uid)
{
	uint64_t limit = server->cfg.settings.scheduler.of_user.clients;
	size_t max = server->cfg.settings.connections_max;
	const struct client_user *user = find_client_user(server, uid);

	if (user == NULL || is_unlimited(uid))
		return false;
	if (limit != 0 && user->nr_conns >= limit)
		return true;
	return server->clients.nr_conns >= max - max / 8 &&
	    user->nr_conns > max / 2;
}

/* Administrators have separate room, so clients cannot keep them out. The mode
 * of the socket decides who is an administrator. */
static bool has_no_room(const struct server *server, bool is_admin)
{
	if (is_admin)
		return server->clients.nr_admins >= ADMINS_MAX;
	return server->clients.nr_conns - server->clients.nr_admins >=
	    server->cfg.settings.connections_max;
}

void clients_add(struct server *server, int fd, bool is_admin)
{
	struct txn_peer peer = { 0 };
	struct refd_hello hello;
	struct conn *conn;
	int r;

	if (has_no_room(server, is_admin)) {
		if (!is_admin)
			log_full(server);
		turn_away(server, fd, BUSY(CONNECTIONS));
		return;
	}
	r = peer_read(fd, &peer);
	if (r == -E2BIG)
		turn_away(server, fd, REFD_DENIED,
		    "you belong to more than 4096 groups");
	else if (r < 0)
		turn_away(server, fd, BUSY(MEMORY));
	if (r < 0)
		return;
	if (!is_admin &&
	    !rights_peer_is_among(&server->cfg.settings.peers, &peer)) {
		log_denied(server, &peer);
		turn_away(server, fd, REFD_DENIED,
		    "you are not among those who may use the daemon "
		    "(daemon.allowUser, daemon.allowGroup)");
		peer_done(&peer);
		return;
	}
	if (!is_admin && has_enough(server, peer.uid)) {
		turn_away(server, fd, BUSY(USER_CLIENTS));
		peer_done(&peer);
		return;
	}
	requests_hello(server, &hello);
	conn = conn_new(&server->clients.host, fd, &peer, &hello);
	if (conn != NULL && !add_to_user(server, conn)) {
		conn_free(conn);
		return;
	}
	if (conn == NULL) {
		turn_away(server, fd, BUSY(MEMORY));
		peer_done(&peer);
		return;
	}
	TAILQ_INSERT_TAIL(&server->clients.conns, conn, entry);
	conn->is_admin = is_admin;
	server->clients.nr_conns++;
	server->clients.nr_admins += is_admin;
}

static void hang_up_on(void *arg, struct conn *conn)
{
	struct server *server = arg;
	uint32_t uid = conn->peer.uid;

	/* A connection without requests in flight may still have prepared
	 * sessions, so the scheduler hears of the end of every connection. */
	if (server->scheduler != NULL) {
		scheduler_forget_client(server->scheduler, conn,
		    SYS(server->cfg.sys, now_mono));
		loop_want_turn(&server->loop);
	}
	TAILQ_REMOVE(&server->clients.conns, conn, entry);
	server->clients.nr_conns--;
	server->clients.nr_admins -= conn->is_admin;
	conn_free(conn);
	remove_from_user(server, uid);
}

/* CONN sends no more requests. Its sessions end now, because CONN may wait
 * very long for the answer to a watch, and sessions hold locks. */
static void client_said_all(void *arg, struct conn *conn)
{
	struct server *server = arg;

	if (server->scheduler == NULL)
		return;
	scheduler_end_sessions(server->scheduler, conn);
	loop_want_turn(&server->loop);
}

void clients_check(struct server *server)
{
	int64_t now_ns = SYS(server->cfg.sys, now_mono);
	struct conn *conn;

	TAILQ_FOREACH(conn, &server->clients.conns, entry)
		conn_check(conn, now_ns);
}

bool clients_owed(const struct server *server)
{
	const struct conn *conn;

	TAILQ_FOREACH(conn, &server->clients.conns, entry) {
		if (conn_unsent(conn) > 0)
			return true;
	}
	return false;
}

void clients_hang_up(struct server *server)
{
	struct conn *conn;

	while ((conn = TAILQ_FIRST(&server->clients.conns)) != NULL)
		hang_up_on(server, conn);
}

/* ---- life ---- */

int clients_init(struct server *server)
{
	struct clients *clients = &server->clients;

	clients->full_limit = clients->denied_limit =
	    (struct log_limit){ .burst = 1, .seconds = 60 };
	TAILQ_INIT(&clients->conns);
	clients->host = (struct conn_host){ .base = server->loop.base,
		.sys = server->cfg.sys,
		.request = requests_take,
		.said_all = client_said_all,
		.over = hang_up_on,
		.arg = server,
		.connections_max = server->cfg.settings.connections_max,
		.touched = loop_touched,
		.loop = &server->loop };
	return conn_host_init(&clients->host);
}

void clients_done(struct server *server)
{
	conn_host_done(&server->clients.host);
}
