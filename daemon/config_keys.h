/*
 * The keys of the configuration: names, kinds, defaults, bounds, and what a
 * reload does with them. refd.conf(5) says the same; test_config_keys.c holds
 * the two together.
 *
 * A new key is a line in the table and a field; of a section [root "DIR"] it
 * is a field of struct config_root, and config_finish.c hands it down.
 *
 * Tables that nobody changes; any thread. Names of users and groups are looked
 * up, which may block.
 */
#ifndef DAEMON_CONFIG_KEYS_H
#define DAEMON_CONFIG_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/config.h"

enum config_kind {
	CONFIG_PATH,
	CONFIG_PATHS, /* of roots; more than one */
	CONFIG_USER,  /* more than one, as the next */
	CONFIG_GROUP,
	CONFIG_MODE, /* of durability */
	CONFIG_NUMBER,
	CONFIG_DURATION, /* config_units.h */
	CONFIG_SIZE,     /* the same */
	CONFIG_PREFIX    /* of refs; more than one */
};

struct config_key {
	const char *name;     /* as the manual writes it */
	const char *fallback; /* the default; NULL: none, or it depends */
	enum config_kind kind;
	bool in_root;      /* of a section [root "DIR"] */
	bool reloads;      /* SIGHUP applies it; else a restart does */
	size_t offset;     /* in struct config, or struct config_root */
	size_t own_list;   /* struct config_root: set with it; 0: nothing */
	uint64_t min, max; /* CONFIG_NUMBER, _DURATION (ms), _SIZE (bytes) */
};

extern const struct config_key config_keys[];
extern const size_t config_nr_keys;

/* NAME: "section.key" in any case, IN_ROOT: of a [root "DIR"]. NULL: there is
 * none. */
const struct config_key *config_key_find(const char *name, bool in_root);
/* The key that was probably meant; NULL: no key is near. */
const struct config_key *config_key_nearest(const char *name, bool in_root);
bool config_key_is_list(const struct config_key *key);

/* *VALUE into the field of THING, a struct config or config_root. -1 and *WHY.
 * CONFIG_PATHS adds. A value with a unit is replaced by its usual form. */
int config_key_parse(const struct config_key *key, void *thing, char **value,
    char **why);

void config_root_done(struct config_root *root);

/* Asks for words, for *WHY: returns -1. */
int config_bad(char **why, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
