/*
 * History's connections to the journal and to the index. Making and freeing
 * questions.
 *
 * Failures: if the index cannot be opened, the next attempt follows after a
 * while; until then all rows are read from the journal.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/history/history_internal.h"

#define INDEX_RETRY_NS (10 * 1000000000LL)

struct history *history_new(const struct history_config *cfg)
{
	struct history *h = calloc(1, sizeof(*h));

	if (h != NULL)
		h->cfg = *cfg;
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
	    journal_reader_open(h->cfg.journal, &h->reader);
}

struct journal_index *history_open_index(struct history *h)
{
	int64_t now_ns;
	bool anew;

	if (h->index != NULL)
		return h->index;
	now_ns = SYS(h->cfg.sys, now_mono);
	if (now_ns < h->index_retry_ns)
		return NULL;
	if (journal_index_open(h->cfg.sys, h->cfg.dir, h->cfg.journal,
		&h->index, &anew) != 0) {
		h->index = NULL;
		h->index_retry_ns = now_ns + INDEX_RETRY_NS;
	}
	return h->index;
}

void history_index_failed(struct history *h, int r)
{
	if (r == -EBADMSG) {
		journal_index_discard(h->index);
	} else {
		journal_index_close(h->index);
		h->index_retry_ns = SYS(h->cfg.sys, now_mono) + INDEX_RETRY_NS;
	}
	h->index = NULL;
}

uint64_t history_indexed(const struct history *h)
{
	return h->index != NULL ? journal_index_last(h->index) : 0;
}

/* ---- watches ---- */

/*
 * Ends watches when new rows arrive.
 *
 * Happy path: each new row is read and decoded once, and compared with all
 * watches. A watch that the row may concern is answered like a new question.
 *
 * If this takes too long, with many watches and many patterns, the remaining
 * watches become questions of their own, in their own turns.
 */

#define SLICE_ROWS 256
#define TURN_NS    (5 * 1000000LL)

struct listening {
	struct history *h;
	struct store_question **list;
	void (*cb)(void *arg, struct store_question *ask);
	void *arg;
	int64_t until_ns; /* monotonic */
	unsigned nr;
	uint64_t last;
};

static bool is_late(const struct listening *l)
{
	return SYS(l->h->cfg.sys, now_mono) > l->until_ns;
}

/* Cheap things first: most rows are not for most of them. */
static bool may_concern(const struct listening *l,
    const struct store_question *ask, const struct journal_row *row,
    const struct record *rec)
{
	if (ask->req.select.after.lsn >= row->lsn)
		return false;
	/* The path had no history: this row may begin its history. */
	if (ask->req.git_dir != NULL && ask->repo == 0)
		return row->repo != 0;
	return history_wants_row(l->h, ask, row) &&
	    (is_late(l) || history_wants_record(&ask->req.select, row, rec));
}

static int listen_to(void *arg, const struct journal_row *row)
{
	struct listening *l = arg;
	struct store_question *ask, *next;
	struct record rec;
	int r;

	l->nr++;
	l->last = row->lsn;
	if (row->kind != JOURNAL_SLICE && row->kind != JOURNAL_ABORT)
		return 0;
	r = record_decode(row->body, row->len, &rec);
	if (r < 0)
		return r;
	for (ask = *l->list; ask != NULL; ask = next) {
		next = ask->next;
		if (may_concern(l, ask, row, &rec))
			l->cb(l->arg, ask);
	}
	record_done(&rec);
	return is_late(l) ? HISTORY_STOP : 0;
}

int history_listen(struct history *h, uint64_t *heard, uint64_t visible,
    struct store_question **list,
    void (*cb)(void *arg, struct store_question *), void *arg)
{
	struct listening l = { .h = h,
		.list = list,
		.cb = cb,
		.arg = arg,
		.until_ns = SYS(h->cfg.sys, now_mono) + TURN_NS,
		.nr = SLICE_ROWS,
		.last = *heard };
	int r;

	r = history_open_reader(h);
	while (r == 0 && l.nr == SLICE_ROWS) {
		l.nr = 0;
		r = journal_read(h->reader, l.last, visible + 1, false,
		    SLICE_ROWS, listen_to, &l);
	}
	*heard = r == 0 ? visible : l.last;
	return r == HISTORY_STOP ? 0 : r > 0 ? -EIO : r;
}
