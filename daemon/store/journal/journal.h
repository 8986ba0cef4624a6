/*
 * The journal: SQLite in WAL mode. A commit, and a flush after the commit, are
 * the commit point of a batch. The only module that includes sqlite3.
 *
 * The daemon appends rows through the commit log (commit_log.h), which uses
 * these calls and opens a broken journal again. This header has everything
 * beside the log: the registry of repositories, deferred rows, look-ups by id,
 * reads for history, forgetting, checkpoint, trimming, statistics, and a view
 * of the journal beside its writer.
 *
 * Rules that keep SQLite safe here, with their reasons:
 *  - A COMMIT must never include a checkpoint, and fallocate is very slow on
 *    XFS. So wal_autocheckpoint=0, no chunk size, and no size hint.
 *  - A full or dying disk would end the process by SIGBUS if a file was mapped.
 *    So mmap_size=0, and the VFS unix-excl, which keeps the index of the WAL in
 *    the memory of this process. The database is locked against other
 *    processes, except for a view.
 *  - A commit that fails before its sync is definite (-ENOSPC, -EIO). A failed
 *    *sync* is JOURNAL_UNKNOWN whatever the errno, because the frames may or
 *    may not be on disk. Then the journal must be reopened.
 *  - No SQLite checkpoint starts between a completed checkpoint (log == ckpt)
 *    and the end of the next commit, because before 3.51.3 the database would
 *    be corrupted (the "WAL-reset bug").
 *  - The WAL header must be on disk before frames overwrite old frames, and the
 *    database file before the WAL begins anew, since otherwise a power loss
 *    corrupts the database. So commits run under synchronous=NORMAL, never OFF.
 *    refd flushes, not SQLite, so that other commits can go on meanwhile.
 *  - Frames read from the WAL of a crashed daemon may never have been synced,
 *    so journal_open() runs wal_checkpoint(TRUNCATE) before it returns. A
 *    connection that never read does nothing and reports success. So the
 *    connection has read, and journal_open() checks that the checkpoint did
 *    something (log >= 0).
 *
 * Threads: any thread may call journal_append() and journal_forget(), which
 * exclude each other. journal_checkpoint() runs on one thread of its own. Each
 * reader (struct journal_reader) belongs to one thread. Every call may block.
 * Nothing logs. SQLite's file I/O goes through the VFS of the configuration, so
 * a test can put a fake disk beneath.
 */
#ifndef STORE_JOURNAL_H
#define STORE_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/sys.h"
#include "daemon/store/journal/commit_log.h"
#include "proto/lib/sha.h"
#include "proto/limits.h"

struct journal_reader;

struct journal_repo {
	uint64_t id; /* 1.. */
	uint8_t uuid[16];
	char *path;        /* last known common dir */
	uint64_t dev, ino; /* zeros: it came by a join, and was never opened */
	uint64_t epoch;    /* of the registration: journal_flush_repos() */
};

struct journal_start {
	uint64_t id;
	bool is_of_boot;
	/* This start was in this boot, and wrote the same file. If a snapshot
	 * or a copy has taken the place of the journal, the file is another
	 * one. A snapshot is made of what was on disk, so memory does not have
	 * all that the rows of the snapshot say. */
	bool is_of_memory;
};

/* Checks a journal that was read and not yet changed, with _each_repo,
 * _last_lsn, _uuid and _owner. Returns 0 if every expected row is there, or a
 * negative errno and *WHY. */
typedef int journal_check_fn(void *arg, struct journal *j, char **why);

struct journal_config {
	const struct sys *sys; /* for calls that SQLite lacks */
	/* the state directory, where "journal.db" is made, and whose flock the
	 * caller holds */
	const char *dir;
	const char *vfs;     /* NULL: SQLite's unix-excl */
	const char *boot_id; /* /proc/sys/kernel/random/boot_id */
	bool adopt;          /* take over another machine's journal */
	/* The least size of an opened journal's WAL, with zeros at the end,
	 * because a commit that overwrites zeros needs one flush of the device,
	 * and a growing file two. On a full disk there are no zeros. */
	uint64_t wal_room;
	journal_check_fn *check; /* or NULL */
	void *check_arg;
};

/*
 * Opens or creates the journal and makes all of it durable, including the
 * directory entries. The journal can be read, and written after
 * journal_claim(). CFG is copied. *WHY, to be freed, is a sentence. -EBADMSG:
 * corrupt, or not a journal of refd. -EPROTO: of another format. -EXDEV: of
 * another machine. -EBUSY: another process is at work there. -ENOSPC, -EROFS,
 * -EACCES, ... A journal refused by its first bytes is unchanged.
 */
int journal_open(const struct journal_config *cfg, struct journal **journal,
    char **why);
/* Registers this start of the daemon, durably and only once, and before
 * journal_each_start(), which compares the starts with this one. Returns 0, or
 * a negative errno and *WHY, to be freed. */
int journal_claim(struct journal *j, char **why);
/* Opens the journal for reading beside a daemon in another process: changes no
 * file, registers no start, and rows need not be durable. A journal that the
 * daemon would refuse is refused. The daemon makes no checkpoint during a
 * callback, unless the callback takes very long. Then the call returns -EAGAIN,
 * because its callbacks may have got wrong rows. Only for journal_scan,
 * journal_each_*, readers, _uuid, _forgotten, _last_lsn and _shared_lsn (the
 * last three as of now), all in one thread. Returns -ENOENT without a journal,
 * and -EBUSY if a checkpoint takes long. */
int journal_view(const struct journal_config *cfg, struct journal **journal,
    char **why);
void journal_view_close(struct journal *j);
/* Writes the pending journal_forget(), checkpoints fully and closes, so the WAL
 * is empty afterwards, if possible. J is closed and freed whatever the result
 * is; JOURNAL_UNKNOWN: J needed journal_reopen(). Close the readers first,
 * because they use J. */
int journal_close(struct journal *j);
/* After JOURNAL_UNKNOWN: closes everything, drops the files from the page
 * cache, opens again (registers no new start). Waits for readers at work,
 * because an open connection would keep the old state. The readers live on.
 * Until 0 is returned, all other calls return JOURNAL_UNKNOWN, and the call may
 * be repeated. */
int journal_reopen(struct journal *j, char **why);

/* A possible reason for missing rows, to be freed by the caller. */
char *journal_wal_doubt(const struct journal *j);
/* A sentence about the first damaged row or page that was read, to be freed, or
 * NULL if none was read. Any call that reads a damaged row returns -EUCLEAN. */
char *journal_damage(struct journal *j);
/* Has a damaged row or page been read? Never blocks on the disk. */
bool journal_is_damaged(struct journal *j);

const uint8_t *journal_uuid(const struct journal *j); /* 16 bytes */
/* The owner of the file. */
uint32_t journal_owner(const struct journal *j);
uint64_t journal_this_start(const struct journal *j);
int journal_each_start(struct journal *j,
    int (*cb)(void *arg, const struct journal_start *start), void *arg);

/* Uses REPO's uuid, path, dev and ino, and sets id and epoch. A known uuid
 * keeps its id and gets the new path. Nothing is flushed, because the next
 * flush of commits covers the registration, too. */
int journal_register_repo(struct journal *j, struct journal_repo *repo);
/* Are all registrations of EPOCH durable? */
bool journal_repos_are_durable(struct journal *j, uint64_t epoch);
/* Makes the registrations durable, with one flush unless a flush has followed.
 * Returns 0, JOURNAL_UNKNOWN, or -ESTALE: the journal was reopened since, so
 * the registrations may be lost. */
int journal_flush_repos(struct journal *j, uint64_t epoch);
/* The repository with UUID, if known. */
int journal_find_repo(struct journal *j, const uint8_t uuid[16],
    int (*cb)(void *arg, const struct journal_repo *repo), void *arg);
int journal_each_repo(struct journal *j,
    int (*cb)(void *arg, const struct journal_repo *repo), void *arg);

/* Writes the rows of all callers that arrived during the last transaction, in
 * one SQLite transaction. Until a flush has followed, a power loss may lose
 * rows, the last ones first, and nothing else. LSNs ascend in the order of
 * ROWS. Returns 0, JOURNAL_UNKNOWN, or a negative errno if definitely nothing
 * happened (-EINVAL: a shared_lsn is wrong, or of another log). */
int journal_append(struct journal *j, struct journal_row *rows, size_t nr,
    struct journal_mark *mark);
/* Flushes up to MARK, in a flush that other callers share, and returns 0 or
 * JOURNAL_UNKNOWN. */
int journal_flush_to(struct journal *j, const struct journal_mark *mark);
/* Calls journal_append() and, with FLUSH, then journal_flush_to(). A broken
 * journal is not opened again. */
int journal_commit(struct journal *j, struct journal_row *rows, size_t nr,
    bool flush);
/* Are there rows without a later flush? */
bool journal_is_unflushed(struct journal *j);
/* Flushes the rows without a later flush, and returns 0 or JOURNAL_UNKNOWN. */
int journal_flush(struct journal *j);
/* The highest LSN that is known to be on disk. */
uint64_t journal_durable_lsn(struct journal *j);

/* Rows up to LSN (at most the last written) need no replay. The LSN is written
 * with the next commit, or, with NOW, in a commit of its own with a flush,
 * unless all is on disk already. A lower LSN than before changes nothing. */
int journal_forget(struct journal *j, uint64_t lsn, bool now);
/* Undoes a journal_forget() that no commit has written, because the other rows
 * of the same commit are missing. */
void journal_unforget(struct journal *j);
/* The highest LSN given to journal_forget(), written or not, because a crash
 * that loses the LSN costs only an unneeded replay. */
uint64_t journal_forgotten(struct journal *j);
/* The highest LSN that is forgotten on disk, so no later start replays rows up
 * to this LSN, except for deferred rows. */
uint64_t journal_forgotten_durably(struct journal *j);
uint64_t journal_last_lsn(struct journal *j);

/* ---- rows that other machines have, too ---- */

/* Shared rows that wait, because this node has the rows, but cannot apply them
 * yet. JOURNAL_WAITING adds a row. */
struct journal_waiting {
	uint64_t lsn; /* in the shared log */
	uint8_t repo[16];
	bool has_place; /* no later row has its repository there */
	uint8_t *bytes; /* the body of the row; owned */
	size_t len;
};
/* The first row of each repository, in the order of their LSNs, without bytes.
 * A non-zero result of CB ends the reading and is returned. Any thread. CB runs
 * under a lock of the journal, so CB calls no function here. Negative errno or
 * JOURNAL_UNKNOWN. */
int journal_each_waiting(struct journal *j,
    int (*cb)(void *arg, const struct journal_waiting *row), void *arg);
/* The first row of REPO, or -ENOENT if there is none, or -EUCLEAN if the row is
 * damaged. Otherwise as above. */
int journal_read_waiting(struct journal *j, const uint8_t repo[16],
    struct journal_waiting *row);
/* A later row has REPO at PATH. So any other repository of a row that waits has
 * left PATH, and has left all paths above and below PATH. The change is durable
 * with the next row. Returns 0, JOURNAL_UNKNOWN, or a negative errno if nothing
 * was done. */
int journal_take_place(struct journal *j, const uint8_t repo[16],
    const uint8_t *path, size_t len);

/* The last value that a shared row gave a ref of refs/. */
struct journal_value {
	uint64_t lsn; /* of this row */
	bool exists;  /* OID is the value. Neither OID nor TARGET: no ref */
	struct refd_oid oid;
	char *target; /* of a symbolic ref; owned; or NULL */
};
/* The value of REF in the repository with the number REPO, durable or not.
 * Returns 1, or 0 if no shared row has changed the ref yet, or a negative
 * errno, which is -EIO for a journal that has failed. Sets *VALUE in all cases,
 * so the caller can always free the target. Any thread. */
int journal_find_value(struct journal *j, uint64_t repo, const char *ref,
    struct journal_value *value);
/* A place in the order of all values; zeros: before the first one. */
struct journal_place {
	uint64_t repo;
	char ref[REFD_REFNAME_MAX + 1];
	char path[REFD_PATH_MAX]; /* of the repository, when last known */
};
/* Moves AT to the next value, and sets *VALUE. Returns 1, or 0 if there is no
 * next value, and otherwise as above. */
int journal_next_value(struct journal *j, struct journal_place *at,
    struct journal_value *value);
/* Do the values say that the repository with the number REPO has a ref? Returns
 * 1, 0, or a negative errno as above. */
int journal_has_living_value(struct journal *j, uint64_t repo);
/* Has a shared row given a name above or below REF a value, so that REF has no
 * room? Returns as journal_find_value(), with the name in FOUND. */
int journal_find_value_around(struct journal *j, uint64_t repo, const char *ref,
    char found[REFD_REFNAME_MAX + 1]);

/* The highest shared_lsn of all rows. Rows that wait, rows that are not durable
 * yet, and trimmed rows count, too. After journal_join() and before the first
 * row, the LSN of journal_join(). 0 if the journal never had a shared row. Any
 * thread may call this function and the next four. */
uint64_t journal_shared_lsn(struct journal *j);
/* Do other machines have the rows, too? Also false after journal_leave(), until
 * a shared row follows. */
bool journal_shares_rows(struct journal *j);
/* When the node joined others, in milliseconds since 1970; 0: never. The
 * journal begins behind the rows of the copies, so only other nodes have the
 * outcomes of some ids that were born before. */
uint64_t journal_joined_ms(struct journal *j);
/* UUID becomes the uuid of the shared log, or zeros before the first shared
 * row. */
void journal_shared_uuid(struct journal *j, uint8_t uuid[16]);
/* Binds the journal to the shared log UUID. UUID is written with the next
 * shared row, so before this row nothing is bound. Only the written UUID
 * outlives an opening, so call again after each opening. A journal never
 * changes its shared log. So shared rows are refused without UUID, or if UUID
 * differs from the written one. */
void journal_set_shared(struct journal *j, const uint8_t uuid[16]);
/* A value of a ref in a copy of another node. */
struct journal_given {
	struct journal_repo repo; /* UUID and PATH; an ID of 0 is looked up */
	const char *ref;
	struct journal_value value;
};
/* Returns 1 and sets *GIVEN, whose strings stay until the next call, or 0 if
 * there are no more values, or a negative errno. */
typedef int journal_given_fn(void *arg, struct journal_given *given);
/* The node joins with copies of another node, which have the shared rows up to
 * LSN, and may have later rows. JOINED_MS: the time by the clock of the shared
 * log, because the clock of this machine may differ; 0: now. NEXT gives the
 * values of their refs, each with the LSN of the last row that the value can be
 * of, or is NULL if they are not known. Only while nothing else uses the
 * journal. Returns 0 if all of it is durable, JOURNAL_UNKNOWN, or a negative
 * errno if nothing happened; -EEXIST: the journal has rows. */
int journal_join(struct journal *j, uint64_t lsn, uint64_t joined_ms,
    journal_given_fn *next, void *arg);
/* The node leaves the others, and the uuid becomes a uuid of proto/left_log.h.
 * A repeated call changes nothing. Only while nothing else uses the journal.
 * Returns 0 if the change is durable, JOURNAL_UNKNOWN, or a negative errno if
 * nothing happened; -EBUSY: a row waits; -ERANGE: the LSN is too high. */
int journal_leave(struct journal *j);

/* Reads the rows after AFTER in LSN order. A non-zero result of CB ends the
 * scan and is returned. ROW is valid during the callback, which may call any
 * function here except journal_reopen() and journal_close(). Any thread, as for
 * the other journal_each_*. JOURNAL_UNKNOWN while journal_reopen() is due,
 * because rows invisible now may be visible then. */
int journal_scan(struct journal *j, uint64_t after,
    int (*cb)(void *arg, const struct journal_row *row), void *arg);

/* The open deferred rows of one repository, or of all (0), and otherwise as
 * journal_scan(). */
int journal_each_deferred(struct journal *j, uint64_t repo,
    int (*cb)(void *arg, const struct journal_row *row), void *arg);

/* The objects of row LSN (journal_row.objects), to be freed. *LEN is 0 if the
 * row has none, or is forgotten. Returns -EUCLEAN if the objects are damaged,
 * and otherwise as journal_scan(). */
int journal_read_objects(struct journal *j, uint64_t lsn, uint8_t **bytes,
    size_t *len);
/* Deletes the objects of all forgotten rows, except of rows to which a deferred
 * row refers. Nothing is flushed, because nobody reads objects that come back.
 * Returns 0, JOURNAL_UNKNOWN, or a negative errno: some are left, so the next
 * call deletes them. */
int journal_drop_objects(struct journal *j);
/* The bytes of all objects in the journal, about, which are known since the
 * first journal_drop_objects(). Never blocks on the disk. */
uint64_t journal_objects_bytes(struct journal *j);

/* Takes all deferred rows of REPO off the list, durably. *NR: how many rows
 * were on the list. */
int journal_drop_deferred(struct journal *j, uint64_t repo, uint64_t *nr);

/* Does REPO have a row, not forgotten, of another mount than MOUNT? */
int journal_is_elsewhere(struct journal *j, uint64_t repo, uint64_t mount,
    bool *is_elsewhere);

/* A separate connection for look-ups, beside the committer. */
int journal_reader_open(struct journal *j, struct journal_reader **reader);
void journal_reader_close(struct journal_reader *reader);
/* All rows of a transaction, and their abort records (of the same id), in LSN
 * order: of the peer UID, or of anybody's. Otherwise as journal_scan(). */
#define JOURNAL_ANY_UID (-1)
int journal_lookup(struct journal_reader *reader, int64_t uid,
    const struct refd_txid *txid,
    int (*cb)(void *arg, const struct journal_row *row), void *arg);

/* The largest transaction id there is, or zeroes where there is none, and
 * otherwise as journal_scan(). */
int journal_newest_id(struct journal_reader *reader, struct refd_txid *newest);

/* ---- for history ---- */

/* At most MAX rows with AFTER < lsn < BEFORE, ascending or (DOWN) descending,
 * and otherwise as journal_lookup(). */
int journal_read(struct journal_reader *reader, uint64_t after, uint64_t before,
    bool down, unsigned max,
    int (*cb)(void *arg, const struct journal_row *row), void *arg);
/* The first and the last row in AFTER < lsn < BEFORE, whole or damaged, or 0 if
 * there is none. */
int journal_ends_between(struct journal_reader *reader, uint64_t after,
    uint64_t before, uint64_t *first, uint64_t *last);
/* Calls CB for each row about the row LSN, for example an abort, and then for
 * each row about one of these rows. */
int journal_read_about(struct journal_reader *reader, uint64_t lsn,
    int (*cb)(void *arg, const struct journal_row *row), void *arg);
/* The repository UUID, or, if UUID is NULL, number ID, whose path the caller
 * frees. -ENOENT: not known. */
int journal_read_repo(struct journal_reader *reader, uint64_t id,
    const uint8_t *uuid, struct journal_repo *repo);

/*
 * The chain: a digest of all rows up to LSN, the SHA-256 of the digest of the
 * rows before and of all that the row has, except for its objects. The digest
 * depends on the rows alone, so a changed or missing row changes the digest.
 * Zeros before the first row.
 */
struct journal_chain {
	uint64_t lsn;
	uint8_t digest[SHA256_BYTES];
};
void journal_chain_add(struct journal_chain *chain,
    const struct journal_row *row);
/* The chain of the trimmed rows, with which the chain of the others begins.
 * Zeros, if rows were trimmed by a refd without chains. Otherwise as
 * journal_lookup(). */
int journal_chain_start(struct journal_reader *reader,
    struct journal_chain *chain);
/* The line of refd log --head, and back: the journal's uuid, the LSN and the
 * digest. Returns TEXT. False: TEXT is no such line. */
#define JOURNAL_CHAIN_TEXT 136
char *journal_chain_text(const uint8_t uuid[16],
    const struct journal_chain *chain, char text[JOURNAL_CHAIN_TEXT]);
bool journal_chain_parse(const char *text, uint8_t uuid[16],
    struct journal_chain *chain);

/*
 * Deletes all rows up to UPTO, the end of their chain, except deferred rows.
 * KEEP: the deleted rows with ids that must remain known, with bodies for a
 * look-up, which still finds them. Ids less than EXPIRED become unknown (if
 * there are many, in several calls). -EBUSY: UPTO is beyond the forgotten LSN.
 *
 * Not synced, because a crash only brings the rows back, to be trimmed again.
 * Holds the committer's lock, so pass few rows.
 */
int journal_trim(struct journal *j, const struct journal_chain *upto,
    const struct journal_row *keep, size_t nr, const struct refd_txid *expired);
/* Rows up to here are gone, except deferred rows. */
uint64_t journal_trimmed(struct journal *j);

/*
 * Moves WAL frames into the database file, in small steps and by the rule
 * above, when the caller wants this. Beyond WAL_MAX_BYTES the call stops the
 * committer once, so that the WAL can start over, and waits some seconds for a
 * view. JOURNAL_UNKNOWN when a sync or any other I/O failed: the journal must
 * be reopened. -ENOSPC, or -EBUSY beside a view: the WAL stays and grows, so
 * nothing is lost.
 */
int journal_checkpoint(struct journal *j, uint64_t wal_max_bytes);

/* For how long the oldest flush is under way, or 0 if none is. Never blocks on
 * the disk. */
int64_t journal_flush_hangs_ns(struct journal *j);
/* How long a flush takes, of late. */
int64_t journal_flush_ns(struct journal *j);

#define JOURNAL_NAME "journal.db"

struct journal_stats {
	uint64_t commits;
	uint64_t flushes;     /* plus one each time the WAL began anew */
	uint64_t wal_bytes;   /* of frames in use */
	uint64_t checkpoints; /* started checkpoints */
	uint64_t repos;       /* new or moved repositories */
	/* commits that wait for a transaction or a flush */
	size_t waiting;
};
void journal_stats(struct journal *j, struct journal_stats *stats);

#endif
