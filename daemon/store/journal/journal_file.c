/*
 * The journal's files: checking, making, room in the WAL, the page cache.
 *
 * Happy path of making a journal:
 *	a complete database beside journal.db (journal.db.new), with a rollback
 *	journal: after COMMIT the whole database is synced in a single file
 *	rename the file into place, sync the directory
 *
 * Failure modes:
 *	not a database, not ours, newer: refused from the first bytes, before
 *	SQLite has touched anything
 *	a WAL without its database: refused; SQLite would replay the WAL into a
 *	new database
 *	the daemon dies in the middle: journal.db.new is removed next time, and
 *	a half-made journal never has the name journal.db
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/journal/journal_internal.h"

#define APPLICATION_ID 0x72656664 /* "refd" */

#define MACHINE_ID    "/etc/machine-id"
#define SQLITE_MAGIC  "SQLite format 3"
#define SQLITE_HEADER 100

#define CHECK_PAGES_MAX 8192 /* 32 MiB */

/*
 * Transaction ids begin with their birth time, so the index grows at its right
 * edge. Unsigned 64-bit numbers keep their bits. The look at the WAL finds the
 * seal without SQLite (journal_look.c), so the seal is the last column of meta,
 * and the row of meta is shorter than 128 bytes.
 */
static const char schema[] =
    "CREATE TABLE meta(id INTEGER PRIMARY KEY, uuid BLOB NOT NULL,"
    " machine TEXT NOT NULL, forgotten INTEGER NOT NULL,"
    " trimmed INTEGER NOT NULL, group_lsn INTEGER NOT NULL,"
    " group_uuid BLOB NOT NULL, seal BLOB NOT NULL) STRICT;"
    "CREATE TABLE start(id INTEGER PRIMARY KEY, boot_id TEXT NOT NULL,"
    " fs INTEGER NOT NULL, ino INTEGER NOT NULL, born_ns INTEGER NOT NULL,"
    " time_us INTEGER NOT NULL) STRICT;"
    "CREATE TABLE repo(id INTEGER PRIMARY KEY, uuid BLOB NOT NULL UNIQUE,"
    " path TEXT NOT NULL, dev INTEGER NOT NULL, ino INTEGER NOT NULL) STRICT;"
    "CREATE TABLE record(lsn INTEGER PRIMARY KEY, kind INTEGER NOT NULL,"
    " txid BLOB NOT NULL, uid INTEGER NOT NULL, pid INTEGER NOT NULL,"
    " repo INTEGER NOT NULL, start INTEGER NOT NULL, token INTEGER NOT NULL,"
    " mount INTEGER NOT NULL, locked_at_ns INTEGER NOT NULL,"
    " time_us INTEGER NOT NULL, voids INTEGER NOT NULL,"
    " final INTEGER NOT NULL, body BLOB NOT NULL,"
    " checksum INTEGER NOT NULL, group_lsn INTEGER NOT NULL) STRICT;"
    "CREATE INDEX record_txid ON record(txid, uid);"
    "CREATE INDEX record_voids ON record(voids) WHERE voids <> 0;"
    "CREATE TABLE " JOURNAL_OLD_OUTCOMES
    "(txid BLOB NOT NULL, uid INTEGER NOT NULL,"
    " lsn INTEGER NOT NULL, kind INTEGER NOT NULL, final INTEGER NOT NULL,"
    " body BLOB NOT NULL, checksum INTEGER NOT NULL,"
    " PRIMARY KEY(txid, uid, lsn))"
    " WITHOUT ROWID, STRICT;"
    "CREATE TABLE " JOURNAL_OBJECTS
    "(lsn INTEGER PRIMARY KEY, checksum INTEGER NOT NULL,"
    " bytes BLOB NOT NULL) STRICT;"
    "CREATE TABLE " JOURNAL_WAITING_ROWS
    "(lsn INTEGER PRIMARY KEY, repo BLOB NOT NULL, path BLOB NOT NULL,"
    " has_place INTEGER NOT NULL, checksum INTEGER NOT NULL,"
    " bytes BLOB NOT NULL) STRICT;"
    "CREATE INDEX waiting_repo ON " JOURNAL_WAITING_ROWS "(repo, lsn);"
    "CREATE INDEX waiting_place ON " JOURNAL_WAITING_ROWS
    "(path, repo) WHERE has_place;"
    "CREATE TABLE " JOURNAL_VALUES
    "(repo INTEGER NOT NULL, ref TEXT NOT NULL, lsn INTEGER NOT NULL,"
    " oid BLOB, target TEXT, PRIMARY KEY(repo, ref)) WITHOUT ROWID, STRICT;"
    "CREATE TABLE " JOURNAL_OPEN_DEFERRED
    "(lsn INTEGER PRIMARY KEY, repo INTEGER NOT NULL)"
    " STRICT;";

/* ---- the first bytes, read without SQLite ---- */

int journal_check_ids(const char *path, uint32_t app, uint32_t version,
    char **why)
{
	if (app != APPLICATION_ID)
		return journal_say(why, -EBADMSG,
		    "%s is a database, but not a journal of refd", path);
	if (version > JOURNAL_FORMAT)
		return journal_say(why, -EPROTO,
		    "%s was written by a newer refd (format %u, this one"
		    " knows %d)",
		    path, version, JOURNAL_FORMAT);
	if (version < 1)
		return journal_say(why, -EBADMSG, "%s has no format number",
		    path);
	if (version < JOURNAL_FORMAT)
		return journal_say(why, -EPROTO,
		    "%s was written by an older refd (format %u, this one "
		    "knows %d): a node of a group stops its units, and runs "
		    "'refd group join'; otherwise, with that refd, run 'refd "
		    "checkpoint' and stop the daemon; then move the journal "
		    "aside by 'refd recover --discard', and run 'refd disown' "
		    "for each repository",
		    path, version, JOURNAL_FORMAT);
	return 0;
}

/* -ENOENT without *WHY: there is no journal yet. */
int journal_check_file(struct journal *j, char **why)
{
	uint8_t head[SQLITE_HEADER] = { 0 };
	ssize_t n;
	int fd;

	fd = SYS(j->sys, openat, SYS_TRUSTED, j->cfg.path, O_RDWR | O_NOFOLLOW,
	    0);
	if (fd == -ENOENT)
		return fd;
	if (fd < 0)
		return journal_say(why, fd, "can't open %s: %s", j->cfg.path,
		    strerror(-fd));
	n = SYS(j->sys, pread, fd, head, sizeof(head), 0);
	/* close() would drop the locks of open connections, but none is open
	 * yet. */
	SYS(j->sys, close, fd);
	if (n < 0)
		return journal_say(why, (int)n, "can't read %s: %s",
		    j->cfg.path, strerror((int)-n));
	if (n < SQLITE_HEADER ||
	    memcmp(head, SQLITE_MAGIC, sizeof(SQLITE_MAGIC)) != 0)
		return journal_say(why, -EBADMSG,
		    "%s is not a database: " JOURNAL_WHAT_HELPS, j->cfg.path);
	return journal_check_ids(j->cfg.path, journal_big_endian(head + 68),
	    journal_big_endian(head + 60), why);
}

/* ---- the pages ---- */

/* SQLite's own check of the table OF, or of all tables ("1"), with indexes. */
static int integrity_check(struct journal *j, const char *of, char **why)
{
	const char *said;
	sqlite3_stmt *s = NULL;
	char sql[64];
	int r = 0, rc;

	snprintf(sql, sizeof(sql), "PRAGMA integrity_check(%s)", of);
	rc = journal_prepare(j->db, sql, &s);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(s);
	said = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(s, 0) : "";
	if (rc != SQLITE_ROW)
		r = journal_say_sql(j, why, rc, j->db,
		    "can't check the journal");
	else if (said == NULL || strcmp(said, "ok") != 0)
		r = journal_say(why, -EBADMSG,
		    "%s is damaged (%s): " JOURNAL_WHAT_HELPS, j->cfg.path,
		    said != NULL ? said : "out of memory");
	sqlite3_finalize(s);
	return r;
}

/* A check of a large journal would take long, so only the tables that every
 * start reads are checked. Recovery checks the records while reading. A small
 * journal is checked completely. */
int journal_check_pages(struct journal *j, char **why)
{
	static const char *const small[] = { "meta", "start", "repo" };
	int64_t pages = 0;
	size_t i;
	int r, rc;

	rc = journal_query(j->db, "PRAGMA page_count", 0, 0, &pages);
	if (rc != SQLITE_OK)
		return journal_say_sql(j, why, rc, j->db,
		    "can't check the journal");
	if (pages <= CHECK_PAGES_MAX)
		return integrity_check(j, "1", why);
	for (i = 0, r = 0; i < sizeof(small) / sizeof(small[0]) && r == 0; i++)
		r = integrity_check(j, small[i], why);
	return r;
}

/* ---- a new journal ---- */

/* In a container, the file with the id may be missing, empty, or say
 * "uninitialized". Then the machine has no id, and ID is "". */
void journal_machine_id(struct journal *j, char id[JOURNAL_MACHINE_MAX])
{
	static const size_t hex_digits = 32;
	char *text;
	size_t len;

	id[0] = '\0';
	if (sys_read_file(j->sys, SYS_TRUSTED, MACHINE_ID,
		JOURNAL_MACHINE_MAX - 1, &text, &len) != 0)
		return;
	text[strcspn(text, "\n")] = '\0';
	if (strlen(text) == hex_digits &&
	    strspn(text, "0123456789abcdef") == hex_digits)
		strcpy(id, text);
	free(text);
}

static int fill_meta(struct journal *j, sqlite3 *db)
{
	const struct journal_meta meta = { .forgotten = 0 };
	uint8_t seal[JOURNAL_SEAL_BYTES];
	sqlite3_stmt *s = NULL;
	int rc;

	journal_machine_id(j, j->machine);
	sqlite3_randomness(sizeof(j->uuid), j->uuid);
	journal_seal(j, &meta, 0, seal);
	rc = journal_prepare(db,
	    "INSERT INTO meta VALUES(1, ?1, ?2, 0, 0, 0, zeroblob(16), ?3)",
	    &s);
	if (rc != SQLITE_OK)
		return rc;
	sqlite3_bind_blob(s, 1, j->uuid, sizeof(j->uuid), SQLITE_STATIC);
	sqlite3_bind_text(s, 2, j->machine, -1, SQLITE_STATIC);
	sqlite3_bind_blob(s, 3, seal, sizeof(seal), SQLITE_STATIC);
	rc = journal_run(s);
	sqlite3_finalize(s);
	return rc;
}

static int fill_ids(sqlite3 *db)
{
	char sql[128];

	snprintf(sql, sizeof(sql),
	    "PRAGMA application_id=%d; PRAGMA user_version=%d;", APPLICATION_ID,
	    JOURNAL_FORMAT);
	return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

/* The database has no WAL yet, so a commit syncs everything in the file. */
static int fill_database(struct journal *j, const char *path, char **why)
{
	sqlite3 *db;
	int rc;

	rc = journal_connect(j, path, &db);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(db, "PRAGMA page_size=4096; BEGIN", NULL,
		    NULL, NULL);
	if (rc == SQLITE_OK)
		rc = fill_ids(db);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(db, schema, NULL, NULL, NULL);
	if (rc == SQLITE_OK)
		rc = fill_meta(j, db);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
	if (rc != SQLITE_OK)
		journal_say_sql(j, why, rc, db, "can't make the journal");
	sqlite3_close(db);
	return journal_errno(rc);
}

int journal_sync_dir(struct journal *j)
{
	int fd, r;

	fd = SYS(j->sys, openat, SYS_TRUSTED, j->cfg.dir,
	    O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return fd;
	r = SYS(j->sys, fsync, fd);
	SYS(j->sys, close, fd);
	return r;
}

char *journal_path_with(const struct journal *j, const char *suffix)
{
	char *path;

	return asprintf(&path, "%s%s", j->cfg.path, suffix) < 0 ? NULL : path;
}

static int remove_file(struct journal *j, const char *suffix)
{
	char *path = journal_path_with(j, suffix);
	int r;

	if (path == NULL)
		return -ENOMEM;
	r = SYS(j->sys, unlinkat, SYS_TRUSTED, path);
	free(path);
	return r == -ENOENT ? 0 : r;
}

/* 0 bytes without a WAL. */
static int size_of_wal(struct journal *j, uint64_t *bytes)
{
	struct sys_stat st;
	int r = SYS(j->sys, lstatat, SYS_TRUSTED, j->cfg.wal, &st);

	*bytes = r == 0 ? st.size : 0;
	return r == -ENOENT ? 0 : r;
}

static int make_file(struct journal *j, const char *path, char **why)
{
	int fd, r;

	/* The journal holds ref names and messages of all repositories, so only
	 * the daemon's account may read the file. */
	fd = SYS(j->sys, openat, SYS_TRUSTED, path, O_RDWR | O_CREAT | O_EXCL,
	    0600);
	if (fd < 0)
		return fd;
	SYS(j->sys, close, fd);
	r = fill_database(j, path, why);
	if (r == 0)
		r = SYS(j->sys, renameat, SYS_TRUSTED, path, SYS_TRUSTED,
		    j->cfg.path);
	return r == 0 ? journal_sync_dir(j) : r;
}

int journal_make_file(struct journal *j, char **why)
{
	char *path = journal_path_with(j, ".new");
	uint64_t wal;
	int r;

	r = size_of_wal(j, &wal);
	if (r == 0 && wal > 0)
		r = journal_say(why, -EBADMSG,
		    "%s is missing, but its WAL is there", j->cfg.path);
	if (r == 0)
		r = remove_file(j, ".new");
	if (r == 0)
		r = remove_file(j, ".new-journal");
	if (r == 0)
		r = journal_forget_room(j);
	if (r == 0)
		r = path == NULL ? -ENOMEM : make_file(j, path, why);
	if (r < 0 && *why == NULL)
		journal_say(why, r, "can't make %s: %s", j->cfg.path,
		    strerror(-r));
	free(path);
	return r;
}

/* ---- room in the WAL ---- */

#define FILL_BYTES ((size_t)1 << 20)

/* True: the WAL has wal_room bytes. */
static bool write_zeros(struct journal *j, int fd, const uint8_t *zeros)
{
	struct sys_stat st;
	uint64_t left, was;
	ssize_t n = 1;

	if (SYS(j->sys, fstat, fd, &st) != 0)
		return false;
	was = st.size;
	while (n > 0 && st.size < j->cfg.wal_room) {
		left = j->cfg.wal_room - st.size;
		n = SYS(j->sys, pwrite, fd, zeros,
		    left < FILL_BYTES ? left : FILL_BYTES, (off_t)st.size);
		if (n > 0)
			st.size += (uint64_t)n;
	}
	/* Otherwise the room would hold the last blocks of a full disk. */
	if (st.size < j->cfg.wal_room)
		SYS(j->sys, ftruncate, fd, (off_t)was);
	return st.size >= j->cfg.wal_room && j->cfg.wal_room > 0;
}

/* The size of the WAL, at least, while this file exists. A WAL that was cut
 * short would otherwise look like a WAL that ended earlier. */
#define ROOM_DIGITS 20

static void note_room(struct journal *j)
{
	char text[ROOM_DIGITS + 2];
	int r,
	    len = snprintf(text, sizeof(text), "%llu\n",
		(unsigned long long)j->cfg.wal_room);
	int fd = SYS(j->sys, openat, SYS_TRUSTED, j->cfg.room,
	    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return;
	r = SYS(j->sys, write_all, fd, text, (size_t)len);
	if (r == 0)
		r = SYS(j->sys, fsync, fd);
	SYS(j->sys, close, fd);
	/* Without the file a cut is not noticed. */
	if (r < 0)
		SYS(j->sys, unlinkat, SYS_TRUSTED, j->cfg.room);
}

/* 0: no size is known, or the file is torn. */
static int read_room(struct journal *j, uint64_t *bytes)
{
	char *text, *end;
	size_t len;
	int r = sys_read_file(j->sys, SYS_TRUSTED, j->cfg.room, ROOM_DIGITS + 1,
	    &text, &len);

	*bytes = 0;
	if (r < 0)
		return r == -ENOENT || r == -EFBIG ? 0 : r;
	*bytes = strtoull(text, &end, 10);
	if (*end != '\n')
		*bytes = 0;
	free(text);
	return 0;
}

/* A daemon that starts meanwhile removes the file before the WAL, so a short
 * WAL counts only if both are the same a second time. */
int journal_check_room(struct journal *j, char **why)
{
	uint64_t room = 0, size = 0;
	int r = 0, tries;

	for (tries = 0; tries < 2; tries++) {
		r = read_room(j, &room);
		if (r == 0 && room > 0)
			r = size_of_wal(j, &size);
		if (r < 0)
			return journal_say(why, r, "can't read %s or %s: %s",
			    j->cfg.room, j->cfg.wal, strerror(-r));
		if (size >= room)
			return 0;
	}
	return journal_say(why, -EBADMSG,
	    "%s-wal has %llu bytes, and had %llu: its end, with the last "
	    "records, was cut off, or the file is an older copy; nothing was "
	    "changed: " JOURNAL_WHAT_HELPS "; only if another program of "
	    "SQLite has opened the journal since, nothing is lost: remove %s",
	    j->cfg.path, (unsigned long long)size, (unsigned long long)room,
	    j->cfg.room);
}

int journal_forget_room(struct journal *j)
{
	int r = SYS(j->sys, unlinkat, SYS_TRUSTED, j->cfg.room);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	return journal_sync_dir(j);
}

/*
 * A frame has the salts and the checksum of its WAL, so SQLite takes zeros for
 * no frame. The room is durable before its size is noted, because a power loss
 * may take unsynced room away. Nothing else depends on the room, so a full disk
 * is no failure: the WAL grows.
 */
int journal_fill_wal(struct journal *j)
{
	uint8_t *zeros = calloc(1,
	    j->cfg.wal_room < FILL_BYTES ? j->cfg.wal_room + 1 : FILL_BYTES);
	bool is_full = false;
	int fd = -1, r = 0;

	if (zeros != NULL)
		fd = SYS(j->sys, openat, SYS_TRUSTED, j->cfg.wal,
		    O_RDWR | O_NOFOLLOW, 0);
	if (fd >= 0) {
		is_full = write_zeros(j, fd, zeros);
		if (is_full)
			r = SYS(j->sys, fdatasync, fd);
		SYS(j->sys, close, fd);
	}
	if (is_full && r == 0)
		note_room(j);
	free(zeros);
	return r;
}

bool journal_cut_room(struct journal *j)
{
	struct sys_stat st;
	int fd, r;

	if (j->found.ends_at == 0 || j->found.is_broken)
		return false;
	fd = SYS(j->sys, openat, SYS_TRUSTED, j->cfg.wal, O_RDWR | O_NOFOLLOW,
	    0);
	if (fd < 0)
		return false;
	r = SYS(j->sys, fstat, fd, &st);
	if (r == 0 && st.size <= j->found.ends_at)
		r = -ENOSPC;
	if (r == 0)
		r = SYS(j->sys, ftruncate, fd, (off_t)j->found.ends_at);
	SYS(j->sys, close, fd);
	return r == 0;
}

/* ---- after a failed sync ---- */

/* After a failed sync the file may look better in the page cache than on the
 * disk, so the pages are dropped. */
static int drop_one(struct journal *j, const char *path)
{
	int r, fd = SYS(j->sys, openat, SYS_TRUSTED, path, O_RDONLY, 0);

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	r = SYS(j->sys, drop_cache, fd);
	SYS(j->sys, close, fd);
	return r;
}

int journal_drop_caches(struct journal *j)
{
	int r = drop_one(j, j->cfg.path);

	return r == 0 ? drop_one(j, j->cfg.wal) : r;
}
