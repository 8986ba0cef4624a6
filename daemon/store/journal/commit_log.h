/*
 * The commit log: rows in the order of their LSNs. The commit point of a
 * transaction is the moment when its row is durable.
 *
 * There are five calls: open, claim, append, wait, read. Append does not wait
 * for a flush, so a caller with two logs appends to both and then waits for
 * both, and the flushes overlap. The only implementation is the SQLite journal
 * (journal.h), and only open names the journal. journal.h also has everything
 * beside the log: the registry of repositories, deferred rows, look-ups by id,
 * reads for history, forgetting, checkpoint, trimming, statistics, a view
 * without a writer.
 *
 * A log is in one of four states:
 *	open	readable. claim -> claimed
 *	claimed	this process is the only writer. A failed sync -> broken
 *	broken	nothing can be appended or read. The next wait that needs an
 *		answer, or commit_log_mend(), closes everything, drops the page
 *		cache and opens again -> claimed, or dead
 *	dead	opening again failed, and config.failed was told. Nobody can
 *		know the outcome of a row: only the next start can. A later
 *		mend tries again
 *
 * Rows pass from appended (visible to readers; a power loss may lose the last
 * rows) to one of three outcomes:
 *	durable		wait returns 0
 *	not there	append or wait returns a negative errno: no room or a
 *			failed write; or a failed sync that lost the rows
 *	unknown		wait returns JOURNAL_UNKNOWN: the log is dead
 *
 * Threads: any, after claim. Every call may block on the disk. Append may also
 * block on another thread's append, never on a flush, unless the log is being
 * opened again. The log cannot be opened again while a callback of journal.h
 * runs, so no callback calls append, wait or mend. Nothing logs.
 */
#ifndef STORE_COMMIT_LOG_H
#define STORE_COMMIT_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/txid.h"

struct record;
struct slice;

struct commit_log;
struct journal;
struct journal_config;

/* Positive, because an errno is negative. */
#define JOURNAL_UNKNOWN 1

enum journal_kind {
	JOURNAL_SLICE = 1, /* a transaction's slice of a batch */
	JOURNAL_ABORT = 2, /* abort record: takes back members of an earlier
			      row */
	/* A copy of members that recovery could not redo yet. The row stays
	 * open until JOURNAL_DEFERRED_END, even if forgotten. */
	JOURNAL_DEFERRED = 3,
	/* Only takes the deferred row REFERS_TO off the list, so nothing is
	 * stored as a row. */
	JOURNAL_DEFERRED_END = 4,
	/* SHARED_LSN cannot be applied yet, so the content waits, and is not
	 * stored as a row (journal_read_waiting()). The later SLICE with this
	 * SHARED_LSN ends the waiting. */
	JOURNAL_WAITING = 5
};

/* The number of a batch: a start, then a count with this many bits. The highest
 * bit marks a batch of recovery, because a leftover lock of recovery would
 * otherwise count as a lock of a batch at work. Recovery never has two batches
 * at a time. */
#define JOURNAL_TOKEN_BITS     40
#define JOURNAL_TOKEN_RECOVERY (UINT64_C(1) << (JOURNAL_TOKEN_BITS - 1))

/* A bit in the mount of a deferred row: its file system failed to sync, so the
 * page cache may differ from the disk. No sys->mount_id has the bit. */
#define JOURNAL_MOUNT_FAILED (UINT64_C(1) << 62)
/* The same, but there is no mount to compare, so the names may differ too. */
#define JOURNAL_MOUNT_LOST ((uint64_t)INT64_MAX)

struct journal_row {
	uint64_t lsn; /* set by append */
	enum journal_kind kind;
	struct refd_txid txid;
	uint32_t uid; /* the peer's */
	int64_t pid;
	uint64_t repo; /* journal_repo.id; 0: none was opened */
	/* the start of the writing daemon; set by append */
	uint64_t start;
	uint64_t token; /* of the batch's locks; 0: no lock taken */
	/* sys->mount_id of the repository then; 0 in a deferred row: do not
	 * compare */
	uint64_t mount;
	int64_t locked_at_ns; /* token_locked_at() */
	int64_t time_us;      /* wall clock */
	/* An LSN of another row. ABORT: the row whose members are taken back.
	 * DEFERRED_END: the deferred row. DEFERRED: the first row that was
	 * copied. The SQL column still has the older name "voids". */
	uint64_t refers_to;
	/* The LSN in the log of all machines; 0: only this machine has the row.
	 * For SLICE and WAITING, append refuses a number that is not the next
	 * one, except that a SLICE can have the number of a row that waits. Any
	 * other kind has 0. */
	uint64_t shared_lsn;
	/* WAITING: the uuid of the repository, and its path below the root;
	 * borrowed. */
	const uint8_t *waiting_repo, *waiting_path;
	size_t waiting_path_len;
	/* Of a shared row: the content of BODY, for the values of its refs
	 * (journal_find_value()); borrowed. */
	const struct record *record;
	bool final;          /* this row decides the transaction */
	const uint8_t *body; /* record.h; borrowed */
	size_t len;
	/* To append: new objects (new_objects.h), borrowed, and stored beside
	 * the row until the row is forgotten. No reading call sets them,
	 * because journal_read_objects() reads them. */
	const uint8_t *objects;
	size_t objects_len;
	/* SLICE: for replica.append(); borrowed, not stored. Set by make_row()
	 * of commit.c. */
	const struct slice *slice;
};

struct commit_log_config {
	/* The implementation's. Copied, as in journal_open(). */
	const struct journal_config *journal;
	/* The log is dead, and WHY, which the log owns, completes a sentence
	 * about "the journal". Any thread may call this, under no lock of the
	 * log's. */
	void (*failed)(void *arg, const char *why);
	void *arg;
};

/*
 * Opens or creates the log, and makes all readable rows durable. The caller
 * holds the flock of the directory, which excludes other processes. Errors and
 * *WHY as in journal_open().
 */
int commit_log_open(const struct commit_log_config *cfg,
    struct commit_log **log, char **why);

/* Registers this start of the daemon as the only writer, durably. If the log is
 * of another machine (journal_config.adopt), this machine is registered, too.
 * Call once, before the first append, because each row has the number of the
 * start. Returns 0, or a negative errno and *WHY, a sentence to be freed. */
int commit_log_claim(struct commit_log *log, char **why);

/* A position in a log, which only the log understands. */
struct journal_mark {
	/* Commits up to the mark, counted since the journal was opened for the
	 * EPOCH-th time. */
	uint64_t written, epoch;
};

/* Appended rows. The wait searches for these rows after a failed sync, so the
 * mark lives, with ROWS, until the wait returns. */
struct commit_log_mark {
	struct journal_row *rows;
	size_t nr;
	struct journal_mark at;
	uint64_t before; /* their LSNs are higher */
	bool is_unknown; /* whether they were written: the wait finds out */
};

/*
 * Appends NR rows, all or none. Rows of several threads share one transaction
 * if they arrive together. After a failure each thread's rows are tried alone,
 * so a row that is too large fails alone. Sets lsn, ascending, and start of
 * each row. A failed sync may lose the rows, so an LSN is final only after the
 * wait has returned 0. Returns 0 if the caller must wait for MARK, or a
 * negative errno if the rows are definitely not there.
 */
int commit_log_append(struct commit_log *log, struct journal_row *rows,
    size_t nr, struct commit_log_mark *mark);

enum commit_log_level {
	/* no flush: a power loss or a failed sync may lose the rows, the last
	 * ones first */
	COMMIT_LOG_LOCAL,
	COMMIT_LOG_DURABLE /* on disk, after a flush that many waits share */
};

/*
 * Waits until the rows of MARK have LEVEL. Returns 0, JOURNAL_UNKNOWN, or a
 * negative errno if the rows are definitely not there. After any result but 0
 * the LSNs are 0. With MARK NULL, waits until all rows that are readable now
 * are durable, and returns 0, or -EIO if rows were lost or the log is dead.
 */
int commit_log_wait(struct commit_log *log, const struct commit_log_mark *mark,
    enum commit_log_level level);

/* commit_log_append(), then commit_log_wait(), for a caller with a single log.
 * 0, or the error of one of them. */
int commit_log_commit(struct commit_log *log, struct journal_row *rows,
    size_t nr, enum commit_log_level level);

/* Calls CB for each row after the LSN AFTER, in LSN order, durable or not. A
 * row that is not durable may vanish when the log is opened again. Rows that
 * were there before commit_log_wait(log, NULL, DURABLE) returned 0 stay,
 * because that call flushes them. A non-zero result of CB ends the scan and is
 * returned. ROW is valid during the callback, which calls no function of the
 * log. Returns a negative errno, or JOURNAL_UNKNOWN if the log is broken. */
int commit_log_read(struct commit_log *log, uint64_t after,
    int (*cb)(void *arg, const struct journal_row *row), void *arg);

/* The log is free afterwards, so readers (journal_reader) are closed before. */
void commit_log_close(struct commit_log *log);

/* ---- beside the five calls ---- */

/* The journal, which LOG owns, for everything beside the log. */
struct journal *commit_log_journal(struct commit_log *log);

/* Opens a broken log again, after JOURNAL_UNKNOWN from a function of journal.h.
 * Returns 0, or JOURNAL_UNKNOWN if the log is dead. */
int commit_log_mend(struct commit_log *log);

/* For how many nanoseconds of the monotonic clock no append, wait, flush or
 * mend has come back, or 0 if none is at work. Never blocks on the disk. */
int64_t commit_log_stuck_ns(struct commit_log *log);

#endif
