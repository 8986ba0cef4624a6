/*
 * Where refd enable works: a repository, or git's system configuration. All
 * settings of refd are in a file of their own, the record, and one line of
 * git's configuration includes this file. So the settings count all at once,
 * and other tools that rewrite the configuration do not touch the record. The
 * line is the first of the configuration, so settings in the configuration
 * itself overrule refd's settings.
 *
 *	record	before any other change, and removed after all others
 *	hook	before the line, and removed after the line
 *	line	from now on git calls the hook
 *
 * The owner of a repository and its Unix group can exchange these files at any
 * time, and root reads the files. So no link of another user is followed,
 * opening a file never waits, and the length of a file is bounded.
 *
 * Blocking; one thread. Failures are said on standard error and returned as
 * false.
 */
#ifndef CLIENT_ENABLE_SITE_H
#define CLIENT_ENABLE_SITE_H

#include "client/enable/settings.h"
#include "client/git/gitconfig.h"
#include "client/git/gitdir.h"

/* More than any configuration of git's. */
#define SITE_CONFIG_BYTES (16 << 20)

/* Notes in a record. */
#define NOTE_CONFIG "refd.enable.madeconfig" /* the configuration was made */
#define NOTE_HOOKS  "refd.enable.madehooks"  /* the hooks' directory was made */
#define NOTE_HOOK   "refd.enable.hook" /* proc-receive is a link to that */
#define NOTE_GATE   "refd.enable.gate" /* reference-transaction, likewise */

/* The shared directory of hooks that a site uses. */
#define HOOKS_PATH "core.hooksPath"

/* All strings are owned. */
struct site {
	char *name;   /* the first word of messages */
	char *config; /* includes the record */
	char *record;
	char *included; /* the path of the record, as the line names it */
	char *hooks;    /* the directory of proc-receive; may be NULL */
	struct settings before, wanted; /* the record, as found and as wanted */
	struct settings lines;          /* found, which include the record */
	struct site_edit *lock;         /* of the record, or NULL */
};

/* The record, beside a repository's configuration, where nobody can change it
 * who could not change the configuration, too. */
#define SITE_RECORD "refd.gitconfig"

/* DIR is a repository's common directory. */
void site_init(struct site *site, const char *dir);
/* Gives the lock back. */
void site_done(struct site *site);
/* Reads the record and the lines, once. A missing record is empty. */
bool site_look(struct site *site);
/* site_look(), while other commands of refd are kept away until site_done().
 * Removes what a killed command left. */
bool site_lock(struct site *site);

/* Replaces the record by what is wanted, durably. Nothing wanted removes the
 * record. Prints which settings come and go. */
bool site_save(const struct site *site);
/* Makes the line KEY, unless it was found, under git's lock, durable, by a
 * rename. The file keeps its mode, owner and group. */
bool site_include(const struct site *site, const char *key);
/* Removes the line KEY, or every line if KEY is NULL, likewise. A file that
 * refd made is removed with its last byte. */
bool site_exclude(const struct site *site, const char *key);
/* Removes VALUE of KEY from the configuration, by git. */
bool site_unset(const struct site *site, const char *key, const char *value);
/* The key of the line of a repository. Every repository is below "/", so the
 * condition is always true. A plain include.path would do the same, but "git
 * config include.path FILE" of a user would replace refd's line. */
#define SITE_LINE "includeIf.gitdir:/.path"

/* All values in the configuration, without refd's; a missing file has none. */
bool site_config(const struct site *site, struct gitconfig *own);
/* After site_look(): are the record, its line and the hooks there? */
bool site_holds(const struct site *site);
#endif
