/*
 * Maintains history: opens journal and index, indexes new rows, deletes old
 * rows.
 *
 * Happy path, some rows at a time:
 *	index	the keys of new rows, before a question and now and then. Each
 *		new row is compared with all watches, and a watch that the row
 *		may concern is answered like a new question. The row's digest
 *		extends the chain
 *	trim	forgotten rows, which no recovery needs, beyond the retention by
 *		age or size: the journal deletes the rows, and keeps the younger
 *		ids; then the keys of the rows are deleted from the index
 *
 * Failure modes:
 *	the index cannot be opened	another attempt after a while; until
 *					then no question can be answered
 *	... cannot be written		the index stays behind; another attempt.
 *					Indexed rows are still told. Rows that
 *					are not indexed do not count in the size
 *	... is damaged			the index is begun anew
 *	the journal cannot be read	the index stays behind, as above
 *	a damaged row			the index has the row for every
 *					question, so that an answer never passes
 *					over the row in silence. The chain ends
 *					before the row
 *	comparing takes too long, with	the remaining watches are answered like
 *	many watches and patterns	new questions, in their own turns
 *	a crash between the two		trimmed rows come back and are trimmed
 *					again; keys without rows find nothing
 *	the wall clock is set back	rows are kept longer
 *	... or forward			the retention follows slowly (CATCH_UP),
 *					so that a wrong clock, soon corrected,
 *					deletes next to nothing
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/history/history_internal.h"

/* Until another attempt to open the index. */
#define INDEX_RETRY_NS (1000 * 1000000LL)
#define INDEX_ROWS     500
#define INDEX_NS       (5 * 1000000LL)
#define TRIM_ROWS      100
/* Ids are kept longer than promised, so the wall clock may be set back by this
 * much before an old id counts as new. */
#define MARGIN_MS (3600 * 1000LL)
/* A wrong clock would delete all history at once, so the retention believes the
 * wall clock only as far as time really passed, times this number. A daemon
 * that rested for a month has trimmed a month after a day or two, and a clock
 * that is a month ahead for three seconds costs a minute of history. */
#define CATCH_UP 24
/* The size of a row beside its body: columns, the index by id, half-full
 * pages. */
#define ROW_BYTES 150
/* Bytes of bodies; a larger body goes alone. */
#define TRIM_BYTES (256 * 1024)

/* ---- opening ---- */

struct history *history_new(const struct store_parts *cfg)
{
	struct history *h = calloc(1, sizeof(*h));

	if (h != NULL)
		h->cfg = cfg;
	return h;
}

void history_free(struct history *h)
{
	if (h == NULL)
		return;
	journal_index_close(h->index);
	journal_reader_close(h->reader);
	free(h);
}

int history_open_reader(struct history *h)
{
	return h->reader != NULL ?
	    0 :
	    journal_reader_open(h->cfg->journal, &h->reader);
}

/* NULL: there is none now. */
static struct journal_index *open_index(struct history *h)
{
	int64_t now_ns;
	int r;

	if (h->index != NULL)
		return h->index;
	now_ns = SYS(h->cfg->sys, now_mono);
	if (now_ns < h->index_retry_ns)
		return NULL;
	r = journal_index_open(h->cfg->sys, h->cfg->state_dir, h->cfg->journal,
	    &h->index);
	if (r != 0) {
		h->index = NULL;
		h->index_error = r;
		/* Memory may be there at the next call, so that call tries
		 * again. */
		if (r != -ENOMEM)
			h->index_retry_ns = now_ns + INDEX_RETRY_NS;
	}
	return h->index;
}

void history_index_failed(struct history *h, int r)
{
	h->index_error = r;
	if (r == -ENOMEM || r == -ENOSPC)
		return;
	if (r == -EBADMSG) {
		journal_index_discard(h->index);
	} else {
		journal_index_close(h->index);
		h->index_retry_ns = SYS(h->cfg->sys, now_mono) + INDEX_RETRY_NS;
	}
	h->index = NULL;
}

uint64_t history_note_trimmed(struct history *h)
{
	uint64_t trimmed = journal_trimmed(h->cfg->journal);

	if (trimmed > h->trimmed)
		h->trimmed = trimmed;
	return h->trimmed;
}

const struct journal_chain *history_chain(const struct history *h)
{
	return h->index != NULL ? journal_index_chain(h->index) : NULL;
}

uint64_t history_indexed(const struct history *h)
{
	uint64_t last;

	if (h->index == NULL)
		return 0;
	last = journal_index_last(h->index);
	return last > h->trimmed ? last : h->trimmed;
}

/* ---- the index ---- */

struct indexing {
	struct history *h;
	struct journal_index *index;
	struct history_watches *watches;
	int64_t until_ns;
	struct journal_row last; /* its head */
	struct journal_chain chain;
	bool is_chained; /* the chain has all rows before */
	unsigned nr;
	bool is_index_bad; /* the error is of the index, not of the journal */
};

static bool is_late(const struct indexing *in)
{
	return SYS(in->h->cfg->sys, now_mono) > in->until_ns;
}

/* Most rows do not concern most watches, so the cheap comparisons come
 * first. */
static bool may_concern(const struct indexing *in,
    const struct store_question *ask, const struct journal_row *row,
    const struct record *rec)
{
	if (ask->req.select.after.lsn >= row->lsn)
		return false;
	/* The path had no history, so this row may begin it. */
	if (ask->req.git_dir != NULL && ask->repo == 0)
		return row->repo != 0;
	return history_wants_row(in->h, ask, row) &&
	    (is_late(in) || history_wants_record(&ask->req.select, row, rec));
}

static void tell_watches(const struct indexing *in,
    const struct journal_row *row, const struct record *rec)
{
	struct store_question *ask, *next;

	for (ask = in->watches->list; ask != NULL; ask = next) {
		next = ask->next;
		if (may_concern(in, ask, row, rec))
			in->watches->concern(in->watches->arg, ask);
	}
}

/* By the whole value of an identity, and by its first word. */
static int add_user(struct indexing *in, const struct journal_row *row,
    const char *value)
{
	size_t len = strlen(value), word = strcspn(value, " ");
	int r;

	r = journal_index_add_user(in->index, row, value, len);
	if (r != 0 || word == len)
		return r;
	return journal_index_add_user(in->index, row, value, word);
}

static int add_members(struct indexing *in, const struct journal_row *row,
    const struct record *rec)
{
	char buf[HISTORY_NAME_MAX];
	const char *name;
	size_t i;
	int r = 0;

	for (i = 0; i < rec->nr_identities && r == 0; i++)
		r = add_user(in, row, rec->identities[i].value);
	for (i = 0; i < rec->nr_members && r == 0; i++) {
		name = history_name(&rec->members[i], buf);
		if (name != NULL)
			r = journal_index_add_ref(in->index, row, name);
	}
	return r;
}

/* A row with nothing to tell of needs no entry. */
static int index_row(struct indexing *in, const struct journal_row *row)
{
	struct record rec;
	int r;

	r = record_decode(row->body, row->len, &rec);
	if (r == -EBADMSG)
		return journal_index_add_damaged(in->index, row->lsn);
	if (r != 0)
		return r;
	r = journal_index_add(in->index, row, ROW_BYTES + row->len);
	if (r == 0)
		r = add_members(in, row, &rec);
	if (r == 0)
		tell_watches(in, row, &rec);
	record_done(&rec);
	return r;
}

static int index_one(void *arg, const struct journal_row *row)
{
	struct indexing *in = arg;
	int r = 0;

	if (row->kind == JOURNAL_SLICE || row->kind == JOURNAL_ABORT)
		r = index_row(in, row);
	in->is_index_bad = r != 0;
	if (r != 0)
		return r;
	if (in->is_chained)
		journal_chain_add(&in->chain, row);
	in->last = *row;
	in->nr++;
	return is_late(in) ? HISTORY_STOP : 0;
}

/* The row after LSN cannot be read, but later rows can. So the index notes the
 * damaged row alone, and goes on behind it. */
static int index_damaged(struct indexing *in, uint64_t lsn, uint64_t visible)
{
	struct journal_row row = { .lsn = 0 };
	uint64_t last;
	int r;

	r = journal_ends_between(in->h->reader, lsn, visible + 1, &row.lsn,
	    &last);
	/* Trimmed meanwhile. */
	if (r == 0 && row.lsn == 0)
		r = -EAGAIN;
	if (r == 0) {
		r = journal_index_add_damaged(in->index, row.lsn);
		in->is_index_bad = r != 0;
	}
	in->last = row;
	in->nr = INDEX_ROWS;
	return r;
}

/* The chain goes on behind the row FROM. If the rows up to FROM are trimmed,
 * the chain begins there, because the journal has the digest of the trimmed
 * rows. */
static int begin_chain(struct indexing *in, uint64_t from)
{
	int r = 0;

	in->chain = *journal_index_chain(in->index);
	if (in->chain.lsn < from && from == in->h->trimmed)
		r = journal_chain_start(in->h->reader, &in->chain);
	in->is_chained = in->chain.lsn == from;
	return r > 0 ? -EAGAIN : r;
}

/* 1: there are more. */
static int index_some(struct indexing *in, uint64_t from, uint64_t visible)
{
	bool more;
	int r;

	r = journal_index_begin(in->index);
	in->is_index_bad = r != 0;
	if (r != 0)
		return r;
	r = journal_read(in->h->reader, from, visible + 1, false, INDEX_ROWS,
	    index_one, in);
	more = r == HISTORY_STOP || in->nr == INDEX_ROWS;
	if (r == -EUCLEAN) {
		more = true;
		r = index_damaged(in, in->nr > 0 ? in->last.lsn : from,
		    visible);
	}
	if ((r == 0 || r == HISTORY_STOP) && in->nr > 0) {
		r = journal_index_end(in->index, &in->last, &in->chain);
		in->is_index_bad = r != 0;
		return r != 0 ? r : more;
	}
	journal_index_cancel(in->index);
	return r == JOURNAL_UNKNOWN ? -EAGAIN : r;
}

int history_index(struct history *h, uint64_t visible,
    struct history_watches *watches)
{
	struct indexing in = { .h = h, .watches = watches };
	uint64_t from;
	int r;

	h->is_journal_bad = false;
	in.index = open_index(h);
	if (in.index == NULL)
		return h->index_error;
	r = history_open_reader(h);
	if (r != 0)
		return r < 0 ? r : -EAGAIN;
	history_note_trimmed(h);
	from = history_indexed(h);
	if (from >= visible)
		return 0;
	in.until_ns = SYS(h->cfg->sys, now_mono) + INDEX_NS;
	r = begin_chain(&in, from);
	if (r == 0)
		r = index_some(&in, from, visible);
	if (r == -EAGAIN)
		return r;
	h->is_journal_bad = r < 0 && !in.is_index_bad;
	if (in.is_index_bad)
		history_index_failed(h, r);
	else
		h->index_error = r < 0 ? r : 0;
	return r == -EBADMSG && in.is_index_bad ? 1 : r;
}

/* ---- trimming ---- */

struct trimming {
	struct history *h;
	int64_t before_us;   /* older rows go */
	uint64_t horizon_ms; /* ids born earlier have expired */
	bool is_too_much;    /* trim whatever the age */
	struct journal_chain upto;
	struct journal_row keep[TRIM_ROWS]; /* bodies are owned */
	size_t nr;
	size_t bytes;
};

/* The id may still be queried, so this keeps the parts for a look-up. */
static int keep_id(struct trimming *t, const struct journal_row *row)
{
	struct journal_row *kept = &t->keep[t->nr];
	struct record rec;
	int r;

	r = record_decode(row->body, row->len, &rec);
	if (r != 0)
		return r;
	record_strip(&rec);
	*kept = *row;
	kept->body = record_encode(&rec, &kept->len);
	record_done(&rec);
	if (kept->body == NULL)
		return -ENOMEM;
	t->nr++;
	return 0;
}

static int trim_one(void *arg, const struct journal_row *row)
{
	struct trimming *t = arg;
	int r = 0;

	if (row->time_us >= t->before_us && !t->is_too_much)
		return HISTORY_STOP;
	if (refd_txid_birth_ms(&row->txid) >= t->horizon_ms &&
	    (row->kind == JOURNAL_SLICE || row->kind == JOURNAL_ABORT))
		r = keep_id(t, row);
	if (r != 0)
		return r;
	journal_chain_add(&t->upto, row);
	t->bytes += row->len;
	return t->bytes > TRIM_BYTES ? HISTORY_STOP : 0;
}

static struct refd_txid born_at(uint64_t ms)
{
	struct refd_txid id = { 0 };
	unsigned i;

	for (i = 0; i < 6; i++)
		id.bytes[i] = (uint8_t)(ms >> (8 * (5 - i)));
	return id;
}

/* The ids of trimmed rows stay for their time, and may be many. So only rows
 * count, because otherwise ids would take the place of all history. Without an
 * index, the size is not known, so nothing is trimmed by size. */
static int history_bytes(struct history *h, uint64_t *bytes)
{
	struct journal_index *index = open_index(h);
	int r;

	if (index == NULL)
		return -ENOENT;
	r = journal_index_bytes(index, bytes);
	if (r < 0)
		history_index_failed(h, r);
	return r;
}

static int note_time(void *arg, const struct journal_row *row)
{
	*(int64_t *)arg = row->time_us / 1000;
	return 0;
}

/* When the last row was made; NOW_MS without rows, because there is nothing to
 * trim yet. */
static int64_t last_row_ms(struct history *h, int64_t now_ms)
{
	uint64_t last = journal_last_lsn(h->cfg->journal);
	int64_t ms = now_ms;

	if (last > 0)
		journal_read(h->reader, last - 1, last + 1, false, 1, note_time,
		    &ms);
	return ms;
}

/* The clock can be wrong from the start, so the daemon at first believes the
 * time of the last row. */
static int64_t believed_ms(struct history *h)
{
	int64_t wall_ms = SYS(h->cfg->sys, now_wall) / 1000000;
	int64_t mono_ms = SYS(h->cfg->sys, now_mono) / 1000000;

	if (h->believed_ms == 0)
		h->believed_ms = last_row_ms(h, wall_ms);
	else
		h->believed_ms += CATCH_UP * (mono_ms - h->believed_at_ms);
	h->believed_at_ms = mono_ms;
	if (h->believed_ms > wall_ms)
		h->believed_ms = wall_ms;
	h->ahead_ms = wall_ms - h->believed_ms;
	return h->believed_ms;
}

int64_t history_clock_ahead_ms(const struct history *h)
{
	return h->cfg->config->retention_ms > 0 ? h->ahead_ms : 0;
}

static void set_limits(struct trimming *t)
{
	const struct store_config *config = t->h->cfg->config;
	int64_t now_ms = believed_ms(t->h), horizon_ms = 0;
	uint64_t used = 0;

	if (config->retention_ms > 0 && config->retention_ms < now_ms)
		horizon_ms = now_ms - config->retention_ms;
	t->before_us = horizon_ms * 1000;
	if (horizon_ms > MARGIN_MS)
		t->horizon_ms = (uint64_t)(horizon_ms - MARGIN_MS);
	if (config->retention_bytes > 0 && history_bytes(t->h, &used) == 0)
		t->is_too_much = used > config->retention_bytes;
}

static int trim_journal(struct trimming *t)
{
	struct history *h = t->h;
	uint64_t from = journal_trimmed(h->cfg->journal);
	struct refd_txid expired = born_at(t->horizon_ms);
	int r;

	r = journal_chain_start(h->reader, &t->upto);
	if (r == 0)
		r = journal_read(h->reader, from,
		    journal_forgotten(h->cfg->journal) + 1, false, TRIM_ROWS,
		    trim_one, t);
	if (r == JOURNAL_UNKNOWN || r < 0)
		return r < 0 ? 0 : r;
	if (t->upto.lsn == from)
		return 0;
	r = journal_trim(h->cfg->journal, &t->upto, t->keep, t->nr, &expired);
	if (r == 0)
		history_note_trimmed(h);
	return r == 0 ? HISTORY_STOP : r < 0 ? 0 : r;
}

static int trim_index(struct history *h)
{
	struct journal_index *index = open_index(h);
	int r;

	if (index == NULL || h->trimmed == 0)
		return 0;
	r = journal_index_trim(index, h->trimmed);
	if (r < 0)
		history_index_failed(h, r);
	return r > 0;
}

int history_trim(struct history *h)
{
	struct trimming *t = calloc(1, sizeof(*t));
	size_t i;
	int r = 0;

	if (t != NULL && history_open_reader(h) == 0) {
		t->h = h;
		set_limits(t);
		r = trim_journal(t);
	}
	for (i = 0; t != NULL && i < t->nr; i++)
		free((void *)(uintptr_t)t->keep[i].body);
	free(t);
	if (r == JOURNAL_UNKNOWN)
		return r;
	/* Not 1, because 1 is JOURNAL_UNKNOWN. */
	return trim_index(h) || r == HISTORY_STOP ? HISTORY_MORE : 0;
}
