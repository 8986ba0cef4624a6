/* Between the files of the follower. For its thread. */
#ifndef STORE_FOLLOWER_INTERNAL_H
#define STORE_FOLLOWER_INTERNAL_H

#include <pthread.h>

#include "daemon/store/following/follower.h"
#include "daemon/store/following/row_txn.h"

#define FOLLOWER_WHY_MAX 1024

struct follower {
	struct follower_config cfg;
	pthread_t thread;
	bool has_thread;
	int64_t kept_ns; /* when a foreign ref was kept last; 0: never */

	pthread_mutex_t mutex; /* the member below */
	pthread_cond_t back;
	struct txn *admitted; /* is back from admission */
};

/* What became of a row. */
enum result {
	RESULT_DONE,
	RESULT_WAITS,   /* a lock, a full disk, ... */
	RESULT_DIFFERS, /* from the refs of this node */
	RESULT_AGAIN    /* a ref of another program was kept: try again */
};

/* The attempts of a row. */
struct attempt {
	const struct group_row *row;
	uint64_t lsn;
	char path[REFD_PATH_MAX];
	char why[FOLLOWER_WHY_MAX];
	int64_t fetch_ns;  /* not before, the next time */
	int64_t search_ns; /* the same; 0: the repository was not missing yet */
	bool has_written;  /* the objects of the row */
	/* The row has differed for so long that another program must have
	 * written the refs. */
	bool keeps;
	bool cannot_keep; /* this time, so the row waits */
	enum { TOLD_NOTHING, TOLD_OTHER, TOLD_CANNOT_KEEP } told;
	int64_t differs_ns;      /* since when; 0: not */
	struct row_found *found; /* owned; row_txn_init() */
};

/* Gives TXN to admission, and waits. */
void follower_admit(struct follower *f, struct txn *txn);
void follower_put_repo(struct follower *f, struct txn *txn);

/* Sets the reason. */
void attempt_say(struct attempt *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
enum result attempt_waits(struct attempt *a, const char *why);
/* Bytes of clients may be in TEXT, which is for the log. */
void attempt_make_readable(char *text);
/* Has the update of M, a part of a row, failed as the refs of this node are not
 * as the row expects? */
bool attempt_differs(const struct record_member *m, const struct txn_update *u);

/* diverged.c: the updates of RT have failed. */
enum result diverged_keep(struct follower *f, struct attempt *a,
    const struct row_txn *rt);

#endif
