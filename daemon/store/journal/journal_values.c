/*
 * The last value that a shared row gave each ref. A repository can be rolled
 * back behind refd's back, and only a record that does not lie in the
 * repository can tell this. So the journal has the values.
 *
 * Happy path: the transaction that appends a shared row also writes the
 * value of each ref that the row changes. So a value is exactly as durable as
 * its row. A deletion leaves a value that says "no ref", because packed-refs of
 * an older copy can bring a deleted ref back.
 *
 * A node that joins begins with the values of its copies, since a damaged copy
 * would otherwise be taken for the truth until the next row of each ref.
 *
 * Failure modes: as of a commit (journal.c). A journal of a single machine has
 * no values, and a node that leaves the others drops them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/journal/journal_internal.h"
#include "daemon/store/journal/record.h"

/* A ref outside of refs/, for example HEAD, belongs to one node, so no shared
 * value exists. */
static bool is_given(const struct record_member *m)
{
	return m->status == REFD_OK && m->worktree[0] == '\0' &&
	    strncmp(m->name, "refs/", 5) == 0 &&
	    (m->action == RECORD_WRITE || m->action == RECORD_DELETE);
}

/* Columns that are not bound are NULL. */
static int write_value(struct journal *j, uint64_t repo, const char *ref,
    const struct journal_value *value)
{
	sqlite3_stmt *s = j->stmts.write_value;

	sqlite3_clear_bindings(s);
	sqlite3_bind_int64(s, 1, (sqlite3_int64)repo);
	sqlite3_bind_text(s, 2, ref, -1, SQLITE_STATIC);
	sqlite3_bind_int64(s, 3, (sqlite3_int64)value->lsn);
	if (value->target != NULL)
		sqlite3_bind_text(s, 5, value->target, -1, SQLITE_STATIC);
	else if (value->exists)
		sqlite3_bind_blob(s, 4, value->oid.bytes,
		    sizeof(value->oid.bytes), SQLITE_STATIC);
	return journal_run(s);
}

static int write_member(struct journal *j, const struct journal_row *row,
    const struct record_member *m)
{
	const bool writes = m->action == RECORD_WRITE;
	const struct journal_value value = { .lsn = row->shared_lsn,
		.exists = writes,
		.oid = m->new_oid,
		.target = writes ? (char *)m->target : NULL };

	return write_value(j, row->repo, m->name, &value);
}

int journal_write_values(struct journal *j, const struct journal_row *row)
{
	const struct record *rec = row->shared_lsn != 0 ? row->record : NULL;
	int rc = SQLITE_OK;
	size_t i;

	for (i = 0; rec != NULL && i < rec->nr_members && rc == SQLITE_OK; i++)
		if (is_given(&rec->members[i]))
			rc = write_member(j, row, &rec->members[i]);
	return rc;
}

int journal_set_values(struct journal *j, journal_given_fn *next, void *arg)
{
	struct journal_given given = { .ref = NULL };
	int rc, r = 0;

	rc = sqlite3_exec(j->db, "DELETE FROM " JOURNAL_VALUES, NULL, NULL,
	    NULL);
	while (rc == SQLITE_OK && next != NULL && (r = next(arg, &given)) > 0) {
		if (given.repo.id == 0)
			rc = journal_put_repo(j, &given.repo);
		if (rc == SQLITE_OK)
			rc = write_value(j, given.repo.id, given.ref,
			    &given.value);
	}
	return rc == SQLITE_OK && r < 0 ? SQLITE_ABORT : rc;
}

/* ---- reading ---- */

/* The row of S, from column 0 on: lsn, oid, target. */
static int take_value(sqlite3_stmt *s, struct journal_value *value)
{
	const char *target = (const char *)sqlite3_column_text(s, 2);

	value->lsn = (uint64_t)sqlite3_column_int64(s, 0);
	if (target != NULL) {
		value->target = strdup(target);
		return value->target != NULL ? 1 : -ENOMEM;
	}
	value->exists = sqlite3_column_type(s, 1) != SQLITE_NULL;
	if (!value->exists)
		return 1;
	if (sqlite3_column_bytes(s, 1) != sizeof(value->oid.bytes))
		return -EUCLEAN;
	memcpy(value->oid.bytes, sqlite3_column_blob(s, 1),
	    sizeof(value->oid.bytes));
	return 1;
}

/* Runs S for REF in REPO. */
static int read_value(sqlite3_stmt *s, uint64_t repo, const char *ref,
    struct journal_value *value)
{
	int rc;

	sqlite3_bind_int64(s, 1, (sqlite3_int64)repo);
	sqlite3_bind_text(s, 2, ref, -1, SQLITE_STATIC);
	rc = sqlite3_step(s);
	if (rc == SQLITE_ROW)
		return take_value(s, value);
	return rc == SQLITE_DONE ? 0 : journal_errno(rc);
}

int journal_find_value(struct journal *j, uint64_t repo, const char *ref,
    struct journal_value *value)
{
	int r = -EIO;

	*value = (struct journal_value){ .target = NULL };
	mutex_lock(&j->commit_lock);
	if (!journal_is_broken(j)) {
		r = read_value(j->stmts.find_value, repo, ref, value);
		sqlite3_reset(j->stmts.find_value);
	}
	mutex_unlock(&j->commit_lock);
	return r;
}

/* Of the names above REF. */
static int find_above(struct journal *j, uint64_t repo, const char *ref,
    char found[REFD_REFNAME_MAX + 1])
{
	const char *slash = strchr(ref, '/');
	struct journal_value value;
	int r = 0;

	while (r == 0 && slash != NULL && (slash = strchr(slash + 1, '/'))) {
		value = (struct journal_value){ .target = NULL };
		memcpy(found, ref, (size_t)(slash - ref));
		found[slash - ref] = '\0';
		r = read_value(j->stmts.find_value, repo, found, &value);
		sqlite3_reset(j->stmts.find_value);
		if (r > 0)
			r = value.exists || value.target != NULL;
		free(value.target);
	}
	return r;
}

static int find_below(struct journal *j, uint64_t repo, const char *ref,
    char found[REFD_REFNAME_MAX + 1])
{
	sqlite3_stmt *s = j->stmts.find_below;
	int r = 0, rc;

	sqlite3_bind_int64(s, 1, (sqlite3_int64)repo);
	sqlite3_bind_text(s, 2, ref, -1, SQLITE_STATIC);
	rc = sqlite3_step(s);
	if (rc == SQLITE_ROW) {
		snprintf(found, REFD_REFNAME_MAX + 1, "%s",
		    sqlite3_column_text(s, 0));
		r = 1;
	} else if (rc != SQLITE_DONE) {
		r = journal_errno(rc);
	}
	sqlite3_reset(s);
	return r;
}

int journal_find_value_around(struct journal *j, uint64_t repo, const char *ref,
    char found[REFD_REFNAME_MAX + 1])
{
	int r = -EIO;

	mutex_lock(&j->commit_lock);
	if (!journal_is_broken(j)) {
		r = find_above(j, repo, ref, found);
		if (r == 0)
			r = find_below(j, repo, ref, found);
	}
	mutex_unlock(&j->commit_lock);
	return r;
}

static void take_place(sqlite3_stmt *s, struct journal_place *at)
{
	at->repo = (uint64_t)sqlite3_column_int64(s, 3);
	snprintf(at->ref, sizeof(at->ref), "%s", sqlite3_column_text(s, 4));
	snprintf(at->path, sizeof(at->path), "%s", sqlite3_column_text(s, 5));
}

int journal_has_living_value(struct journal *j, uint64_t repo)
{
	sqlite3_stmt *s = j->stmts.find_living;
	int r = -EIO, rc;

	mutex_lock(&j->commit_lock);
	if (!journal_is_broken(j)) {
		sqlite3_bind_int64(s, 1, (sqlite3_int64)repo);
		rc = sqlite3_step(s);
		r = rc == SQLITE_ROW  ? 1 :
		    rc == SQLITE_DONE ? 0 :
					journal_errno(rc);
		sqlite3_reset(s);
	}
	mutex_unlock(&j->commit_lock);
	return r;
}

int journal_next_value(struct journal *j, struct journal_place *at,
    struct journal_value *value)
{
	int r = -EIO;

	*value = (struct journal_value){ .target = NULL };
	mutex_lock(&j->commit_lock);
	if (!journal_is_broken(j)) {
		r = read_value(j->stmts.next_value, at->repo, at->ref, value);
		if (r == 1)
			take_place(j->stmts.next_value, at);
		sqlite3_reset(j->stmts.next_value);
	}
	mutex_unlock(&j->commit_lock);
	return r;
}
