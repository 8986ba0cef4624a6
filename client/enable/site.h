/*
 * Where refd enable works: a repository, a template, git's system
 * configuration, or a directory of hooks that several repositories share. The
 * block in the file of configuration is the record of what refd did there.
 *
 * Blocking; one thread. Failures are said on standard error and returned as
 * false.
 */
#ifndef CLIENT_ENABLE_SITE_H
#define CLIENT_ENABLE_SITE_H

#include "client/enable/block.h"
#include "client/git/gitconfig.h"

/* More than any configuration of git's. */
#define SITE_CONFIG_BYTES (16 << 20)

/* Notes in a block. */
#define NOTE_FILE_MADE  "made-file"  /* the file of configuration was made */
#define NOTE_HOOKS_MADE "made-hooks" /* the directory of hooks was made */
#define NOTE_HOOK       "hook"       /* proc-receive is a link to that */
#define NOTE_GATE       "gate" /* reference-transaction is a link to that */
#define NOTE_USES       "uses" /* the shared directory of hooks */

/* All owned. */
struct site {
	char *name;   /* the first word of messages */
	char *config; /* the file with the block */
	char *hooks;  /* the directory of proc-receive; may be NULL */
};

/* DIR is a repository's common directory, or a template. */
void site_init(struct site *site, const char *dir);
void site_done(struct site *site);

/* B is empty if the file is missing or has no block; for block_done(). */
bool site_read(const struct site *site, struct block *b);
/*
 * Replaces the block BEFORE, as git config does: under git's lock, durable, by
 * a rename. The file keeps its mode, owner and group. A file that site_write()
 * made is removed with its last byte. Prints which settings come and go.
 */
bool site_write(const struct site *site, const struct block *before,
    const struct block *b, bool is_active);
/* Removes what a killed site_write() has left, with git's lock. */
void site_unlock(const struct site *site);
/* Are B's settings and the hook in place? */
bool site_holds(const struct site *site, const struct block *b);

/* All values in the file, refd's too; a missing file has none. */
bool site_config(const struct site *site, struct gitconfig *own);
#endif
