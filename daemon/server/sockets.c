#include "daemon/server/sockets.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/server/clients.h"
#include "daemon/server/report.h"
#include "daemon/server/server_internal.h"

/* ---- clients ---- */

/* If further accounts may connect, the socket is open to all, because the
 * daemon checks each peer. */
static unsigned mode_for(const struct rights_peers *peers)
{
	return peers->nr_uids + peers->nr_gids > 0 ? 0666 : 0660;
}

void sockets_set_peers(struct sockets *sockets,
    const struct rights_peers *peers)
{
	listener_set_mode(sockets->clients, mode_for(peers));
}

static void client_accepted(void *arg, int fd)
{
	clients_add(arg, fd, false);
}

static int open_for_clients(struct server *server, char **why)
{
	const struct server_config *cfg = &server->cfg;
	struct listener **clients = &server->sockets.clients;
	int r;

	if (cfg->listen_fd >= 0)
		r = listener_adopt(cfg->sys, cfg->listen_fd, cfg->socket_path,
		    clients);
	else
		r = listener_open(cfg->sys, cfg->socket_path,
		    mode_for(&cfg->settings.peers), clients, why);
	if (r == 0)
		r = listener_start(*clients, server->loop.base, client_accepted,
		    server);
	return r;
}

/* ---- administrators ---- */

static void admin_accepted(void *arg, int fd)
{
	clients_add(arg, fd, true);
}

static void open_for_admins(struct server *server)
{
	const struct server_config *cfg = &server->cfg;
	struct listener **admin = &server->sockets.admin;
	char *path = NULL, *why = NULL;
	int r = -ENOMEM;

	if (asprintf(&path, "%s%s", cfg->socket_path, REFD_ADMIN_SUFFIX) < 0)
		path = NULL;
	if (path != NULL && cfg->admin_fd >= 0)
		r = listener_adopt(cfg->sys, cfg->admin_fd, path, admin);
	else if (path != NULL)
		r = listener_open(cfg->sys, path, 0600, admin, &why);
	if (r == 0)
		r = listener_start(*admin, server->loop.base, admin_accepted,
		    server);
	if (r < 0)
		log_event(LOG_LEVEL_WARNING, "admin-socket-failed",
		    LOG_STR("error", why != NULL ? why : strerror(-r)),
		    LOG_TEXT("there is no pause, drain, top, locks and "
			     "slowlog"));
	free(path);
	free(why);
}

/* ---- metrics ---- */

static int open_for_metrics(struct server *server, char **why)
{
	const struct server_config *cfg = &server->cfg;
	struct sockets *sockets = &server->sockets;
	int r;

	if (cfg->metrics_fd < 0 && cfg->metrics_path == NULL)
		return 0;
	if (cfg->metrics_fd >= 0)
		r = listener_adopt(cfg->sys, cfg->metrics_fd, "metrics",
		    &sockets->metrics);
	else
		r = listener_open(cfg->sys, cfg->metrics_path, 0660,
		    &sockets->metrics, why);
	if (r < 0)
		return r;
	sockets->metrics_http =
	    metrics_http_new(server->loop.base, report_collect, server);
	if (sockets->metrics_http == NULL)
		return -ENOMEM;
	return listener_start(sockets->metrics, server->loop.base,
	    metrics_http_accept, sockets->metrics_http);
}

/* ---- refd-group ---- */

/* The store accepts the connection. */
static int open_for_replica(struct server *server, char **why)
{
	const struct server_config *cfg = &server->cfg;
	char *path;
	int r;

	if (!cfg->shares_rows)
		return 0;
	if (asprintf(&path, "%s/group.sock", cfg->state_dir) < 0)
		return -ENOMEM;
	r = listener_open(cfg->sys, path, 0600, &server->sockets.replica, why);
	free(path);
	return r;
}

/* ---- all ---- */

int sockets_open(struct server *server, char **why)
{
	int r;

	*why = NULL;
	r = open_for_clients(server, why);
	if (r < 0)
		return r;
	open_for_admins(server);
	r = open_for_replica(server, why);
	if (r < 0)
		return r;
	return open_for_metrics(server, why);
}

void sockets_close(struct sockets *sockets)
{
	listener_close(sockets->clients);
	listener_close(sockets->admin);
	listener_close(sockets->replica);
	listener_close(sockets->metrics);
	metrics_http_free(sockets->metrics_http);
	*sockets = (struct sockets){ 0 };
}
