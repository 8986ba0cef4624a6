/*
 * Shared by the files of history.
 *
 * Nothing here is locked, because only the worker in the historian's turn calls
 * it, as in history.h. Functions that read the journal, the index or a
 * repository's disk may block. The rest uses memory only.
 */
#ifndef STORE_HISTORY_INTERNAL_H
#define STORE_HISTORY_INTERNAL_H

#include "daemon/store/history/history.h"
#include "daemon/store/journal/journal_index.h"
#include "daemon/store/journal/record.h"

struct history {
	const struct store_parts *cfg;
	struct journal_reader *reader; /* NULL: to be opened */
	struct journal_index *index;   /* NULL: to be opened, or can't be */
	int64_t index_retry_ns;        /* not before */
	int index_error;     /* why the index is behind; 0: it is not */
	bool is_journal_bad; /* the error is of the journal's rows */
	/* The time that the retention believes, and the monotonic time then; 0:
	 * not known yet. */
	int64_t believed_ms, believed_at_ms;
	int64_t ahead_ms; /* of the clock, then */
	/* A trimmed row stays out, even if a crash brings the row back. */
	uint64_t trimmed;
};

/* ---- history_keep.c ---- */

/* Brings H->trimmed up to date, and returns it. */
uint64_t history_note_trimmed(struct history *h);
int history_open_reader(struct history *h);
/* After a negative errno R of the index: -EBADMSG makes the index anew. */
void history_index_failed(struct history *h, int r);

/* ---- history_repos.c ---- */

/* Sets *ID to the repository that REQ of PEER names, or to 0 if the repository
 * is without history, or not readable for PEER. Returns -ESTALE if the client
 * sees a different directory at this path. */
int history_repo_of(struct history *h, const struct refd_request *req,
    const struct txn_peer *peer, uint64_t *id);

struct history_repo {
	uint64_t id;
	char *path; /* owned; NULL: not known */
	bool is_learned;
	bool may; /* be told to the peer */
};
/* Looks up repository ID for PEER, on disk too, and replaces LEARNED. PEER may
 * be told if the repository at the recorded path has the recorded uuid, and
 * PEER may read the refs there, because the repository of a different owner may
 * be at the path now. ID 0: no repository. */
int history_learn_repo(struct history *h, const struct txn_peer *peer,
    uint64_t id, struct history_repo *learned);

/* ---- history_tell.c: a row's changes ---- */

/* The result of a callback that ends a read. Positive, since an errno is
 * negative, and not 1, because 1 is JOURNAL_UNKNOWN. */
#define HISTORY_STOP 2

#define HISTORY_REPOS 256

/* The state of an answer. */
struct history_telling {
	struct history *h;
	const struct store_question *ask;
	const struct refd_selection *select;
	/* Learned repositories, by their numbers. */
	struct history_repo repos[HISTORY_REPOS];

	int64_t until_ns; /* monotonic: the end of the turn */
	struct refd_answer *ans;
	size_t bytes; /* approximate size on the wire */
	size_t limit;
	bool is_full; /* ans->next says where to go on */
};

/* Does ROW's head (all except its body) match ASK? */
bool history_wants_row(const struct history *h,
    const struct store_question *ask, const struct journal_row *row);
/* Did a requested user send the record, and has the record a requested ref?
 * Among more names and patterns than the limit the test would take long, so the
 * answer is yes. */
#define HISTORY_MATCHES_MAX 256
bool history_wants_record(const struct refd_selection *select,
    const struct journal_row *row, const struct record *rec);
/* Adds the changes of REC, the content of ROW, to the answer until UNTIL_NS. At
 * least one member is looked at, since otherwise the client would ask for the
 * same row for ever. 0 or a negative errno. Not within a read of the journal,
 * because the rights come from a repository's disk, which may hang. */
int history_tell(struct history_telling *t, const struct journal_row *row,
    const struct record *rec);
/* The name of a member in history, in BUF if the name must be composed, or NULL
 * if history does not show the member. */
#define HISTORY_NAME_MAX (2 * REFD_REFNAME_MAX + 32)
const char *history_name(const struct record_member *m,
    char buf[HISTORY_NAME_MAX]);

#endif
