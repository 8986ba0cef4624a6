/*
 * The log of all nodes of which the journal has rows. journal.c writes its uuid
 * and its highest LSN with each of these rows.
 *
 * Happy path of joining: one transaction has the position of the copies, the
 * time, and the values of their refs, so that a node never begins without the
 * values. The ids of the rows that the copies have were born before this time.
 * The time has a table of its own, which no other journal has, so the format
 * stays the same. The seal of meta covers the time.
 *
 * Happy path of leaving: one transaction, and a flush. The rows keep their LSNs
 * in the old log, because the journal may go on in a new log, with higher LSNs.
 * The values of refs go, because from now on any program may write refs.
 *
 * Failures: nothing was changed, or JOURNAL_UNKNOWN: the same call again.
 */
#include <errno.h>
#include <string.h>

#include "daemon/store/journal/journal_internal.h"
#include "proto/left_log.h"

uint64_t journal_shared_lsn(struct journal *j)
{
	return journal_guarded(j, &j->shared.lsn);
}

uint64_t journal_joined_ms(struct journal *j)
{
	return journal_guarded(j, &j->shared.joined_ms);
}

void journal_shared_uuid(struct journal *j, uint8_t uuid[16])
{
	mutex_lock(&j->hand_lock);
	memcpy(uuid, j->shared.uuid, sizeof(j->shared.uuid));
	mutex_unlock(&j->hand_lock);
}

void journal_set_shared(struct journal *j, const uint8_t uuid[16])
{
	mutex_lock(&j->hand_lock);
	memcpy(j->shared_wanted, uuid, sizeof(j->shared_wanted));
	mutex_unlock(&j->hand_lock);
}

static bool has_left(const struct journal_shared *shared)
{
	uint64_t lsn;

	return left_log_lsn(shared->uuid, &lsn) && lsn == shared->lsn;
}

bool journal_shares_rows(struct journal *j)
{
	bool is_in;

	mutex_lock(&j->hand_lock);
	is_in = j->shared.lsn > 0 && !has_left(&j->shared);
	mutex_unlock(&j->hand_lock);
	return is_in;
}

/* ---- the order of the rows ---- */

/* May ROW follow the rows of SHARED? */
static bool may_follow(const struct journal *j,
    const struct journal_shared *shared, const struct journal_row *row)
{
	if (journal_is_late(j, row))
		return true;
	return (row->kind == JOURNAL_SLICE || row->kind == JOURNAL_WAITING) &&
	    row->shared_lsn == shared->lsn + 1;
}

int journal_add_shared(const struct journal *j, struct journal_shared *shared,
    const uint8_t wanted[16], const struct journal_commit *c)
{
	static const uint8_t none[16];
	const struct journal_row *row;
	size_t i;

	for (i = 0; i < c->nr; i++) {
		row = &c->rows[i];
		if (row->shared_lsn == 0)
			continue;
		if (!may_follow(j, shared, row) ||
		    memcmp(wanted, none, sizeof(none)) == 0)
			return -EINVAL;
		if (memcmp(shared->uuid, none, sizeof(none)) == 0)
			memcpy(shared->uuid, wanted, sizeof(none));
		if (memcmp(shared->uuid, wanted, sizeof(none)) != 0)
			return -EINVAL;
		if (row->shared_lsn > shared->lsn)
			shared->lsn = row->shared_lsn;
	}
	return 0;
}

/* ---- joining and leaving ---- */

int journal_read_joined(struct journal *j, uint64_t *ms)
{
	int64_t value = 0;
	int rc;

	rc = journal_query(j->db,
	    "SELECT count(*) FROM sqlite_schema"
	    " WHERE name = '" JOURNAL_JOINED "'",
	    0, 0, &value);
	if (rc == SQLITE_OK && value > 0)
		rc = journal_query(j->db, "SELECT time_ms FROM " JOURNAL_JOINED,
		    0, 0, &value);
	*ms = (uint64_t)value;
	return rc;
}

/* Within a transaction. An SQLite code. */
static int write_joined(struct journal *j, uint64_t ms)
{
	int rc;

	rc = sqlite3_exec(j->db,
	    "CREATE TABLE IF NOT EXISTS " JOURNAL_JOINED
	    "(id INTEGER PRIMARY KEY, time_ms INTEGER NOT NULL) STRICT",
	    NULL, NULL, NULL);
	return rc != SQLITE_OK ?
	    rc :
	    journal_query(j->db,
		"INSERT OR REPLACE INTO " JOURNAL_JOINED " VALUES(1, ?)", ms, 0,
		NULL);
}

static int write_shared(struct journal *j, const struct journal_shared *shared,
    journal_given_fn *next, void *arg)
{
	struct journal_mark mark;
	struct journal_meta meta;
	int r, rc;

	mutex_lock(&j->commit_lock);
	meta = j->meta;
	meta.shared = *shared;
	r = journal_txn_begin(j);
	if (r == 0) {
		rc = journal_set_values(j, next, arg);
		if (rc == SQLITE_OK &&
		    shared->joined_ms != j->meta.shared.joined_ms)
			rc = write_joined(j, shared->joined_ms);
		if (rc == SQLITE_OK)
			rc = journal_write_meta(j, &meta);
		r = journal_txn_end(j, rc);
	}
	if (r == 0)
		j->meta = meta;
	mark = journal_mark(j);
	mutex_unlock(&j->commit_lock);
	return r == 0 ? journal_flush_to(j, &mark) : r;
}

int journal_join(struct journal *j, uint64_t lsn, uint64_t joined_ms,
    journal_given_fn *next, void *arg)
{
	const struct journal_shared shared = { .lsn = lsn,
		.joined_ms = joined_ms != 0 ?
		    joined_ms :
		    (uint64_t)(SYS(j->sys, now_wall) / 1000000) };

	if (journal_last_lsn(j) > 0 || journal_shared_lsn(j) > 0)
		return -EEXIST;
	return write_shared(j, &shared, next, arg);
}

/* The row is not in the refs, and after the leaving nobody would apply the
 * row. */
static int refuse_waiting(void *arg, const struct journal_waiting *row)
{
	(void)arg;
	(void)row;
	return -EBUSY;
}

int journal_leave(struct journal *j)
{
	struct journal_shared shared = { .lsn = journal_shared_lsn(j),
		.joined_ms = journal_joined_ms(j) };
	int r;

	if (shared.lsn > 0 && !journal_shares_rows(j))
		return 0;
	r = journal_each_waiting(j, refuse_waiting, NULL);
	if (r != 0)
		return r;
	if (shared.lsn > LEFT_LOG_LSN_MAX)
		return -ERANGE;
	/* A new log begins with a row that an empty node lacks, because an
	 * empty node would make the repositories anew, without their refs. */
	if (shared.lsn == 0)
		shared.lsn = 1;
	sqlite3_randomness(sizeof(shared.uuid), shared.uuid);
	left_log_make(shared.lsn, shared.uuid);
	return write_shared(j, &shared, NULL, NULL);
}
