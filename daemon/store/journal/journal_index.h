/*
 * The index of history: the records of the journal by repository, ref, user and
 * time. A separate database beside the journal ("history.db"). All entries are
 * made from the journal, so a missing or damaged index, or an index of another
 * journal or ahead of this journal, is begun anew, empty.
 *
 * Rows have a checksum, and pages of the index have none. So the index only
 * gives hints, and the caller must check the records. But a record without an
 * entry is not found, so a search is complete only up to journal_index_last().
 *
 * One thread; every call may block, but not for long. 0 or a negative errno;
 * -EBADMSG: damaged, to be closed and made anew. Nothing logs.
 */
#ifndef STORE_JOURNAL_INDEX_H
#define STORE_JOURNAL_INDEX_H

#include "daemon/store/journal/journal.h"
#include "proto/message.h"

struct journal_index;

/* The entries of this many LSNs (as bits) lie side by side. So a growing index
 * writes few pages, trimming frees whole pages, and a search goes through the
 * index in the order of the journal. */
#define JOURNAL_INDEX_SEGMENT_BITS 16
#define JOURNAL_INDEX_SEGMENT      (UINT64_C(1) << JOURNAL_INDEX_SEGMENT_BITS)

/*
 * Opens the index in the state directory DIR, which has the journal J. The
 * journal may be a restored copy, so the index counts only if J has the last
 * indexed row, by LSN and id.
 */
int journal_index_open(const struct sys *sys, const char *dir,
    struct journal *j, struct journal_index **index);
void journal_index_close(struct journal_index *index);
/* Also removes the files. */
void journal_index_discard(struct journal_index *index);
uint64_t journal_index_last(const struct journal_index *index);
/* Of the last journal_index_end(); zeros: none yet. */
const struct journal_chain *journal_index_chain(
    const struct journal_index *index);

/* ---- writing, some rows at a time ---- */

int journal_index_begin(struct journal_index *index);
/* Adds ROW under its repository, uid and time. BYTES is the size of ROW in the
 * journal. */
int journal_index_add(struct journal_index *index,
    const struct journal_row *row, uint64_t bytes);
/* Adds ROW under LEN bytes of an identity. */
int journal_index_add_user(struct journal_index *index,
    const struct journal_row *row, const char *user, size_t len);
/* Adds ROW under the name of a changed ref. */
int journal_index_add_ref(struct journal_index *index,
    const struct journal_row *row, const char *ref);
/* The row LSN cannot be read, so every search finds the row, because an answer
 * must not pass over a row in silence. */
int journal_index_add_damaged(struct journal_index *index, uint64_t lsn);
/* All rows up to ROW are indexed now. Keeps CHAIN, which may end before a
 * damaged row. */
int journal_index_end(struct journal_index *index,
    const struct journal_row *row, const struct journal_chain *chain);
void journal_index_cancel(struct journal_index *index);
/* Takes some entries of rows up to LSN out. 1: there are more. */
int journal_index_trim(struct journal_index *index, uint64_t lsn);
/* The size of all rows together; some of the oldest may be trimmed already. */
int journal_index_bytes(struct journal_index *index, uint64_t *bytes);

/* ---- looking up ---- */

/* Begins a search. If SELECT names refs, the rows with these refs are searched
 * for, otherwise the rows of REPO, otherwise the rows of a user. REPO limits
 * every search to its rows; 0: any repository. DOWN: the newest rows come
 * first. SELECT is borrowed until journal_index_search_done(), which must
 * follow every search. 1: the index has no entries for such a search, so read
 * all rows. */
int journal_index_search(struct journal_index *index, uint64_t repo,
    const struct refd_selection *select, bool down);
/* Searches between the LSNs AFTER and BEFORE. Only one segment is searched, so
 * both must lie within the segment, or beyond its ends. */
void journal_index_search_in(struct journal_index *index, uint64_t after,
    uint64_t before);
/* 1: *LSN is the next row, in order; 0: no more. -EINTR: nothing was found
 * until UNTIL_NS (sys->now_mono), as among very many names. */
int journal_index_search_next(struct journal_index *index, int64_t until_ns,
    uint64_t *lsn);
void journal_index_search_done(struct journal_index *index);
/* Narrows *AFTER and *BEFORE to indexed rows that may lie between SINCE_US and
 * UNTIL_US (wall clock). */
int journal_index_between(struct journal_index *index, int64_t since_us,
    int64_t until_us, uint64_t *after, uint64_t *before);

#endif
