/*
 * SQLite as used by the journal: the setup of a connection, and the meaning of
 * error codes.
 *
 * Happy path: open the file, turn off all automatic work.
 *
 * For SQLite, a write stopped by a quota is an I/O error, and a write to a full
 * disk is SQLITE_FULL. So in SQLite's table of system calls our pwrite replaces
 * the kernel's, and reports both as a full disk. SQLite has one code for all
 * failures to make a file, so our open notes a full disk. Our open also gives a
 * view the copy of the WAL (journal_view.c).
 *
 * Failure modes: an SQLite code each, translated by journal_errno() if nothing
 * happened for certain. The caller decides about a failed COMMIT or checkpoint
 * by the extended code.
 */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/store/journal/journal_internal.h"

/*
 * How long a connection waits for a lock. There is no other writer. But a
 * reader that meets a half-written index of the WAL takes the writer's lock for
 * a moment, to read again. The reader may lose the processor then, so the
 * moment can be long.
 */
#define BUSY_MS 1000

/*
 * cache_spill: a transaction that outgrows the cache would write to the WAL
 * before its COMMIT, where a failure means something else.
 */
static const char settings[] = "PRAGMA synchronous=FULL;"
			       "PRAGMA wal_autocheckpoint=0;"
			       "PRAGMA mmap_size=0;"
			       "PRAGMA locking_mode=NORMAL;"
			       "PRAGMA temp_store=MEMORY;"
			       "PRAGMA cache_size=-4096;"
			       "PRAGMA cache_spill=OFF;";

/* locking_mode comes first, because only then SQLite keeps the index of the WAL
 * in the memory of the connection. Otherwise SQLite would need shared memory,
 * which the VFS of a view lacks. */
static const char view_settings[] = "PRAGMA locking_mode=EXCLUSIVE;"
				    "PRAGMA mmap_size=0;";

/* ---- writes ---- */

typedef ssize_t pwrite_fn(int fd, const void *buf, size_t len, off_t offset);

typedef int open_fn(const char *path, int flags, int mode);

static pwrite_fn *real_pwrite;
static open_fn *real_open;
/* The disk, since the last write or open that found no room. */
static _Thread_local bool is_full;
/* A copy of the WAL, for the next connection of a view. -1: none. */
static _Thread_local int wal_copy = -1;

static ssize_t pwrite_for_sqlite(int fd, const void *buf, size_t len,
    off_t offset)
{
	ssize_t n;

	n = real_pwrite(fd, buf, len, offset);
	if (n < 0 && errno == EDQUOT)
		errno = ENOSPC;
	is_full = n < 0 && errno == ENOSPC;
	return n;
}

static bool is_wal(const char *path)
{
	static const char suffix[] = "-wal";
	size_t len = strlen(path);

	return len > strlen(suffix) &&
	    strcmp(path + len - strlen(suffix), suffix) == 0;
}

/* After a failure, SQLite tries to open the file without O_CREAT, so a later
 * open does not clear IS_FULL. */
static int open_for_sqlite(const char *path, int flags, int mode)
{
	int fd;

	if (wal_copy >= 0 && is_wal(path))
		return journal_give_wal(-1);
	fd = real_open(path, flags, mode);
	if (fd < 0 && (errno == ENOSPC || errno == EDQUOT))
		is_full = true;
	return fd;
}

int journal_give_wal(int copy)
{
	int was = wal_copy;

	wal_copy = copy;
	return was;
}

/* A build of SQLite uses one of the two calls for writes, and does not know the
 * other. */
static void replace_calls(void)
{
	static const char *const names[] = { "pwrite64", "pwrite" };
	sqlite3_vfs *vfs = sqlite3_vfs_find("unix");
	size_t i;

	if (vfs == NULL || vfs->iVersion < 3)
		return;
	real_open = (open_fn *)vfs->xGetSystemCall(vfs, "open");
	if (real_open != NULL)
		vfs->xSetSystemCall(vfs, "open",
		    (sqlite3_syscall_ptr)open_for_sqlite);
	for (i = 0; i < 2; i++) {
		real_pwrite = (pwrite_fn *)vfs->xGetSystemCall(vfs, names[i]);
		if (real_pwrite == NULL)
			continue;
		vfs->xSetSystemCall(vfs, names[i],
		    (sqlite3_syscall_ptr)pwrite_for_sqlite);
		return;
	}
}

/* ---- connections ---- */

static void set_up(void)
{
	/* Otherwise each cache takes room for twenty pages at once, and most of
	 * our caches read three. */
	sqlite3_config(SQLITE_CONFIG_PAGECACHE, NULL, 0, 0);
	replace_calls();
}

int journal_connect(struct journal *j, const char *path, sqlite3 **db)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int rc,
	    flags =
		j->view.is_view ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;

	pthread_once(&once, set_up);
	*db = NULL;
	if (j->view.is_view && journal_view_copy(j) < 0)
		return SQLITE_IOERR;
	/* A connection belongs to a mutex or a thread of ours, so SQLite needs
	 * no mutex. */
	rc = sqlite3_open_v2(path, db, flags | SQLITE_OPEN_NOMUTEX, j->cfg.vfs);
	if (*db == NULL)
		return SQLITE_NOMEM;
	sqlite3_extended_result_codes(*db, 1);
	if (rc != SQLITE_OK)
		return sqlite3_extended_errcode(*db);
	sqlite3_busy_timeout(*db, BUSY_MS);
	/* A connection is also closed after a failed sync, when nothing may be
	 * copied from memory into the database file. So closing makes no
	 * checkpoint. */
	rc = sqlite3_db_config(*db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(*db,
		    j->view.is_view ? view_settings : settings, NULL, NULL,
		    NULL);
	return rc;
}

void journal_disconnect(sqlite3 **db)
{
	sqlite3_stmt *s;

	while (*db != NULL && (s = sqlite3_next_stmt(*db, NULL)) != NULL)
		sqlite3_finalize(s);
	sqlite3_close(*db);
	*db = NULL;
}

int journal_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **stmt)
{
	return sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, stmt,
	    NULL);
}

int journal_run(sqlite3_stmt *stmt)
{
	int rc;

	while ((rc = sqlite3_step(stmt)) == SQLITE_ROW)
		;
	sqlite3_reset(stmt);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int journal_query(sqlite3 *db, const char *sql, uint64_t a, uint64_t b,
    int64_t *value)
{
	sqlite3_stmt *s = NULL;
	int rc = journal_prepare(db, sql, &s);

	if (rc != SQLITE_OK)
		return rc;
	if (sqlite3_bind_parameter_count(s) > 0)
		sqlite3_bind_int64(s, 1, journal_signed(a));
	if (sqlite3_bind_parameter_count(s) > 1)
		sqlite3_bind_int64(s, 2, journal_signed(b));
	while ((rc = sqlite3_step(s)) == SQLITE_ROW)
		if (value != NULL)
			*value = sqlite3_column_int64(s, 0);
	sqlite3_finalize(s);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int journal_errno(int rc)
{
	if (is_full && (rc & 0xff) == SQLITE_CANTOPEN)
		return -ENOSPC;
	switch (rc & 0xff) {
	case SQLITE_OK:
		return 0;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return -EBADMSG;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EBUSY;
	case SQLITE_READONLY:
		return -EROFS;
	case SQLITE_PERM:
		return -EACCES;
	case SQLITE_TOOBIG:
		return -EFBIG;
	case SQLITE_CONSTRAINT:
		return -EINVAL;
	}
	return -EIO;
}

int journal_say(char **why, int r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(why, fmt, ap) < 0)
		*why = NULL;
	va_end(ap);
	return r;
}

int journal_say_sql(const struct journal *j, char **why, int rc, sqlite3 *db,
    const char *doing)
{
	if (journal_errno(rc) == -ENOSPC)
		return journal_say(why, -ENOSPC,
		    "%s: no space is left in the file system of '%s': make "
		    "room there",
		    doing, j->cfg.dir);
	return journal_say(why, journal_errno(rc), "%s: %s (SQLite %d)", doing,
	    db != NULL ? sqlite3_errmsg(db) : sqlite3_errstr(rc), rc);
}
