/*
 * The answer to one question: which rows to read, and in which order.
 *
 * Happy path:
 *	bounds	the requested and indexed rows: between two LSNs
 *	source	the rows of a transaction by its id; else the rows that the
 *		index finds; all rows of the journal if the question names no
 *		key
 *	tell	each row in the requested order, up to a limit, or to a time:
 *		the answer then has the next position
 *
 * Failure modes:
 *	the index is behind	the answer ends where the index ends, or is
 *				empty if the newest rows come first; the client
 *				asks for the rest, and each question indexes
 *				some more rows
 *	the index cannot be read or written
 *				no space, or io; the client asks again
 *	the index is damaged	the answer ends; the index is begun anew
 *	the journal, or its table of repositories, cannot be read
 *				io; the client asks again
 *	out of memory		busy
 *	any of these, after some changes
 *				the answer ends
 *	a position of another journal, or before the first remaining row
 *				a gap
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/busy_cause.h"
#include "daemon/store/history/history_internal.h"
#include "proto/arena.h"

/* The length of a turn. The answer then ends, and the client asks for the rest,
 * so other clients come first. A search of the index that finds nothing has the
 * same limit (find_in_segment()). */
#define TURN_NS (5 * 1000000LL)

struct history_question {
	struct history_telling telling;
	struct store_question *ask;
	struct history *h;
	const struct refd_selection *select;
	uint64_t after, before; /* exclusive bounds */
	bool down;
	bool is_index_bad;
	uint64_t first, last; /* rows of a transaction; 0: none */

	struct journal_row row; /* in turn, without the body */
	struct record rec;      /* the content of a wanted row */
	bool is_wanted;
};

/* ---- rows ---- */

/* 0; HISTORY_STOP: the turn is over. */
static int history_look_at_time(struct history_question *q)
{
	if (SYS(q->h->cfg->sys, now_mono) <= q->telling.until_ns)
		return 0;
	return HISTORY_STOP;
}

static void history_begin_time(struct history_question *q)
{
	q->telling.until_ns = SYS(q->h->cfg->sys, now_mono) + TURN_NS;
}

/* Only copies the row, because the look at rights may wait for a repository's
 * disk, which must not hold the journal. */
static int take_row(void *arg, const struct journal_row *row)
{
	struct history_question *q = arg;

	q->row = *row;
	q->row.body = NULL;
	q->is_wanted = history_wants_row(q->h, q->ask, row);
	return q->is_wanted ? record_decode(row->body, row->len, &q->rec) : 0;
}

/* Tells the changes of all rows between AFTER and BEFORE. */
static int tell_rows(struct history_question *q, uint64_t after,
    uint64_t before)
{
	struct history_telling *t = &q->telling;
	int r = 0;

	while (r == 0 && after + 1 < before) {
		q->row.lsn = 0;
		r = journal_read(q->h->reader, after, before, q->down, 1,
		    take_row, q);
		if (r != 0 || q->row.lsn == 0)
			break;
		if (q->is_wanted) {
			r = history_tell(t, &q->row, &q->rec);
			record_done(&q->rec);
		}
		if (r != 0 || t->is_full)
			return r != 0 ? r : HISTORY_STOP;
		*(q->down ? &before : &after) = q->row.lsn;
		t->ans->next = (struct refd_position){ q->row.lsn, 0 };
		r = history_look_at_time(q);
	}
	return r;
}

/* ---- by the index ---- */

/*
 * Rows by the index: segment by segment, row by row, in order. If a pattern may
 * match very many names, the rows of a segment are read instead, because
 * reading can stop anywhere, while a search must first sort all that it finds.
 */

/* If the index finds nothing in time, the rows are read in a time of their own,
 * because the next turn would begin with the same search. */
static int find_in_segment(struct history_question *q, uint64_t after,
    uint64_t before)
{
	struct journal_index *index = q->h->index;
	uint64_t lsn;
	int found, r = 0;

	journal_index_search_in(index, after, before);
	while (r == 0 &&
	    (found = journal_index_search_next(index, q->telling.until_ns,
		 &lsn)) > 0)
		r = tell_rows(q, lsn - 1, lsn + 1);
	if (r != 0 || found == 0)
		return r;
	if (found == -EINTR) {
		history_begin_time(q);
		return tell_rows(q, after, before);
	}
	q->is_index_bad = true;
	return found;
}

/* Narrows *AFTER and *BEFORE to the first segment in the order of the
 * question. */
static void narrow(const struct history_question *q, uint64_t *after,
    uint64_t *before)
{
	const uint64_t bits = JOURNAL_INDEX_SEGMENT_BITS;
	uint64_t edge;

	if (q->down) {
		edge = (*before - 1) >> bits << bits;
		if (edge > *after + 1)
			*after = edge - 1;
	} else {
		edge = (((*after + 1) >> bits) + 1) << bits;
		if (edge < *before)
			*before = edge;
	}
}

/* The rows that the search of the index finds between AFTER and BEFORE, all of
 * which the index knows, in the order of the question. */
static int history_find_range(struct history_question *q, uint64_t after,
    uint64_t before)
{
	uint64_t from, to;
	int r = 0;

	while (r == 0 && after + 1 < before) {
		from = after;
		to = before;
		narrow(q, &from, &to);
		r = find_in_segment(q, from, to);
		if (q->down)
			before = from + 1;
		else
			after = to - 1;
		if (r == 0) {
			q->telling.ans->next.lsn = q->down ? before : after;
			q->telling.ans->next.nr = 0;
			r = history_look_at_time(q);
		}
	}
	return r;
}

/* ---- where to look ---- */

static int64_t to_us(uint64_t ms)
{
	return ms < INT64_MAX / 1000 ? (int64_t)ms * 1000 : INT64_MAX;
}

static int read_indexed(struct history_question *q)
{
	const struct refd_selection *s = q->select;
	uint64_t after = q->after, before = q->before;
	int64_t until_us = INT64_MAX;
	int r;

	/* To the end of the millisecond. */
	if (s->until_ms != 0 && s->until_ms < UINT64_MAX)
		until_us = to_us(s->until_ms + 1);
	r = journal_index_between(q->h->index, to_us(s->since_ms), until_us,
	    &after, &before);
	q->is_index_bad = r < 0;
	if (r != 0)
		return r;
	r = journal_index_search(q->h->index, q->ask->repo, s, q->down);
	if (r > 0)
		return tell_rows(q, after, before);
	q->is_index_bad = r < 0;
	if (r == 0)
		r = history_find_range(q, after, before);
	journal_index_search_done(q->h->index);
	return r;
}

static int read_all(struct history_question *q)
{
	int r;

	if (q->after + 1 >= q->before)
		return 0;
	r = read_indexed(q);
	if (q->is_index_bad) {
		history_index_failed(q->h, r);
		r = r == -EBADMSG ? HISTORY_STOP : r;
	}
	return r;
}

static int widen(void *arg, const struct journal_row *row)
{
	struct history_question *q = arg;

	if (row->kind != JOURNAL_SLICE || row->lsn <= q->after ||
	    row->lsn >= q->before)
		return 0;
	if (q->first == 0)
		q->first = row->lsn;
	q->last = row->lsn;
	return 0;
}

/* The rows of a transaction are close together, so all rows from the first to
 * the last one are read. */
static int read_txn(struct history_question *q)
{
	int r;

	r = journal_lookup(q->h->reader, JOURNAL_ANY_UID, &q->ask->req.txid,
	    widen, q);
	if (r != 0 || q->first == 0)
		return r;
	return tell_rows(q, q->first - 1, q->last + 1);
}

/* ---- bounds ---- */

/* The last row up to VISIBLE. A position must be the LSN of a row, because
 * after a start a number without a row may go to a later row. */
static int last_row(struct history *h, uint64_t visible, uint64_t *last)
{
	uint64_t first;
	int r;

	r = journal_ends_between(h->reader, h->trimmed, visible + 1, &first,
	    last);
	if (*last == 0)
		*last = h->trimmed;
	return r;
}

static void begin_anew(struct history_question *q)
{
	q->telling.ans->has_gap = true;
	q->telling.ans->gap = q->h->trimmed;
	q->after = q->h->trimmed;
}

/* The positions of ASK, which may have to be forgotten, as LSNs. */
static void set_bounds(struct history_question *q, uint64_t last)
{
	struct refd_selection *s = &q->ask->req.select;
	bool is_ours = !s->has_journal ||
	    memcmp(s->journal, journal_uuid(q->h->cfg->journal),
		sizeof(s->journal)) == 0;

	q->after = q->h->trimmed;
	q->before = last + 1;
	if (!is_ours)
		s->has_before = false;
	if (s->has_before && s->before.lsn <= last)
		q->before = s->before.lsn + (s->before.nr > 0);
	if (!s->has_after)
		return;
	if (!is_ours || s->after.lsn < q->h->trimmed ||
	    s->after.lsn > journal_last_lsn(q->h->cfg->journal)) {
		begin_anew(q);
		s->has_after = false;
	} else {
		q->after = s->after.lsn - (s->after.nr > 0);
	}
}

/* ---- the answer ---- */

static bool begin_answer(struct history *h, struct store_question *ask)
{
	struct refd_answer *ans = &ask->answer;

	memset(ans, 0, sizeof(*ans));
	ans->kind = REFD_ANSWER_RECORDS;
	memcpy(ans->journal, journal_uuid(h->cfg->journal),
	    sizeof(ans->journal));
	ans->arena = refd_arena_new();
	return ans->arena != NULL;
}

static void set_begin(struct history_question *q)
{
	const struct refd_selection *s = q->select;
	struct refd_position *next = &q->telling.ans->next;

	if (q->down)
		*next = s->has_before ? s->before :
					(struct refd_position){ q->before, 0 };
	else
		*next = s->has_after ? s->after :
				       (struct refd_position){ q->after, 0 };
}

/* Where to go on when everything up to LAST was looked at. */
static void set_end(struct history_question *q, uint64_t last)
{
	struct refd_position *next = &q->telling.ans->next;

	if (q->down)
		*next = (struct refd_position){ q->after + 1, 0 };
	else if (last > next->lsn)
		*next = (struct refd_position){ last, 0 };
}

/* Are wanted rows not indexed yet? Takes these rows out of the bounds, so
 * nothing is left if the newest rows come first. */
static bool is_behind(struct history_question *q, uint64_t edge)
{
	if (q->before <= edge + 1 || q->after + 1 >= q->before)
		return false;
	if (q->down)
		q->after = q->before - 1;
	else
		q->before = edge + 1;
	return true;
}

static int read_by_key(struct history_question *q)
{
	struct history *h = q->h;
	uint64_t edge = history_indexed(h);
	bool behind = is_behind(q, edge);
	int r;

	if (behind && (h->index == NULL || h->index_error != 0)) {
		q->is_index_bad = !h->is_journal_bad;
		return h->index_error != 0 ? h->index_error : -EAGAIN;
	}
	r = read_all(q);
	if (r != 0 || !behind)
		return r;
	if (!q->down)
		set_end(q, edge);
	return HISTORY_STOP;
}

static int answer(struct history_question *q, uint64_t visible)
{
	struct store_question *ask = q->ask;
	const struct refd_txid any = { 0 };
	uint64_t last = 0;
	int r;

	r = last_row(q->h, visible, &last);
	if (r != 0)
		return r < 0 ? r : -EIO;
	set_bounds(q, last);
	if (ask->req.verb == REFD_VERB_WATCH && !ask->req.select.has_after &&
	    !q->telling.ans->has_gap)
		q->after = last;
	set_begin(q);
	if (ask->req.git_dir != NULL && ask->repo == 0)
		r = 0;
	else if (!refd_txid_eq(&ask->req.txid, &any))
		r = read_txn(q);
	else
		r = read_by_key(q);
	if (r == JOURNAL_UNKNOWN)
		r = -EIO;
	/* What was found so far is right, so the client gets it, and the next
	 * answer has the error. */
	if (r < 0 && q->telling.ans->nr_changes > 0)
		r = HISTORY_STOP;
	if (r == 0)
		set_end(q, last);
	q->telling.ans->more = r == HISTORY_STOP;
	return r == HISTORY_STOP ? 0 : r;
}

static int find_repo(struct history_question *q)
{
	const struct refd_request *req = &q->ask->req;

	q->ask->repo = 0;
	if (req->git_dir == NULL)
		return 0;
	return history_repo_of(q->h, req, &q->ask->peer, &q->ask->repo);
}

/* A waiting watch continues from here, so it reads no row twice. */
static void move_on(struct store_question *ask)
{
	struct refd_selection *s = &ask->req.select;

	s->has_after = true;
	s->after = ask->answer.next;
	memcpy(s->journal, ask->answer.journal, sizeof(s->journal));
	s->has_journal = true;
}

static void free_question(struct history_question *q)
{
	size_t i;

	for (i = 0; q != NULL && i < HISTORY_REPOS; i++)
		free(q->telling.repos[i].path);
	free(q);
}

/* Refuses ASK, with the reason for the errno R. */
static void refuse(struct store_question *ask, bool is_index, int r)
{
	char *why = NULL;

	if (r == -ESTALE)
		question_refuse(ask, REFD_NOREPO,
		    "the daemon sees another directory at this path");
	else if (r == -ENOMEM)
		question_refuse(ask, BUSY(MEMORY));
	else if (is_index &&
	    asprintf(&why, "the index of history cannot be used: %s",
		strerror(-r)) > 0)
		question_refuse_for(ask, txn_status_of(r), why);
	else
		question_refuse(ask, REFD_IO, "the journal could not be read");
}

bool history_answer(struct history *h, struct store_question *ask,
    uint64_t visible)
{
	struct history_question *q = calloc(1, sizeof(*q));
	struct refd_answer *ans = &ask->answer;
	int r = -ENOMEM;

	history_note_trimmed(h);
	if (q != NULL && begin_answer(h, ask)) {
		q->h = q->telling.h = h;
		q->ask = ask;
		q->telling.ask = ask;
		q->select = q->telling.select = &ask->req.select;
		q->telling.ans = ans;
		q->telling.limit =
		    q->select->limit != 0 ? q->select->limit : REFD_CHANGES_MAX;
		q->down = q->select->reverse;
		history_begin_time(q);
		r = history_open_reader(h);
		if (r == 0)
			r = find_repo(q);
		if (r == 0)
			r = answer(q, visible);
	}
	if (r != 0)
		refuse(ask, q != NULL && q->is_index_bad, r);
	free_question(q);
	if (r != 0 || ask->req.verb == REFD_VERB_LOG || ans->nr_changes > 0 ||
	    ans->has_gap || ans->more)
		return true;
	move_on(ask);
	refd_answer_done(ans);
	return false;
}

void history_answer_empty(struct history *h, struct store_question *ask)
{
	refd_answer_done(&ask->answer);
	if (begin_answer(h, ask))
		ask->answer.next = ask->req.select.after;
	else
		question_refuse(ask, BUSY(MEMORY));
}
