/*
 * What the daemon is to do: the file's keys, and the defaults, which are all
 * in config.c (and in refd.conf(5)). Which source wins is options.h's.
 *
 * Before the loop runs; every call may block. Calls return 0 or -1; *WHY then
 * is a sentence to be freed, or NULL when out of memory.
 */
#ifndef DAEMON_CONFIG_H
#define DAEMON_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/base/sys.h"
#include "proto/message.h"

struct config_ids {
	uint32_t *ids;
	size_t nr;
};

struct config {
	char *file;                    /* that was read; NULL: none */
	char *socket_path, *state_dir; /* absolute */
	char **roots; /* absolute, links resolved; at least one */
	size_t nr_roots;
	struct config_ids users, groups; /* who may connect, too */
	enum refd_durability durability;
	uint64_t checkpoint_interval_ms;
	uint64_t durability_interval_ms;
	uint64_t session_timeout_ms;
	uint64_t window_refs;
	uint64_t connections_max;

	/* Not for anybody to set. */
	uint64_t prepare_max_ms;
	uint64_t lock_wait_ms;
	uint64_t deadline_ms;
	uint64_t retention_s, retention_mib;
	uint64_t waiting_bytes_max;
};

void config_init(struct config *cfg);
void config_done(struct config *cfg);

/* Over what CFG has. What is wrong is named with file and line. A file that
 * is not there is an error. */
int config_read_file(struct config *cfg, const struct sys *sys,
    const char *path, char **why);
/* The file that is read when none is named; *PATH is NULL if there is none. */
int config_find_file(const struct sys *sys, char **path, char **why);

/* Copies of VALUE; FIELD is one of CFG's. */
int config_set_path(char **field, const char *value, char **why);
int config_set_durability(struct config *cfg, const char *value, char **why);
int config_add_root(struct config *cfg, const char *value, char **why);
void config_drop_roots(struct config *cfg);

/* Defaults for the paths that were not given; then all are made absolute,
 * and roots are resolved. A missing root, or none at all, is an error. */
int config_finish(struct config *cfg, const struct sys *sys, char **why);

#endif
