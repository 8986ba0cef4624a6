/*
 * The commit log on top of the SQLite journal.
 *
 * Happy path: journal_append(), then journal_flush_to().
 *
 * Failure modes: see commit_log.h. After a failed sync nobody knows which rows
 * are on disk, so the journal is opened again, which syncs everything that was
 * read. The rows are then there or not, and this is the answer.
 */
#include "daemon/store/journal/commit_log.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mutex.h"
#include "daemon/store/journal/journal_internal.h"

/* A broken journal is opened again before the next sync, and this sync may
 * fail, too. So one wait opens the journal at most this many times. */
#define MENDS_MAX 5

struct commit_log {
	struct commit_log_config cfg;
	const struct sys *sys;
	struct journal *journal;
	/* Write-locked while the journal is opened again, so an append waits
	 * then, and does not meet a broken journal. */
	struct rwlock lock;
	struct mutex mutex; /* the members below */
	size_t nr_calls;    /* appends and waits at work */
	int64_t moved_ns;   /* when the last call began or returned */
};

int commit_log_open(const struct commit_log_config *cfg,
    struct commit_log **out, char **why)
{
	struct commit_log *log = calloc(1, sizeof(*log));
	int r;

	*why = NULL;
	if (log == NULL)
		return -ENOMEM;
	log->cfg = *cfg;
	log->sys = cfg->journal->sys;
	r = journal_open(cfg->journal, &log->journal, why);
	if (r != 0) {
		free(log);
		return r;
	}
	rwlock_init(&log->lock, MUTEX_LOG);
	mutex_init(&log->mutex, MUTEX_INNER);
	*out = log;
	return 0;
}

int commit_log_claim(struct commit_log *log, char **why)
{
	return journal_claim(log->journal, why);
}

void commit_log_close(struct commit_log *log)
{
	if (log == NULL)
		return;
	journal_close(log->journal);
	rwlock_destroy(&log->lock);
	mutex_destroy(&log->mutex);
	free(log);
}

struct journal *commit_log_journal(struct commit_log *log)
{
	return log->journal;
}

/* ---- progress ---- */

static void entered(struct commit_log *log)
{
	const int64_t now_ns = SYS(log->sys, now_mono);

	mutex_lock(&log->mutex);
	if (log->nr_calls++ == 0)
		log->moved_ns = now_ns;
	mutex_unlock(&log->mutex);
}

static void left(struct commit_log *log)
{
	const int64_t now_ns = SYS(log->sys, now_mono);

	mutex_lock(&log->mutex);
	log->nr_calls--;
	log->moved_ns = now_ns;
	mutex_unlock(&log->mutex);
}

int64_t commit_log_stuck_ns(struct commit_log *log)
{
	/* Appends, and waits without a flush, go on beside a hanging flush, and
	 * set MOVED_NS. So MOVED_NS alone would hide the flush. */
	int64_t ns = 0, flush_ns = journal_flush_hangs_ns(log->journal);

	mutex_lock(&log->mutex);
	if (log->nr_calls > 0)
		ns = SYS(log->sys, now_mono) - log->moved_ns;
	mutex_unlock(&log->mutex);
	return flush_ns > ns ? flush_ns : ns;
}

/* ---- append and read ---- */

int commit_log_append(struct commit_log *log, struct journal_row *rows,
    size_t nr, struct commit_log_mark *mark)
{
	int r;

	assert(journal_this_start(log->journal) != 0);
	entered(log);
	rwlock_read(&log->lock);
	*mark = (struct commit_log_mark){ .rows = rows,
		.nr = nr,
		.before = journal_last_lsn(log->journal) };
	r = journal_append(log->journal, rows, nr, &mark->at);
	rwlock_unlock(&log->lock);
	left(log);
	mark->is_unknown = r == JOURNAL_UNKNOWN;
	return mark->is_unknown ? 0 : r;
}

int commit_log_read(struct commit_log *log, uint64_t after,
    int (*cb)(void *arg, const struct journal_row *row), void *arg)
{
	int r;

	rwlock_read(&log->lock);
	r = journal_scan(log->journal, after, cb, arg);
	rwlock_unlock(&log->lock);
	return r;
}

/* ---- a failed sync ---- */

static int mend(struct commit_log *log)
{
	char *why = NULL, text[512];
	int r = 0;

	rwlock_write(&log->lock);
	/* Another thread may have mended the journal. */
	if (journal_is_broken(log->journal))
		r = journal_reopen(log->journal, &why);
	rwlock_unlock(&log->lock);
	if (r != 0) {
		snprintf(text, sizeof(text),
		    "failed and can't be opened again: %s",
		    why != NULL ? why : strerror(r < 0 ? -r : EIO));
		log->cfg.failed(log->cfg.arg, text);
	}
	free(why);
	return r == 0 ? 0 : JOURNAL_UNKNOWN;
}

int commit_log_mend(struct commit_log *log)
{
	int r;

	entered(log);
	r = mend(log);
	left(log);
	return r;
}

static void clear_lsns(const struct commit_log_mark *mark)
{
	size_t i;

	for (i = 0; i < mark->nr; i++)
		mark->rows[i].lsn = 0;
}

struct row_search {
	const struct commit_log_mark *mark;
	size_t found;
	bool is_deferred; /* a deferred row to be taken off the list */
	bool is_there;    /* are the rows of the mark there? */
};

static bool is_same(const struct journal_row *a, const struct journal_row *b)
{
	return a->kind == b->kind && a->len == b->len &&
	    memcmp(&a->txid, &b->txid, sizeof(a->txid)) == 0 &&
	    a->token == b->token && a->refers_to == b->refers_to &&
	    a->time_us == b->time_us &&
	    (a->len == 0 || memcmp(a->body, b->body, a->len) == 0);
}

/* Gives ROW's LSN to the row of the mark that is equal to ROW. One transaction
 * in two repositories can have equal rows. Their LSNs ascend in the order of
 * the mark, so the first equal row without an LSN is the right one. */
static int match_row(void *arg, const struct journal_row *row)
{
	struct row_search *search = arg;
	struct journal_row *mine;
	size_t i;

	for (i = 0; i < search->mark->nr; i++) {
		mine = &search->mark->rows[i];
		if (mine->lsn == 0 && is_same(mine, row)) {
			mine->lsn = row->lsn;
			mine->start = row->start;
			search->found++;
			break;
		}
	}
	return 0;
}

static int match_deferred(void *arg, const struct journal_row *row)
{
	struct row_search *search = arg;
	const struct journal_row *mine;
	size_t i;

	for (i = 0; i < search->mark->nr; i++) {
		mine = &search->mark->rows[i];
		if (mine->kind == JOURNAL_DEFERRED_END &&
		    mine->refers_to == row->lsn)
			search->is_deferred = true;
	}
	return 0;
}

/* Are the rows of the mark there? All of them are there, or none. A
 * JOURNAL_DEFERRED_END leaves no row, so for a mark with nothing else the list
 * of deferred rows answers. A daemon that shares rows ends after a failed sync,
 * so nobody looks for a row that waits. */
static int look_for(struct commit_log *log, struct row_search *search)
{
	const struct commit_log_mark *mark = search->mark;
	size_t i, nr = 0;
	int r;

	for (i = 0; i < mark->nr; i++)
		nr += mark->rows[i].kind != JOURNAL_DEFERRED_END;
	if (nr > 0)
		r = commit_log_read(log, mark->before, match_row, search);
	else
		r = journal_each_deferred(log->journal, 0, match_deferred,
		    search);
	search->is_there = search->found >= nr && !search->is_deferred;
	return r;
}

/* Finds the outcome of MARK's rows. The rows were appended before the journal
 * was opened again, so a row that can be read is on disk. If another sync fails
 * first, the journal is opened once more. */
static int find_out(struct commit_log *log, const struct commit_log_mark *mark)
{
	struct row_search search;
	int i, r = JOURNAL_UNKNOWN;

	for (i = 0; i < MENDS_MAX && r == JOURNAL_UNKNOWN; i++) {
		if (commit_log_mend(log) != 0)
			return JOURNAL_UNKNOWN;
		search = (struct row_search){ .mark = mark };
		clear_lsns(mark);
		r = look_for(log, &search);
	}
	if (r == 0)
		return search.is_there ? 0 : -EIO;
	/* The locks of the rows stand, and nobody knows the records, so only a
	 * start can repair this. */
	log->cfg.failed(log->cfg.arg, "can't be read");
	return JOURNAL_UNKNOWN;
}

/* ---- wait ---- */

static int wait_for(struct commit_log *log, const struct commit_log_mark *mark,
    enum commit_log_level level)
{
	int r = JOURNAL_UNKNOWN;

	if (mark == NULL)
		r = journal_flush(log->journal);
	else if (!mark->is_unknown && level == COMMIT_LOG_LOCAL)
		r = 0;
	else if (!mark->is_unknown)
		r = journal_flush_to(log->journal, &mark->at);
	if (r != JOURNAL_UNKNOWN)
		return r;
	if (mark != NULL)
		return find_out(log, mark);
	commit_log_mend(log);
	return -EIO;
}

int commit_log_wait(struct commit_log *log, const struct commit_log_mark *mark,
    enum commit_log_level level)
{
	int r;

	entered(log);
	r = wait_for(log, mark, level);
	left(log);
	if (mark != NULL && r != 0)
		clear_lsns(mark);
	return r;
}

int commit_log_commit(struct commit_log *log, struct journal_row *rows,
    size_t nr, enum commit_log_level level)
{
	struct commit_log_mark mark;
	int r = commit_log_append(log, rows, nr, &mark);

	return r != 0 ? r : commit_log_wait(log, &mark, level);
}
