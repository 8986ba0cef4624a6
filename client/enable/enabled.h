/*
 * What "refd enable" changed somewhere: a list of steps, written down before
 * they are done so that disable can take back these and no others.
 *
 * Blocking; one thread. Failures are said on standard error and returned as
 * false.
 */
#ifndef CLIENT_ENABLE_ENABLED_H
#define CLIENT_ENABLE_ENABLED_H

#include "client/base/cli.h"
#include "client/git/gitconfig.h"

/* The first line of a file that STEP_FILE writes. */
#define OWN_FILE "# Written by refd enable"

/* Where steps are done: a repository, a template, the machine's own
 * configuration, or the directory of hooks that several share. */
struct site {
	/* Owned; NULL where there is none. */
	char *name;   /* what it says in front of each line */
	char *record; /* the list of steps; beside it two copies of config */
	char *config; /* the file that STEP_ADD and STEP_SET change */
	char *hooks;  /* the directory in which proc-receive is linked */
	bool is_repository; /* the record is in refd/, the daemon's as well */
	bool is_alone;      /* the record's directory may go with it */
	/* Borrowed: what STEP_FILE writes. */
	const struct text *file;
};

enum step_kind {
	STEP_AT,          /* value: the directory that the record is of */
	STEP_USES,        /* value: the shared hooks directory */
	STEP_DIR,         /* value: a directory that was made */
	STEP_HOOKS_DIR,   /* site->hooks was made */
	STEP_HOOK,        /* value: what proc-receive there links to */
	STEP_FORWARDERS,  /* the other hooks' forwarders there */
	STEP_FILE,        /* value: a file of refd's own */
	STEP_CONFIG_FILE, /* site->config was made */
	STEP_ADD,         /* another value of key */
	STEP_SET          /* the value of key, which was old or not set */
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

/* DIR is a repository's common directory, or a template. */
void site_init(struct site *site, const char *dir);
void site_done(struct site *site);

/* Copies the strings. */
void enabled_add(struct enabled *en, enum step_kind kind, const char *key,
    const char *value, const char *old);
/* The last step of KIND with KEY and VALUE (NULL: any), or NULL. */
struct step *enabled_find(const struct enabled *en, enum step_kind kind,
    const char *key, const char *value);
void enabled_done(struct enabled *en);

/* A missing record is an empty one. */
bool enabled_read(struct enabled *en, const struct site *site);
/* Durable before it returns: what is about to be done must be known. Fails
 * where the file system has no hard links, which the daemon needs. */
bool enabled_write(const struct enabled *en, const struct site *site);
/* Takes the record away, and its directory if that is empty then. */
bool enabled_remove(const struct site *site);

/* What PLAN has joins what was done BEFORE: undoing goes back to before all.
 */
void enabled_remember(struct enabled *before, const struct enabled *plan);
/* Does the steps of PLAN in their order. */
bool enabled_carry_out(const struct enabled *plan, const struct site *site);
/* Undoes all: configuration first, and of that what names the hook. */
bool enabled_undo(const struct enabled *en, const struct site *site);
/* Whether all of it is in place. */
bool enabled_holds(const struct enabled *en, const struct site *site);

/* The values in site->config alone; a missing file has none. */
bool site_config(const struct site *site, struct gitconfig *own);
/* Whether CONFIG has that value of KEY, spelled as one likes. */
bool config_has(const struct gitconfig *config, const char *key,
    const char *value);
/* The last one, borrowed, or NULL. */
const char *config_get(const struct gitconfig *config, const char *key);

/*
 * The file site->config as it was to the byte, which git config does not
 * bring back where a section was empty, or the last line not ended. Keep
 * before steps are done, seal after; restore does something only where
 * nobody has written since.
 */
void exact_keep(const struct site *site, bool is_first);
void exact_seal(const struct site *site);
bool exact_restore(const struct site *site);
void exact_remove(const struct site *site);
/* Takes away a lock of git's that a killed restore has left. */
void exact_unlock(const struct site *site);

/* Each says on standard output what it did. A step that was done, or undone,
 * already is fine, and says nothing. */
bool step_do(const struct step *step, const struct site *site);
bool step_undo(const struct step *step, const struct site *site);

/* Those in the configuration; say_undone is what undo says. */
bool step_is_config(const struct step *step);
bool step_do_config(const struct step *step, const struct site *site);
bool step_undo_config(const struct step *step, const struct site *site);
void step_say_undone(const struct step *step, const struct site *site);
bool step_holds(const struct step *step, const struct site *site,
    const struct gitconfig *own);

#endif
