/*
 * Which repositories and templates are enabled: a list in refd's state
 * directory, and beside it the records of what belongs to no repository.
 *
 * The state directory is the daemon's where this user and the daemon are one,
 * or this is root; root writes there as its owner. Blocking; one thread.
 */
#ifndef CLIENT_ENABLE_REGISTRY_H
#define CLIENT_ENABLE_REGISTRY_H

#include "client/base/cli.h"

struct registered {
	char *path;
	bool is_template;
};

/* Zero-initialised is empty. */
struct registry {
	struct registered *entries;
	size_t nr;
};

/* Makes the place, and keeps others out until it is closed. False, and a
 * warning, where that can't be done: nothing is listed then. */
bool registry_open(void);
void registry_close(void);
/* Whether it is open; if not, it says what cannot be done. */
bool registry_needed(const char *what);
/* A file there; owned. NULL where there is no place for it. */
char *registry_file(const char *name);

/* A missing list is an empty one. False: it can't be read, which was said. */
bool registry_read(struct registry *r);
void registry_done(struct registry *r);
/* Both are warned of where they fail, and do nothing when not open. */
void registry_add(const char *path, bool is_template);
void registry_remove(const char *path);

#endif
