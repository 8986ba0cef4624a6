/*
 * refd-daemon. Reads the options, opens the store, then the sockets, and runs
 * the loop, which recovers before it serves. Exit statuses are from sysexits.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "daemon/base/confine.h"
#include "daemon/base/hash.h"
#include "daemon/base/log.h"
#include "daemon/base/mutex.h"
#include "daemon/base/time.h"
#include "daemon/group/group_replica.h"
#include "daemon/live_config.h"
#include "daemon/options.h"
#include "daemon/server/server.h"
#include "daemon/service/activation.h"
#include "daemon/service/notify.h"
#include "daemon/service/start_failed.h"
#include "daemon/service/store_notices.h"
#include "proto/lib/print.h"

/* Standard input is /dev/null, so that no file of the daemon gets descriptor 0.
 */
static void prepare_process(void)
{
	int fd = SYS(&sys_kernel, openat, SYS_TRUSTED, "/dev/null", O_RDWR, 0);

	if (fd > STDIN_FILENO) {
		dup2(fd, STDIN_FILENO);
		SYS(&sys_kernel, close, fd);
	}
	umask(0);
	hash_begin();
	notify_connect();
	/* By default a wait with a time ends up to 50 us late, but the wait
	 * before a flush can be shorter than 50 us. All threads inherit the
	 * setting. */
	prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
}

/* Raises the limit of open files as far as possible, and returns the limit. */
static rlim_t raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 0;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		getrlimit(RLIMIT_NOFILE, &limit);
	return limit.rlim_cur;
}

/* Limit of open repositories. An idle repository has at most 16 descriptors: a
 * dozen, and those of its stacks (STACK_SET_KEPT). So repositories get a
 * quarter of the descriptors, and connections get half (live_config.c). The
 * rest is for the batches in work, each with up to 500 reftables, and for the
 * checkpoint. */
static size_t repos_max(rlim_t descriptors)
{
	rlim_t share = descriptors / 64;

	return share < 4 ? 4 : share > 1000 ? 1000 : (size_t)share;
}

/* Sockets that the service manager passed; -1: none. */
struct passed {
	int admin, metrics, clients;
};

/* If only one socket was passed, the clients' socket may have any name. So
 * "admin" and "metrics" are taken before. */
static void take_sockets(struct passed *p)
{
	p->admin = activation_take("admin", false);
	p->metrics = activation_take("metrics", false);
	p->clients = activation_take("refd", true);
}

/* Tells the log, and the clients that wait for a daemon. */
static void report_failed_start(const struct passed *p, const char *why)
{
	if (why == NULL)
		why = "out of memory";
	log_event(LOG_LEVEL_ERROR, "start-failed", LOG_TEXT(why));
	start_failed_tell(p->clients, why);
	start_failed_tell(p->admin, why);
}

static struct server *make_server(const struct config *cfg,
    struct live_config *live)
{
	struct server_config server = {
		.sys = &sys_kernel,
		.socket_path = cfg->socket_path,
		.state_dir = cfg->state_dir,
		.roots = (const char *const *)cfg->roots,
		.nr_roots = cfg->nr_roots,
		.metrics_path = cfg->metrics_path,
		.shares_rows = cfg->node != NULL,
		.metrics_fd = live->metrics_fd,
		.admin_fd = live->admin_fd,
		.listen_fd = live->listen_fd,
		.ready_fd = cfg->ready_fd,
		.scheduler = {
			.lock_wait_ns = (int64_t)cfg->lock_wait_ms * NS_PER_MS,
			.deadline_ns = (int64_t)cfg->deadline_ms * NS_PER_MS,
			.retention_ms = (int64_t)cfg->retention_ms,
			.max_waiting_bytes = cfg->waiting_bytes_max,
			.quotas.own_uid = (uint32_t)geteuid(),
		},
		.reload = { .read = live_config_read,
			.apply = live_config_apply,
			.forget = live_config_forget,
			.arg = live },
		.confined = &live->confined,
	};

	live_config_settings(cfg, live->descriptors, &server.settings);
	return server_new(&server);
}

static int open_store(const struct config *cfg, struct server *server,
    struct live_config *live, struct replica **replica, struct store **store,
    char **why)
{
	struct store_config config = {
		.sys = &sys_kernel,
		.state_dir = cfg->state_dir,
		.roots = (const char *const *)cfg->roots,
		.nr_roots = cfg->nr_roots,
		.durability = cfg->durability,
		.retention_ms = (int64_t)cfg->retention_ms,
		.retention_bytes = cfg->retention_bytes,
		.prepare_max_ns = (int64_t)cfg->prepare_max_ms * NS_PER_MS,
		.refusal = live_config_refusal,
		.refusal_arg = live,
		.max_open_repos = repos_max(live->descriptors),
		.wake = server_wake,
		.wake_arg = server,
		.awaiting = server_awaiting,
		.awaiting_arg = server,
		.found = store_notices_found,
		.event = store_notices_event,
	};
	int r;

	if (cfg->node != NULL) {
		*replica = group_replica_new(cfg->node,
		    (int64_t)cfg->patience_ms * NS_PER_MS);
		if (*replica == NULL)
			return -ENOMEM;
	}
	config.replica = *replica;
	r = store_open(&config, store, why);
	if (r == 0 && *why != NULL) {
		log_event(LOG_LEVEL_WARNING, "state-suspect",
		    LOG_STR("state", cfg->state_dir), LOG_TEXT(*why));
		free(*why);
		*why = NULL;
	}
	return r;
}

/* To be called before recovery, because recovery is the first code to read
 * files of other accounts. */
static int confine(const struct config *cfg, struct confined *c, char **why)
{
	const struct confine_places places = {
		.roots = (const char *const *)cfg->roots,
		.nr_roots = cfg->nr_roots,
		.state_dir = cfg->state_dir,
		.sockets = { cfg->socket_path, cfg->metrics_path },
		.config = cfg->file,
	};
	int r = confine_process(&places, c, why);

	if (r < 0)
		return r;
	if (c->by[0] != '\0')
		log_event(LOG_LEVEL_INFO, "confined", LOG_STR("by", c->by));
	if (c->without[0] != '\0')
		log_event(LOG_LEVEL_WARNING, "unconfined",
		    LOG_STR("without", c->without),
		    LOG_TEXT("one who breaks into the daemon can do more than "
			     "is needed: see refd doctor"));
	return 0;
}

static int share_replica_socket(struct replica *replica,
    const struct server *server, char **why)
{
	int fd;

	if (replica == NULL)
		return 0;
	fd = server_replica_socket(server);
	if (fd < 0 &&
	    asprintf(why, "cannot share the socket for refd-group: %s",
		strerror(-fd)) < 0)
		*why = NULL;
	if (fd >= 0)
		group_replica_listen(replica, fd);
	return fd < 0 ? fd : 0;
}

static int stop_store(struct store *store)
{
	int r = store_stop(store);

	if (r < 0)
		log_event(LOG_LEVEL_ERROR, "last-checkpoint-failed",
		    LOG_STR("error", strerror(-r)),
		    LOG_TEXT("the next start replays what it left"));
	store_free(store);
	if (r == 0)
		log_event(LOG_LEVEL_INFO, "stopped",
		    LOG_TEXT("nothing is left to replay"));
	return r < 0 ? EX_IOERR : EX_OK;
}

/* The loop no longer catches signals, but a further SIGTERM must not turn a
 * clean exit into a failure. So these signals are blocked. */
static void block_stop_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

/* After SERVER_INTERRUPTED and SERVER_FAILED, threads may still use the store,
 * so the process exits without freeing anything. */
static int serve_and_stop(struct server *server, struct store *store)
{
	switch (server_serve(server, store)) {
	case SERVER_STOPPED:
		break;
	case SERVER_INTERRUPTED:
		_exit(EX_OK);
	case SERVER_FAILED:
		_exit(EX_IOERR);
	}
	return stop_store(store);
}

/* Clients know the path of the passed socket, and the marker file is beside the
 * socket, so this path replaces the configured path. */
static bool use_passed_socket(struct config *cfg, int fd, char **why)
{
	char *path = activation_path(fd, why);

	if (path == NULL)
		return false;
	free(cfg->socket_path);
	cfg->socket_path = path;
	return true;
}

static int run_daemon(struct config *cfg, const struct passed *p, int argc,
    char **argv)
{
	struct live_config live = { .argc = argc,
		.argv = argv,
		.admin_fd = p->admin,
		.metrics_fd = p->metrics,
		.listen_fd = p->clients,
		.descriptors = raise_descriptors(),
		.started = cfg,
		.looking = MUTEX_INIT(MUTEX_CONFIG) };
	struct server *server;
	struct replica *replica = NULL;
	struct store *store = NULL;
	char *why = NULL;
	int status = EX_UNAVAILABLE;

	if (live.listen_fd >= 0 &&
	    !use_passed_socket(cfg, live.listen_fd, &why)) {
		report_failed_start(p, why);
		free(why);
		return status;
	}
	server = make_server(cfg, &live);
	if (server == NULL)
		report_failed_start(p, NULL);
	else if (open_store(cfg, server, &live, &replica, &store, &why) < 0 ||
	    live_config_store(cfg, store) < 0 ||
	    server_listen(server, &why) < 0 ||
	    share_replica_socket(replica, server, &why) < 0 ||
	    confine(cfg, &live.confined, &why) < 0)
		report_failed_start(p, why);
	else
		status = -1;
	free(why);
	if (status < 0) {
		log_event(LOG_LEVEL_INFO, "started",
		    LOG_WORD("version", REFD_VERSION),
		    LOG_STR("socket", cfg->socket_path),
		    LOG_STR("state", cfg->state_dir));
		live.server = server;
		live.store = store;
		status = serve_and_stop(server, store);
		block_stop_signals();
	} else {
		store_free(store);
	}
	server_free(server);
	live_config_done(&live);
	return status;
}

int main(int argc, char **argv)
{
	struct config cfg;
	struct passed p;
	char *why = NULL;
	int status = EX_OK;

	log_init();
	take_sockets(&p);
	switch (options_load(&options_daemon, &cfg, &sys_kernel, argc, argv,
	    NULL, &why)) {
	case OPTIONS_RUN:
		prepare_process();
		status = run_daemon(&cfg, &p, argc, argv);
		break;
	case OPTIONS_HELP:
		options_print_help(&options_daemon);
		break;
	case OPTIONS_VERSION:
		print_line(stdout, "refd-daemon %s", REFD_VERSION);
		break;
	case OPTIONS_USAGE:
		report_failed_start(&p, why);
		options_print_usage(&options_daemon);
		status = EX_USAGE;
		break;
	case OPTIONS_BAD:
		report_failed_start(&p, why);
		status = EX_CONFIG;
		break;
	}
	free(why);
	config_done(&cfg);
	return status;
}
