/*
 * "refd verify" for one repository: its refs, reflogs and locks, and their
 * agreement with the journal. Or for the journal: has it all records up to a
 * line that was noted earlier?
 *
 * A daemon, git and other writers may be at work, so a suspicious object is
 * checked again after PATIENCE_NS, and is a finding only if the second check
 * fails, too. Only a repair writes.
 *
 * One thread; blocks. Memory: as much as the daemon needs for packed-refs, the
 * findings, and the fold of the journal (fold.h). The fold has some 250 MB,
 * which is enough for a million refs with short names. If the refs need more,
 * the journal is read several times for some repositories each. The refs of one
 * repository stay together, whatever they need.
 */
#ifndef ADMIN_VERIFY_H
#define ADMIN_VERIFY_H

#include "daemon/base/sys.h"
#include "proto/lib/finding.h"

struct verify_rows;

struct verify_options {
	const struct sys *sys;
	const char *state; /* the daemon's state directory */
	bool repair;
	size_t fold_bytes;   /* fold.bytes of the journal, or of a repository */
	int64_t patience_ns; /* between the two checks */
	struct findings *findings;
	/* Called if a repair gave REF the object id VALUE from the place FROM,
	 * with strings that are borrowed for the call; or NULL. */
	void (*restored)(void *arg, const char *repo, const char *ref,
	    const char *value, const char *from);
	void *arg;
	/* The journal, read once for all repositories. NULL: no memory. */
	struct verify_rows *rows;
};

/* Returns NULL without memory, and borrows OPT. IS_ALONE: for a single
 * repository. */
struct verify_rows *verify_rows_new(const struct verify_options *opt,
    bool is_alone);
void verify_rows_free(struct verify_rows *rows);

/* Is everything up to LINE, of refd log --head, in the journal, as it was? 0;
 * 1: no; 128: this can't be known; 129: LINE is malformed; INTERRUPT_STATUS.
 * *SAID, to be freed, is a sentence. */
int verify_head(const struct verify_options *opt, const char *line,
    char **said);

/* PATH: a git-dir, a common dir, or a work tree with .git. 0; -1: PATH cannot
 * be opened, and *WHY, to be freed by the caller, is the reason. */
int verify_repo(const struct verify_options *opt, const char *path, char **why);

#endif
