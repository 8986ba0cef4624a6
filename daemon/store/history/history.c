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
