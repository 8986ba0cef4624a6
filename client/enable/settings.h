/*
 * A list of settings, which is the content of a file of refd's in git's syntax.
 * The file is the record of what refd enable did, and git reads the file too,
 * because a configuration includes it. Git ignores refd's notes, because their
 * keys begin with "refd.enable.".
 *
 *	[core]
 *		fsync = "all"
 *	[refd "enable"]
 *		hook = "/usr/bin/refd"
 *
 * Pure; one thread.
 */
#ifndef CLIENT_ENABLE_SETTINGS_H
#define CLIENT_ENABLE_SETTINGS_H

#include "proto/lib/cli.h"

struct setting {
	char *key, *value; /* owned */
};

/* Zero-initialised is empty. Keys are compared as by git. */
struct settings {
	struct setting *items;
	size_t nr;
};

void settings_done(struct settings *s);
bool settings_are_same(const struct settings *a, const struct settings *b);

/* The value of KEY, borrowed, or NULL if there is none. */
const char *settings_get(const struct settings *s, const char *key);
/* A NULL VALUE is any value, here and for settings_remove(). */
bool settings_have(const struct settings *s, const char *key,
    const char *value);
/* One more value of KEY, unless S has it. */
void settings_add(struct settings *s, const char *key, const char *value);
/* The only value of KEY. */
void settings_set(struct settings *s, const char *key, const char *value);

void settings_remove(struct settings *s, const char *key, const char *value);

/* More than refd writes. The work grows with the square of the bytes, so a
 * large file would take too long. */
#define SETTINGS_BYTES 65536

/* Appends the entries of TEXT. False if TEXT is not in git's syntax. */
bool settings_parse(struct settings *s, const struct text *text);
/* Appends S in git's syntax. */
void settings_put(const struct settings *s, struct text *text);

#endif
