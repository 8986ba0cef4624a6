/*
 * Committing to the journal, and bringing it back when a sync failed.
 *
 * The happy path: one journal_commit.
 *
 * What fails:
 *	before its sync		the errno; definitely nothing happened
 *	the sync		the journal is closed, its pages are dropped,
 *				it is opened again, which syncs what it reads;
 *				then the rows are there or they are not, and
 *				that is the answer
 *	opening it again	nobody can know: unknown, and the store is
 *				fatal
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/store/store_internal.h"

#define GATHER_MAX_NS (10 * 1000 * 1000)

struct search {
	struct journal_row *rows;
	size_t nr, found;
};

static int match_row(void *arg, const struct journal_row *row)
{
	struct search *search = arg;
	struct journal_row *mine;
	size_t i;

	for (i = 0; i < search->nr; i++) {
		mine = &search->rows[i];
		if (mine->kind == row->kind && mine->len == row->len &&
		    memcmp(&mine->txid, &row->txid, sizeof(row->txid)) == 0 &&
		    mine->token == row->token && mine->voids == row->voids &&
		    mine->time_us == row->time_us &&
		    memcmp(mine->body, row->body, row->len) == 0) {
			mine->lsn = row->lsn;
			search->found++;
			break;
		}
	}
	return 0;
}

int heal_journal(struct store *s, unsigned epoch)
{
	char *why = NULL;
	int r = 0;

	pthread_rwlock_wrlock(&s->journal_lock);
	if (s->journal_epoch == epoch) {
		r = journal_reopen(s->journal, &why);
		if (r == 0)
			s->journal_epoch++;
	}
	pthread_rwlock_unlock(&s->journal_lock);
	if (r != 0)
		store_set_fatal(s,
		    "the journal in '%s' failed and can't be "
		    "opened again: %s",
		    s->state_dir,
		    why != NULL ? why : strerror(r < 0 ? -r : EIO));
	free(why);
	return r;
}

/* What became of ROWS, now that the journal can be read again. */
static int find_out(struct store *s, uint64_t before, struct journal_row *rows,
    size_t nr)
{
	struct search search = { rows, nr, 0 };
	int r;

	pthread_rwlock_rdlock(&s->journal_lock);
	r = journal_scan(s->journal, before, match_row, &search);
	pthread_rwlock_unlock(&s->journal_lock);
	if (r != 0)
		return JOURNAL_UNKNOWN;
	return search.found >= nr ? 0 : -EIO;
}

/* A flush for one takes as long as one for all: while others are about to have
 * their locks it waits for them, but no longer than a flush takes. Who is
 * alone waits for nobody. */
static void gather(struct store *s)
{
	int64_t ns = journal_flush_ns(s->journal);
	struct timespec until;

	if (ns > GATHER_MAX_NS)
		ns = GATHER_MAX_NS;
	clock_gettime(CLOCK_MONOTONIC, &until);
	ns += until.tv_nsec;
	until.tv_sec += ns / 1000000000;
	until.tv_nsec = ns % 1000000000;
	pthread_mutex_lock(&s->mutex);
	while (s->nr_preparing > 0 &&
	    pthread_cond_timedwait(&s->gathered_cond, &s->mutex, &until) == 0)
		;
	pthread_mutex_unlock(&s->mutex);
}

static int commit(struct store *s, struct journal_row *rows, size_t nr,
    bool flush)
{
	uint64_t before;
	unsigned epoch;
	int r;

	if (store_fatal(s) != NULL)
		return JOURNAL_UNKNOWN;
	pthread_rwlock_rdlock(&s->journal_lock);
	epoch = s->journal_epoch;
	before = journal_forgotten(s->journal);
	if (flush)
		gather(s);
	r = journal_commit(s->journal, rows, nr, flush);
	pthread_rwlock_unlock(&s->journal_lock);
	if (r != JOURNAL_UNKNOWN)
		return r;
	if (heal_journal(s, epoch) != 0)
		return JOURNAL_UNKNOWN;
	r = find_out(s, before, rows, nr);
	/* Their locks stand and nobody knows their records: only a start can
	 * put that right. */
	if (r == JOURNAL_UNKNOWN)
		store_set_fatal(s, "the journal in '%s' can't be read",
		    s->state_dir);
	return r;
}

/* ---- does it move? ---- */

static void entered(struct store *s)
{
	pthread_mutex_lock(&s->mutex);
	if (s->nr_committing++ == 0)
		s->commit_moved_ns = SYS(s->sys, now_mono);
	pthread_mutex_unlock(&s->mutex);
}

static void left(struct store *s)
{
	pthread_mutex_lock(&s->mutex);
	s->nr_committing--;
	s->commit_moved_ns = SYS(s->sys, now_mono);
	pthread_mutex_unlock(&s->mutex);
}

int64_t store_stuck_ns(struct store *s)
{
	/* Commits that want no flush go on beside one that hangs. */
	int64_t ns = 0, flush_ns = journal_flush_hangs_ns(s->journal);

	pthread_mutex_lock(&s->mutex);
	if (s->nr_committing > 0)
		ns = SYS(s->sys, now_mono) - s->commit_moved_ns;
	pthread_mutex_unlock(&s->mutex);
	return flush_ns > ns ? flush_ns : ns;
}

int heal_commit(void *store, struct journal_row *rows, size_t nr, bool flush)
{
	int r;

	entered(store);
	r = commit(store, rows, nr, flush);
	left(store);
	return r;
}

int heal_flush(struct store *s)
{
	int r;

	entered(s);
	r = journal_flush(s->journal);
	left(s);
	return r;
}

int heal_flush_repos(struct store *s, uint64_t of)
{
	unsigned epoch;
	int r;

	entered(s);
	pthread_rwlock_rdlock(&s->journal_lock);
	epoch = s->journal_epoch;
	r = journal_flush_repos(s->journal, of);
	pthread_rwlock_unlock(&s->journal_lock);
	if (r == JOURNAL_UNKNOWN) {
		heal_journal(s, epoch);
		r = -EIO;
	}
	left(s);
	return r;
}
