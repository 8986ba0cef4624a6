/*
 * What "refd enable" changed in a repository: a list of steps, kept in
 * <common-dir>/refd/enabled so that disable can take back these and no
 * others, last one first.
 *
 * Blocking; one thread. Failures are said on standard error and returned as
 * false.
 */
#ifndef CLIENT_ENABLED_H
#define CLIENT_ENABLED_H

#include "client/cli.h"
#include "client/gitdir.h"

enum step_kind {
	STEP_HOOKS_DIR, /* hooks/ was made */
	STEP_HOOK,      /* value: what hooks/proc-receive links to */
	STEP_ADD,       /* another value of key */
	STEP_SET        /* the value of key, which was old or not set */
};

struct step {
	enum step_kind kind;
	char *key, *value, *old; /* owned; NULL where there is none */
};

/* Zero-initialised is empty. */
struct enabled {
	struct step *steps;
	size_t nr;
};

/* Copies the strings. */
void enabled_add(struct enabled *en, enum step_kind kind, const char *key,
    const char *value, const char *old);
/* The last step of KIND with KEY (NULL: any), or NULL. */
struct step *enabled_find(const struct enabled *en, enum step_kind kind,
    const char *key);
void enabled_done(struct enabled *en);

/* A missing record is an empty one. */
bool enabled_read(struct enabled *en, const struct gitdir *gd);
/* Durable before it returns: what is about to be done must be known. */
bool enabled_write(const struct enabled *en, const struct gitdir *gd);
/* Takes the record away, and refd/ with it if that is empty then. */
bool enabled_remove(const struct gitdir *gd);

/* Each says on standard output what it did. A step that was done, or undone,
 * already is fine. */
bool step_do(const struct step *step, const struct gitdir *gd);
bool step_undo(const struct step *step, const struct gitdir *gd);

#endif
