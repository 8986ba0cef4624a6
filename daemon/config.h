/*
 * What the daemon is to do: defaults, then the file, the environment, the
 * command line, each over what was there. The keys and their defaults are in
 * config_keys.c (and in refd.conf(5)). Which source wins is options.h's.
 *
 * Main thread or the one that reloads, never the loop; every call may block.
 * Calls return 0 or -1; *WHY then is a sentence to be freed, or NULL when out
 * of memory.
 */
#ifndef DAEMON_CONFIG_H
#define DAEMON_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/sys.h"
#include "daemon/store/quota_limits.h"
#include "proto/message.h"

struct config_ids {
	uint32_t *ids;
	size_t nr;
};

/* Of a section's limits: it does not say. */
#define CONFIG_UNSET UINT64_MAX

/*
 * [root "DIR"]: what is different in a root, or a part of one. What it does
 * not say is as in the section that it lies in, or else the daemon's:
 * config_finish() fills that in.
 */
struct config_root {
	char *path; /* absolute; resolved by config_finish() */
	enum refd_durability durability;
	struct config_ids users, groups;
	bool has_list;              /* users and groups are its own */
	struct quota_limits limits; /* of each repository */
};

/* From the weakest to the strongest. */
enum config_source {
	CONFIG_DEFAULT,
	CONFIG_FILE,
	CONFIG_ENVIRONMENT,
	CONFIG_OPTION
};

/* One that counts, and where it is from. */
struct config_value {
	const struct config_key *key;
	char *root; /* the section's; NULL: the daemon's */
	char *text;
	enum config_source source;
	char *file;       /* CONFIG_FILE */
	unsigned line;    /* the same */
	const char *name; /* of an option or variable */
};

struct config {
	char *file;                    /* that was read; NULL: none */
	char *socket_path, *state_dir; /* absolute */
	char *metrics_path;            /* absolute; NULL: none */
	char **roots; /* absolute, links resolved; at least one */
	size_t nr_roots;
	struct config_ids users, groups;         /* the daemon's lists */
	struct config_ids any_users, any_groups; /* and those of sections: who
						    may connect */
	struct config_root *sections;            /* outer ones first */
	size_t nr_sections;
	enum refd_durability durability;
	uint64_t checkpoint_interval_ms;
	uint64_t durability_interval_ms;
	uint64_t session_timeout_ms;
	uint64_t batch_refs;
	uint64_t slow_ms; /* 0: nothing is slow */
	uint64_t connections_max;
	struct quota_limits of_user, of_repository;
	char **reserved; /* prefixes of refs */
	size_t nr_reserved;
	uint64_t retention_ms, retention_bytes;

	struct config_value *values;
	size_t nr_values;

	int ready_fd; /* --ready-fd; -1 */

	/* Not for anybody to set. */
	uint64_t prepare_max_ms;
	uint64_t lock_wait_ms;
	uint64_t deadline_ms;
	uint64_t waiting_bytes_max;
};

/* Never fails: the defaults come with config_defaults(). */
void config_init(struct config *cfg);
void config_done(struct config *cfg);

/* Before all other sources. */
int config_defaults(struct config *cfg, char **why);

/* Over what CFG has. What is wrong is named with file and line. A file that
 * is not there is an error. */
int config_read_file(struct config *cfg, const struct sys *sys,
    const char *path, char **why);
/* The file that is read when none is named; *PATH is NULL if there is none. */
int config_find_file(const struct sys *sys, char **path, char **why);

/* From NAME, a variable or an option (static). KEY is one of the table's,
 * paths need not be absolute. */
int config_set(struct config *cfg, enum config_source source, const char *name,
    const char *key, const char *text, char **why);

/* Defaults for the paths that were not given; then all are made absolute,
 * roots are resolved, and sections filled in. A missing root, none at all, or
 * a section of none is an error. */
int config_finish(struct config *cfg, const struct sys *sys, char **why);

/* ---- what is in force, for people ---- */

/* "key=value", with the section as git writes it. NULL: out of memory. */
char *config_value_words(const struct config_value *value);
/* "default", "file /etc/refd/config:3", "environment REFD_SOCKET", "command
 * line --socket". */
char *config_value_origin(const struct config_value *value);

/*
 * What is other in NOW than it was BEFORE: once for each key, of each section.
 * WAS and IS hold the values, "" where there are none. False where memory ran
 * out.
 */
typedef void config_changed_fn(void *arg, const struct config_key *key,
    const char *root, const char *was, const char *is);
bool config_compare(const struct config *before, const struct config *now,
    config_changed_fn *changed, void *arg);

#endif
