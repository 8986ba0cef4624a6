/*
 * The journal's own data, as read at opening: the format, the machine, the last
 * record. SQLite's pages have no checksum, so a seal covers the data of meta,
 * and opening compares the seal. Only journal_write_meta() changes data.
 *
 * Failure modes: a sentence and an errno for each.
 *	of a different machine or format, or damaged: refused
 *	the WAL lacks a record known to be on disk: refused. At a reopening the
 *	daemon knows the last flushed record, too
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/store/journal/journal_internal.h"

/* Checks the first page again, because the WAL may hold a newer page than the
 * file. */
int journal_check_schema(struct journal *j, char **why)
{
	int64_t app = 0, version = 0;
	int rc;

	rc = journal_query(j->db, "PRAGMA application_id", 0, 0, &app);
	if (rc == SQLITE_OK)
		rc =
		    journal_query(j->db, "PRAGMA user_version", 0, 0, &version);
	if (rc != SQLITE_OK)
		return journal_say_sql(j, why, rc, j->db,
		    "can't read the journal");
	return journal_check_ids(j->cfg.path, (uint32_t)app, (uint32_t)version,
	    why);
}

static bool is_sealed(const struct journal *j, sqlite3_stmt *s)
{
	const uint8_t *seal = sqlite3_column_blob(s, 4);
	uint8_t wanted[JOURNAL_SEAL_BYTES];

	if (seal == NULL || sqlite3_column_bytes(s, 4) != sizeof(wanted) ||
	    sqlite3_column_bytes(s, 6) != sizeof(j->meta.shared.uuid))
		return false;
	journal_seal(j, &j->meta, journal_seal_flushed(seal), wanted);
	return memcmp(seal, wanted, sizeof(wanted)) == 0;
}

/* An SQLite code. */
static int take_meta(struct journal *j, sqlite3_stmt *s)
{
	struct journal_meta *meta = &j->meta;
	const void *uuid = sqlite3_column_blob(s, 6);

	memset(meta, 0, sizeof(*meta));
	meta->forgotten = (uint64_t)sqlite3_column_int64(s, 2);
	meta->trimmed = (uint64_t)sqlite3_column_int64(s, 3);
	meta->shared.lsn = (uint64_t)sqlite3_column_int64(s, 5);
	if (uuid != NULL &&
	    sqlite3_column_bytes(s, 6) == sizeof(meta->shared.uuid))
		memcpy(meta->shared.uuid, uuid, sizeof(meta->shared.uuid));
	return journal_read_joined(j, &meta->shared.joined_ms);
}

static int compare_meta(struct journal *j, sqlite3_stmt *s, char **why)
{
	const void *uuid = sqlite3_column_blob(s, 0);
	const char *machine = (const char *)sqlite3_column_text(s, 1);
	char here[JOURNAL_MACHINE_MAX];
	static const uint8_t none[16];
	int rc;

	if (uuid == NULL || sqlite3_column_bytes(s, 0) != sizeof(j->uuid))
		return journal_say(why, -EBADMSG, "%s has no valid uuid",
		    j->cfg.path);
	journal_machine_id(j, here);
	if (machine != NULL && machine[0] != '\0' && here[0] != '\0' &&
	    strcmp(machine, here) != 0 && !j->cfg.adopt)
		return journal_say(why, -EXDEV,
		    "%s belongs to another machine (%s): if it was moved or "
		    "restored here together with its repositories, say so by "
		    "'refd recover --adopt'",
		    j->cfg.path, machine);
	/* Once the journal is open, threads read the uuid without a lock, so
	 * only the first opening writes the uuid. */
	if (memcmp(j->uuid, none, sizeof(none)) == 0)
		memcpy(j->uuid, uuid, sizeof(j->uuid));
	if (memcmp(j->uuid, uuid, sizeof(j->uuid)) != 0)
		return journal_say(why, -ESTALE,
		    "%s was replaced while it was in use", j->cfg.path);
	snprintf(j->machine, sizeof(j->machine), "%s",
	    machine != NULL ? machine : "");
	rc = take_meta(j, s);
	if (rc != SQLITE_OK)
		return journal_say_sql(j, why, rc, j->db,
		    "can't read the journal");
	if (!is_sealed(j, s))
		return journal_say(why, -EBADMSG,
		    "%s is damaged: its table 'meta' does not have the "
		    "checksum that was stored with it; nothing was "
		    "changed: " JOURNAL_WHAT_HELPS,
		    j->cfg.path);
	mutex_lock(&j->hand_lock);
	j->lsn.trimmed = j->meta.trimmed;
	j->shared = j->meta.shared;
	mutex_unlock(&j->hand_lock);
	return 0;
}

int journal_read_meta(struct journal *j, char **why)
{
	sqlite3_stmt *s = NULL;
	int r, rc;

	rc = journal_prepare(j->db,
	    "SELECT uuid, machine, forgotten, trimmed, seal,"
	    " group_lsn, group_uuid FROM meta",
	    &s);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(s);
	if (rc == SQLITE_ROW)
		r = compare_meta(j, s, why);
	else
		r = journal_say_sql(j, why,
		    rc == SQLITE_DONE ? SQLITE_CORRUPT : rc, j->db,
		    "can't read the journal");
	sqlite3_finalize(s);
	return r;
}

int journal_write_meta(struct journal *j, const struct journal_meta *meta)
{
	sqlite3_stmt *s = j->stmts.write_meta;
	uint8_t seal[JOURNAL_SEAL_BYTES];

	journal_seal(j, meta, journal_guarded(j, &j->lsn.durable), seal);
	sqlite3_bind_text(s, 1, j->machine, -1, SQLITE_STATIC);
	sqlite3_bind_int64(s, 2, (sqlite3_int64)meta->forgotten);
	sqlite3_bind_int64(s, 3, (sqlite3_int64)meta->trimmed);
	sqlite3_bind_blob(s, 4, seal, sizeof(seal), SQLITE_TRANSIENT);
	sqlite3_bind_int64(s, 5, (sqlite3_int64)meta->shared.lsn);
	sqlite3_bind_blob(s, 6, meta->shared.uuid, sizeof(meta->shared.uuid),
	    SQLITE_STATIC);
	return journal_run(s);
}

int journal_read_last(struct journal *j, char **why)
{
	uint64_t durable = journal_guarded(j, &j->lsn.durable);
	int64_t last = 0;
	int rc;

	rc = journal_query(j->db, "SELECT coalesce(max(lsn), 0) FROM record", 0,
	    0, &last);
	if (rc != SQLITE_OK)
		return journal_say_sql(j, why, rc, j->db,
		    "can't read the journal");
	if ((uint64_t)last < j->meta.forgotten)
		last = (int64_t)j->meta.forgotten;
	if ((uint64_t)last < j->found.flushed)
		return journal_say(why, -EBADMSG,
		    "%s-wal is damaged from byte %llu on: the records before "
		    "it end at %llu, and record %llu was on disk; nothing was "
		    "changed: " JOURNAL_WHAT_HELPS,
		    j->cfg.path, (unsigned long long)j->found.ends_at,
		    (unsigned long long)last,
		    (unsigned long long)j->found.flushed);
	/* Never at the first opening, because nothing was flushed yet. */
	if ((uint64_t)last < durable)
		return journal_say(why, -EBADMSG,
		    "%s is damaged: it ends at record %llu, and record %llu "
		    "was on disk; nothing was changed: " JOURNAL_WHAT_HELPS,
		    j->cfg.path, (unsigned long long)last,
		    (unsigned long long)durable);
	j->last_written = (uint64_t)last;
	mutex_lock(&j->hand_lock);
	if ((uint64_t)last > j->lsn.last)
		j->lsn.last = (uint64_t)last;
	mutex_unlock(&j->hand_lock);
	return 0;
}
