/*
 * What the configuration says, put into force: at the start, and again on
 * SIGHUP as far as that goes. Main thread, where nothing of it blocks; but for
 * reload_read(), which reads the files on a thread of its own.
 */
#ifndef DAEMON_RELOAD_H
#define DAEMON_RELOAD_H

#include <sys/resource.h>

#include "daemon/base/confine.h"
#include "daemon/config.h"
#include "daemon/net/net.h"

struct in_force {
	int argc; /* read again with every reload */
	char **argv;
	/* Passed to it, or -1. */
	int listen_fd, admin_fd, metrics_fd;
	rlim_t descriptors; /* that may be had */
	struct confined confined;
	struct config *started; /* borrowed: what needs a restart stays so */
	struct config *now;     /* owned; the rest */
	struct net *net;        /* borrowed, as the next */
	struct store *store;
};

void reload_settings(const struct config *cfg, rlim_t descriptors,
    struct net_settings *settings);
/* Rules of the sections. 0, or -ENOMEM: they are what they were. */
int reload_rules(struct store *store, const struct config *cfg);

/* For struct net_config, with a struct in_force. */
void *reload_read(void *in_force);
void reload_apply(void *in_force, void *read);
void reload_forget(void *read);
void reload_done(struct in_force *in_force);

#endif
