/*
 * Where refd enable works: a repository, or git's system configuration. All
 * settings of refd are in a file of their own, the record, and one line of
 * git's configuration includes this file. So the settings count all at once,
 * other tools that rewrite the configuration do not touch the record, and
 * settings in the configuration itself overrule refd's, because the line is the
 * first.
 *
 *	record	before any other change, and removed after all others
 *	hook	before the line, and removed after the line
 *	line	from now on git calls the hook
 *
 * The owner of a repository and a group choose the files. So none is followed
 * through a link of another user, none is waited for, and reading is bounded.
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
	char *config; /* includes the record; NULL: no file does */
	char *record;
	char *included; /* the path of the record, as the line names it */
	char *hooks;    /* the directory of proc-receive; may be NULL */
	struct site_edit *lock; /* of the record, or NULL */
};

/* The record, beside a repository's configuration, where nobody can change it
 * who could not change the configuration, too. */
#define SITE_RECORD "refd.gitconfig"

/* DIR is a repository's common directory. */
void site_init(struct site *site, const char *dir);
/* Gives the lock back. */
void site_done(struct site *site);
/* Keeps other commands of refd away until site_done(), and removes what a
 * killed command left. */
bool site_lock(struct site *site);
/* Removes the locks of killed commands, without a lock. */
void site_clean(const struct site *site);

/* S is empty if there is no record; for settings_done(). */
bool site_read(const struct site *site, struct settings *s);
/* Replaces the record BEFORE, durably. An empty S removes the record. Prints
 * which settings come and go. */
bool site_write(const struct site *site, const struct settings *before,
    const struct settings *s);

/* The lines that include the record, as settings; for settings_done(). */
bool site_lines(const struct site *site, struct settings *lines);
/* Whether a line includes the record. */
bool site_is_included(const struct site *site);
/* Makes the line KEY, under git's lock, durable, by a rename. The file keeps
 * its mode, owner and group. */
bool site_include(const struct site *site, const char *key);
/* Removes the line KEY, likewise. With MADE, a file is removed with its last
 * byte. */
bool site_exclude(const struct site *site, const char *key, bool made);
/* Removes VALUE of KEY from the configuration, by git. */
bool site_unset(const struct site *site, const char *key, const char *value);
/* The key of the line of a repository. The condition is always true, because
 * every repository is below "/". Without it, "git config include.path FILE" of
 * a user would replace the line. */
#define SITE_LINE "includeIf.gitdir:/.path"

/* All values in the configuration, without refd's; a missing file has none. */
bool site_config(const struct site *site, struct gitconfig *own);
/* Are S, which is the record, and the hooks in place? */
bool site_holds(const struct site *site, const struct settings *s);
#endif
