#include "daemon/net/metrics.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/http.h>

#include "daemon/net/numbers.h"

/* Who asks sends a few lines and takes the answer at once. */
#define TIMEOUT_S    5
#define HEADERS_MAX  8192
#define CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

struct metrics {
	struct net *net;
	struct listener *listener; /* NULL: it was passed in */
	struct evhttp *http;
};

static void metrics_asked(struct evhttp_request *req, void *arg)
{
	struct metrics *m = arg;
	struct pairs pairs = { 0 };
	struct evbuffer *body = evbuffer_new();
	bool ok = body != NULL;
	size_t i;

	numbers_metrics(m->net, &pairs);
	for (i = 0; ok && i < pairs.nr; i++)
		ok = evbuffer_add(body, pairs.list[i].value,
			 strlen(pairs.list[i].value)) == 0;
	ok = ok && !pairs.failed &&
	    evhttp_add_header(evhttp_request_get_output_headers(req),
		"Content-Type", CONTENT_TYPE) == 0;
	if (ok)
		evhttp_send_reply(req, HTTP_OK, NULL, body);
	else
		evhttp_send_error(req, HTTP_SERVUNAVAIL, NULL);
	pairs_done(&pairs);
	if (body != NULL)
		evbuffer_free(body);
}

static int serve(struct metrics *m, int fd)
{
	m->http = evhttp_new(m->net->base);
	if (m->http == NULL || evhttp_accept_socket(m->http, fd) < 0)
		return -ENOMEM;
	evhttp_set_allowed_methods(m->http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD);
	evhttp_set_max_headers_size(m->http, HEADERS_MAX);
	evhttp_set_max_body_size(m->http, 0);
	evhttp_set_timeout(m->http, TIMEOUT_S);
	if (evhttp_set_cb(m->http, "/metrics", metrics_asked, m) < 0)
		return -ENOMEM;
	return 0;
}

int metrics_open(struct net *net, int fd, const char *path,
    struct metrics **metrics, char **why)
{
	struct metrics *m = calloc(1, sizeof(*m));
	int r = m == NULL ? -ENOMEM : 0;

	*why = NULL;
	if (r == 0)
		m->net = net;
	if (r == 0 && fd < 0) {
		r = listener_open(net->cfg.sys, path, 0660, &m->listener, why);
		/* libevent closes its own. */
		if (r == 0 && (fd = listener_dup(m->listener)) < 0)
			r = fd;
	}
	if (r == 0)
		r = serve(m, fd);
	if (r < 0 && fd >= 0 && (m == NULL || m->http == NULL))
		close(fd);
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
	if (metrics->http != NULL)
		evhttp_free(metrics->http);
	listener_close(metrics->listener);
	free(metrics);
}
