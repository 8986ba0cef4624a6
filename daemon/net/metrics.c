/*
 * The happy path: one request of a connection is read up to its empty line,
 * answered, and the connection closed.
 *
 * What fails: who sends too much, or nothing for too long, is hung up on, and
 * so is who comes where there are enough. Anybody may be who asks, so that he
 * gets no more of the daemon's descriptors and time than that.
 */
#include "daemon/net/metrics.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>

#include "daemon/net/numbers.h"

/* Who asks sends a few lines and takes the answer at once. */
#define TIMEOUT_S    5
#define SCRAPES_MAX  16
#define REQUEST_MAX  8192
#define CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

struct scrape {
	struct metrics *metrics;
	struct bufferevent *bev;
	struct event *over; /* it has taken too long in all */
	TAILQ_ENTRY(scrape) entry;
};

struct metrics {
	struct net *net;
	struct listener *listener;
	TAILQ_HEAD(, scrape) scrapes;
	size_t nr;
};

static void scrape_free(struct scrape *s)
{
	TAILQ_REMOVE(&s->metrics->scrapes, s, entry);
	s->metrics->nr--;
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

static bool add_numbers(struct net *net, struct evbuffer *body)
{
	struct key_values kv = { 0 };
	bool ok = true;
	size_t i;

	numbers_metrics(net, &kv);
	for (i = 0; ok && i < kv.nr; i++)
		ok = evbuffer_add(body, kv.list[i].value,
			 strlen(kv.list[i].value)) == 0;
	ok = ok && !kv.failed;
	key_values_done(&kv);
	return ok;
}

/* "/metrics", or with a query behind it. */
static bool is_ours(const char *target)
{
	static const char ours[] = "/metrics";
	const size_t len = sizeof(ours) - 1;

	return strncmp(target, ours, len) == 0 &&
	    strchr(" ?", target[len]) != NULL && target[len] != '\0';
}

/* LINE is the request's first one. */
static bool answer(struct scrape *s, const char *line)
{
	struct evbuffer *body = evbuffer_new();
	bool is_head = strncmp(line, "HEAD ", 5) == 0, ok = body != NULL;
	const char *status = "200 OK";

	if (!ok)
		return false;
	if (!is_head && strncmp(line, "GET ", 4) != 0)
		status = "405 Method Not Allowed";
	else if (!is_ours(strchr(line, ' ') + 1))
		status = "404 Not Found";
	else
		ok = add_numbers(s->metrics->net, body);
	if (!ok)
		status = "503 Service Unavailable";
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
	if (line == NULL || !answer(s, line))
		scrape_free(s);
	free(line);
}

/* ---- who asks ---- */

static void scrape_new(void *arg, int fd)
{
	static const struct timeval timeout = { TIMEOUT_S, 0 };
	struct metrics *m = arg;
	struct scrape *s = NULL;

	if (m->nr < SCRAPES_MAX)
		s = calloc(1, sizeof(*s));
	if (s == NULL) {
		close(fd);
		return;
	}
	s->metrics = m;
	TAILQ_INSERT_TAIL(&m->scrapes, s, entry);
	m->nr++;
	s->over = evtimer_new(m->net->base, scrape_over, s);
	s->bev =
	    bufferevent_socket_new(m->net->base, fd, BEV_OPT_CLOSE_ON_FREE);
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

int metrics_open(struct net *net, int fd, const char *path,
    struct metrics **metrics, char **why)
{
	struct metrics *m = calloc(1, sizeof(*m));
	int r = -ENOMEM;

	*why = NULL;
	if (m != NULL) {
		m->net = net;
		TAILQ_INIT(&m->scrapes);
		r = fd >= 0 ?
		    listener_adopt(net->cfg.sys, fd, "metrics", &m->listener) :
		    listener_open(net->cfg.sys, path, 0660, &m->listener, why);
	}
	if (r < 0 && fd >= 0)
		close(fd);
	if (r == 0)
		r = listener_start(m->listener, net->base, scrape_new, m);
	if (r < 0)
		metrics_close(m);
	else
		*metrics = m;
	return r;
}

void metrics_close(struct metrics *metrics)
{
	if (metrics == NULL)
		return;
	while (!TAILQ_EMPTY(&metrics->scrapes))
		scrape_free(TAILQ_FIRST(&metrics->scrapes));
	listener_close(metrics->listener);
	free(metrics);
}
