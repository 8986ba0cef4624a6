/*
 * Returned refs. `git pack-refs --auto` reads the refs before it locks
 * packed-refs, so a ref can come back: only packed-refs has the ref, with a
 * value that refd had replaced (rule_packed()). `refd verify` compares all
 * records, and the daemon compares recent ones after each foreign packed-refs.
 *
 * Any thread; nothing logs.
 */
#ifndef STORE_RETURNED_H
#define STORE_RETURNED_H

#include "daemon/store/journal/fold.h"
#include "daemon/store/repos/repo.h"

struct returned {
	const char *name;      /* borrowed */
	struct refd_oid value; /* in packed-refs */
	uint64_t replaced_by;  /* the record that replaced VALUE; 0: none */
	uint64_t told_lsn;     /* the last record other than of a look */
	bool is_deleted;       /* by that record */
};

/* Takes a record of the ref into the struct returned with a NAME and a VALUE.
 * The older records can say no more if the result is 1. */
fold_member_fn returned_note;
/* Does the log of the ref end with the value? Git adds a line with each value
 * that it writes, if there is a log, so somebody meant it. Blocks. */
bool returned_is_logged(const struct sys *sys, int dirfd,
    enum refd_object_format format, const struct returned *r);
/* A malloc'd sentence, with the command for the repair; NULL: no memory. */
char *returned_text(const struct returned *r, enum refd_object_format format);

/* Compares packed-refs with the records of about an hour before the file was
 * written, at most some thousands of them and 64 MiB, newest first. Calls FN
 * for each returned ref. Reads the journal and the repository, so blocks. 0 or
 * negative errno. */
typedef void returned_fn(void *arg, const struct returned *r);
int returned_find(const struct sys *sys, struct journal *journal,
    const struct repo *repo, returned_fn *fn, void *arg);

#endif
