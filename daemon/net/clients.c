#include "daemon/net/clients.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/base/busy_cause.h"
#include "daemon/base/log.h"
#include "daemon/net/peer.h"
#include "daemon/net/requests.h"

/* Beside all other connections. */
#define ADMINS_MAX 32
/* So long are some served before others are heard. */
#define SERVE_NS 1000000LL

/* Says why, and hangs up: it fits the buffer of a socket that is new. */
static void turn_away(struct net *net, int fd, enum refd_status status,
    const char *why)
{
	struct refd_answer ans = { .kind = REFD_ANSWER_REFUSED,
		.status = status,
		.text = why };
	struct pkt_buf out = { 0 };
	struct refd_hello hello;

	net->counts.turned_away++;
	requests_hello(net, &hello);
	refd_hello_encode(&hello, &out);
	refd_answer_encode(&ans, &out);
	if (!pkt_buf_failed(&out))
		send(fd, out.data, out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
	pkt_buf_done(&out);
	close(fd);
}

/* Not once for each that is turned away. */
static void say_full(struct net *net)
{
	log_limited(&net->full_limit, LOG_LEVEL_WARNING, "connections-full",
	    LOG_NUM("connections", net->cfg.settings.connections_max),
	    LOG_TEXT("all are taken, others are turned away: see "
		     "limits.connections, and the limit of open files"));
}

/* Nor can anybody who tries again and again fill the disk with it. */
static void say_denied(struct net *net, const struct txn_peer *peer)
{
	log_limited(&net->denied_limit, LOG_LEVEL_WARNING, "denied",
	    LOG_NUM("uid", peer->uid), LOG_NUM("pid", peer->pid),
	    LOG_TEXT("turned away: neither the daemon's own user nor root, "
		     "nor allowed by daemon.allowUser or daemon.allowGroup"));
}

static struct net_user *find_user(const struct net *net, uint32_t uid)
{
	struct net_user *user;

	HASH_FIND(hh, net->users, &uid, sizeof(uid), user);
	return user;
}

/* Of whom nothing is limited. */
static bool is_free(uint32_t uid)
{
	return uid == 0 || uid == (uint32_t)geteuid();
}

static bool count_in(struct net *net, struct conn *conn)
{
	uint32_t uid = conn->peer.uid;
	struct net_user *user = find_user(net, uid);

	if (user == NULL) {
		user = calloc(1, sizeof(*user));
		if (user == NULL)
			return false;
		user->uid = uid;
		HASH_ADD(hh, net->users, uid, sizeof(user->uid), user);
		if (user->hh.tbl == NULL) {
			free(user);
			return false;
		}
	}
	user->nr_conns++;
	if (!is_free(uid))
		conn->user = &user->of_conns;
	return true;
}

static void count_out(struct net *net, uint32_t uid)
{
	struct net_user *user = find_user(net, uid);

	if (--user->nr_conns > 0)
		return;
	HASH_DEL(net->users, user);
	free(user);
}

/* Of one who is merely allowed there may be a limit; and he leaves the last
 * eighth to others when he has half of all: else he could keep everybody
 * away. */
static bool has_enough(const struct net *net, uint32_t uid)
{
	uint64_t limit = net->cfg.settings.scheduler.of_user.clients;
	size_t max = net->cfg.settings.connections_max;
	const struct net_user *user = find_user(net, uid);

	if (user == NULL || is_free(uid))
		return false;
	if (limit != 0 && user->nr_conns >= limit)
		return true;
	return net->nr_conns >= max - max / 8 && user->nr_conns > max / 2;
}

/* The socket's mode says who administers; there is always room for a few. */
static bool is_full(const struct net *net, bool is_admin)
{
	if (is_admin)
		return net->nr_admins >= ADMINS_MAX;
	return net->nr_conns - net->nr_admins >=
	    net->cfg.settings.connections_max;
}

void clients_add(struct net *net, int fd, bool is_admin)
{
	struct txn_peer peer = { 0 };
	struct refd_hello hello;
	struct conn *conn;

	if (is_full(net, is_admin)) {
		if (!is_admin)
			say_full(net);
		turn_away(net, fd, BUSY(CONNECTIONS));
		return;
	}
	if (peer_read(fd, &peer) < 0) {
		turn_away(net, fd, BUSY(MEMORY));
		return;
	}
	if (!is_admin &&
	    !rights_peer_is_among(&net->cfg.settings.peers, &peer)) {
		say_denied(net, &peer);
		turn_away(net, fd, REFD_DENIED,
		    "you are not among those who may use the daemon "
		    "(daemon.allowUser, daemon.allowGroup)");
		peer_done(&peer);
		return;
	}
	if (!is_admin && has_enough(net, peer.uid)) {
		turn_away(net, fd, BUSY(USER_CLIENTS));
		peer_done(&peer);
		return;
	}
	requests_hello(net, &hello);
	conn = conn_new(&net->host, fd, &peer, &hello);
	if (conn != NULL && !count_in(net, conn)) {
		conn_free(conn);
		return;
	}
	if (conn == NULL) {
		turn_away(net, fd, BUSY(MEMORY));
		peer_done(&peer);
		return;
	}
	TAILQ_INSERT_TAIL(&net->conns, conn, entry);
	conn->is_admin = is_admin;
	net->nr_conns++;
	net->nr_admins += is_admin;
	net->counts.accepted++;
}

static void hang_up(struct net *net, struct conn *conn)
{
	uint32_t uid = conn->peer.uid;

	/* With nothing in flight it may still have a session prepared. */
	if (net->scheduler != NULL) {
		scheduler_forget_client(net->scheduler, conn);
		net_want_turn(net);
	}
	TAILQ_REMOVE(&net->conns, conn, entry);
	net->nr_conns--;
	net->nr_admins -= conn->is_admin;
	conn_free(conn);
	count_out(net, uid);
}

/* It may wait for an answer that never comes, a watch's, and its sessions are
 * not to hold their locks so long. */
void clients_said_all(void *arg, struct conn *conn)
{
	struct net *net = arg;

	if (net->scheduler == NULL)
		return;
	scheduler_end_sessions(net->scheduler, conn);
	net_want_turn(net);
}

bool clients_serve(struct net *net)
{
	struct conn_list *touched = &net->host.touched_conns;
	const struct conn *last = TAILQ_LAST(touched, conn_list);
	int64_t until_ns = SYS(net->cfg.sys, now_mono) + SERVE_NS;
	bool more = last != NULL;
	struct conn *conn;

	while (more) {
		conn = TAILQ_FIRST(touched);
		more = conn != last && SYS(net->cfg.sys, now_mono) < until_ns;
		if (!conn_service(conn))
			hang_up(net, conn);
	}
	return !TAILQ_EMPTY(touched);
}

void clients_check(struct net *net)
{
	int64_t now_ns = SYS(net->cfg.sys, now_mono);
	struct conn *conn;

	TAILQ_FOREACH(conn, &net->conns, entry)
		conn_check(conn, now_ns);
}

bool clients_owed(const struct net *net)
{
	const struct conn *conn;

	TAILQ_FOREACH(conn, &net->conns, entry) {
		if (conn_unsent(conn) > 0)
			return true;
	}
	return false;
}

void clients_hang_up(struct net *net)
{
	struct conn *conn;

	while ((conn = TAILQ_FIRST(&net->conns)) != NULL)
		hang_up(net, conn);
}
