/*
 * The section [group] of the daemon's configuration, for refd-group, and
 * daemon.root and daemon.socket. All other keys belong to the daemon.
 *
 *	[group]
 *		name = main		the group
 *		node = a		this node
 *		database = host=pg1,pg2 dbname=refd sslmode=verify-full
 *		copies = 1		standbys that must have a row
 *		lease = 6s		time until a takeover
 *		held = 1		followers that must have the objects
 *		source = b ssh://b/srv/git	repositories of the node b
 *
 * Both programs read one file, so group.patience and group.max-lag, which
 * belong to the daemon, are permitted. One thread; reading blocks.
 */
#ifndef GROUP_SERVICE_GROUP_CONFIG_H
#define GROUP_SERVICE_GROUP_CONFIG_H

#include "proto/lib/cli.h"

struct group_source {
	char *node, *url;
};

/* Owns strings and arrays. */
struct group_config {
	char *name, *node, *database;
	uint64_t copies;
	uint64_t lease_ms;
	uint64_t held;
	struct group_source *sources;
	size_t nr_sources, sources_size;
	char *socket; /* daemon.socket, or NULL */
	char **roots;
	size_t nr_roots, roots_size;
};

/* Reads PATH. False: WHY is the reason. */
bool group_config_read(struct group_config *config, const char *path,
    struct text *why);
/* The URL of the repositories of NODE, or NULL. */
const char *group_config_source(const struct group_config *config,
    const char *node);
void group_config_done(struct group_config *config);

#endif
