/*
 * The index of history: the rows of the journal by repository, ref and user. A
 * separate database beside the journal ("history.db"), made from the journal
 * and useless without. A missing or damaged index, or an index of another
 * journal or ahead of this journal, is begun anew, empty.
 *
 * The index gives hints: the caller must check the rows. But a row without an
 * entry is not found. The index is complete up to journal_index_last().
 *
 * One thread; every call may block, but none for long. 0 or a negative errno;
 * -EBADMSG: damaged, to be closed and made anew. Nothing logs.
 */
#ifndef STORE_JOURNAL_INDEX_H
#define STORE_JOURNAL_INDEX_H

#include "daemon/store/journal/journal.h"

struct journal_index;

/* The keys of this many LSNs (as bits) lie side by side. So a growing index
 * writes few pages, trimming frees whole pages, and results come in the order
 * of the journal, except within a segment. */
#define JOURNAL_INDEX_SEGMENT_BITS 16
#define JOURNAL_INDEX_SEGMENT      (UINT64_C(1) << JOURNAL_INDEX_SEGMENT_BITS)

/*
 * DIR is the state directory with the journal J. The last indexed row must be
 * in J, by LSN and id. *ANEW: the index is empty, since no usable index
 * existed.
 */
int journal_index_open(const struct sys *sys, const char *dir,
    struct journal *j, struct journal_index **index, bool *anew);
void journal_index_close(struct journal_index *index);
/* Also removes the files. */
void journal_index_discard(struct journal_index *index);
uint64_t journal_index_last(const struct journal_index *index);

/* ---- keys ---- */

#define JOURNAL_KEY_MAX 1100

struct journal_key {
	uint8_t bytes[JOURNAL_KEY_MAX];
	size_t len;
};

void journal_index_key_repo(struct journal_key *key, uint64_t repo);
void journal_index_key_uid(struct journal_key *key, uint32_t uid);
/* LEN bytes of an identity. */
void journal_index_key_user(struct journal_key *key, const char *user,
    size_t len);
/* LEN bytes of a ref's name: in REPO, or, for 0, in any repository. Each ref
 * has a key of both kinds, so the cost of a query does not grow with the number
 * of repositories. */
void journal_index_key_ref(struct journal_key *key, uint64_t repo,
    const char *name, size_t len);

/* ---- writing, some rows at a time ---- */

int journal_index_begin(struct journal_index *index);
int journal_index_add(struct journal_index *index,
    const struct journal_key *key, uint64_t lsn);
/* Adds a row's time, for journal_index_between(), and its size in the
 * journal. */
int journal_index_span(struct journal_index *index, uint64_t lsn,
    int64_t time_us, uint64_t bytes);
/* All rows up to ROW are indexed now. */
int journal_index_end(struct journal_index *index,
    const struct journal_row *row);
void journal_index_cancel(struct journal_index *index);
/* Takes some keys of rows up to LSN out. 1: there are more. */
int journal_index_trim(struct journal_index *index, uint64_t lsn);
/* The size of all rows together; some of the oldest may be trimmed already. */
int journal_index_bytes(struct journal_index *index, uint64_t *bytes);

/* ---- looking up ---- */

/* At most MAX LSNs with KEY, AFTER < lsn < BEFORE, within one segment, or
 * beyond its ends; ascending, or (DOWN) descending. *NR: how many. */
int journal_index_find(struct journal_index *index,
    const struct journal_key *key, uint64_t after, uint64_t before, bool down,
    uint64_t *lsns, size_t max, size_t *nr);
/* The same for all keys that begin with KEY, in any order. CB gets the rest of
 * each key (not terminated); its non-zero result ends the search and is
 * returned. */
int journal_index_each(struct journal_index *index,
    const struct journal_key *key, uint64_t after, uint64_t before,
    int (*cb)(void *arg, const char *rest, size_t len, uint64_t lsn),
    void *arg);
/* Narrows *AFTER and *BEFORE to indexed rows that may lie between SINCE_US and
 * UNTIL_US (wall clock). */
int journal_index_between(struct journal_index *index, int64_t since_us,
    int64_t until_us, uint64_t *after, uint64_t *before);

#endif
