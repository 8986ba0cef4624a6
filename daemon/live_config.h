/*
 * Applies the configuration to the store and the loop: at the start, and after
 * every SIGHUP for all settings that may change.
 *
 * For the main thread, where nothing blocks. Exceptions: live_config_read()
 * reads files, so it runs on a separate thread; and live_config_refusal().
 */
#ifndef DAEMON_LIVE_CONFIG_H
#define DAEMON_LIVE_CONFIG_H

#include <stdatomic.h>
#include <sys/resource.h>

#include "daemon/base/confine.h"
#include "daemon/base/mutex.h"
#include "daemon/config.h"
#include "daemon/server/server.h"

struct live_config {
	int argc; /* of the command line, for each reload */
	char **argv;
	/* Sockets of the service manager; -1: none. */
	int listen_fd, admin_fd, metrics_fd;
	rlim_t descriptors; /* limit of open files */
	struct confined confined;
	/* Borrowed: the configuration of the start. Settings that need a
	 * restart keep the values from here. */
	struct config *started;
	/* Owned: the configuration of the last reload; NULL: none yet. */
	struct config *now;
	struct server *server; /* borrowed */
	struct store *store;   /* borrowed */
	/* Of live_config_refusal(). */
	struct mutex looking;
	struct sys_stat looked; /* the file as it was read */
	_Atomic(int64_t) looked_ns;
	atomic_bool is_group_unused;
};

/* Fills SETTINGS, which borrow from CFG. DESCRIPTORS limits connections. */
void live_config_settings(const struct config *cfg, rlim_t descriptors,
    struct server_settings *settings);
/* Gives all settings of CFG that a reload may change to STORE. 0; -ENOMEM: all
 * old ones stay. */
int live_config_store(const struct config *cfg, struct store *store);

/* For struct reload_calls, with a struct live_config. */
void *live_config_read(void *live);
void live_config_apply(void *live, void *read);
void live_config_forget(void *read);

/*
 * For struct store_config: NULL, or why a daemon that is alone takes no writes:
 * the file has got the section [group] since the start. Without the refusal two
 * such daemons would both take writes, because each believes to be alone. Reads
 * the file at most once a second. Any thread; blocks.
 */
char *live_config_refusal(void *live);

void live_config_done(struct live_config *live);

#endif
