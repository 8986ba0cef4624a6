/*
 * Opens, reopens and closes the journal.
 *
 * Happy path:
 *	the first bytes of journal.db show a journal of refd and its schema
 *	a look at the WAL, before SQLite drops everything after a bad frame
 *	connect, read; are all rows there that a repository has seen?
 *	wal_checkpoint(TRUNCATE): all rows that were read are durable
 *	prepare the statements; connect the checkpointer, and let it read
 *	zeros into the WAL, as room for later commits; the size is noted
 *	sync the directory
 *	claimed: register this start
 *
 * Failure modes:
 *	of another machine, or damaged: refused with a sentence; no byte of the
 *	journal was changed
 *	of another format: refused in the same way
 *	a crashed daemon: the last frames may be in memory only. TRUNCATE syncs
 *	the WAL and copies the frames into the synced database file. So no
 *	answer relies on rows that a power loss could take back
 *	a full disk: the room in the WAL is given up for the growth of the
 *	database. If that is not enough, -ENOSPC; nothing is lost
 *	a failed sync: everything is closed, without a checkpoint; both files
 *	leave the page cache, which may differ from the disk; then as above.
 *	After a failure nothing is open, and the call may be repeated
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/time.h"
#include "daemon/store/journal/journal_internal.h"

/* ---- connections ---- */

static int note_frames(void *arg, sqlite3 *db, const char *name, int frames)
{
	struct journal *j = arg;

	(void)db;
	(void)name;
	j->frames = frames;
	return SQLITE_OK;
}

static int prepare_all(struct journal *j)
{
	static const char insert[] =
	    "INSERT INTO record VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)";
	/* Trimming leaves deferred rows, so a deferred row that is done may go
	 * now. */
	static const char unkeep[] = "DELETE FROM record WHERE lsn = ?"
				     " AND lsn <= (SELECT trimmed FROM meta)";
	const struct {
		const char *sql;
		sqlite3_stmt **stmt;
	} all[] = {
		{ "BEGIN IMMEDIATE", &j->stmts.begin },
		{ insert, &j->stmts.insert },
		{ "INSERT INTO " JOURNAL_OBJECTS " VALUES(?, ?, ?)",
		    &j->stmts.insert_objects },
		{ "INSERT INTO " JOURNAL_OPEN_DEFERRED " VALUES(?, ?)",
		    &j->stmts.defer },
		{ "DELETE FROM " JOURNAL_OPEN_DEFERRED " WHERE lsn = ?",
		    &j->stmts.end_deferred },
		{ unkeep, &j->stmts.unkeep },
		{ "INSERT INTO " JOURNAL_WAITING_ROWS
		  " VALUES(?, ?, ?, 1, ?, ?)",
		    &j->stmts.wait },
		{ "DELETE FROM " JOURNAL_WAITING_ROWS " WHERE lsn = ?",
		    &j->stmts.end_wait },
		{ "INSERT OR REPLACE INTO " JOURNAL_VALUES
		  " VALUES(?, ?, ?, ?, ?)",
		    &j->stmts.write_value },
		{ "SELECT lsn, oid, target FROM " JOURNAL_VALUES
		  " WHERE repo = ? AND ref = ?",
		    &j->stmts.find_value },
		/* In ASCII "0" follows "/", so the range from "REF/" to "REF0"
		 * has all names below REF. */
		{ "SELECT ref FROM " JOURNAL_VALUES
		  " WHERE repo = ?1 AND ref > ?2 || '/' AND ref < ?2 || '0'"
		  " AND (oid IS NOT NULL OR target IS NOT NULL) LIMIT 1",
		    &j->stmts.find_below },
		{ "SELECT 1 FROM " JOURNAL_VALUES " WHERE repo = ?"
		  " AND (oid IS NOT NULL OR target IS NOT NULL) LIMIT 1",
		    &j->stmts.find_living },
		{ "SELECT v.lsn, v.oid, v.target, v.repo, v.ref, r.path"
		  " FROM " JOURNAL_VALUES " v JOIN repo r ON r.id = v.repo"
		  " WHERE (v.repo, v.ref) > (?, ?)"
		  " ORDER BY v.repo, v.ref LIMIT 1",
		    &j->stmts.next_value },
		{ "UPDATE meta SET machine = ?, forgotten = ?, trimmed = ?,"
		  " seal = ?, group_lsn = ?, group_uuid = ? WHERE id = 1",
		    &j->stmts.write_meta },
		{ "COMMIT", &j->stmts.commit },
		{ "ROLLBACK", &j->stmts.rollback },
	};
	size_t i;
	int rc = SQLITE_OK;

	for (i = 0; i < sizeof(all) / sizeof(all[0]) && rc == SQLITE_OK; i++)
		rc = journal_prepare(j->db, all[i].sql, all[i].stmt);
	return rc;
}

/* Sets the next LSN, and connects a checkpointer. The checkpointer must have
 * read, because otherwise its checkpoints would do nothing. */
static int finish_connecting(struct journal *j)
{
	int64_t ignored;
	int rc;

	rc = prepare_all(j);
	if (rc == SQLITE_OK)
		rc = journal_connect(j, j->cfg.path, &j->ckpt);
	if (rc == SQLITE_OK)
		rc = journal_query(j->ckpt, "SELECT count(*) FROM meta", 0, 0,
		    &ignored);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(j->db, "PRAGMA synchronous=NORMAL", NULL,
		    NULL, NULL);
	if (rc == SQLITE_OK)
		rc = journal_flush_open(j);
	if (rc != SQLITE_OK)
		return rc;
	sqlite3_wal_hook(j->db, note_frames, j);
	mutex_lock(&j->hand_lock);
	j->lsn.last_row = j->lsn.durable = j->last_written;
	/* Rows that were never flushed may be gone now, but somebody may
	 * remember their numbers. So these numbers are not given out again. */
	if (j->lsn.last_row + 1 > j->next_lsn)
		j->next_lsn = j->lsn.last_row + 1;
	j->lsn.last = j->next_lsn - 1;
	j->counts.flushed = j->counts.written;
	j->lsn.forgotten = j->lsn.forgotten_durable = j->meta.forgotten;
	if (j->lsn.forget_wanted < j->meta.forgotten)
		j->lsn.forget_wanted = j->meta.forgotten;
	mutex_unlock(&j->hand_lock);
	return SQLITE_OK;
}

static int enter_wal_mode(struct journal *j)
{
	sqlite3_stmt *s = NULL;
	bool is_wal = false;
	int rc;

	rc = journal_prepare(j->db, "PRAGMA journal_mode=WAL", &s);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(s);
	if (rc == SQLITE_ROW) {
		is_wal =
		    sqlite3_stricmp((const char *)sqlite3_column_text(s, 0),
			"wal") == 0;
		rc = SQLITE_OK;
	}
	sqlite3_finalize(s);
	return rc == SQLITE_OK && !is_wal ? SQLITE_PROTOCOL : rc;
}

int journal_connect_to_read(struct journal *j, char **why)
{
	int r, rc;

	if ((r = journal_check_file(j, why)) != 0 ||
	    (r = journal_check_room(j, why)) != 0 ||
	    (r = journal_look_at_wal(j, why)) != 0)
		return r;
	rc = journal_connect(j, j->cfg.path, &j->db);
	if (rc != SQLITE_OK)
		return journal_say_sql(j, why, rc, j->db,
		    "can't open the journal");
	if ((r = journal_check_schema(j, why)) != 0 ||
	    (r = journal_check_pages(j, why)) != 0 ||
	    (r = journal_read_meta(j, why)) != 0 ||
	    (r = journal_read_last(j, why)) != 0)
		return r;
	return j->cfg.check != NULL ? j->cfg.check(j->cfg.check_arg, j, why) :
				      0;
}

/* On a full disk the database can only grow by the WAL's room, so the room is
 * cut off. */
static int bring_to_disk(struct journal *j)
{
	int rc = journal_truncate_wal(j);

	if ((rc & 0xff) == SQLITE_FULL && journal_cut_room(j))
		rc = journal_truncate_wal(j);
	return rc;
}

static int connect_all(struct journal *j, char **why)
{
	int r, rc;

	r = journal_connect_to_read(j, why);
	if (r != 0)
		return r;
	rc = enter_wal_mode(j);
	if (rc == SQLITE_OK)
		rc = bring_to_disk(j);
	if (rc == SQLITE_OK)
		rc = finish_connecting(j);
	if (rc != SQLITE_OK)
		return journal_say_sql(j, why, rc, NULL,
		    "can't bring the journal to disk");
	r = journal_fill_wal(j);
	return r < 0 ? journal_say(why, r, "can't flush %s-wal: %s",
			   j->cfg.path, strerror(-r)) :
		       0;
}

static void disconnect_all(struct journal *j)
{
	struct journal_reader *reader;

	LIST_FOREACH(reader, &j->readers, link)
		journal_reader_disconnect(reader);
	memset(&j->stmts, 0, sizeof(j->stmts));
	journal_flush_close(j);
	journal_disconnect(&j->ckpt);
	journal_disconnect(&j->db);
}

/* ---- open, reopen, close ---- */

void journal_free(struct journal *j)
{
	disconnect_all(j);
	rwlock_destroy(&j->use_lock);
	mutex_destroy(&j->ckpt_lock);
	mutex_destroy(&j->commit_lock);
	mutex_destroy(&j->hand_lock);
	pthread_cond_destroy(&j->flush.cond);
	free(j->cfg.dir);
	free(j->cfg.path);
	free(j->cfg.wal);
	free(j->cfg.room);
	free(j->cfg.vfs);
	free(j);
}

struct journal *journal_new(const struct journal_config *cfg, const char *vfs)
{
	struct journal *j = calloc(1, sizeof(*j));

	if (j == NULL)
		return NULL;
	j->sys = cfg->sys;
	j->wal_fd = j->view.lock = -1;
	time_cond_init(&j->flush.cond);
	rwlock_init(&j->use_lock, MUTEX_JOURNAL_USE);
	mutex_init(&j->ckpt_lock, MUTEX_JOURNAL_CHECKPOINT);
	mutex_init(&j->commit_lock, MUTEX_JOURNAL_COMMIT);
	mutex_init(&j->hand_lock, MUTEX_INNER);
	LIST_INIT(&j->readers);
	j->waiting_end = &j->waiting;
	snprintf(j->cfg.boot_id, sizeof(j->cfg.boot_id), "%s", cfg->boot_id);
	j->cfg.adopt = cfg->adopt;
	j->cfg.wal_room = cfg->wal_room;
	j->cfg.check = cfg->check;
	j->cfg.check_arg = cfg->check_arg;
	j->cfg.dir = strdup(cfg->dir);
	j->cfg.vfs = strdup(cfg->vfs != NULL ? cfg->vfs : vfs);
	if (asprintf(&j->cfg.path, "%s/" JOURNAL_NAME, cfg->dir) < 0)
		j->cfg.path = NULL;
	j->cfg.wal = journal_path_with(j, "-wal");
	j->cfg.room = journal_path_with(j, "-room");
	if (j->cfg.dir == NULL || j->cfg.path == NULL || j->cfg.vfs == NULL ||
	    j->cfg.wal == NULL || j->cfg.room == NULL) {
		journal_free(j);
		return NULL;
	}
	return j;
}

/* From now on the journal belongs to this machine. */
static int write_machine(struct journal *j)
{
	int r;

	mutex_lock(&j->commit_lock);
	journal_machine_id(j, j->machine);
	if ((r = journal_txn_begin(j)) == 0)
		r = journal_txn_end(j, journal_write_meta(j, &j->meta));
	mutex_unlock(&j->commit_lock);
	return r;
}

static void say_unwritten(const struct journal *j, int r, char **why)
{
	if (*why != NULL)
		return;
	if (r == -ENOSPC)
		journal_say_sql(j, why, SQLITE_FULL, NULL,
		    "can't write the journal");
	else
		journal_say(why, r, "can't write the journal %s: %s",
		    j->cfg.path, strerror(-r));
}

int journal_open(const struct journal_config *cfg, struct journal **journal,
    char **why)
{
	struct journal *j;
	int r;

	*why = NULL;
	/* The index of the WAL is in memory, because otherwise SQLite would map
	 * a file, and a full or dying disk would end the daemon by SIGBUS. */
	j = journal_new(cfg, "unix-excl");
	if (j == NULL)
		return -ENOMEM;
	r = connect_all(j, why);
	if (r == -ENOENT && *why == NULL &&
	    (r = journal_make_file(j, why)) == 0)
		r = connect_all(j, why);
	j->cfg.check = NULL;
	if (r == 0)
		r = journal_sync_dir(j);
	if (r == 0) {
		*journal = j;
		return 0;
	}
	say_unwritten(j, r, why);
	journal_free(j);
	return r;
}

int journal_claim(struct journal *j, char **why)
{
	int r = j->cfg.adopt ? write_machine(j) : 0;

	*why = NULL;
	/* The flush includes the machine's id. */
	if (r == 0)
		r = journal_register_start(j);
	if (r == JOURNAL_UNKNOWN)
		r = -EIO;
	if (r != 0)
		say_unwritten(j, r, why);
	return r;
}

static int reconnect_readers(struct journal *j, char **why)
{
	struct journal_reader *reader;
	int rc = SQLITE_OK;

	LIST_FOREACH(reader, &j->readers, link)
		if (rc == SQLITE_OK)
			rc = journal_reader_connect(reader);
	if (rc == SQLITE_OK)
		return 0;
	return journal_say_sql(j, why, rc, NULL,
	    "can't open the journal again");
}

int journal_reopen(struct journal *j, char **why)
{
	int r;

	*why = NULL;
	journal_break(j);
	rwlock_write(&j->use_lock);
	mutex_lock(&j->ckpt_lock);
	mutex_lock(&j->commit_lock);
	journal_flush_end(j);
	disconnect_all(j);
	if ((r = journal_drop_caches(j)) == 0)
		r = connect_all(j, why);
	if (r == 0)
		r = reconnect_readers(j, why);
	if (r == 0)
		r = journal_sync_dir(j);
	if (r < 0 && *why == NULL)
		journal_say(why, r, "can't open %s again: %s", j->cfg.path,
		    strerror(-r));
	if (r < 0)
		disconnect_all(j);
	mutex_lock(&j->hand_lock);
	j->is_broken = r < 0;
	/* All rows that were read are on disk. */
	j->counts.repos_written = j->counts.flushed;
	mutex_unlock(&j->hand_lock);
	mutex_unlock(&j->commit_lock);
	mutex_unlock(&j->ckpt_lock);
	rwlock_unlock(&j->use_lock);
	return r;
}

int journal_close(struct journal *j)
{
	int r;

	if (j == NULL)
		return 0;
	assert(LIST_EMPTY(&j->readers));
	r = journal_forget(j, 0, true);
	if (r == 0)
		r = journal_errno(journal_truncate_wal(j));
	journal_free(j);
	return r;
}
