/*
 * The configuration of the daemon: defaults, then the file, the environment and
 * the command line. A later source replaces the values of an earlier source.
 * The keys and their defaults are in config_keys.c (and in refd.conf(5));
 * options.h has the order of the sources.
 *
 * For the main thread, or the thread of a reload, never the loop; every call
 * may block. Calls return 0 or -1. An administrator corrects all errors at
 * once, so *WHY collects a line for each error. *WHY is NULL before the first
 * call. After -1, *WHY is to be freed, or is NULL when out of memory.
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

/*
 * [root "DIR"]: the settings of a root, or of a directory in a root. Unset
 * values come from the section around it, or from the daemon's settings:
 * config_finish() fills them in.
 */
struct config_root {
	char *path; /* absolute; resolved by config_finish() */
	enum refd_durability durability;
	struct config_ids users, groups;
	bool has_list; /* the section has lists of users and groups */
};

/* From the weakest to the strongest. */
enum config_source {
	CONFIG_DEFAULT,
	CONFIG_FILE,
	CONFIG_ENVIRONMENT,
	CONFIG_OPTION
};

/* A value in force, and its source. */
struct config_value {
	const struct config_key *key;
	char *root; /* of a section; NULL: the daemon's */
	char *text;
	enum config_source source;
	char *file;       /* CONFIG_FILE */
	unsigned line;    /* line in FILE */
	const char *name; /* of an option or variable */
};

struct config {
	char *file;                    /* the file that was read; NULL: none */
	char *socket_path, *state_dir; /* absolute */
	char *metrics_path;            /* absolute; NULL: none */
	char **roots;                  /* absolute, links resolved; not empty */
	size_t nr_roots;
	struct config_ids users, groups; /* the daemon's lists */
	/* With the lists of all sections: all who may connect. */
	struct config_ids any_users, any_groups;
	struct config_root *sections; /* outer sections first */
	size_t nr_sections;
	enum refd_durability durability;
	uint64_t checkpoint_interval_ms;
	uint64_t pack_refs; /* 0: never pack by itself */
	uint64_t durability_interval_ms;
	uint64_t session_timeout_ms;
	uint64_t batch_refs;
	uint64_t slow_ms; /* 0: nothing is slow */
	uint64_t connections_max;
	struct quota_limits of_user, of_repository;
	char **reserved; /* prefixes of refs */
	size_t nr_reserved;
	uint64_t retention_ms, retention_bytes;
	char *group_name, *node; /* of the section [group]; NULL: none */
	uint64_t patience_ms, max_lag_ms;

	struct config_value *values;
	size_t nr_values;

	int ready_fd; /* --ready-fd; -1 */

	/* Not settings: fixed values. */
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

/* Values of the file replace values in CFG. An error names the file and the
 * line, and the values of other lines count all the same. A missing file is an
 * error. CFG has the name of the file if the file was read to its end. */
int config_read_file(struct config *cfg, const struct sys *sys,
    const char *path, char **why);
/* 1: the file PATH has KEY. 0: no. Otherwise a negative errno. Any thread;
 * blocks. */
int config_file_has(const struct sys *sys, const char *path, const char *key);
/* Finds the default file. *PATH is NULL if there is no file. */
int config_find_file(const struct sys *sys, char **path);

/* Sets a value from NAME, the variable or option (static). KEY is in the table.
 * Paths need not be absolute. */
int config_set(struct config *cfg, enum config_source source, const char *name,
    const char *key, const char *text, char **why);

/* Sets default paths, makes all paths absolute, resolves roots and fills in the
 * sections. Errors: a missing root, no root, or a section outside of the roots.
 * Call this even if CFG has errors already, so that *WHY gets all errors at
 * once. */
int config_finish(struct config *cfg, const struct sys *sys, char **why);

/* ---- the values in force, as text ---- */

/* The name of the key, as in refd.conf(5). */
const char *config_value_key(const struct config_value *value);
/* "key=value", with the section in git's form. NULL: out of memory. */
char *config_value_words(const struct config_value *value);
/* "default", "file /etc/refd/config:3", "environment REFD_SOCKET", "command
 * line --socket". */
char *config_value_origin(const struct config_value *value);

/*
 * Compares NOW with BEFORE. Calls CHANGED once for each changed key of each
 * section. WAS and IS are the values, or "". False: out of memory.
 */
typedef void config_changed_fn(void *arg, const struct config_key *key,
    const char *root, const char *was, const char *is);
bool config_compare(const struct config *before, const struct config *now,
    config_changed_fn *changed, void *arg);

#endif
