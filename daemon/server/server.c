/*
 * One turn: connections with input have decoded their requests before and given
 * them to the scheduler. The turn runs the scheduler once for all of them, and
 * then serves each connection with work. Requests that arrive together thus
 * share batches, and their answers leave together.
 */
#include "daemon/server/server.h"

#include <assert.h>
#include <signal.h>
#include <stdlib.h>

#include "daemon/base/log.h"
#include "daemon/server/server_internal.h"

/* How long a stop waits for clients to take their answers. */
#define PARTING_NS (5 * 1000000000LL)

/* ---- states ---- */

static void server_move(struct server *server, enum server_state state)
{
	static const bool allowed[6][6] = {
		[SERVER_STATE_RECOVERING] = { [SERVER_STATE_SERVING] = true,
		    [SERVER_STATE_OVER] = true,
		    [SERVER_STATE_FAILED] = true },
		[SERVER_STATE_SERVING] = { [SERVER_STATE_DRAINING] = true,
		    [SERVER_STATE_FAILED] = true },
		[SERVER_STATE_DRAINING] = { [SERVER_STATE_HURRYING] = true,
		    [SERVER_STATE_OVER] = true,
		    [SERVER_STATE_FAILED] = true },
		[SERVER_STATE_HURRYING] = { [SERVER_STATE_OVER] = true,
		    [SERVER_STATE_FAILED] = true },
	};

	assert(allowed[server->state][state]);
	server->state = state;
	if (state == SERVER_STATE_OVER || state == SERVER_STATE_FAILED)
		loop_stop(&server->loop);
}

enum refd_server_state server_public_state(const struct server *server)
{
	switch (server->state) {
	case SERVER_STATE_RECOVERING:
		return REFD_RECOVERING;
	case SERVER_STATE_SERVING:
		return scheduler_is_closed(server->scheduler) ? REFD_DRAINING :
								REFD_SERVING;
	case SERVER_STATE_DRAINING:
	case SERVER_STATE_HURRYING:
	case SERVER_STATE_OVER:
	case SERVER_STATE_FAILED:
		break;
	}
	return REFD_DRAINING;
}

int64_t server_wall_ms(const struct server *server)
{
	return SYS(server->cfg.sys, now_wall) / 1000000;
}

/* ---- turns ---- */

/* Ends the server when all transactions are answered and the clients have taken
 * their answers. If a client takes too long, or the server is hurrying, the
 * server does not wait for the clients. Returns the latest time for the next
 * call. */
static int64_t end_if_drained(struct server *server, int64_t now_ns)
{
	if (!scheduler_is_idle(server->scheduler)) {
		server->idle_ns = 0;
		return INT64_MAX;
	}
	if (server->idle_ns == 0)
		server->idle_ns = now_ns;
	if (server->state == SERVER_STATE_HURRYING || !clients_owed(server) ||
	    now_ns - server->idle_ns >= PARTING_NS) {
		server_move(server, SERVER_STATE_OVER);
		return INT64_MAX;
	}
	return server->idle_ns + PARTING_NS;
}

static void count_turn(struct server *server, int64_t began_ns)
{
	int64_t now_ns = SYS(server->cfg.sys, now_mono);

	histogram_add_ns(&server->turns, now_ns - began_ns);
	if (server->scheduler == NULL)
		return;
	scheduler_sent(server->scheduler, now_ns);
	admin_slow_log(server);
}

static int64_t server_turn(void *arg, int64_t now_ns)
{
	struct server *server = arg;
	int64_t next_ns = INT64_MAX, end_ns;
	const char *fatal = NULL;

	if (server->scheduler != NULL) {
		next_ns = scheduler_run(server->scheduler, now_ns,
		    server_wall_ms(server));
		fatal = store_fatal(server->store);
	}
	if (conn_host_serve(&server->clients.host))
		next_ns = now_ns;
	if (fatal != NULL) {
		log_event(LOG_LEVEL_ERROR, "store-failed",
		    LOG_STR("error", fatal),
		    LOG_TEXT("the daemon ends: see to the cause, then start "
			     "again; recovery finishes what was "
			     "acknowledged"));
		server_move(server, SERVER_STATE_FAILED);
		return INT64_MAX;
	}
	count_turn(server, now_ns);
	if (server->state == SERVER_STATE_DRAINING ||
	    server->state == SERVER_STATE_HURRYING) {
		end_ns = end_if_drained(server, now_ns);
		if (end_ns < next_ns)
			next_ns = end_ns;
	}
	return next_ns;
}

static void server_sweep(void *arg)
{
	struct server *server = arg;

	clients_check(server);
	service_look(&server->service);
}

/* ---- end of recovery, and of the daemon ---- */

static void begin_serving(struct server *server)
{
	server->cfg.scheduler.batch_refs =
	    server->cfg.settings.scheduler.batch_refs;
	server->cfg.scheduler.on_io = admin_log_io;
	server->cfg.scheduler.io_arg = &server->io_limit;
	server->scheduler =
	    scheduler_new(&server->cfg.scheduler, server->store);
	if (server->scheduler == NULL) {
		log_event(LOG_LEVEL_ERROR, "start-failed",
		    LOG_TEXT("out of memory"));
		server_move(server, SERVER_STATE_FAILED);
		return;
	}
	scheduler_set_limits(server->scheduler,
	    &server->cfg.settings.scheduler);
	server_move(server, SERVER_STATE_SERVING);
	log_event(LOG_LEVEL_INFO, "serving",
	    LOG_STR("socket", server->cfg.socket_path));
	service_ready(&server->service);
}

static void look_at_recovery(struct server *server)
{
	int result;

	if (!recovery_thread_is_over(server->recovery, &result))
		return;
	recovery_thread_free(server->recovery);
	server->recovery = NULL;
	if (result < 0)
		server_move(server, SERVER_STATE_FAILED);
	else
		begin_serving(server);
}

void server_wake(void *arg)
{
	struct server *server = arg;

	loop_wake(&server->loop);
}

static void server_woken(void *arg)
{
	struct server *server = arg;

	if (server->recovery != NULL)
		look_at_recovery(server);
	reload_thread_look(&server->reload);
}

static void begin_draining(struct server *server, const char *signal_name)
{
	struct scheduler_stats stats;

	scheduler_stats(server->scheduler, &stats);
	log_event(LOG_LEVEL_INFO, "stopping", LOG_WORD("signal", signal_name),
	    LOG_NUM("transactions",
		stats.waiting + stats.prepared + stats.in_store),
	    LOG_TEXT("they are finished first"));
	service_stopping(&server->service);
	/* New clients of an inherited socket wait for the next daemon, so this
	 * daemon accepts no more clients. */
	listener_leave(server->sockets.clients);
	server_move(server, SERVER_STATE_DRAINING);
	scheduler_drain(server->scheduler);
}

static void stop_for_signal(struct server *server, const char *name)
{
	switch (server->state) {
	case SERVER_STATE_RECOVERING:
		log_event(LOG_LEVEL_INFO, "stopping", LOG_WORD("signal", name),
		    LOG_TEXT("while recovering: the next start takes it up "
			     "again"));
		server_move(server, SERVER_STATE_OVER);
		break;
	case SERVER_STATE_SERVING:
		begin_draining(server, name);
		break;
	case SERVER_STATE_DRAINING:
		log_event(LOG_LEVEL_INFO, "hurrying", LOG_WORD("signal", name),
		    LOG_TEXT("once more: what waits is given up"));
		server_move(server, SERVER_STATE_HURRYING);
		scheduler_hurry(server->scheduler);
		break;
	case SERVER_STATE_HURRYING:
	case SERVER_STATE_OVER:
	case SERVER_STATE_FAILED:
		break;
	}
	loop_want_turn(&server->loop);
}

static void reload_for_signal(struct server *server)
{
	if (server->state == SERVER_STATE_RECOVERING ||
	    server->state == SERVER_STATE_SERVING)
		reload_thread_ask(&server->reload);
	else
		log_event(LOG_LEVEL_INFO, "reload-refused",
		    LOG_TEXT("the daemon is stopping"));
}

static void server_signalled(void *arg, int number)
{
	if (number == SIGHUP)
		reload_for_signal(arg);
	else
		stop_for_signal(arg, number == SIGTERM ? "SIGTERM" : "SIGINT");
}

/* ---- settings ---- */

void server_set(struct server *server, const struct server_settings *settings)
{
	server->cfg.settings = *settings;
	server->clients.host.connections_max = settings->connections_max;
	sockets_set_peers(&server->sockets, &settings->peers);
	if (server->scheduler != NULL)
		scheduler_set_limits(server->scheduler, &settings->scheduler);
}

/* ---- life ---- */

static void server_facts(void *arg, struct service_facts *facts)
{
	struct scheduler_stats stats;
	struct server *server = arg;

	facts->connections = server->clients.nr_conns;
	facts->is_serving = server->state == SERVER_STATE_SERVING;
	if (server->scheduler == NULL)
		return;
	scheduler_stats(server->scheduler, &stats);
	facts->transactions = stats.transactions;
	facts->in_work = stats.waiting + stats.prepared + stats.in_store;
	facts->store = server->store;
}

void server_awaiting(void *arg, const char *list)
{
	struct server *server = arg;

	marker_write(&server->marker, list);
}

struct server *server_new(const struct server_config *cfg)
{
	struct server *server = calloc(1, sizeof(*server));
	const struct loop_calls loop = { .turn = server_turn,
		.woken = server_woken,
		.sweep = server_sweep,
		.signalled = server_signalled,
		.arg = server };
	const struct service_config service = { .sys = cfg->sys,
		.state_dir = cfg->state_dir,
		.ready_fd = cfg->ready_fd,
		.facts = server_facts,
		.arg = server };
	bool ok;

	if (server == NULL)
		return NULL;
	server->cfg = *cfg;
	server->started_ns = SYS(cfg->sys, now_mono);
	admin_slow_init(&server->slow);
	server->io_limit = (struct log_limit){ .burst = 10, .seconds = 60 };
	ok = loop_init(&server->loop, cfg->sys, &loop);
	service_init(&server->service, &service, server->loop.base);
	reload_thread_init(&server->reload, &cfg->reload, &server->service,
	    server_wake, server);
	if (clients_init(server) < 0 ||
	    marker_init(&server->marker, cfg->sys, cfg->socket_path) < 0 ||
	    !ok) {
		server_free(server);
		return NULL;
	}
	return server;
}

void server_free(struct server *server)
{
	if (server == NULL)
		return;
	sockets_close(&server->sockets);
	service_done(&server->service);
	loop_done(&server->loop);
	clients_done(server);
	marker_done(&server->marker);
	free(server);
}

int server_listen(struct server *server, char **why)
{
	return sockets_open(server, why);
}

int server_replica_socket(const struct server *server)
{
	return listener_share(server->sockets.replica);
}

enum server_end server_serve(struct server *server, struct store *store)
{
	struct recovery_thread_config recovery = { .sys = server->cfg.sys,
		.store = store,
		.marker = &server->marker,
		.wake = server_wake,
		.wake_arg = server };

	server->store = store;
	server->cfg.scheduler.joined_ms = (int64_t)store_joined_ms(store);
	if (recovery_thread_start(&recovery, &server->recovery) < 0)
		return SERVER_FAILED;
	loop_run(&server->loop);
	reload_thread_give_up(&server->reload);
	/* A client must not connect to a daemon that no longer answers, so the
	 * sockets close first. */
	sockets_close(&server->sockets);
	clients_hang_up(server);
	if (server->state != SERVER_STATE_OVER)
		return SERVER_FAILED;
	if (server->recovery != NULL)
		return SERVER_INTERRUPTED;
	scheduler_free(server->scheduler);
	server->scheduler = NULL;
	return SERVER_STOPPED;
}
