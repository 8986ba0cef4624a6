/*
 * Between the files of verify.
 *
 *	verify.c		the command
 *	verify_repo.c		one repository: opened, looked at twice
 *	verify_refs.c		a ref: its file, its name, its object
 *	verify_packed.c		packed-refs, line by line
 *	verify_logs.c		reflogs
 *	verify_locks.c		locks: whose, how old
 *	verify_journal.c	whose journal, what it awaits, what is deferred
 *	verify_ledger.c		the last record of each ref beside what stands
 *	verify_repair.c		what can be mended, under the locks
 *	verify_value.c		which value a broken ref had
 *	verify_lines.c		a file by lines, whatever its size
 */
#ifndef ADMIN_VERIFY_INTERNAL_H
#define ADMIN_VERIFY_INTERNAL_H

#include "daemon/admin/verify.h"
#include "daemon/store/refs/loose.h"
#include "daemon/store/refs/packed.h"
#include "daemon/store/journal/record.h"
#include "daemon/store/repos/repo.h"

struct ledger_entry;
struct ledger_pass;

/* Where a name's file is. */
struct verify_place {
	int dirfd;            /* the common dir, or a linked worktree's */
	const char *worktree; /* "", or its id */
};

enum verify_kind {
	VERIFY_A_REF,
	VERIFY_A_LOCK, /* NAME is without ".lock" */
	VERIFY_A_LOG,  /* NAME is the ref's */
	VERIFY_THE_PACKED,
	VERIFY_A_RECORD
};

/* What is looked at, twice where the first look found anything. */
struct verify_subject {
	enum verify_kind kind;
	struct verify_place place;
	const char *name;
};

struct verify {
	const struct verify_options *opt;
	const struct sys *sys;
	struct repo repo; /* path, fd, refd_fd, stage_fd, packed, as: no more */
	struct repos repos;           /* all roots; for odb */
	struct odb *odb;              /* NULL: not opened */
	struct packed_snapshot *snap; /* NULL: malformed */
	int64_t packed_mtime_ns;
	bool aborted; /* out of memory, or refs/ can't be read */

	struct journal *journal; /* that of the repository; NULL: not read */
	uint64_t journal_repo;   /* there; 0: it is not known there */
	uint64_t last_start;     /* of a daemon */
	bool is_daemon_up;       /* on that state */
	bool awaits;             /* recovery: not to be touched before */
	char **deferred;         /* worktree, "/", name: not to be touched */
	size_t nr_deferred;

	/* The worktrees that were met; place.worktree and dirfd are theirs. */
	struct verify_place *worktrees;
	size_t nr_worktrees;

	/* What repairing restored last. */
	char value[REFD_OID_HEX + 1], from[160];

	/* verify_value.c: of the suspects, as far as the journal was read;
	 * NULL: not yet. */
	struct verify_search *values;
	size_t nr_values;
	uint64_t values_last;

	/* This look. */
	const struct verify_subject *subject;
	bool is_sure, is_suspicious;
	struct verify_subject *suspects;
	size_t nr_suspects;

	/* verify_ledger.c, while it is at work. */
	struct ledger_entry *ledger;
	struct ledger_pass *pass;
	void (*refresh)(struct verify *v); /* before the second look */
};

/* ---- verify_repo.c ---- */

/* In the first look only that there is something. */
void verify_found(struct verify *v, enum finding_id id, const char *ref,
    const char *file, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* Looks; what is suspicious is kept, and looked at again. */
void verify_look(struct verify *v, enum verify_kind kind,
    const struct verify_place *place, const char *name);
/* The second look at all that is kept. */
void verify_look_again(struct verify *v);
/* A name of its own for PLACE's NAME: "worktrees/<id>/HEAD". */
const char *verify_ref_name(const struct verify_place *place, const char *name,
    char buf[REFD_PATH_MAX]);

/* ---- verify_refs.c ---- */

/* Is PATH, of TYPE as its directory says, a directory? A link is none. */
bool verify_is_dir(struct verify *v, const struct verify_place *place,
    const char *path, unsigned char type);
void verify_walk_refs(struct verify *v, const struct verify_place *place);
void verify_ref(struct verify *v, const struct verify_place *place,
    const char *name);
/* Its value, loose or packed, links not followed: 1 and *OID; 2: a symbolic
 * one; 0: there is none; -1: broken or unreadable. */
int verify_ref_value(struct verify *v, const struct verify_place *place,
    const char *name, struct refd_oid *oid);
/* May NAME be at OID? True where it can't be told. */
bool verify_object_fits(struct verify *v, const char *name,
    const struct refd_oid *oid);

/* ---- the others ---- */

void verify_packed(struct verify *v);
void verify_walk_packed(struct verify *v);

void verify_walk_logs(struct verify *v, const struct verify_place *place);
void verify_log(struct verify *v, const struct verify_place *place,
    const char *name);

void verify_lock(struct verify *v, const struct verify_place *place,
    const char *name);
/* By its flock. 0: nobody does, or it can't be told; else the process. */
long verify_flock_holder(struct verify *v, int dirfd, const char *name);

void verify_journal_open(struct verify *v);
void verify_journal_close(struct verify *v);
bool verify_is_deferred(const struct verify *v,
    const struct verify_place *place, const char *name);
void verify_ledger(struct verify *v);
void verify_record(struct verify *v, const struct verify_place *place,
    const char *name);

/* Of the journal's rows about the repository, after LSN AFTER, each member
 * that was written or deleted and not taken back, oldest first. *LAST: the
 * last row's LSN. */
typedef int verify_member_fn(void *arg, const struct journal_row *row,
    const struct record_member *m);
int verify_each_member(struct verify *v, uint64_t after, verify_member_fn *fn,
    void *arg, uint64_t *last);

/* ---- verify_repair.c, verify_value.c ---- */

/* What was done about ID, as a sentence to be freed; *DONE: it is mended.
 * NULL: nothing can be done about such. */
char *verify_repair(struct verify *v, enum finding_id id,
    const struct verify_subject *subject, bool *done);

struct verify_value {
	struct refd_oid oid;
	char *target; /* of a symbolic ref; owned */
	char from[160];
};
/* 0; -ENOENT: neither journal nor log knows one that is there. */
int verify_last_value(struct verify *v, const struct verify_place *place,
    const char *name, struct verify_value *value);
/* What was read of the journal for all suspects, who are let go. */
void verify_values_done(struct verify *v);

/* ---- verify_lines.c ---- */

#define VERIFY_LINE_MAX 65536

/* LINE of LEN bytes without its line feed; ENDS false: it has none. A longer
 * one comes in parts, of which only the last ENDS. */
typedef int verify_line_fn(void *arg, char *line, size_t len, bool ends);
int verify_each_line(const struct sys *sys, int fd, verify_line_fn *fn,
    void *arg);

#endif
