/*
 * Shared by the files of the journal, and for no other file.
 *
 *	commit_log.c		the five calls of the log, opening again
 *	journal.c		the committer: transactions, LSNs, forgetting
 *	journal_flush.c		brings commits to disk
 *	journal_open.c		opening, reopening, closing
 *	journal_view.c		reads beside a daemon, in another process
 *	journal_meta.c		the journal's own data, as read at opening
 *	journal_file.c		the files: made, checked, dropped from memory
 *	journal_checkpoint.c	WAL frames into the database file
 *	journal_read.c		look-ups and scans
 *	journal_reader.c	look-ups, rows and repositories, for one thread
 *	journal_repo.c		starts of the daemon, and repositories
 *	journal_trim.c		deletes old rows
 *	journal_chain.c		a digest of all rows
 *	journal_objects.c	new objects of rows
 *	journal_index.c		history's index, a separate database
 *	journal_find.c		searches this index
 *	journal_look.c		the WAL file before SQLite opens it
 *	journal_wal.c		facts that only the WAL file has
 *	journal_checksum.c	the checksum of a row
 *	journal_shared.c	the log of all nodes
 *	journal_waiting.c	shared rows that cannot be applied yet
 *	journal_values.c	the values that shared rows gave to refs
 *	journal_sql.c		connections, statements, error codes
 *
 * Order of locks: use_lock, ckpt_lock, commit_lock, hand_lock. The last three
 * guard the members below them. Functions that never block on the disk take
 * hand_lock, so no call that may block runs under hand_lock.
 */
#ifndef STORE_JOURNAL_INTERNAL_H
#define STORE_JOURNAL_INTERNAL_H

#include <pthread.h>
#include <sqlite3.h>
#include <sys/queue.h>

#include "daemon/base/mutex.h"
#include "daemon/store/journal/journal.h"

/* PRAGMA user_version. Every other format is refused. */
#define JOURNAL_FORMAT 9

#define JOURNAL_WHAT_HELPS                                                     \
	"restore it with its repositories, or move it aside "                  \
	"by 'refd recover --discard'"

#define JOURNAL_MACHINE_MAX 64
/* In meta: the last row on disk, and a checksum of all of meta. */
#define JOURNAL_SEAL_BYTES 12

/* The new objects of rows that are not forgotten. */
#define JOURNAL_OBJECTS "object"

/* Shared rows that wait. */
#define JOURNAL_WAITING_ROWS "waiting"

/* The last value that a shared row gave each ref. */
#define JOURNAL_VALUES "value"

/* The digest of all trimmed rows. */
#define JOURNAL_CHAIN "chain"

/* When the journal has joined other nodes. */
#define JOURNAL_JOINED "joined"

/* Tables whose names on disk are older: the outcomes of trimmed ids, and the
 * LSNs of the open deferred rows. */
#define JOURNAL_OLD_OUTCOMES  "past"
#define JOURNAL_OPEN_DEFERRED "parked"

#define JOURNAL_PAGE_BYTES 4096 /* as set when the file was made */
/* A page and its frame header. */
#define JOURNAL_FRAME_BYTES (JOURNAL_PAGE_BYTES + 24)

static inline uint32_t journal_big_endian(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
	    (uint32_t)p[2] << 8 | p[3];
}

static inline uint64_t journal_seal_flushed(const uint8_t *seal)
{
	return (uint64_t)journal_big_endian(seal) << 32 |
	    journal_big_endian(seal + 4);
}

/* LSNs are signed to SQLite. */
static inline sqlite3_int64 journal_signed(uint64_t lsn)
{
	return lsn < INT64_MAX ? (sqlite3_int64)lsn : INT64_MAX;
}

enum journal_reader_stmt {
	JOURNAL_READ_ID,
	JOURNAL_READ_NEWEST_ID,
	JOURNAL_READ_UP,
	JOURNAL_READ_DOWN,
	JOURNAL_READ_ABOUT,
	JOURNAL_READ_ENDS,
	JOURNAL_READ_REPO,
	JOURNAL_READ_REPO_UUID,
	JOURNAL_READER_STMTS
};

/* The files when the copy of the WAL was made. */
struct journal_sight {
	struct sys_stat db, wal;
	int64_t at_ns; /* sys->now_wall */
};

struct journal_reader {
	struct journal *journal;
	sqlite3 *db;
	sqlite3_stmt *stmts[JOURNAL_READER_STMTS];
	unsigned nr_reads; /* at work, one within the other */
	/* Of a view: its files, and why the last read did not begin. */
	struct journal_sight sight;
	int failed;
	LIST_ENTRY(journal_reader) link;
};

/* A caller of journal_append(); on the caller's stack. */
struct journal_commit {
	struct journal_row *rows;
	size_t nr;
	/* in the list of waiting callers; hand_lock */
	struct journal_commit *next;
	/* commit_lock: */
	bool is_over;
	int r;
	struct journal_mark mark;
};

/* A flush, at work or idle; hand_lock, except for the file, because a sync
 * blocks. */
struct journal_flusher {
	sqlite3_file *wal; /* a separate handle; NULL: none */
	bool is_busy;
	int64_t began_ns; /* sys->now_mono, if busy */
};

#define JOURNAL_FLUSHERS 8

/* The log of all nodes: the highest shared_lsn, and the uuid, zeros before the
 * first row. JOINED_MS: journal_joined_ms(). */
struct journal_shared {
	uint64_t lsn;
	uint8_t uuid[16];
	uint64_t joined_ms;
};

/* The columns of meta that commits change. */
struct journal_meta {
	uint64_t forgotten, trimmed;
	struct journal_shared shared;
};

/* Set at opening, constant after. */
struct journal_opened {
	char *dir, *path, *vfs;
	char *wal, *room; /* paths, too: journal_fill_wal() */
	char boot_id[40];
	bool adopt;
	uint64_t wal_room;
	/* NULL after the first opening. */
	journal_check_fn *check;
	void *check_arg;
};

/* The WAL at the last opening: where the frames ended, and whether a frame of
 * the same WAL followed. */
struct journal_found {
	uint64_t ends_at;
	bool is_broken;
	/* The last LSN on disk, by the frames behind that end. */
	uint64_t flushed;
};

/* journal_view.c: the lock, a descriptor of the WAL's file or -1. */
struct journal_view {
	bool is_view;
	int lock;
	unsigned users; /* of the lock, one within the other */
	int64_t locked_ns;
	struct journal_sight locked; /* then */
	struct journal_sight sight;  /* of the last copy */
};

/* Of the connection for commits; commit_lock. */
struct journal_stmts {
	sqlite3_stmt *begin, *insert, *insert_objects, *defer, *end_deferred,
	    *unkeep, *wait, *end_wait, *write_value, *find_value, *find_below,
	    *find_living, *next_value, *write_meta;
	sqlite3_stmt *commit, *rollback;
};

/* hand_lock. Flushes are over in the order in which they began, because a later
 * flush covers the commits of an earlier flush. */
struct journal_flushes {
	struct journal_flusher flushers[JOURNAL_FLUSHERS];
	uint64_t begun, over;
	pthread_cond_t cond; /* a flush ended */
	int64_t began_ns;    /* the latest flush */
	uint64_t commits;    /* of the latest flush: see journal_counts */
	int64_t took_ns;     /* recent time of a flush */
	size_t waiting;      /* waiting for the next flush */
};

/* hand_lock. */
struct journal_lsns {
	/* The last row, and the last row with a later flush. The LSNs in
	 * between have no flush, so they may be lost. */
	uint64_t last_row, durable;
	uint64_t last;
	uint64_t trimmed; /* rows up to here are gone, except deferred ones */
	uint64_t forget_wanted; /* at least FORGOTTEN */
	/* The forgotten LSN of the last commit, and of the last commit with a
	 * later flush. */
	uint64_t forgotten, forgotten_durable;
	uint64_t damaged;       /* the first damaged row found, or a page; 0 */
	uint64_t objects_bytes; /* in the table of objects, about */
};

/* Counts since the journal was opened for the EPOCH-th time: all commits, the
 * commits with a later flush, and the last commit that registered a repository.
 * Under hand_lock. */
struct journal_counts {
	uint64_t written, flushed, repos_written;
	uint64_t epoch;
};

struct journal {
	const struct sys *sys;
	struct journal_opened cfg;
	uint8_t uuid[16]; /* constant after opening, as START */
	uint64_t start;
	struct sys_file_id file; /* set by journal_register_start() */
	struct journal_found found;
	struct journal_view view;
	/* As in the journal, and guarded by commit_lock after opening. */
	char machine[JOURNAL_MACHINE_MAX];

	/* Read-locked by readers with a separate connection, because an open
	 * connection keeps the WAL's index alive. Then journal_reopen() would
	 * not read the disk again. */
	struct rwlock use_lock;

	struct mutex ckpt_lock;
	sqlite3 *ckpt;

	struct mutex commit_lock;
	sqlite3 *db;
	struct journal_stmts stmts;
	uint64_t next_lsn;
	struct journal_meta meta; /* as in the database */
	uint64_t last_written;    /* row */
	bool is_unmarked;         /* a commit after the last journal_mark() */
	int frames;               /* in the WAL after the last commit */
	bool salt_known;
	uint8_t salt[8]; /* of the present WAL */

	struct mutex hand_lock;
	bool is_broken; /* only journal_reopen() helps */
	/* A checkpoint completed and no commit has ended since, so none may
	 * start. */
	bool is_caught_up;
	struct journal_lsns lsn;
	struct journal_shared shared; /* after the last commit */
	uint8_t shared_wanted[16];    /* journal_set_shared(); zeros: none */
	struct journal_counts counts;
	struct journal_flushes flush;
	uint64_t
	    wal_durable_bytes; /* bytes of the WAL file with durable blocks */
	int wal_fd;           /* -1: none; constant while the journal is open */
	uint64_t wal_frames;  /* after the last commit */
	uint64_t frames_left; /* to copy, when the last checkpoint ended */
	struct journal_commit *waiting, **waiting_end;
	struct journal_stats stats;
	LIST_HEAD(, journal_reader) readers;
};

/* ---- journal_sql.c ---- */

/* Opens PATH with the rules of journal.h. SQLite makes *DB also for an error,
 * so close *DB even after a failure. Returns an SQLite code. A connection of a
 * view reads a copy of the WAL. */
int journal_connect(struct journal *j, const char *path, sqlite3 **db);
/* Closes *DB, and frees all its statements first, because SQLite closes no
 * connection with statements. *DB may be NULL, and is NULL afterwards. */
void journal_disconnect(sqlite3 **db);
/* The next connection of this thread that opens a WAL opens COPY instead, and
 * owns the descriptor. If COPY is -1, the connection opens the file itself.
 * Returns an earlier COPY that no connection has taken, or -1. */
int journal_give_wal(int copy);
int journal_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **stmt);
/* Steps to the end and resets, and returns SQLITE_OK or an extended code. */
int journal_run(sqlite3_stmt *stmt);
/* Runs SQL, whose parameters are A and B. *VALUE: the first column of the last
 * row; NULL: no row is expected. As journal_run(). */
int journal_query(sqlite3 *db, const char *sql, uint64_t a, uint64_t b,
    int64_t *value);
/* The negative errno for the code of a definite failure. For the thread that
 * got the code, because a full disk is noted for each thread. */
int journal_errno(int rc);
/* Puts a sentence, to be freed, into *WHY, and returns R. */
int journal_say(char **why, int r, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The same with SQLite's text for RC, or for a full disk with the directory of
 * J, and returns an errno. */
int journal_say_sql(const struct journal *j, char **why, int rc, sqlite3 *db,
    const char *doing);

/* ---- journal_view.c ---- */

/* Keeps checkpoints apart from the views of other processes, for as long as *FD
 * is open, because a view reads the database without SQLite's locks. Returns 0,
 * or a negative errno with -1 in *FD. -EBUSY: other processes had the lock all
 * the time. */
int journal_lock_wal(struct journal *j, int64_t wait_ns, int *fd);
/* Keeps the database file as it is until journal_view_unlock(). No checkpoint
 * is made meanwhile, so call journal_view_unlock() soon, and in any case.
 * Returns 0 or a negative errno. */
int journal_view_lock(struct journal *j);
/* Returns R, the result of the reading. -EAGAIN: the daemon did not wait, so
 * the rows that were read may be wrong. */
int journal_view_unlock(struct journal *j, int r);
/* Makes a copy of the WAL for the connection that is opened next, and sets
 * view.sight. */
int journal_view_copy(struct journal *j);
/* Are the files as they were, or with OLD_ROW, as to rows that were there? */
bool journal_view_stands(struct journal *j, const struct journal_sight *sight,
    bool old_row);

/* ---- journal_open.c ---- */

/* All checks before the journal may be read, for the daemon and for a view, so
 * neither reads a journal that the other refuses. Changes nothing. */
int journal_connect_to_read(struct journal *j, char **why);
/* Makes a journal without anything open, with a copy of CFG, or NULL without
 * memory. */
struct journal *journal_new(const struct journal_config *cfg, const char *vfs);
/* Closes everything. */
void journal_free(struct journal *j);

/* ---- journal_meta.c ---- */

/* Checks the schema as SQLite reads the schema, because the WAL may hold a
 * newer first page than the file. */
int journal_check_schema(struct journal *j, char **why);
/* Reads the owner and the forgotten and trimmed LSNs. */
int journal_read_meta(struct journal *j, char **why);
/* Within a transaction and under commit_lock; returns an SQLite code. */
int journal_write_meta(struct journal *j, const struct journal_meta *meta);
/* Reads the number of the last row into last_written and lsn.last. */
int journal_read_last(struct journal *j, char **why);

/* ---- journal_file.c ---- */

/* The path of the database with SUFFIX at the end, to be freed by the
 * caller. */
char *journal_path_with(const struct journal *j, const char *suffix);
/* "" if the machine has no id, because some containers have none. */
void journal_machine_id(struct journal *j, char id[JOURNAL_MACHINE_MAX]);
/* May this build open the journal? -ENOENT without *WHY: no journal. Call
 * before any connection, because closing the file would drop the connection's
 * locks. */
int journal_check_file(struct journal *j, char **why);
int journal_check_ids(const char *path, uint32_t app, uint32_t version,
    char **why);
/* Checks as much as bounded time allows. */
int journal_check_pages(struct journal *j, char **why);
/* Makes the file, which is durable with its name at the return. */
int journal_make_file(struct journal *j, char **why);
int journal_sync_dir(struct journal *j);
/* Fills the WAL with zeros behind its end, up to wal_room bytes, and notes this
 * size beside the journal. On a full disk there are no zeros. */
int journal_fill_wal(struct journal *j);
/* If the WAL is shorter than noted, returns -EBADMSG and *WHY, also beside a
 * daemon. */
int journal_check_room(struct journal *j, char **why);
/* Removes the noted size of the WAL, durably. A start refuses a WAL that is
 * shorter than noted, so call this before the WAL may get shorter. */
int journal_forget_room(struct journal *j);
/* Cuts off the room behind the frames. The opening has found the end of the
 * frames, so call this only while nothing was written since. False: there is no
 * room to cut. */
bool journal_cut_room(struct journal *j);
/* Drops database and WAL from the page cache, while no connection is open. */
int journal_drop_caches(struct journal *j);

/* ---- journal.c ---- */

bool journal_is_broken(struct journal *j);
void journal_break(struct journal *j);
/* Reads NUMBER, which hand_lock guards, under this lock. */
uint64_t journal_guarded(struct journal *j, const uint64_t *number);
/* One SQLite transaction, while commit_lock is held. RC: the result of the
 * statements since _begin. */
int journal_txn_begin(struct journal *j);
int journal_txn_end(struct journal *j, int rc);
/* Marks all commits until now, while commit_lock is held. */
struct journal_mark journal_mark(struct journal *j);

/* ---- journal_repo.c ---- */

/* Inserts this start of the daemon. The row is on disk at the return, because
 * the numbers of batches contain the number of the start, and no later start
 * may get the same number. */
int journal_register_start(struct journal *j);

/* ---- journal_flush.c ---- */

/* Opens a handle of the existing WAL per flusher, and returns an SQLite
 * code. */
int journal_flush_open(struct journal *j);
void journal_flush_close(struct journal *j);
/* Does the file system of the WAL still work? Otherwise a flush may have
 * succeeded although its data is lost. */
bool journal_fs_lives(struct journal *j);
/* Before reopening: breaks the journal, wakes all waiting callers, and waits
 * for the end of flushes at work, because these use the open files. */
void journal_flush_end(struct journal *j);

/* ---- journal_checkpoint.c ---- */

/* Moves everything into the synced database file, and empties the WAL. The
 * connection must have read before, because SQLite does nothing on a connection
 * that never read. No other connection may be at work. Returns an SQLite
 * code. */
int journal_truncate_wal(struct journal *j);

/* ---- journal_read.c ---- */

#define JOURNAL_COLUMNS                                                        \
	"lsn, kind, txid, uid, pid, repo, start, token, mount, locked_at_ns, " \
	"time_us, voids, final, body, checksum, group_lsn"
typedef int journal_row_fn(void *arg, const struct journal_row *row);
/* Calls CB for the remaining rows of S, which selects JOURNAL_COLUMNS, and
 * resets S. *NR, *LAST: the number of rows, and the last LSN. -EUCLEAN: a row
 * differs from its stored checksum. */
int journal_each_row(struct journal *j, sqlite3_stmt *s, journal_row_fn *cb,
    void *arg, unsigned *nr, uint64_t *last);
/* Takes REPO from S, which still owns REPO->path. -EBADMSG: damaged. */
int journal_repo_of(sqlite3_stmt *s, struct journal_repo *repo);

/* Does ROW become a row of the table, with an LSN? */
static inline bool journal_is_stored(const struct journal_row *row)
{
	return row->kind != JOURNAL_DEFERRED_END &&
	    row->kind != JOURNAL_WAITING;
}

/* Notes that row LSN differs from the written row. */
void journal_note_damage(struct journal *j, uint64_t lsn);

/* ---- journal_objects.c ---- */

/* Within a transaction and under commit_lock; returns an SQLite code. */
int journal_write_objects(struct journal *j, uint64_t lsn,
    const struct journal_row *row);
/* Takes the result of journal_read_objects() from S, whose columns are checksum
 * and bytes. */
int journal_take_objects(struct journal *j, sqlite3_stmt *s, uint64_t lsn,
    uint8_t **bytes, size_t *len);

/* ---- journal_shared.c; commit_lock is held ---- */

/* Reads when the journal has joined, or 0 for never, and returns an SQLite
 * code. */
int journal_read_joined(struct journal *j, uint64_t *ms);
/* Adds the rows of C to SHARED, where WANTED is of journal_set_shared(), and
 * returns 0 or -EINVAL. */
int journal_add_shared(const struct journal *j, struct journal_shared *shared,
    const uint8_t wanted[16], const struct journal_commit *c);

/* ---- journal_waiting.c; commit_lock is held ---- */

/* Can the journal have ROW as a row that waits? */
bool journal_is_late(const struct journal *j, const struct journal_row *row);
/* Within a transaction; returns an SQLite code. */
int journal_write_waiting(struct journal *j, const struct journal_row *row);
/* ROW has been applied, so ROW waits no longer. SQLITE_CONSTRAINT: the row does
 * not wait. */
int journal_end_waiting(struct journal *j, const struct journal_row *row);

/* ---- journal_repo.c ---- */

/* Sets REPO->id, within a transaction and under commit_lock, and returns an
 * SQLite code. */
int journal_put_repo(struct journal *j, struct journal_repo *repo);

/* ---- journal_values.c ---- */

/* Within a transaction and under commit_lock, and both return SQLite codes. */
int journal_write_values(struct journal *j, const struct journal_row *row);
/* The values of NEXT become all values, and without NEXT there are none. */
int journal_set_values(struct journal *j, journal_given_fn *next, void *arg);

/* ---- journal_reader.c ---- */

/* An SQLite code. */
int journal_reader_connect(struct journal_reader *reader);
void journal_reader_disconnect(struct journal_reader *reader);

/* ---- journal_chain.c; commit_lock is held ---- */

/* Writes CHAIN, which ends with the last trimmed row, within a transaction, and
 * returns an SQLite code. */
int journal_write_chain(struct journal *j, const struct journal_chain *chain);

/* ---- journal_look.c ---- */

/* Before any connection. */
int journal_look_at_wal(struct journal *j, char **why);

/* ---- journal_checksum.c ---- */

uint32_t journal_checksum(const struct journal_row *row);
/* Everything in ROW but the body, as bytes, for the checksum and the chain. */
#define JOURNAL_HEAD_BYTES 120
void journal_put_head(const struct journal_row *row,
    uint8_t head[JOURNAL_HEAD_BYTES]);
/* Of the objects of row LSN. */
uint32_t journal_objects_checksum(uint64_t lsn, const uint8_t *bytes,
    size_t len);
/* The checksum of the journal's uuid and machine, and of the arguments. */
void journal_seal(const struct journal *j, const struct journal_meta *meta,
    uint64_t flushed, uint8_t seal[JOURNAL_SEAL_BYTES]);

/* ---- journal_wal.c ---- */

/* After a commit that began the WAL anew. */
void journal_wal_began(struct journal *j);
/* A COMMIT of NR frames failed in a write: can the last frame be whole, so that
 * a crash would commit the transaction? */
bool journal_wal_may_hold(struct journal *j, int nr);

#endif
