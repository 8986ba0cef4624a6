/*
 * The keys of the configuration: names, kinds, defaults, bounds, and whether a
 * reload applies them. refd.conf(5) has the same content; test_config_keys.c
 * compares the two.
 *
 * A new key needs a line in the table, a field of struct config, and a
 * paragraph in refd.conf(5) with "Default: ..." and "A reload applies it.", or
 * "A restart". live_config.c gives the value to the loop (live_config_settings)
 * or to the store (live_config_store, then store_set() in store_open.c), at the
 * start and after each reload. main.c gives the values that need a restart. A
 * key of a section [root "DIR"] needs a field of struct config_root, and
 * config_finish.c passes the value down.
 *
 * Constant tables; any thread. Names of users and groups are looked up, which
 * may block, and remembered for the next look-up, so one thread parses at a
 * time.
 */
#ifndef DAEMON_CONFIG_KEYS_H
#define DAEMON_CONFIG_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/config.h"

enum config_kind {
	CONFIG_PATH,
	CONFIG_PATHS, /* of roots; a list */
	CONFIG_USER,  /* a list, as the next kind */
	CONFIG_GROUP,
	CONFIG_MODE, /* of durability */
	CONFIG_NUMBER,
	CONFIG_DURATION, /* config_units.h */
	CONFIG_SIZE,     /* the same */
	CONFIG_PREFIX,   /* of refs; a list */
	CONFIG_NAME,     /* of a node or of all nodes */
	CONFIG_OTHER     /* for refd-group, which checks the value; a list */
};

struct config_key {
	const char *name;     /* as in the manual page */
	const char *fallback; /* the default; NULL: none, or computed */
	enum config_kind kind;
	bool in_root;  /* of a section [root "DIR"] */
	bool reloads;  /* SIGHUP applies the key; otherwise a restart */
	size_t offset; /* in struct config, or struct config_root */
	/* Struct config_root: flag set with the key; 0: none. */
	size_t own_list;
	uint64_t min, max; /* CONFIG_NUMBER, _DURATION (ms), _SIZE (bytes) */
};

extern const struct config_key config_keys[];
extern const size_t config_nr_keys;

/* NAME: "section.key" in any case. IN_ROOT: of a [root "DIR"]. NULL:
 * unknown. */
const struct config_key *config_key_find(const char *name, bool in_root);
/* Writes "; did you mean batch.refs?" to BUF; "": no key is similar. */
void config_key_hint(const char *name, bool in_root, char *buf, size_t size);
bool config_key_is_list(const struct config_key *key);

/* Sets the field of THING, a struct config or config_root, to VALUE. -1 and
 * *WHY on failure. CONFIG_PATHS adds. A value with a unit is replaced by its
 * usual form. */
int config_key_parse(const struct config_key *key, void *thing, char **value,
    char **why);

void config_root_done(struct config_root *root);

/* Appends a line to *WHY and returns -1. */
int config_bad(char **why, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
