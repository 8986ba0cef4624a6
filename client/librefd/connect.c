#include "client/librefd/refd_internal.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/lib/clock.h"

#define NAP_MAX_MS 250

void refd_hang_up(struct refd *r)
{
	uint64_t written = refd_conn_written(&r->conn);
	const struct known_session *s;
	size_t i;

	/* A denial comes before the server reads any byte, or never. */
	if (r->refusal == REFD_DENIED)
		written = 0;
	for (i = 0; i < r->nr_flights; i++) {
		s = refd_find_session(r, &r->flights[i]->req->txid);
		refd_flight_lost(r->flights[i], written,
		    s && s->state == SESSION_HELD);
	}
	r->nr_sessions = 0;
	refd_conn_close(&r->conn);
	refd_answer_decoder_free(r->dec);
	r->dec = NULL;
}

static int read_hello(struct refd *r, uint64_t deadline)
{
	struct refd_hello_decoder dec = { 0 };
	enum refd_decoded state = REFD_DECODE_MORE;
	const char *why = "it ends too early";
	struct pkt pkt;
	bool is_refd;
	int got;

	while (state == REFD_DECODE_MORE) {
		got = refd_conn_packet(&r->conn, &pkt);
		if (got < 0)
			return refd_fail(r, -EPROTO, "%s: not a refd", r->path);
		if (got > 0) {
			state = refd_hello_decode(&dec, &pkt, &r->hello, &why);
			continue;
		}
		got = refd_conn_pump(&r->conn, deadline);
		if (got < 0)
			return refd_fail(r, got, "%s: no greeting: %s", r->path,
			    strerror(-got));
	}
	/* A different version may have different lines behind the first. */
	is_refd =
	    state == REFD_DECODE_DONE || (dec.begun && r->hello.version > 0);
	if (is_refd && r->hello.version != REFD_PROTOCOL_VERSION)
		return refd_fail(r, -EPROTO,
		    "the daemon at %s speaks version %u of refd's protocol, "
		    "this program version %u: install the same release of "
		    "both, and restart the daemon",
		    r->path, r->hello.version, REFD_PROTOCOL_VERSION);
	if (state != REFD_DECODE_DONE)
		return refd_fail(r, -EPROTO,
		    "%s: its greeting is not refd's: %s", r->path, why);
	r->has_hello = true;
	return 0;
}

static bool is_acceptable(const struct refd *r, uid_t uid)
{
	return uid == 0 || uid == geteuid() || uid == r->owner;
}

/* Both the process that listens and the owner of the socket's file must be
 * acceptable. The kernel knows the process, even if the file was exchanged
 * after the connection was made. But the process alone proves too little,
 * because a program of root may listen on a socket of another user. */
static int check_owner(struct refd *r)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	struct stat st;
	uid_t uid;

	if (!r->is_guarded)
		return 0;
	if (stat(r->path, &st) < 0 ||
	    getsockopt(r->conn.fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return refd_fail(r, -errno, "cannot look whose %s is: %s",
		    r->path, strerror(errno));
	uid = is_acceptable(r, st.st_uid) ? peer.uid : st.st_uid;
	if (is_acceptable(r, uid))
		return 0;
	return refd_fail(r, -EACCES,
	    "the repository names the socket %s of user %u, and only a daemon "
	    "of the repository's owner (user %u), of root or of yourself is "
	    "believed there: correct refd.socket in the repository, or, if the "
	    "daemon is right, set refd.socket to the same path in the "
	    "system's or your own configuration of git",
	    r->path, (unsigned)uid, (unsigned)r->owner);
}

static int connect_once(struct refd *r, uint64_t deadline)
{
	int err;

	r->refusal = REFD_OK;
	err = refd_conn_open(&r->conn, r->path, deadline);
	if (err < 0)
		return refd_fail(r, err, "cannot connect to %s: %s", r->path,
		    strerror(-err));
	err = check_owner(r);
	r->dec = refd_answer_decoder_new();
	if (err == 0 && !r->dec)
		err = refd_fail(r, -ENOMEM, "out of memory");
	if (err == 0)
		err = read_hello(r, deadline);
	/* A server that turns the connection away sends the refusal right
	 * behind hello. */
	if (err == 0)
		err = refd_take_packets(r);
	if (err == 0)
		err = refd_refusal_error(r);
	if (err < 0)
		refd_hang_up(r);
	return err;
}

static bool is_serving(const struct refd *r)
{
	return refd_conn_is_open(&r->conn) && r->has_hello &&
	    r->hello.state == REFD_SERVING;
}

/* A request that cannot be sent ends alone, when the caller waits for it. */
static void send_flights(struct refd *r)
{
	size_t i;

	for (i = 0; i < r->nr_flights; i++)
		(void)refd_flight_send(r->flights[i], &r->conn);
	refd_conn_flush(&r->conn);
}

int refd_connect(struct refd *r, int timeout_ms)
{
	int err;

	if (is_serving(r))
		return 0;
	refd_hang_up(r);
	err = connect_once(r, clock_deadline_ms(timeout_ms));
	if (err == 0)
		send_flights(r);
	return err;
}

/* Can a later attempt succeed? A daemon that restarts may not have set the mode
 * of its socket yet, a daemon may be overloaded, and a daemon cannot start
 * until its configuration is corrected. */
static bool is_passing(int err)
{
	return err == -ENOENT || err == -ECONNREFUSED || err == -ECONNRESET ||
	    err == -EPIPE || err == -ETIMEDOUT || err == -EACCES ||
	    err == -EBUSY || err == -EHOSTDOWN;
}

void refd_back_off(struct refd *r, uint64_t deadline)
{
	clock_nap(r->nap_ms, deadline);
	if (r->nap_ms < NAP_MAX_MS)
		r->nap_ms *= 2;
}

/* If an attempt fails only because of the time, the earlier message of the
 * daemon is more useful than the timeout. */
static int connect_again(struct refd *r, uint64_t deadline)
{
	enum refd_status refusal = r->refusal;
	char why[sizeof(r->error)];
	int err;

	memcpy(why, r->error, sizeof(why));
	err = connect_once(r, deadline);
	if (err == -ETIMEDOUT && refusal != REFD_OK)
		memcpy(r->error, why, sizeof(why));
	return err;
}

int refd_reconnect(struct refd *r, uint64_t deadline)
{
	int err;

	for (;;) {
		err = connect_again(r, deadline);
		if (err == -EPERM)
			return err;
		if (err < 0 && !is_passing(err))
			return -ECONNRESET;
		if (err == 0 && is_serving(r)) {
			send_flights(r);
			return 0;
		}
		if (err == 0) {
			refd_fail(r, 0, "%s: the daemon is %s", r->path,
			    refd_server_state_name(r->hello.state));
			refd_hang_up(r);
		}
		/* No further attempt after the deadline: the error would only
		 * be that there was no time. */
		refd_back_off(r, deadline);
		if (clock_now_ms() >= deadline)
			return -ECONNRESET;
	}
}
