/*
 * The answer to one question: which rows to read, and in which order.
 *
 * Happy path:
 *	bounds	the requested and existing rows: between two LSNs
 *	source	the rows of a transaction by its id; else the index, as far as
 *		complete, if the question names a key; after the index the rows
 *		of the journal
 *	tell	each row in the requested order, up to a limit, or to a time:
 *		the answer then has the next position
 *
 * Failure modes:
 *	the index fails		the answer ends; the client asks for the rest,
 *				which is read without the index
 *	the journal, or its table of repositories, cannot be read
 *				io; the client asks again
 *	out of memory		busy
 *	a position of another journal, or before the first remaining row
 *				a gap
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/busy_cause.h"
#include "daemon/store/history/history_internal.h"
#include "proto/arena.h"
#include "proto/lib/array.h"

/* The length of a turn. The answer then ends, and the client asks for the rest,
 * after the other clients. A search of the index that finds nothing has the
 * same limit (find_in_segment()). */
#define TURN_NS (5 * 1000000LL)
/* A read must not hold the WAL for long. */
#define SLICE_ROWS 256

struct history_question {
	struct history_telling telling;
	struct store_question *ask;
	struct history *h;
	const struct refd_selection *select;
	uint64_t after, before; /* exclusive bounds */
	bool down;

	bool is_index_bad;
	/* Of a transaction; owned. */
	uint64_t *lsns;
	size_t nr_lsns, lsns_size;
};

/* ---- rows ---- */

/* 0; HISTORY_STOP: the turn is over. */
static int history_look_at_time(struct history_question *q)
{
	if (SYS(q->h->cfg.sys, now_mono) <= q->telling.until_ns)
		return 0;
	return HISTORY_STOP;
}

struct history_slice {
	struct history_question *q;
	unsigned nr;
	uint64_t last;
};

/* Tells the changes of a row. */
static int slice_row(void *arg, const struct journal_row *row)
{
	struct history_slice *slice = arg;
	struct history_telling *t = &slice->q->telling;
	int r;

	r = history_tell(t, row);
	if (r != 0)
		return r;
	slice->nr++;
	slice->last = row->lsn;
	if (t->is_full)
		return HISTORY_STOP;
	t->ans->next = (struct refd_position){ row->lsn, 0 };
	return history_look_at_time(slice->q);
}

/* The next row is of a repository that the question does not know yet. */
static int learn_repo(struct history_telling *t)
{
	struct history_repo *repo = &t->repos[t->unknown % HISTORY_REPOS];
	int r;

	r = history_learn_repo(t->h, &t->ask->peer, t->unknown, repo);
	t->has_first = t->has_first || t->unknown == 0;
	return r;
}

static void history_begin_time(struct history_question *q)
{
	q->telling.until_ns = SYS(q->h->cfg.sys, now_mono) + TURN_NS;
}

/* All rows between AFTER and BEFORE, from the journal. */
static int history_scan_range(struct history_question *q, uint64_t after,
    uint64_t before)
{
	struct history_slice slice = { .q = q };
	bool more;
	int r;

	do {
		slice.nr = 0;
		r = journal_read(q->h->reader, after, before, q->down,
		    SLICE_ROWS, slice_row, &slice);
		if (slice.nr > 0 && q->down)
			before = slice.last;
		else if (slice.nr > 0)
			after = slice.last;
		more = slice.nr == SLICE_ROWS;
		if (r == HISTORY_LEARN) {
			more = true;
			r = learn_repo(&q->telling);
		}
	} while (r == 0 && more);
	return r;
}

/* ---- by the index ---- */

/*
 * Rows by the index: segment by segment, row by row, in order.
 *
 * Failure modes:
 *	a pattern that may match very many	the rows of a segment are read
 *	names					instead; this can stop anywhere
 *	the index fails				see history_answer.c
 */

/* If the index finds nothing in time, the rows get a time of their own: the
 * next turn would begin with the same search. */
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
		r = history_scan_range(q, lsn - 1, lsn + 1);
	if (r != 0 || found == 0)
		return r;
	if (found == -EINTR) {
		history_begin_time(q);
		return history_scan_range(q, after, before);
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

static int read_indexed(struct history_question *q, uint64_t after,
    uint64_t before)
{
	const struct refd_selection *s = q->select;
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
		return history_scan_range(q, after, before);
	q->is_index_bad = r < 0;
	if (r == 0)
		r = history_find_range(q, after, before);
	journal_index_search_done(q->h->index);
	return r;
}

static int read_all(struct history_question *q)
{
	uint64_t edge = history_indexed(q->h);
	uint64_t low_end = edge + 1 < q->before ? edge + 1 : q->before;
	uint64_t high_begin = edge > q->after ? edge : q->after;
	int r = 0;

	if (q->down)
		r = history_scan_range(q, high_begin, q->before);
	if (r == 0 && q->after < edge) {
		r = read_indexed(q, q->after, low_end);
		if (r < 0 && q->is_index_bad) {
			history_index_failed(q->h, r);
			return HISTORY_STOP;
		}
	}
	if (r == 0 && !q->down)
		r = history_scan_range(q, high_begin, q->before);
	return r;
}

static int note_lsn(void *arg, const struct journal_row *row)
{
	struct history_question *q = arg;
	uint64_t *grown;

	if (row->lsn <= q->after || row->lsn >= q->before)
		return 0;
	grown = array_room(q->lsns, q->nr_lsns, &q->lsns_size, sizeof(*grown));
	if (grown == NULL)
		return -ENOMEM;
	q->lsns = grown;
	q->lsns[q->nr_lsns++] = row->lsn;
	return 0;
}

static int read_txn(struct history_question *q)
{
	uint64_t lsn;
	size_t i;
	int r;

	r = journal_lookup(q->h->reader, JOURNAL_ANY_UID, &q->ask->req.txid,
	    note_lsn, q);
	for (i = 0; i < q->nr_lsns && r == 0; i++) {
		lsn = q->lsns[q->down ? q->nr_lsns - 1 - i : i];
		r = history_scan_range(q, lsn - 1, lsn + 1);
	}
	return r;
}

/* ---- bounds ---- */

/* The last row up to VISIBLE. A position must be the LSN of a row: any other
 * number would not last. */
static int last_row(struct history *h, uint64_t visible, uint64_t *last)
{
	int r;

	r = journal_last_between(h->reader, h->trimmed, visible + 1, last);
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
	    memcmp(s->journal, journal_uuid(q->h->cfg.journal),
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
	    s->after.lsn > journal_last_lsn(q->h->cfg.journal)) {
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
	memcpy(ans->journal, journal_uuid(h->cfg.journal),
	    sizeof(ans->journal));
	ans->arena = refd_arena_new();
	return ans->arena != NULL;
}

static uint64_t note_trimmed(struct history *h)
{
	uint64_t trimmed = journal_trimmed(h->cfg.journal);

	if (trimmed > h->trimmed)
		h->trimmed = trimmed;
	return h->trimmed;
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

/* Where to go on when everything was looked at. */
static void set_end(struct history_question *q, uint64_t last)
{
	struct refd_position *next = &q->telling.ans->next;

	if (q->down)
		*next = (struct refd_position){ q->after + 1, 0 };
	else if (last > next->lsn)
		*next = (struct refd_position){ last, 0 };
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
		r = read_all(q);
	if (r == JOURNAL_UNKNOWN)
		return -EIO;
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

/* A waiting watch continues from here. */
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
	if (q != NULL)
		free(q->lsns);
	free(q);
}

bool history_answer(struct history *h, struct store_question *ask,
    uint64_t visible)
{
	struct history_question *q = calloc(1, sizeof(*q));
	struct refd_answer *ans = &ask->answer;
	int r = -ENOMEM;

	note_trimmed(h);
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
	free_question(q);
	if (r == -ESTALE)
		question_refuse(ask, REFD_NOREPO,
		    "the daemon sees another directory at this path");
	else if (r == -ENOMEM)
		question_refuse(ask, BUSY(MEMORY));
	else if (r != 0)
		question_refuse(ask, REFD_IO, "the journal could not be read");
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
