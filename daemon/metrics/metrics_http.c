/*
 * The happy path: the request is read up to its empty line, answered, and the
 * connection closed.
 *
 * Failures: the connection is closed if the request is too long, if it takes
 * too long, or if too many requests are being served. Any process may ask, so
 * these limits protect the daemon's descriptors and the time of the loop.
 */
#include "daemon/metrics/metrics_http.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>

/* A request has a few lines, and its client reads the answer at once. */
#define TIMEOUT_S    5
#define SCRAPES_MAX  16
#define REQUEST_MAX  8192
#define CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

struct scrape {
	struct metrics_http *http;
	struct bufferevent *bev;
	struct event *over; /* fires when the scrape has taken too long */
	TAILQ_ENTRY(scrape) entry;
};

struct metrics_http {
	struct event_base *base;
	struct metrics *(*collect)(void *arg);
	void *arg;
	TAILQ_HEAD(, scrape) scrapes;
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

static bool add_metrics(const struct metrics *metrics, struct evbuffer *body)
{
	struct key_values kv = { 0 };
	bool ok = true;
	size_t i;

	metrics_text(metrics, &kv);
	for (i = 0; ok && i < kv.nr; i++)
		ok = evbuffer_add(body, kv.list[i].value,
			 strlen(kv.list[i].value)) == 0;
	ok = ok && !kv.failed;
	key_values_done(&kv);
	return ok;
}

/* Is TARGET the PATH, perhaps with a query? */
static bool is_path(const char *target, const char *path)
{
	const size_t len = strlen(path);

	return strncmp(target, path, len) == 0 &&
	    strchr(" ?", target[len]) != NULL && target[len] != '\0';
}

/* The status. Adds to BODY. */
static const char *answer_target(const struct metrics_http *http,
    const char *target, struct evbuffer *body)
{
	struct metrics *m;
	bool ok = false;

	if (!is_path(target, "/metrics") && !is_path(target, "/leader") &&
	    !is_path(target, "/follower"))
		return "404 Not Found";
	m = http->collect(http->arg);
	if (m != NULL && is_path(target, "/metrics"))
		ok = add_metrics(m, body);
	else if (m != NULL && evbuffer_add_printf(body, "%s\n", m->role) > 0)
		ok = is_path(target, "/leader") ? m->takes_writes :
						  m->serves_reads;
	free(m);
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

/* ---- life ---- */

void metrics_http_accept(void *arg, int fd)
{
	static const struct timeval timeout = { TIMEOUT_S, 0 };
	struct metrics_http *http = arg;
	struct scrape *s = NULL;

	if (http->nr < SCRAPES_MAX)
		s = calloc(1, sizeof(*s));
	if (s == NULL) {
		close(fd);
		return;
	}
	s->http = http;
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
	return http;
}

void metrics_http_free(struct metrics_http *http)
{
	if (http == NULL)
		return;
	while (!TAILQ_EMPTY(&http->scrapes))
		scrape_free(TAILQ_FIRST(&http->scrapes));
	free(http);
}
