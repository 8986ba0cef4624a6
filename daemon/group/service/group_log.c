/*
 * Appending and opening. Failures: every error, every lost connection and every
 * missing proof is a doubt, because the rows can be in the log nevertheless.
 * Only a transaction that was acknowledged and has inserted no row is a
 * refusal, and only if no earlier attempt could have inserted the rows.
 */
#include "daemon/group/service/group_log.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/group/service/schema.h"
#include "proto/left_log.h"

static const char append_sql[] =
    "WITH fence AS MATERIALIZED ("
    " SELECT FROM refd.lease WHERE grp = $1 AND epoch = $2 AND owner = $4"
    " AND until > now()"
    " AND current_setting('synchronous_standby_names') <> ''"
    " FOR KEY SHARE)"
    "INSERT INTO refd.log (grp, lsn, epoch, id, repo, txid, uid, time_ms,"
    " final, path, body, objects)"
    " SELECT $1, $3 + nr - 1, $2, id, repo, txid, uid, time_ms, final, path,"
    " body, objects"
    " FROM unnest($5::bytea[], $6::uuid[], $7::bytea[], $8::bigint[],"
    " $9::bigint[], $10::boolean[], $11::bytea[], $12::bytea[],"
    " $13::bytea[])"
    " WITH ORDINALITY"
    " AS row (id, repo, txid, uid, time_ms, final, path, body, objects, nr),"
    " fence"
    " WHERE EXISTS (SELECT FROM refd.log WHERE grp = $1 AND lsn = $3 - 1)";

/* ---- opening ---- */

static bool prepare(struct session *s, const char *name, const char *sql)
{
	PGresult *r;

	if (!PQsendPrepare(s->conn, name, sql, 0, NULL)) {
		session_fail(s, NULL, "no connection");
		return false;
	}
	r = session_finish(s);
	PQclear(r);
	return r != NULL;
}

/* Adds a hint to the reason, if the uuid of the log is that of a left log
 * (proto/left_log.h). Then this node has left its group, or its group was made
 * by a node that had left. */
static void add_origin(struct group_log *log)
{
	char origin[LEFT_LOG_TEXT_MAX];
	uint64_t lsn;

	if (left_log_lsn(log->group, &lsn))
		text_addf(&log->s.why,
		    ". If this node has left its group, refd group create %s "
		    "makes a new group that begins with this node",
		    left_log_print(log->group, origin));
}

static enum session_result check_group(struct group_log *log)
{
	static const uint8_t none[GROUP_UUID_BYTES];
	uint8_t group[GROUP_UUID_BYTES];
	enum session_result result = schema_check(&log->s, group);

	if (result == SESSION_WRONG)
		add_origin(log);
	if (result != SESSION_OK)
		return result;
	if (memcmp(log->group, none, sizeof(none)) != 0 &&
	    memcmp(log->group, group, sizeof(group)) != 0) {
		session_close(&log->s);
		text_clear(&log->s.why);
		text_adds(&log->s.why,
		    "the group in the database has another uuid than the group "
		    "of this node: group.database or group.name names a "
		    "different group, or the group is new, and this node must "
		    "join it: stop its units, and run refd group join");
		add_origin(log);
		return SESSION_WRONG;
	}
	memcpy(log->group, group, sizeof(group));
	return SESSION_OK;
}

enum session_result group_log_open(struct group_log *log)
{
	enum session_result result = session_open(&log->s);

	if (result == SESSION_OK)
		result = check_group(log);
	if (result != SESSION_OK)
		return result;
	return prepare(&log->s, "append", append_sql) &&
		prepare(&log->s, "position", session_position(&log->s)) ?
	    SESSION_OK :
	    SESSION_AWAY;
}

void group_log_done(struct group_log *log)
{
	session_done(&log->s);
}

/* ---- the parameters of a batch ---- */

enum { ID, REPO, TXID, UID, TIME, FINAL, PATH, BODY, OBJECTS, NR_COLUMNS };

static void begin_columns(struct text *columns, size_t nr)
{
	static const enum params_type types[NR_COLUMNS] = { PARAMS_BYTEA,
		PARAMS_UUID, PARAMS_BYTEA, PARAMS_INT8, PARAMS_INT8,
		PARAMS_BOOL, PARAMS_BYTEA, PARAMS_BYTEA, PARAMS_BYTEA };
	int i;

	for (i = 0; i < NR_COLUMNS; i++)
		params_array_begin(&columns[i], types[i], nr);
}

static void add_row(struct text *columns, const struct group_row *row)
{
	uint8_t is_final = row->is_final;

	params_array_bytes(&columns[ID], row->id, sizeof(row->id));
	params_array_bytes(&columns[REPO], row->repo, sizeof(row->repo));
	params_array_bytes(&columns[TXID], row->txid.bytes,
	    sizeof(row->txid.bytes));
	params_array_number(&columns[UID], row->uid);
	params_array_number(&columns[TIME], row->time_ms);
	params_array_bytes(&columns[FINAL], &is_final, sizeof(is_final));
	params_array_bytes(&columns[PATH], row->path.data, row->path.len);
	params_array_bytes(&columns[BODY], row->record.data, row->record.len);
	params_array_bytes(&columns[OBJECTS], row->objects.data,
	    row->objects.len);
}

/* The query of the position is sent behind COMMIT without a Sync in between, so
 * PostgreSQL answers once. */
static bool send_append(struct session *s, const struct params *p)
{
	PGconn *c = s->conn;

	return PQenterPipelineMode(c) &&
	    PQsendQueryParams(c, "BEGIN", 0, NULL, NULL, NULL, NULL, 0) &&
	    PQsendQueryPrepared(c, "append", p->nr, p->values, p->lengths,
		p->formats, 0) &&
	    PQsendQueryParams(c, "COMMIT", 0, NULL, NULL, NULL, NULL, 0) &&
	    PQsendQueryPrepared(c, "position", 0, NULL, NULL, NULL, 0) &&
	    PQpipelineSync(c);
}

static bool send_rows(struct session *s, uint64_t epoch, uint64_t lsn,
    const struct group_row *rows, size_t nr)
{
	struct text columns[NR_COLUMNS] = { 0 };
	struct params p = { 0 };
	bool is_sent;
	size_t i;

	params_text(&p, s->config->name);
	params_number(&p, epoch);
	params_number(&p, lsn);
	params_text(&p, s->config->node);
	begin_columns(columns, nr);
	for (i = 0; i < nr; i++)
		add_row(columns, &rows[i]);
	for (i = 0; i < NR_COLUMNS; i++)
		params_array(&p, &columns[i]);
	is_sent = send_append(s, &p);
	for (i = 0; i < NR_COLUMNS; i++)
		text_done(&columns[i]);
	return is_sent;
}

/* ---- the answers to a batch ---- */

enum { BEGUN, INSERTED, ENDED, POSITION, SYNCED, NR_ANSWERS };

static const ExecStatusType expected[NR_ANSWERS] = {
	[BEGUN] = PGRES_COMMAND_OK,
	[INSERTED] = PGRES_COMMAND_OK,
	[ENDED] = PGRES_COMMAND_OK,
	[POSITION] = PGRES_TUPLES_OK,
	[SYNCED] = PGRES_PIPELINE_SYNC,
};

/* The answers of statements are followed by NULL. */
static PGresult *next_answer(struct session *s)
{
	PGresult *r = session_wait(s) ? PQgetResult(s->conn) : NULL;

	if (r && PQresultStatus(r) != PGRES_PIPELINE_SYNC)
		PQclear(PQgetResult(s->conn));
	return r;
}

/* Closes the session at the first answer that is not as expected. */
static bool take_answers(struct session *s, PGresult **answers)
{
	int i;

	for (i = 0; i < NR_ANSWERS; i++) {
		answers[i] = next_answer(s);
		if (PQresultStatus(answers[i]) == expected[i])
			continue;
		if (s->conn)
			session_fail(s, answers[i], "the connection was lost");
		return false;
	}
	/* A failed transaction answers COMMIT with ROLLBACK. */
	if (!strcmp(PQcmdStatus(answers[ENDED]), "COMMIT") &&
	    PQexitPipelineMode(s->conn))
		return true;
	session_fail(s, NULL, "COMMIT failed");
	return false;
}

static enum group_outcome no_row(struct session *s, bool is_first)
{
	text_clear(&s->why);
	text_adds(&s->why, "the transaction has inserted no row");
	return is_first ? GROUP_LOG_REFUSED : GROUP_LOG_DOUBTFUL;
}

static enum group_outcome judge(struct session *s, PGresult **answers,
    size_t nr, bool is_first)
{
	size_t inserted = strtoul(PQcmdTuples(answers[INSERTED]), NULL, 10);

	if (inserted == 0)
		return no_row(s, is_first);
	return inserted == nr && session_prove_position(s, answers[POSITION]) ?
	    GROUP_LOG_COMMITTED :
	    GROUP_LOG_DOUBTFUL;
}

enum group_outcome group_log_append(struct group_log *log, uint64_t epoch,
    uint64_t lsn, const struct group_row *rows, size_t nr, bool is_first)
{
	enum group_outcome outcome = GROUP_LOG_DOUBTFUL;
	PGresult *answers[NR_ANSWERS] = { 0 };
	struct session *s = &log->s;
	int i;

	if (!s->conn)
		return outcome;
	if (!send_rows(s, epoch, lsn, rows, nr))
		session_fail(s, NULL, "the connection was lost");
	else if (take_answers(s, answers))
		outcome = judge(s, answers, nr, is_first);
	for (i = 0; i < NR_ANSWERS; i++)
		PQclear(answers[i]);
	return outcome;
}
