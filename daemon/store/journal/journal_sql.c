/*
 * SQLite as used by the journal: the setup of a connection, and the meaning of
 * error codes.
 *
 * Happy path: open the file, turn off all automatic work.
 *
 * In SQLite's table of system calls our pwrite replaces the kernel's. For
 * SQLite, a write stopped by a quota is an I/O error, and a write to a full
 * disk is SQLITE_FULL: our pwrite reports both as a full disk. Our pwrite also
 * writes whole pages of the index of a WAL. Open and pwrite note a full disk:
 * SQLite has one code for all failures to make a file, or to enlarge the index.
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
 * There is no other writer. But a reader that meets a half-written index of the
 * WAL takes the writer's lock for a moment to read again. If the reader loses
 * the processor then, the moment is long.
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

/* ---- writes ---- */

#define PAGE_BYTES 4096

typedef ssize_t pwrite_fn(int fd, const void *buf, size_t len, off_t offset);

typedef int open_fn(const char *path, int flags, int mode);

static pwrite_fn *real_pwrite;
static open_fn *real_open;
/* The disk, since the last write or open that found no room. */
static _Thread_local bool is_full;

/*
 * SQLite makes room in the index of a WAL with the last byte of each page. If
 * the blocks of the file system are smaller than a page, the other blocks stay
 * holes, and a store into the mapping finds no room on a full disk: SIGBUS.
 *
 * All files of SQLite come here. The rest of a short write can be such a byte
 * too, so an existing byte is never overwritten.
 */
static bool is_end_of_page(size_t len, off_t offset)
{
	return len == 1 && offset % PAGE_BYTES == PAGE_BYTES - 1;
}

/* Writes the byte at OFFSET, with zeros before: from the end of the file, or
 * from the start of the page. */
static ssize_t write_page(int fd, const void *byte, off_t offset)
{
	uint8_t page[PAGE_BYTES] = { 0 };
	off_t from = offset - PAGE_BYTES + 1;
	struct sys_stat st;
	size_t len;
	ssize_t n;
	int r;

	r = SYS(&sys_kernel, fstat, fd, &st);
	if (r < 0) {
		errno = -r;
		return -1;
	}
	if (st.size > (uint64_t)from)
		from = st.size < (uint64_t)offset ? (off_t)st.size : offset;
	len = (size_t)(offset - from) + 1;
	memcpy(page + len - 1, byte, 1);
	n = real_pwrite(fd, page, len, from);
	if (n >= 0 && (size_t)n < len) {
		errno = ENOSPC;
		return -1;
	}
	return n < 0 ? n : 1;
}

static ssize_t pwrite_for_sqlite(int fd, const void *buf, size_t len,
    off_t offset)
{
	ssize_t n;

	n = is_end_of_page(len, offset) ? write_page(fd, buf, offset) :
					  real_pwrite(fd, buf, len, offset);
	if (n < 0 && errno == EDQUOT)
		errno = ENOSPC;
	is_full = n < 0 && errno == ENOSPC;
	return n;
}

/* After a failure, SQLite tries to open the file without O_CREAT. */
static int open_for_sqlite(const char *path, int flags, int mode)
{
	int fd = real_open(path, flags, mode);

	if (fd < 0 && (errno == ENOSPC || errno == EDQUOT))
		is_full = true;
	return fd;
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

int journal_attach(const char *path, const char *vfs, sqlite3 **db)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, set_up);
	/* A connection belongs to a mutex or a thread of ours. */
	return sqlite3_open_v2(path, db,
	    SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, vfs);
}

int journal_connect(const char *path, const char *vfs, sqlite3 **db)
{
	int rc;

	rc = journal_attach(path, vfs, db);
	if (*db == NULL)
		return SQLITE_NOMEM;
	sqlite3_extended_result_codes(*db, 1);
	if (rc != SQLITE_OK)
		return sqlite3_extended_errcode(*db);
	sqlite3_busy_timeout(*db, BUSY_MS);
	/* A connection is also closed after a failed sync, when nothing may be
	 * copied from memory into the database file. */
	rc = sqlite3_db_config(*db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(*db, settings, NULL, NULL, NULL);
	return rc;
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

int journal_errno(int rc)
{
	if (is_full &&
	    (rc == SQLITE_IOERR_SHMSIZE || (rc & 0xff) == SQLITE_CANTOPEN))
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
