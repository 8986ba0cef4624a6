/*
 * The section [group] of the daemon's configuration, for refd-group. Other
 * sections belong to the daemon.
 *
 *	[group]
 *		name = main		the group
 *		node = a		this node
 *		database = host=pg1,pg2 dbname=refd sslmode=verify-full
 *		copies = 1		standbys that must have a row
 *		lease = 6s		time until a takeover
 *
 * group.patience belongs to the daemon, and is permitted. One thread; reading
 * blocks.
 */
#ifndef CLIENT_GROUP_GROUP_CONFIG_H
#define CLIENT_GROUP_GROUP_CONFIG_H

#include "client/base/cli.h"

/* Owns the strings. */
struct group_config {
	char *name, *node, *database;
	uint64_t copies;
	uint64_t lease_ms;
};

/* Reads PATH. False: WHY is the reason. */
bool group_config_read(struct group_config *config, const char *path,
    struct text *why);
void group_config_done(struct group_config *config);

#endif
