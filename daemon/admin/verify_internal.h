/*
 * Shared by the files of verify. Other programs may be at work, so a check that
 * finds something runs a second time before the finding is reported.
 *
 *	verify.c		the command
 *	verify_repo.c		one repository: opens it, and checks twice
 *	verify_format.c		the format of the ids, without a configuration
 *	verify_refs.c		a ref: file, name and object
 *	verify_packed.c		packed-refs, line by line
 *	verify_logs.c		reflogs
 *	verify_reftable.c	refs and reflogs in reftables
 *	verify_locks.c		locks: owner and age
 *	verify_journal.c	the journal: identity, recovery, deferred redo
 *	verify_rows.c		the rows of the journal, read once for all
 *				repositories
 *	verify_head.c		the whole journal up to a noted line
 *	verify_record.c		the last record of each ref, and the ref
 *	verify_repair.c		repairs, under locks
 *	verify_value.c		the former value of a broken ref
 *	verify_lines.c		reads a file of any size line by line
 */
#ifndef ADMIN_VERIFY_INTERNAL_H
#define ADMIN_VERIFY_INTERNAL_H

#include "daemon/admin/verify.h"
#include "daemon/store/files/format/loose.h"
#include "daemon/store/files/format/packed.h"
#include "daemon/store/journal/fold.h"
#include "daemon/store/repos/lock_walk.h"
#include "daemon/store/tables/stack/stack_look.h"

struct verify_rows {
	const struct verify_options *opt;
	bool is_alone; /* one repository is asked for */
	struct journal *journal;
	struct fold fold; /* its reader is NULL until the journal is open */
	/* The repositories with numbers from FIRST to LAST are in memory. */
	uint64_t first, last, wanted;
	uint64_t newest;   /* all rows up to here were read */
	unsigned nr_reads; /* of the whole journal */
	bool is_whole;     /* such a reading is under way */
	size_t nr_rows;    /* read so */
	int err;           /* why not all rows could be read */
	/* The last row that was read and is shared with other nodes. */
	struct {
		uint64_t lsn, shared_lsn;
	} shared;
	char *wrong_shared; /* what is wrong; NULL: all are right */
};

struct verify;

/* NAME is the ref, also for a log or lock, or "packed-refs". */
typedef void verify_check_fn(struct verify *v, const struct ref_place *place,
    const char *name);

/* An object to check, and to check a second time after a finding. */
struct verify_subject {
	verify_check_fn *check;
	struct ref_place place;
	const char *name;
};

struct verify {
	const struct verify_options *opt;
	const struct sys *sys;
	struct repo repo;   /* only path, fd, refd_fd, stage_fd, packed, owner,
			     group, mode, uuid and object_format are
			     set */
	struct repos repos; /* all roots; for odb */
	struct odb *odb;    /* NULL: not opened */
	struct packed_snapshot *snap; /* NULL: malformed, or SNAP_ERR */
	int snap_err;
	/* The configuration does not name the format of the ids, and the ids
	 * are not of SHA-1: no repair. */
	bool has_lost_format;
	bool is_reftable; /* the refs are in reftables */
	bool has_fault;   /* a stack cannot be read */
	bool git_syncs;   /* struct repo_config: git_syncs_refs */
	bool aborted;     /* out of memory, or refs/ can't be read */

	struct verify_rows *rows; /* of all repositories */
	struct journal *journal;  /* of the repository; NULL: not read */
	/* NULL: the journal is not read, or does not know the repository. */
	struct fold_repo *repo_rows;
	uint64_t last_start; /* of a daemon */
	bool is_daemon_up;   /* with this journal */
	bool awaits;         /* recovery comes before any repair */
	bool is_unread;      /* recovery may have to come first: a journal has
			      * the repository, but its rows were not read */
	char **deferred;     /* worktree, "/", name: no repair */
	size_t nr_deferred;

	struct ref_places places;

	/* The value of the last restored ref, and its source. */
	char value[REFD_OID_MAX_HEX + 1], from[160];

	/* The check that runs, and IS_SURE in the second check. Outside a
	 * check, SUBJECT is NULL, and every finding is certain. */
	const struct verify_subject *subject;
	bool is_sure, is_suspicious;
	bool is_broken; /* FOUND_REF_BROKEN was found */
	struct verify_subject *suspects;
	size_t nr_suspects;
};

/* About a directory, or a name that may be a directory, with the reason. */
#define VERIFY_UNREAD                                                          \
	"it can't be read to its end, so names below it were not checked: %s"

/* ---- verify_repo.c ---- */

/* Reports a finding, but in the first check the object only becomes a
 * suspect. */
void verify_found(struct verify *v, enum finding_id id, const char *ref,
    const char *file, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* Checks an object, which is checked again later if it is a suspect. */
void verify_check(struct verify *v, verify_check_fn *check,
    const struct ref_place *place, const char *name);
/* Checks all suspects a second time, after a pause. */
void verify_check_again(struct verify *v);
/* Reads packed-refs, the list of packs and the newest rows again. */
void verify_read_again(struct verify *v);
/* NAME with its worktree: "worktrees/<id>/HEAD". */
const char *verify_ref_name(const struct ref_place *place, const char *name,
    char buf[REFD_PATH_MAX]);

/* ---- verify_format.c ---- */

/* Sets the object format of a repository whose configuration was lost, and
 * reports a format other than SHA-1. Once, when the journal is open. */
void verify_find_format(struct verify *v);

/* ---- verify_refs.c ---- */

void verify_walk_refs(struct verify *v, const struct ref_place *place);
verify_check_fn verify_ref;
/* The value of a ref, loose or packed, without following symbolic refs. 1 and
 * *OID; 2: a symbolic ref; 0: absent; -1: broken or unreadable. */
int verify_ref_value(struct verify *v, const struct ref_place *place,
    const char *name, struct refd_oid *oid);
/* Checks the object OID of NAME, with FILE for the finding. */
void verify_object(struct verify *v, const char *ref, const char *name,
    const char *file, const struct refd_oid *oid);
/* Can OID be the value of NAME, or is this unknown? */
bool verify_object_fits(struct verify *v, const char *name,
    const struct refd_oid *oid);

/* ---- the others ---- */

verify_check_fn verify_packed;
void verify_walk_packed(struct verify *v);

void verify_walk_logs(struct verify *v, const struct ref_place *place);
verify_check_fn verify_log;

/* Checks the stack of PLACE, and its lock. */
void verify_reftables(struct verify *v, const struct ref_place *place);
/* Mends the tables of PLACE that have lost their footer, with the results of
 * verify_repair(). */
char *verify_mend(struct verify *v, const struct ref_place *place, bool *done);
/* Finds the record of NAME in the stack of PLACE, and returns 0 or a negative
 * errno of stack.h. In any case *FOUND is for stack_found_done(). */
int verify_find_in_stack(struct verify *v, const struct ref_place *place,
    const char *name, struct stack_found *found);
/* Does the log of NAME end with a value? `git symbolic-ref -d` keeps the log,
 * so a log may end with a deletion. 1, 0, or a negative errno. */
int verify_has_log_in_stack(struct verify *v, const struct ref_place *place,
    const char *name);

verify_check_fn verify_lock;

void verify_journal_open(struct verify *v);
/* The finding about a journal that was not read to its end because of R. */
enum finding_id verify_journal_failed(int r);
/* Opens the journal to be read, and returns 0 or a negative errno. *WHY (NULL
 * before), to be freed, may be a sentence. */
int verify_view(const struct verify_options *opt, struct journal **journal,
    char **why);
bool verify_is_deferred(const struct verify *v, const struct ref_place *place,
    const char *name);

/* ---- verify_rows.c ---- */

/* Opens the journal, unless it is open, and returns 0 or a negative errno.
 * *WHY, to be freed, may be a sentence. */
int verify_rows_open(struct verify_rows *rows, char **why);
/* Reads the rows of the repository ID, unless they are in memory, and those
 * that came since then. *REPO stays until the next call. After a negative
 * errno, older rows are missing, or, if *REPO is NULL, all rows. */
int verify_rows_of(struct verify_rows *rows, uint64_t id,
    struct fold_repo **repo);
/* Reads the rows that came since then. */
void verify_rows_read_on(struct verify_rows *rows);
/* Do rows of REPO await recovery, if no daemon runs? */
bool verify_rows_await(const struct verify_rows *rows,
    const struct fold_repo *repo);
/* Calls FN for the rows of the ref, the newest first, until the result is not
 * 0. Row, record and member stay until the next call. Returns the last result,
 * or a negative errno. */
int verify_each_row(struct verify *v, const struct ref_place *place,
    const char *name, fold_member_fn *fn, void *arg);

/* ---- verify_record.c ---- */

void verify_records(struct verify *v);

/* ---- verify_repair.c, verify_value.c ---- */

/* Tries to repair finding ID, and returns the result as a sentence, to be
 * freed, or NULL if no repair exists. *DONE: repaired. */
char *verify_repair(struct verify *v, enum finding_id id,
    const struct verify_subject *subject, bool *done);

struct verify_value {
	struct refd_oid oid;
	char *target; /* of a symbolic ref; owned */
	char from[160];
};
/* 0; -ENOENT: journal and log have no value whose object exists; -ENOLINK: the
 * journal does not have the present branch of this HEAD. */
int verify_last_value(struct verify *v, const struct ref_place *place,
    const char *name, struct verify_value *value);

/* ---- verify_lines.c ---- */

#define VERIFY_LINE_MAX 65536

/* LINE has LEN bytes without a line feed, and ENDS tells whether a line feed
 * followed. Nothing follows after a beginning of VERIFY_LINE_MAX bytes, because
 * a file of some bytes can have a hole of any size. */
typedef int verify_line_fn(void *arg, char *line, size_t len, bool ends);
int verify_each_line(const struct sys *sys, int fd, verify_line_fn *fn,
    void *arg);

#endif
