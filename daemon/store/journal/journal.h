/*
 * The journal: SQLite in WAL mode. Its commit, and a flush that follows it, are
 * the commit point of a window. The only module that includes sqlite3.
 *
 * The daemon appends rows through the commit log (commit_log.h), which is built
 * on these calls and opens a broken journal again. Here is everything that is
 * not the log: the registry of repositories, deferred rows, look-ups by id,
 * reads for history, forgetting, checkpoint, trimming, statistics, and a view of
 * the journal beside its writer.
 *
 * Rules that keep SQLite honest here, each with its reason:
 *  - wal_autocheckpoint=0, mmap_size=0, no chunk size, no size hint: a COMMIT
 *    must never checkpoint in its path; a read error must not be SIGBUS;
 *    extending by fallocate makes XFS crawl.
 *  - A commit that fails before its sync is definite (-ENOSPC, -EIO); a
 *    failed *sync* is JOURNAL_UNKNOWN whatever its errno, since the frames may
 *    or may not be on disk, and the journal must be reopened.
 *  - No SQLite checkpoint starts between one that completed (log == ckpt) and
 *    the end of the next commit: before 3.51.3 that corrupts the database
 *    (the "WAL-reset bug").
 *  - Commits are made under synchronous=NORMAL, never OFF: the WAL's header must
 *    be on disk before frames are written over old ones, and the database file
 *    before the WAL begins anew, or a cut corrupts it. The flush is ours, so
 *    that others can commit meanwhile.
 *  - What was read from a killed daemon's WAL was perhaps never synced:
 *    journal_open() runs wal_checkpoint(TRUNCATE) on a connection that has
 *    read, asserts that it did something (log >= 0), and only then returns.
 *
 * Threads: journal_append() and journal_forget() exclude each other inside
 * and may be called from any thread. journal_checkpoint() from one thread of
 * its own. Each reader (struct journal_reader) belongs to one thread. Every
 * call may block. Nothing logs. SQLite's file I/O goes through the VFS that
 * the configuration names, so that a test can put a fake disk beneath it.
 */
#ifndef STORE_JOURNAL_H
#define STORE_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/sys.h"
#include "daemon/store/journal/commit_log.h"

struct journal_reader;

struct journal_repo {
	uint64_t id; /* 1.. */
	uint8_t uuid[16];
	char *path; /* last known common dir */
	uint64_t dev, ino;
	uint64_t epoch; /* of its registration: journal_flush_repos() */
};

struct journal_start {
	uint64_t id;
	char boot_id[40];
};

/* Looks at a journal that was read and is not changed yet, by _each_repo,
 * _last_lsn, _uuid and _owner: is all there that must be? 0, or a negative
 * errno and *WHY. */
typedef int journal_check_fn(void *arg, struct journal *j, char **why);

struct journal_config {
	const struct sys *sys; /* for what SQLite has no call for */
	const char *dir;       /* the state directory, whose flock the
				   caller holds; "journal.db" is made there */
	const char *vfs;       /* NULL: SQLite's own */
	const char *boot_id;   /* /proc/sys/kernel/random/boot_id */
	bool adopt;            /* another machine's: it is this one's now */
	/* An opened journal's WAL has this many bytes of zeros at least: a
	 * commit that overwrites them needs one flush of the device, where a
	 * growing file needs two. None where the disk has less. */
	uint64_t wal_room;
	journal_check_fn *check; /* or NULL */
	void *check_arg;
};

/*
 * Opens or creates the journal and makes all of it, the directory entries too,
 * durable. It can be read, and written after journal_claim(). CFG is copied.
 * *WHY, to be freed, is a sentence. -EBADMSG: corrupt, or not refd's. -EPROTO:
 * of a newer format, or of an older one and not finished. -EXDEV: another
 * machine's. -EBUSY: somebody else is at work in it. -ENOSPC, -EROFS, -EACCES,
 * ... What its first bytes refuse is left as it is.
 */
int journal_open(const struct journal_config *cfg, struct journal **journal,
    char **why);
/* Registers this start of the daemon, durably. Once. 0 or negative errno, and
 * *WHY, to be freed. */
int journal_claim(struct journal *j, char **why);
/* To read it beside whoever writes: no start is registered, nothing is
 * checkpointed, and what is read need not last. Only for the calls that read
 * it as it is (journal_scan, journal_each_*, _uuid, _forgotten, _last_lsn: the
 * last two as of now). -ENOENT: there is none. */
int journal_view(const struct journal_config *cfg, struct journal **journal,
    char **why);
void journal_view_close(struct journal *j);
/* Writes what was to be forgotten, checkpoints fully and closes; the WAL is
 * gone afterwards when it could. Closed and freed whatever it returns;
 * JOURNAL_UNKNOWN when it awaited journal_reopen(). Readers are closed
 * before. */
int journal_close(struct journal *j);
/* After JOURNAL_UNKNOWN: closes everything, drops the files from the page
 * cache, opens again (registers no new start). Waits for calls that read;
 * readers live on. Until it has returned 0, everything else returns
 * JOURNAL_UNKNOWN; it may be called again. */
int journal_reopen(struct journal *j, char **why);

/* What may be the reason if rows are missing; to be freed. */
char *journal_wal_doubt(const struct journal *j);
/* A sentence about the first damaged row that was read, to be freed; NULL: none
 * was. Any call that reads rows returns -EUCLEAN for such a row. */
char *journal_damage(struct journal *j);

const uint8_t *journal_uuid(const struct journal *j); /* 16 bytes */
/* Whose file it is. */
uint32_t journal_owner(const struct journal *j);
uint64_t journal_this_start(const struct journal *j);
int journal_each_start(struct journal *j,
    int (*cb)(void *arg, const struct journal_start *start), void *arg);

/* REPO's uuid, path, dev and ino are used; id and epoch are set. A known uuid
 * keeps its id and gets the new path. Nothing is flushed. */
int journal_register_repo(struct journal *j, struct journal_repo *repo);
/* Does all that was registered in EPOCH last? */
bool journal_repos_last(struct journal *j, uint64_t epoch);
/* Makes it last, by one flush where none has followed. 0; JOURNAL_UNKNOWN;
 * -ESTALE: the journal was reopened since, and may have lost it. */
int journal_flush_repos(struct journal *j, uint64_t epoch);
/* That of UUID, if it is known. */
int journal_find_repo(struct journal *j, const uint8_t uuid[16],
    int (*cb)(void *arg, const struct journal_repo *repo), void *arg);
int journal_each_repo(struct journal *j,
    int (*cb)(void *arg, const struct journal_repo *repo), void *arg);

/* One SQLite transaction for all that came while another was under way. A power
 * cut may lose the rows, the last ones first, and nothing worse, until a flush
 * has followed. LSNs ascend in the order of ROWS. 0; negative errno: definitely
 * nothing happened; JOURNAL_UNKNOWN. */
int journal_append(struct journal *j, struct journal_row *rows, size_t nr,
    struct journal_mark *mark);
/* Flushes what MARK says, with whoever else waits. 0 or JOURNAL_UNKNOWN. */
int journal_flush_to(struct journal *j, const struct journal_mark *mark);
/* Both, the second only with FLUSH. A broken journal is not opened again. */
int journal_commit(struct journal *j, struct journal_row *rows, size_t nr,
    bool flush);
/* Are there rows that no flush has followed yet? */
bool journal_is_unflushed(struct journal *j);
/* That flush. 0 or JOURNAL_UNKNOWN. */
int journal_flush(struct journal *j);
/* The highest LSN that the journal knows of on disk. */
uint64_t journal_lasting(struct journal *j);

/* Replay is not needed up to and including LSN, the last one written at most.
 * Rides with the next commit; NOW: commits by itself, with a flush, unless that
 * and all before it is on disk already. A lower LSN than before changes
 * nothing. */
int journal_forget(struct journal *j, uint64_t lsn, bool now);
/* Takes back what journal_forget() was told and no commit has written: the
 * rows that were to be written with it are not there. */
void journal_unforget(struct journal *j);
/* The highest LSN given to journal_forget(), also when it has not been
 * written yet: a crash that loses it costs a replay that was not needed. */
uint64_t journal_forgotten(struct journal *j);
uint64_t journal_last_lsn(struct journal *j);

/* Rows in LSN order after AFTER; a callback that returns non-zero stops it
 * and is returned. ROW is valid during the callback, which may call anything
 * here but journal_reopen() and journal_close(). Any thread, as the other
 * journal_each_*. JOURNAL_UNKNOWN while journal_reopen() is due: what is not
 * seen now may be seen then. */
int journal_scan(struct journal *j, uint64_t after,
    int (*cb)(void *arg, const struct journal_row *row), void *arg);

/* The deferred rows that are open; of one repository, or of all (0). Otherwise
 * as journal_scan(). */
int journal_each_deferred(struct journal *j, uint64_t repo,
    int (*cb)(void *arg, const struct journal_row *row), void *arg);

/* Takes all deferred rows of REPO off the list, durably. *NR: how many. */
int journal_drop_deferred(struct journal *j, uint64_t repo, uint64_t *nr);

/* Is there a row of REPO's, not forgotten, of another mount than MOUNT? */
int journal_is_elsewhere(struct journal *j, uint64_t repo, uint64_t mount,
    bool *is_elsewhere);

/* A connection of its own for look-ups, beside the committer. */
int journal_reader_open(struct journal *j, struct journal_reader **reader);
void journal_reader_close(struct journal_reader *reader);
/* All rows of a transaction, and their abort records (of the same id), in LSN
 * order: of the peer UID, or of anybody's. Otherwise as journal_scan(). */
#define JOURNAL_ANY_UID (-1)
int journal_lookup(struct journal_reader *reader, int64_t uid,
    const struct refd_txid *txid,
    int (*cb)(void *arg, const struct journal_row *row), void *arg);

/* The largest transaction id there is, all zeroes where there is none.
 * Otherwise as journal_scan(). */
int journal_newest_id(struct journal_reader *reader, struct refd_txid *newest);

/* ---- for history ---- */

/* At most MAX rows with AFTER < lsn < BEFORE, ascending or (DOWN) descending.
 * Otherwise as journal_lookup(). */
int journal_read(struct journal_reader *reader, uint64_t after, uint64_t before,
    bool down, unsigned max,
    int (*cb)(void *arg, const struct journal_row *row), void *arg);
/* The rows that refer to LSN. */
int journal_read_about(struct journal_reader *reader, uint64_t lsn,
    int (*cb)(void *arg, const struct journal_row *row), void *arg);
/* Of the database file, without what is free in it. */
int journal_used_bytes(struct journal_reader *reader, uint64_t *bytes);

/*
 * Takes all rows up to LSN out, but for deferred ones. KEEP are those of them
 * whose ids must still be known, with bodies as a look-up needs them: it finds
 * those on. Ids that are less than EXPIRED are not known any more afterwards
 * (some of them: of very many, with the next calls). LSN must not be beyond
 * what was forgotten: -EBUSY.
 *
 * Not synced: a crash may bring the rows back, and they are to be trimmed
 * again. Holds the committer's lock; so the fewer rows the better.
 */
int journal_trim(struct journal *j, uint64_t lsn,
    const struct journal_row *keep, size_t nr, const struct refd_txid *expired);
/* Rows up to here are gone, but for deferred ones. */
uint64_t journal_trimmed(struct journal *j);

/*
 * Moves WAL frames into the database file, in small steps and by the rule
 * above; when to, the caller knows. Beyond WAL_MAX_BYTES it waits for the
 * committer once, so that the WAL can start over. JOURNAL_UNKNOWN when a sync
 * or any other I/O failed: the journal must be reopened. -ENOSPC: the WAL
 * stays and grows, nothing is lost.
 */
int journal_checkpoint(struct journal *j, uint64_t wal_max_bytes);

/* For how long the oldest flush is under way; 0: none is. Never blocks. */
int64_t journal_flush_hangs_ns(struct journal *j);
/* How long a flush takes, of late. */
int64_t journal_flush_ns(struct journal *j);

#define JOURNAL_NAME "journal.db"

struct journal_stats {
	uint64_t commits;
	uint64_t flushes;     /* and one more each time the WAL began anew */
	uint64_t wal_bytes;   /* of frames in use */
	uint64_t checkpoints; /* that were started */
	uint64_t repos;       /* that were new, or had moved */
	size_t waiting;       /* commits, for one that is under way, or for
				   a flush that is to follow it */
};
void journal_stats(struct journal *j, struct journal_stats *stats);

#endif
