/*
 * The parts of refd migrate:
 *
 *	migrate.c		the command, the order of all steps
 *	migrate_hold.c		no daemon has the repository open
 *	migrate_git.c		git writes the refs in the new format
 *	migrate_swap.c		the new refs take the place of the old refs
 *	migrate_files.c		files and directories below the git directory
 *
 * All parts act as the owner of the repository (client/git/owner.h), and
 * reach the files of the repository through descriptors. Blocking; one thread.
 * Functions return false after a message on standard error, unless the comment
 * says otherwise.
 */
#ifndef CLIENT_MIGRATE_MIGRATE_INTERNAL_H
#define CLIENT_MIGRATE_MIGRATE_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "client/base/cli.h"
#include "client/git/gitdir.h"
#include "client/refd.h"

enum ref_format { FILES, REFTABLE, REF_FORMATS };
extern const char *const ref_format_names[REF_FORMATS];

struct migration {
	const struct gitdir *gd;
	enum ref_format from, to;
	int dirfd;   /* of the common directory */
	int work_fd; /* of refd/migrate, with a flock */
	int lock_fd; /* of refd/lock, with a flock */
	/* refd/migrate was there: an earlier call was killed, or failed after
	 * the change of the configuration. */
	bool was_left;
	struct text config; /* the configuration before the migration */
};

/* ---- migrate_hold.c ---- */

/* Makes refd/migrate, and takes its flock. */
bool migrate_begin(struct migration *m);
/*
 * Waits until DEADLINE (refd_now_ms()) for refd/lock: the daemon has no batch,
 * session or row of the repository, and opens the repository only after
 * migrate_end(). The exit status, or EXIT_DONE.
 */
int migrate_hold(struct migration *m, struct refd *r, uint64_t deadline);
/* Removes refd/migrate if REMOVE, and lets the daemon continue. */
void migrate_end(struct migration *m, bool remove);

/* ---- migrate_git.c ---- */

/* git's copy of the refs in the new format becomes refd/migrate/new. */
bool migrate_git_convert(const struct migration *m);
/* Adds the peeled values of tags to refd/migrate/new/packed-refs. Git 2.55
 * writes none, but says that the file has them; older versions then take an
 * annotated tag for an object that cannot be peeled. */
bool migrate_git_peel(const struct migration *m);
/* Writes refd/migrate/new/config, for the new format. */
bool migrate_git_configure(const struct migration *m);
/* Does refd/migrate/new have exactly the refs of the repository? *NR: their
 * number. False without a message: they differ; *FAILED is set with a
 * message. */
bool migrate_git_compare(const struct migration *m, size_t *nr, bool *failed);
/* Does git find no fault in refd/migrate/new? */
bool migrate_git_verify(const struct migration *m);

/* ---- migrate_swap.c ---- */

/* Has the repository files of FORMAT in the wrong place, of an unknown origin?
 * A migration would remove these files. */
bool migrate_is_clear(const struct migration *m, enum ref_format format);
/* Removes the refs in FORMAT, which is not the format of the repository. */
bool migrate_remove(const struct migration *m, enum ref_format format);
enum swap { SWAP_DONE, SWAP_AGAIN, SWAP_FAILED, SWAP_LEFT };
/*
 * The new refs take the place of the old refs, which git had when the state of
 * the old files was BEFORE. SWAP_AGAIN: a different program wrote refs
 * meanwhile; the repository is as before, and no message was printed.
 * SWAP_FAILED: as before, with a message. SWAP_LEFT: files of the other format
 * are left, with a message; refd/migrate has to stay.
 */
enum swap migrate_swap(const struct migration *m, uint64_t before);
/* A number that changes with every write to the refs in FORMAT. False: a
 * different program holds a lock, whose name *LOCK (owned) gets, without a
 * message; or *LOCK is NULL, and a message says what cannot be read. */
bool migrate_state(const struct migration *m, enum ref_format format,
    uint64_t *state, char **lock);
/* Was the state not BEFORE, or is a lock held? */
bool migrate_has_changed(const struct migration *m, enum ref_format format,
    uint64_t before);

/* ---- migrate_files.c; 0 or a negative errno, no messages ---- */

/* Opens the directory NAME; follows no link. */
int files_open_dir(int dirfd, const char *name);
/* Removes NAME and all below it. 0 also if NAME is missing. */
int files_remove(int dirfd, const char *name);
/* Removes the contents of the directory NAME, except the file KEEP (NULL:
 * nothing). */
int files_empty(int dirfd, const char *name);
/* Moves all entries of FROM into TO. */
int files_move_all(int from, int to);
/* Reads the regular file NAME; -EINVAL: something else; -EFBIG: more than MAX
 * bytes. */
int files_read(int dirfd, const char *name, size_t max, struct text *t);
/* The limit for a configuration. */
#define FILES_CONFIG_MAX (1 << 20)
/* Puts a file with TEXT into the place of NAME, by a rename from WORK_FD. */
int files_put(int work_fd, int dirfd, const char *name, const char *text);
/* Calls FN for every name in the directory FD until FN returns not 0, which is
 * then the result. */
typedef int files_each_fn(void *arg, const char *name);
int files_each(int fd, files_each_fn *fn, void *arg);
/* Adds the attributes of NAME, and of all files below NAME, to *SUM. If *LOCK
 * is NULL, *LOCK (owned) gets the name of a file which ends with ".lock". */
int files_sum(int dirfd, const char *name, uint64_t *sum, char **lock);

#endif
