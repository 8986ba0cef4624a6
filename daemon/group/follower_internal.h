/* Between the files of the follower. For its thread. */
#ifndef GROUP_FOLLOWER_INTERNAL_H
#define GROUP_FOLLOWER_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "daemon/base/mutex.h"
#include "daemon/group/follower.h"
#include "daemon/group/own_txn.h"

#define FOLLOWER_WHY_MAX 1024

/* Compares the refs with the values of the group (mends.c). */
struct value_scan {
	struct work_source source;
	atomic_bool begins_anew, has_ended;
	/* Of the worker. */
	struct journal_place at; /* the last value */
	int64_t due_ns;
};

struct follower {
	const struct store_parts *host;
	struct group *group;
	/* A row that waits is reported after half of this time. A missing
	 * repository or object is asked for at least once in this time. */
	int64_t patience_ns;
	pthread_t thread;
	bool has_thread;
	int64_t put_ns;    /* when a repository began to wait last; 0: never */
	int64_t search_ns; /* no search before */
	/* The repository that is open for the objects of rows; NULL: none. It
	 * stays open for the next row, because the rows of a batch are mostly
	 * of one repository. */
	struct repo *written;
	LIST_HEAD(waiting_list, waiting_repo) waiting; /* waiting.c */
	int64_t try_ns;                   /* no attempt for them before */
	LIST_HEAD(mend_list, mend) mends; /* mends.c; under MUTEX */
	struct value_scan scan;

	struct mutex mutex; /* MENDS, and the member below */
	pthread_cond_t back;
	size_t nr_admitting; /* transactions that are not back */
};

/* What became of a row. */
enum result {
	RESULT_DONE,
	RESULT_WAITS,   /* a lock, a full disk, ... */
	RESULT_DIFFERS, /* from the refs of this node */
	RESULT_AGAIN    /* some refs were mended: try again */
};

/* The attempts of a row. */
struct attempt {
	const struct group_row *row;
	uint64_t lsn;
	int64_t since_ns, report_ns; /* of the first one; of the next report */
	int64_t began_ns;            /* of a row: the present one */
	char path[REFD_PATH_MAX];
	char why[FOLLOWER_WHY_MAX];
	int64_t fetch_ns; /* not before, the next time */
	int64_t fetch_pause_ns;
	int64_t search_ns; /* the same; 0: the repository was not missing yet */
	bool has_written;  /* the objects of the row */
	bool has_left;     /* row_place.h */
	bool only_looks;   /* the same */
	bool lacks_object; /* mend.h */
	bool is_part;      /* the same */
	size_t member;     /* of a row: the one that was mended last */
	enum store_event event; /* of reports */
};

/* ---- follower.c ---- */

/* Applies the row IN and all rows behind IN, or puts them off. */
void follower_take_rows(struct follower *f, const struct group_input *in);

/* IN: the row, or NULL. */
void attempt_init(const struct follower *f, struct attempt *a,
    const struct group_input *in);
/* One attempt to apply the row of A. Reports a failure. */
enum result attempt_try(struct follower *f, struct attempt *a);
/* Tells the log why the row waits: after some seconds, and then each minute. */
void attempt_report(struct follower *f, struct attempt *a);

/* Makes the transaction of A's row. PATH: the repository, if it is known to be
 * in its place. NULL: the call looks for the repository itself. False: RT is
 * empty. */
bool attempt_prepare(struct follower *f, struct attempt *a, const char *path,
    struct own_txn *rt);
/* Writes the objects of A's row, whose record is REC. Admission looks for the
 * objects, so this call comes before admission gets the row. Afterwards the
 * caller lets the repository go. */
bool attempt_write_objects(struct follower *f, struct attempt *a,
    const struct record *rec);
/* RT has come back from admission. DONE: it may be applied. */
enum result attempt_look(const struct follower *f, struct attempt *a,
    const struct own_txn *rt);
/* Has admission refused TXN? Then the reason is set. */
bool attempt_is_refused(struct attempt *a, const struct txn *txn);

/* Gives NR transactions to admission together, and waits until they are back.
 */
void follower_admit(struct follower *f, struct own_txn *rows, size_t nr);
void follower_put_repo(struct follower *f, struct txn *txn);
/* Of the objects that were written last. */
void follower_let_go(struct follower *f);

/* Sets the reason. */
void attempt_say(struct attempt *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
enum result attempt_waits(struct attempt *a, const char *why);
/* TEXT is for the log, and may have any bytes of clients, so control bytes
 * become spaces. */
void attempt_make_readable(char *text);
/* Has the update of M, a part of a row, failed because the refs of this node
 * are not as the row expects? */
bool attempt_differs(const struct record_member *m, const struct txn_update *u);

/* ---- together.c ---- */

/* Applies rows from IN on in one batch. *NR: their number, at least 1. False:
 * none is applied, and each must be tried alone. */
bool together_apply(struct follower *f, const struct group_input *in,
    size_t *nr);

/* ---- waiting.c ---- */

/* Reads from the journal which repositories wait. 0 or negative errno. */
int waiting_load(struct follower *f);
void waiting_free(struct follower *f);
bool waiting_has(const struct follower *f, const uint8_t uuid[16]);
/* Takes the place of A's row away from the repositories that wait. The row of A
 * is the next one in the order of the group, and may put its own repository
 * there. Called before the row is applied, or put off. False: the link is lost,
 * or the daemon ends. */
bool waiting_leave(struct follower *f, struct attempt *a);
/* Puts the row IN off, after the attempts A. group_flush_postponed() follows.
 * False: as above. */
bool waiting_put(struct follower *f, const struct group_input *in,
    struct attempt *a);
/* Tries the row that is due first. Returns the time until the next row is
 * due. */
int64_t waiting_try(struct follower *f);

/* ---- mends.c ---- */

/* Before the workers start. */
void mends_init(struct follower *f);
void mends_free(struct follower *f);
/* Mends the ref that is due first. Returns the time until the next ref is
 * due. */
int64_t mends_try(struct follower *f);
/* The role of the node has changed, so the scan begins anew. */
void mends_scan(struct follower *f);
/* No scan begins any more. Called before the workers stop. */
void mends_end(struct follower *f);

#endif
