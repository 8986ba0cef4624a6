/*
 * The happy path: the request is read up to its empty line, answered, and the
 * connection closed.
 *
 * Failures: any process may ask, so the connection is closed if the request is
 * too long or takes too long. These limits protect the daemon's descriptors and
 * the time of the loop. If there are too many connections, a new one is taken
 * all the same, because otherwise silent connections would keep out the load
 * balancer. The address with the most connections loses its oldest one. The
 * text of the metrics is made once in a turn of the loop, and all who ask in
 * the turn get the same text, because making the text costs four times as much
 * as a connection. The answer to a load balancer is short and is made for each.
 */
#include "daemon/metrics/metrics_http.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>

/* A request has a few lines and its client reads the answer at once, so a few
 * seconds are enough. */
#define TIMEOUT_S 5
/* Twice as many as the listener accepts in a turn, so a request that has
 * already arrived is read before its connection can be the oldest one. */
#define SCRAPES_MAX   128
#define REQUEST_MAX   8192
#define ADDRESS_BYTES 16
#define CONTENT_TYPE  "text/plain; version=0.0.4; charset=utf-8"

struct scrape {
	struct metrics_http *http;
	struct bufferevent *bev;
	struct event *over; /* fires when the scrape has taken too long */
	uint8_t address[ADDRESS_BYTES];
	TAILQ_ENTRY(scrape) entry;
};

struct metrics_http {
	struct event_base *base;
	struct metrics *(*collect)(void *arg);
	void *arg;
	struct evbuffer *text;        /* the metrics of this turn, or empty */
	struct event *turn;           /* fires in the next turn */
	TAILQ_HEAD(, scrape) scrapes; /* the oldest first */
	size_t nr;
};

static void scrape_free(struct scrape *s)
{
	TAILQ_REMOVE(&s->http->scrapes, s, entry);
	s->http->nr--;
	if (s->over != NULL)
		event_free(s->over);
	if (s->bev != NULL)
		bufferevent_free(s->bev);
	free(s);
}

static void scrape_over(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	scrape_free(arg);
}

static void scrape_event(struct bufferevent *bev, short what, void *arg)
{
	(void)bev;
	(void)what;
	scrape_free(arg);
}

static void scrape_written(struct bufferevent *bev, void *arg)
{
	(void)bev;
	scrape_free(arg);
}

/* ---- the answer ---- */

static bool make_text(struct metrics_http *http)
{
	struct metrics *m = http->collect(http->arg);
	struct key_values kv = { 0 };
	bool ok = m != NULL;
	size_t i;

	if (ok)
		metrics_text(m, &kv);
	for (i = 0; ok && i < kv.nr; i++)
		ok = evbuffer_add(http->text, kv.list[i].value,
			 strlen(kv.list[i].value)) == 0;
	ok = ok && !kv.failed;
	key_values_done(&kv);
	free(m);
	return ok;
}

static void forget_text(evutil_socket_t fd, short what, void *arg)
{
	struct metrics_http *http = arg;

	(void)fd;
	(void)what;
	evbuffer_drain(http->text, evbuffer_get_length(http->text));
}

static bool add_metrics(struct metrics_http *http, struct evbuffer *body)
{
	bool ok = evbuffer_get_length(http->text) > 0 || make_text(http);

	event_active(http->turn, EV_TIMEOUT, 0);
	return ok && evbuffer_add_buffer_reference(body, http->text) == 0;
}

static bool add_role(struct metrics_http *http, bool wants_leader,
    struct evbuffer *body)
{
	struct metrics *m = http->collect(http->arg);
	bool ok = m != NULL && evbuffer_add_printf(body, "%s\n", m->role) > 0;

	if (ok)
		ok = wants_leader ? m->takes_writes : m->serves_reads;
	free(m);
	return ok;
}

/* Is TARGET the PATH, perhaps with a query? */
static bool is_path(const char *target, const char *path)
{
	const size_t len = strlen(path);

	return strncmp(target, path, len) == 0 &&
	    strchr(" ?", target[len]) != NULL && target[len] != '\0';
}

/* Returns the status, and adds the answer to BODY. */
static const char *answer_target(struct metrics_http *http, const char *target,
    struct evbuffer *body)
{
	bool ok;

	if (is_path(target, "/metrics"))
		ok = add_metrics(http, body);
	else if (is_path(target, "/leader"))
		ok = add_role(http, true, body);
	else if (is_path(target, "/follower"))
		ok = add_role(http, false, body);
	else
		return "404 Not Found";
	return ok ? "200 OK" : "503 Service Unavailable";
}

/* LINE is the first line of the request. */
static bool answer_scrape(struct scrape *s, const char *line)
{
	struct evbuffer *body = evbuffer_new();
	bool is_head = strncmp(line, "HEAD ", 5) == 0, ok;
	const char *status;

	if (body == NULL)
		return false;
	if (!is_head && strncmp(line, "GET ", 4) != 0)
		status = "405 Method Not Allowed";
	else
		status = answer_target(s->http, strchr(line, ' ') + 1, body);
	ok = evbuffer_add_printf(bufferevent_get_output(s->bev),
		 "HTTP/1.1 %s\r\nContent-Type: " CONTENT_TYPE "\r\n"
		 "Content-Length: %zu\r\nConnection: close\r\n\r\n",
		 status, evbuffer_get_length(body)) > 0;
	if (ok && !is_head)
		ok = bufferevent_write_buffer(s->bev, body) == 0;
	evbuffer_free(body);
	return ok;
}

static void scrape_readable(struct bufferevent *bev, void *arg)
{
	struct evbuffer *in = bufferevent_get_input(bev);
	struct scrape *s = arg;
	char *line;

	if (evbuffer_search(in, "\r\n\r\n", 4, NULL).pos < 0) {
		if (evbuffer_get_length(in) >= REQUEST_MAX)
			scrape_free(s);
		return;
	}
	bufferevent_disable(bev, EV_READ);
	line = evbuffer_readln(in, NULL, EVBUFFER_EOL_CRLF);
	if (line == NULL || !answer_scrape(s, line))
		scrape_free(s);
	free(line);
}

/* ---- room ---- */

/* The network of an IPv6 address counts as one, because a host has all
 * addresses of its network. In a Unix socket the user is the address. */
static void read_address(int fd, uint8_t address[ADDRESS_BYTES])
{
	union {
		struct sockaddr_storage any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} peer = { 0 };
	struct ucred cred = { 0 };
	socklen_t size = sizeof(peer), cred_size = sizeof(cred);

	getpeername(fd, (struct sockaddr *)&peer, &size);
	if (peer.any.ss_family == AF_INET)
		memcpy(address, &peer.v4.sin_addr, sizeof(peer.v4.sin_addr));
	else if (peer.any.ss_family == AF_INET6)
		memcpy(address, &peer.v6.sin6_addr,
		    IN6_IS_ADDR_V4MAPPED(&peer.v6.sin6_addr) ? 16 : 8);
	else if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &cred_size) ==
	    0)
		memcpy(address, &cred.uid, sizeof(cred.uid));
}

static size_t count_of_address(const struct metrics_http *http,
    const uint8_t address[ADDRESS_BYTES])
{
	const struct scrape *s;
	size_t nr = 0;

	TAILQ_FOREACH(s, &http->scrapes, entry)
		nr += memcmp(s->address, address, ADDRESS_BYTES) == 0;
	return nr;
}

static void make_room(struct metrics_http *http)
{
	struct scrape *s, *oldest = NULL;
	size_t nr, most = 0;

	if (http->nr <= SCRAPES_MAX)
		return;
	TAILQ_FOREACH(s, &http->scrapes, entry) {
		nr = count_of_address(http, s->address);
		if (nr > most) {
			most = nr;
			oldest = s;
		}
	}
	scrape_free(oldest);
}

/* ---- life ---- */

void metrics_http_accept(void *arg, int fd)
{
	static const struct timeval timeout = { TIMEOUT_S, 0 };
	struct metrics_http *http = arg;
	struct scrape *s = calloc(1, sizeof(*s));

	if (s == NULL) {
		close(fd);
		return;
	}
	s->http = http;
	read_address(fd, s->address);
	TAILQ_INSERT_TAIL(&http->scrapes, s, entry);
	http->nr++;
	s->over = evtimer_new(http->base, scrape_over, s);
	s->bev = bufferevent_socket_new(http->base, fd, BEV_OPT_CLOSE_ON_FREE);
	if (s->bev == NULL)
		close(fd);
	if (s->bev == NULL || s->over == NULL ||
	    event_add(s->over, &timeout) < 0) {
		scrape_free(s);
		return;
	}
	bufferevent_setcb(s->bev, scrape_readable, scrape_written, scrape_event,
	    s);
	bufferevent_setwatermark(s->bev, EV_READ, 0, REQUEST_MAX);
	bufferevent_enable(s->bev, EV_READ);
	make_room(http);
}

struct metrics_http *metrics_http_new(struct event_base *base,
    struct metrics *(*collect)(void *arg), void *arg)
{
	struct metrics_http *http = calloc(1, sizeof(*http));

	if (http == NULL)
		return NULL;
	http->base = base;
	http->collect = collect;
	http->arg = arg;
	TAILQ_INIT(&http->scrapes);
	http->text = evbuffer_new();
	http->turn = event_new(base, -1, 0, forget_text, http);
	if (http->text == NULL || http->turn == NULL) {
		metrics_http_free(http);
		return NULL;
	}
	return http;
}

void metrics_http_free(struct metrics_http *http)
{
	if (http == NULL)
		return;
	while (!TAILQ_EMPTY(&http->scrapes))
		scrape_free(TAILQ_FIRST(&http->scrapes));
	if (http->turn != NULL)
		event_free(http->turn);
	if (http->text != NULL)
		evbuffer_free(http->text);
	free(http);
}
