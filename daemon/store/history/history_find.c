/*
 * Rows by the index: from keys to LSNs, in order.
 *
 * Happy path, segment by segment: for few keys, some LSNs of each key at a
 * time, merged; for patterns, the LSNs of all matching names; then row by row.
 *
 * Failure modes:
 *	a pattern that may match very many	the rows of a segment are read
 *	names					instead; this can stop anywhere
 *	the index fails				see history_answer.c
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/history/history_internal.h"
#include "proto/pattern.h"

#define FIND_MAX 1024 /* LSNs of a key at once */

/* ---- LSNs ---- */

static int one_row(void *arg, const struct journal_row *row)
{
	return history_look_at(arg, row);
}

int history_add_lsn(struct history_question *q, uint64_t lsn)
{
	size_t size = q->lsns_size == 0 ? FIND_MAX : 2 * q->lsns_size;
	uint64_t *grown;

	if (q->nr_lsns == q->lsns_size) {
		grown = reallocarray(q->lsns, size, sizeof(*grown));
		if (grown == NULL)
			return -ENOMEM;
		q->lsns = grown;
		q->lsns_size = size;
	}
	q->lsns[q->nr_lsns++] = lsn;
	return 0;
}

static int compare_up(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int compare_down(const void *a, const void *b)
{
	return compare_up(b, a);
}

int history_look_at_found(struct history_question *q)
{
	uint64_t lsn, last = 0;
	size_t i;
	int r = 0;

	if (q->nr_lsns == 0)
		return 0;
	qsort(q->lsns, q->nr_lsns, sizeof(*q->lsns),
	    q->down ? compare_down : compare_up);
	for (i = 0; i < q->nr_lsns && r == 0; i++) {
		lsn = q->lsns[i];
		if (lsn != last)
			r = journal_read(q->h->reader, lsn - 1, lsn + 1,
			    q->down, 1, one_row, q);
		last = lsn;
	}
	q->nr_lsns = 0;
	return r;
}

/* Cuts the result at HORIZON: beyond, the LSNs of the longest key are not all
 * known. */
static void cut_at(struct history_question *q, uint64_t horizon)
{
	size_t i, nr = 0;

	for (i = 0; i < q->nr_lsns; i++)
		if (q->down ? q->lsns[i] >= horizon : q->lsns[i] <= horizon)
			q->lsns[nr++] = q->lsns[i];
	q->nr_lsns = nr;
}

/* Some LSNs of all keys within a segment. *HORIZON: complete up to here; 0: to
 * the end of the segment. */
static int find_some(struct history_question *q, uint64_t after,
    uint64_t before, uint64_t *horizon)
{
	uint64_t lsns[FIND_MAX], last;
	size_t i, k, nr = 0;
	int r = 0;

	*horizon = 0;
	for (i = 0; i < q->nr_keys && r == 0; i++) {
		r = journal_index_find(q->h->index, &q->keys[i], after, before,
		    q->down, lsns, FIND_MAX, &nr);
		q->is_index_bad = r < 0;
		for (k = 0; k < nr && r == 0; k++)
			r = history_add_lsn(q, lsns[k]);
		if (r != 0 || nr < FIND_MAX)
			continue;
		last = lsns[nr - 1];
		if (*horizon == 0 ||
		    (q->down ? last > *horizon : last < *horizon))
			*horizon = last;
	}
	if (r == 0 && *horizon != 0)
		cut_at(q, *horizon);
	return r;
}

static int find_by_keys(struct history_question *q, uint64_t after,
    uint64_t before)
{
	uint64_t horizon;
	int r;

	do {
		r = find_some(q, after, before, &horizon);
		if (r < 0)
			return r;
		r = history_look_at_found(q);
		if (q->down)
			before = horizon;
		else
			after = horizon;
	} while (r == 0 && horizon != 0);
	return r;
}

/* ---- patterns ---- */

struct matching {
	struct history_question *q;
	const char *pattern;
	size_t literal;
};

static int match_name(void *arg, const char *rest, size_t len, uint64_t lsn)
{
	struct matching *m = arg;
	uint64_t at = lsn % JOURNAL_INDEX_SEGMENT;
	char name[JOURNAL_KEY_MAX + REFD_REFNAME_MAX + 1];

	if (history_look_at_time(m->q) != 0)
		return HISTORY_STOP;
	memcpy(name, m->pattern, m->literal);
	memcpy(name + m->literal, rest, len);
	name[m->literal + len] = '\0';
	if (refd_pattern_matches(m->pattern, name))
		m->q->meant[at / 64] |= UINT64_C(1) << at % 64;
	return 0;
}

/* HISTORY_STOP: there is too much to go through in a turn. */
static int match_all(struct history_question *q, uint64_t after,
    uint64_t before)
{
	struct matching m = { .q = q };
	struct journal_key key;
	size_t i;
	int r = 0;

	memset(q->meant, 0, sizeof(q->meant));
	for (i = 0; i < q->select->nr_patterns && r == 0; i++) {
		m.pattern = q->select->patterns[i];
		m.literal = refd_pattern_literal(m.pattern);
		journal_index_key_ref(&key, q->ask->repo, m.pattern, m.literal);
		r = journal_index_each(q->h->index, &key, after, before,
		    match_name, &m);
	}
	q->is_index_bad = r < 0;
	return r;
}

static int look_at_meant(struct history_question *q, uint64_t after,
    uint64_t before)
{
	uint64_t lsn, at, word;
	int r = 0;

	for (lsn = q->down ? before - 1 : after + 1;
	    lsn > after && lsn < before && r == 0; lsn += q->down ? -1 : 1) {
		at = lsn % JOURNAL_INDEX_SEGMENT;
		word = q->meant[at / 64];
		if (word == 0)
			lsn = q->down ? lsn & ~UINT64_C(63) : lsn | 63;
		else if (word >> at % 64 & 1)
			r = journal_read(q->h->reader, lsn - 1, lsn + 1,
			    q->down, 1, one_row, q);
	}
	return r;
}

/* With very many names, reading the rows is faster. In the first segment of a
 * turn the names have a time limit of their own: the next turn would begin with
 * the same names. */
static int find_by_pattern(struct history_question *q, uint64_t after,
    uint64_t before)
{
	bool is_first = !q->has_matched;
	int r;

	q->has_matched = true;
	r = match_all(q, after, before);
	if (r < 0 || (r == HISTORY_STOP && !is_first))
		return r;
	if (is_first)
		history_begin_time(q);
	return r == 0 ? look_at_meant(q, after, before) :
			history_scan_range(q, after, before);
}

/* ---- all of it ---- */

/* Indexed rows between AFTER and BEFORE, segment by segment. */
int history_find_range(struct history_question *q, uint64_t after,
    uint64_t before)
{
	const uint64_t bits = JOURNAL_INDEX_SEGMENT_BITS;
	uint64_t from, to;
	int r = 0;

	while (r == 0 && after + 1 < before) {
		from = after;
		to = before;
		if (q->down) {
			if ((before - 1) >> bits << bits > after + 1)
				from = ((before - 1) >> bits << bits) - 1;
			before = from + 1;
		} else {
			if ((((after + 1) >> bits) + 1) << bits < before)
				to = (((after + 1) >> bits) + 1) << bits;
			after = to - 1;
		}
		r = q->by_pattern ? find_by_pattern(q, from, to) :
				    find_by_keys(q, from, to);
		if (r == 0) {
			q->telling.ans->next.lsn = q->down ? from + 1 : to - 1;
			q->telling.ans->next.nr = 0;
			r = history_look_at_time(q);
		}
	}
	return r;
}

/* ---- which keys ---- */

void history_choose_keys(struct history_question *q)
{
	const struct refd_selection *s = q->select;
	size_t i;

	for (i = 0; i < s->nr_patterns; i++)
		if (!refd_pattern_is_name(s->patterns[i]))
			q->by_pattern = true;
	if (q->by_pattern)
		return;
	for (i = 0; i < s->nr_patterns; i++)
		journal_index_key_ref(&q->keys[q->nr_keys++], q->ask->repo,
		    s->patterns[i], strlen(s->patterns[i]));
	if (s->nr_patterns > 0)
		return;
	if (q->ask->req.git_dir != NULL) {
		journal_index_key_repo(&q->keys[q->nr_keys++], q->ask->repo);
		return;
	}
	if (s->has_uid)
		journal_index_key_uid(&q->keys[q->nr_keys++], s->uid);
	if (s->user != NULL)
		journal_index_key_user(&q->keys[q->nr_keys++], s->user,
		    strlen(s->user));
}
