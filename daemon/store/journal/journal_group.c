/*
 * The group of nodes to which the journal belongs. journal.c writes the group
 * with each of its rows.
 *
 * Happy path of joining: one transaction has the position of the copies and the
 * values of their refs, so that a node never begins without the values.
 *
 * Happy path of leaving: one transaction, and a flush. The rows keep their LSNs
 * of the group: the journal may go on in a new group, with higher LSNs. The
 * values of refs go, because from now on any program may write refs.
 *
 * Failures: nothing was changed, or JOURNAL_UNKNOWN: the same call again.
 */
#include <errno.h>
#include <string.h>

#include "daemon/store/journal/journal_internal.h"
#include "proto/group_left.h"

uint64_t journal_group_lsn(struct journal *j)
{
	return journal_guarded(j, &j->group.lsn);
}

void journal_group_uuid(struct journal *j, uint8_t uuid[16])
{
	pthread_mutex_lock(&j->hand_lock);
	memcpy(uuid, j->group.uuid, sizeof(j->group.uuid));
	pthread_mutex_unlock(&j->hand_lock);
}

void journal_set_group(struct journal *j, const uint8_t uuid[16])
{
	pthread_mutex_lock(&j->hand_lock);
	memcpy(j->group_wanted, uuid, sizeof(j->group_wanted));
	pthread_mutex_unlock(&j->hand_lock);
}

static bool has_left(const struct journal_group *group)
{
	uint64_t lsn;

	return group_left_lsn(group->uuid, &lsn) && lsn == group->lsn;
}

bool journal_shares_rows(struct journal *j)
{
	bool is_in;

	pthread_mutex_lock(&j->hand_lock);
	is_in = j->group.lsn > 0 && !has_left(&j->group);
	pthread_mutex_unlock(&j->hand_lock);
	return is_in;
}

/* ---- joining and leaving ---- */

static int write_group(struct journal *j, const struct journal_group *group,
    journal_given_fn *next, void *arg)
{
	struct journal_mark mark;
	struct journal_meta meta;
	int r, rc;

	pthread_mutex_lock(&j->commit_lock);
	meta = j->meta;
	meta.group = *group;
	r = journal_txn_begin(j);
	if (r == 0) {
		rc = journal_set_values(j, next, arg);
		if (rc == SQLITE_OK)
			rc = journal_write_meta(j, &meta);
		r = journal_txn_end(j, rc);
	}
	if (r == 0)
		j->meta = meta;
	mark = journal_mark(j);
	pthread_mutex_unlock(&j->commit_lock);
	return r == 0 ? journal_flush_to(j, &mark) : r;
}

int journal_join_group(struct journal *j, uint64_t lsn, journal_given_fn *next,
    void *arg)
{
	const struct journal_group group = { .lsn = lsn };

	if (journal_last_lsn(j) > 0 || journal_group_lsn(j) > 0)
		return -EEXIST;
	return write_group(j, &group, next, arg);
}

/* The row is not in the refs, and nobody would apply it any more. */
static int refuse_waiting(void *arg, const struct journal_waiting *row)
{
	(void)arg;
	(void)row;
	return -EBUSY;
}

int journal_leave_group(struct journal *j)
{
	struct journal_group group = { .lsn = journal_group_lsn(j) };
	int r;

	if (group.lsn > 0 && !journal_shares_rows(j))
		return 0;
	r = journal_each_waiting(j, refuse_waiting, NULL);
	if (r != 0)
		return r;
	if (group.lsn > GROUP_LEFT_LSN_MAX)
		return -ERANGE;
	/* A new group begins with a row that an empty node lacks. */
	if (group.lsn == 0)
		group.lsn = 1;
	sqlite3_randomness(sizeof(group.uuid), group.uuid);
	group_left_make(group.lsn, group.uuid);
	return write_group(j, &group, NULL, NULL);
}
