/*
 * History's index: which rows of the journal are about a repository, a ref, a
 * user. A database of its own beside the journal ("history.db"), made of it
 * and good for nothing without it: where it is missing, damaged, another
 * journal's or ahead of this one it is begun anew, empty.
 *
 * What it says is a hint: rows have to be looked at all the same. What it
 * leaves out, though, is not found, so it is behind the journal's rows as far
 * as journal_index_last() says, and complete before that.
 *
 * One thread; every call may block, but none for long. 0 or a negative errno;
 * -EBADMSG: it is damaged, to be closed and made anew. Nothing logs.
 */
#ifndef STORE_JOURNAL_INDEX_H
#define STORE_JOURNAL_INDEX_H

#include "daemon/store/journal/journal.h"

struct journal_index;

/* Rows of so many LSNs have their keys side by side: so an index that grows
 * writes to few pages, one that is trimmed frees whole ones, and what is found
 * comes in the order of the journal, but for the order in a segment. */
#define JOURNAL_INDEX_SEGMENT_BITS 16
#define JOURNAL_INDEX_SEGMENT      (UINT64_C(1) << JOURNAL_INDEX_SEGMENT_BITS)

/*
 * DIR is the state directory, which the journal J lies in. Its last row that is
 * indexed must be J's, by LSN and id. *ANEW: it is empty, since there was none
 * that could be used.
 */
int journal_index_open(const struct sys *sys, const char *dir,
    struct journal *j, struct journal_index **index, bool *anew);
void journal_index_close(struct journal_index *index);
/* Its files are removed with it. */
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
/* LEN bytes of what an identity says. */
void journal_index_key_user(struct journal_key *key, const char *user,
    size_t len);
/* LEN bytes of a ref's name: in REPO, or, for 0, in any repository. Each ref
 * has a key of both kinds, so that neither question costs by the number of
 * repositories. */
void journal_index_key_ref(struct journal_key *key, uint64_t repo,
    const char *name, size_t len);

/* ---- writing, some rows at a time ---- */

int journal_index_begin(struct journal_index *index);
int journal_index_add(struct journal_index *index,
    const struct journal_key *key, uint64_t lsn);
/* A row's time, for journal_index_between(), and what it takes in the
 * journal. */
int journal_index_span(struct journal_index *index, uint64_t lsn,
    int64_t time_us, uint64_t bytes);
/* All rows up to ROW are in it now. */
int journal_index_end(struct journal_index *index,
    const struct journal_row *row);
void journal_index_cancel(struct journal_index *index);
/* Takes some keys of rows up to LSN out. 1: there are more. */
int journal_index_trim(struct journal_index *index, uint64_t lsn);
/* What the rows take, together; of the oldest some may be trimmed already. */
int journal_index_bytes(struct journal_index *index, uint64_t *bytes);

/* ---- looking up ---- */

/* At most MAX LSNs with KEY, AFTER < lsn < BEFORE, which must be of one
 * segment, or beyond its ends; ascending, or (DOWN) descending. *NR: how
 * many. */
int journal_index_find(struct journal_index *index,
    const struct journal_key *key, uint64_t after, uint64_t before, bool down,
    uint64_t *lsns, size_t max, size_t *nr);
/* The same of all keys that begin with KEY; in no order, and CB is called for
 * each with the rest of its key (not terminated); what it returns, if not 0,
 * is returned. */
int journal_index_each(struct journal_index *index,
    const struct journal_key *key, uint64_t after, uint64_t before,
    int (*cb)(void *arg, const char *rest, size_t len, uint64_t lsn),
    void *arg);
/* Narrows *AFTER and *BEFORE to where there may be rows from SINCE_US to
 * UNTIL_US (wall clock), of those that are indexed. */
int journal_index_between(struct journal_index *index, int64_t since_us,
    int64_t until_us, uint64_t *after, uint64_t *before);

#endif
