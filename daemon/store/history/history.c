/*
 * History's connections to the journal and to the index.
 *
 * Failures: if the index cannot be opened, no question can be answered, and the
 * next attempt follows after a while. If the index cannot be written, as on a
 * full disk, what it has is still told.
 */
#include <errno.h>
#include <stdlib.h>

#include "daemon/store/history/history_internal.h"

#define INDEX_RETRY_NS (1000000000LL)

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
	int r;

	if (h->index != NULL)
		return h->index;
	now_ns = SYS(h->cfg.sys, now_mono);
	if (now_ns < h->index_retry_ns)
		return NULL;
	r = journal_index_open(h->cfg.sys, h->cfg.dir, h->cfg.journal,
	    &h->index);
	if (r != 0) {
		h->index = NULL;
		h->index_error = r;
		/* Memory may be there at the next call. */
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
		h->index_retry_ns = SYS(h->cfg.sys, now_mono) + INDEX_RETRY_NS;
	}
	h->index = NULL;
}

uint64_t history_indexed(const struct history *h)
{
	uint64_t last;

	if (h->index == NULL)
		return 0;
	last = journal_index_last(h->index);
	return last > h->trimmed ? last : h->trimmed;
}
