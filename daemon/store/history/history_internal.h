/*
 * What the files of history share.
 *
 * The historian's thread alone, as history.h has it: nothing here is locked.
 * What reads the journal, the index or a repository's disk may block; the rest
 * looks at memory. What history_repo() returns is borrowed until it,
 * history_repo_of() or history_may_read() is called again, which may read the
 * table anew.
 */
#ifndef STORE_HISTORY_INTERNAL_H
#define STORE_HISTORY_INTERNAL_H

#include "daemon/store/history/history.h"
#include "daemon/store/journal/journal_index.h"
#include "daemon/store/journal/record.h"

/* The journal's table of them, by id; paths are owned. */
struct history_repos {
	struct journal_repo *all;
	size_t nr, size;
	int64_t read_ns;
};

struct history {
	struct history_config cfg;
	struct journal_reader *reader; /* NULL: to be opened */
	struct journal_index *index;   /* NULL: to be opened, or can't be */
	int64_t index_retry_ns;        /* not before */
	/* What was trimmed stays so, even if a crash brings it back. */
	uint64_t trimmed;

	struct history_repos repos;
	/* Since it was set to 0: what is told of repositories may be wrong. */
	int repos_failed;
};

/* ---- history.c ---- */

int history_open_reader(struct history *h);
/* NULL: there is none now. */
struct journal_index *history_open_index(struct history *h);
/* After R, a negative errno of its: -EBADMSG makes it anew. */
void history_index_failed(struct history *h, int r);

/* ---- history_repos.c ---- */

void history_free_repos(struct history *h);
/* NULL: not known. */
const struct journal_repo *history_repo(struct history *h, uint64_t id);
/* Which one REQ of PEER names: *ID; 0 if it has no history, or PEER may not
 * read it. -ESTALE: the client sees another directory at that path. */
int history_repo_of(struct history *h, const struct refd_request *req,
    const struct txn_peer *peer, uint64_t *id);
/* Is PEER root, or the daemon's own account? Everything may be told then. */
bool history_may_all(const struct txn_peer *peer);
/* Does repository REPO stand, by its uuid, where the journal has it, and may
 * PEER read its refs there? */
bool history_may_read(struct history *h, const struct txn_peer *peer,
    uint64_t repo);

/* ---- history_tell.c: a row's changes ---- */

#define HISTORY_RIGHTS 64

/* One question, as far as it is answered. */
struct history_telling {
	struct history *h;
	const struct store_history *ask;
	const struct refd_selection *select;
	bool sees_all;
	/* What was found out about single repositories. */
	struct {
		uint64_t repo;
		bool may;
	} rights[HISTORY_RIGHTS];

	int64_t until_ns; /* monotonic: the end of the turn */
	struct refd_answer *ans;
	size_t bytes; /* about what it takes on the wire */
	size_t limit;
	bool is_full; /* ans->next says where to go on */
};

/* Is ROW's head (all but its body) what ASK is for? */
bool history_wants_row(const struct history *h, const struct store_history *ask,
    const struct journal_row *row);
/* Did one who is asked for send it? */
bool history_wants_user(const struct refd_selection *select,
    const struct journal_row *row, const struct record *rec);
/* The same, and does it have a ref that is asked for? One of so many names and
 * patterns that it takes long to tell may have. */
#define HISTORY_MATCHES_MAX 256
bool history_wants_record(const struct refd_selection *select,
    const struct journal_row *row, const struct record *rec);
/* Adds ROW's changes to the answer, till UNTIL_NS, but one member at least. 0,
 * or a negative errno. */
int history_tell(struct history_telling *t, const struct journal_row *row);
/* A member that history tells of: the name it has there, into BUF where it
 * has to be made. NULL: it is none. */
#define HISTORY_NAME_MAX (2 * REFD_REFNAME_MAX + 32)
const char *history_name(const struct record_member *m,
    char buf[HISTORY_NAME_MAX]);

/* ---- history_taken.c: what was taken back of a row ---- */

struct history_taken {
	uint32_t index;
	size_t nr; /* the last one's word counts */
	enum refd_status status;
	char *text; /* owned */
};

struct history_takings {
	struct history_taken *list;
	size_t nr;
	uint64_t *copies; /* parked rows to ask about */
	size_t nr_copies;
};

/* ALL is zeroed, and to be let go even after an error. */
int history_takings(struct history *h, uint64_t lsn,
    struct history_takings *all);
void history_takings_done(struct history_takings *all);
/* How member INDEX ended; NULL: it stands. */
const struct history_taken *history_taking_of(const struct history_takings *all,
    uint32_t index);

/* ---- one question: history_answer.c, history_find.c ---- */

/* What a callback stops a reading with: neither an errno nor
 * JOURNAL_UNKNOWN. */
#define HISTORY_STOP 2

struct history_question {
	struct history_telling telling;
	struct store_history *ask;
	struct history *h;
	const struct refd_selection *select;
	uint64_t after, before; /* LSNs that lie outside */
	bool down;

	/* Keys of which any will do; none: read the journal. */
	struct journal_key keys[REFD_PATTERNS_MAX + 1];
	size_t nr_keys;
	bool is_index_bad;
	bool by_pattern;  /* the keys begin with these, or are none yet */
	bool has_matched; /* names of a segment were gone through */
	/* Of one segment: those that the patterns mean. */
	uint64_t meant[JOURNAL_INDEX_SEGMENT / 64];
	uint64_t *lsns; /* owned */
	size_t nr_lsns, lsns_size;
};

/* Tells of ROW. 0; HISTORY_STOP: that was enough; a negative errno. */
int history_look_at(struct history_question *q, const struct journal_row *row);
int history_look_at_time(struct history_question *q);
void history_begin_time(struct history_question *q);
/* All rows between AFTER and BEFORE, from the journal. */
int history_scan_range(struct history_question *q, uint64_t after,
    uint64_t before);
/* Chooses the keys by what is asked for. */
void history_choose_keys(struct history_question *q);
/* Rows between AFTER and BEFORE, all of which the index knows, in the order
 * of the question. */
int history_find_range(struct history_question *q, uint64_t after,
    uint64_t before);
/* The rows that were noted, sorted. */
int history_add_lsn(struct history_question *q, uint64_t lsn);
int history_look_at_found(struct history_question *q);

#endif
