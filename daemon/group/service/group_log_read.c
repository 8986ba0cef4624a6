/*
 * Reading and settling. A row that can be read is not always replicated: after
 * a cancelled wait, or a new start of the primary, a failover can take the row
 * away. So a reading counts only after a later commit of the same session that
 * is proven.
 */
#include "daemon/group/service/group_log.h"

#include <string.h>

#define ROWS_MOST  "500"
#define BYTES_MOST "16777216"

/* GROUP_LOG_NAME_MS */
#define NAME_TIME "interval '4 seconds'"

#define INSERT                                                                 \
	"INSERT INTO refd.node (grp, node, applied, seen, machine)"            \
	" SELECT $1, $2, $3::bigint, clock_timestamp(), $4"

/* Only 0 takes rows back: the node lacks a row, and does not know which. */
#define PREFER_LATER                                                           \
	" ON CONFLICT (grp, node) DO UPDATE"                                   \
	" SET applied = CASE WHEN excluded.applied = 0 THEN 0"                 \
	" ELSE greatest(node.applied, excluded.applied) END,"                  \
	" seen = excluded.seen WHERE node.machine = excluded.machine"

/* For a commit that does not wait for the standbys. */
#define LOCALLY                                                                \
	" WHERE set_config('synchronous_commit', 'local', true) = 'local'"

/* Runs SQL to write down that this node has applied APPLIED. Returns the number
 * of rows; 0: the row has the name of another machine. */
static long write_applied(struct session *s, uint64_t applied, const char *sql)
{
	struct params p = { 0 };

	params_text(&p, s->config->name);
	params_text(&p, s->config->node);
	params_number(&p, applied);
	params_text(&p, s->machine);
	return session_change(s, sql, &p);
}

/* As write_applied(), after group_log_begin(). The program ends if the row has
 * the name of another machine, because two nodes of one name would end each
 * other's epochs for ever. */
static bool write_later(struct session *s, uint64_t applied, const char *sql)
{
	long changed = write_applied(s, applied, sql);

	if (changed == 0)
		die(GROUP_LOG_TWO, s->config->node);
	return changed == 1;
}

/* A commit that can be proven. */
static bool touch(struct session *s, uint64_t applied)
{
	return write_later(s, applied, INSERT PREFER_LATER);
}

enum session_result group_log_begin(struct group_log *log, uint64_t applied)
{
	long changed = write_applied(&log->s, applied,
	    INSERT LOCALLY " ON CONFLICT (grp, node) DO UPDATE"
			   " SET applied = excluded.applied,"
			   " seen = excluded.seen, machine = excluded.machine,"
			   " refuses = NULL"
			   " WHERE node.machine = excluded.machine OR node.seen"
			   " NOT BETWEEN excluded.seen - " NAME_TIME
			   " AND excluded.seen + " NAME_TIME);

	if (changed == 0) {
		text_clear(&log->s.why);
		text_addf(&log->s.why, GROUP_LOG_TWO, log->s.config->node);
		return SESSION_WRONG;
	}
	return changed == 1 ? SESSION_OK : SESSION_AWAY;
}

bool group_log_note(struct group_log *log, uint64_t applied)
{
	return write_later(&log->s, applied, INSERT LOCALLY PREFER_LATER);
}

void group_log_refuse(struct group_log *log, const char *why)
{
	struct params p = { 0 };

	params_text(&p, log->s.config->name);
	params_text(&p, log->s.config->node);
	params_text(&p, why);
	session_change(&log->s,
	    "INSERT INTO refd.node (grp, node, applied, seen, refuses)"
	    " SELECT $1, $2, 0, clock_timestamp(), $3" LOCALLY
	    " ON CONFLICT (grp, node) DO UPDATE SET refuses = excluded.refuses",
	    &p);
	die("%s", why);
}

static bool is_epoch(struct session *s, uint64_t epoch)
{
	struct lease lease;

	if (!lease_look(s, &lease))
		return false;
	if (lease.epoch >= epoch)
		return true;
	session_distrust(s,
	    "the lease has an earlier epoch than this node has seen: "
	    "PostgreSQL is at an earlier time, or this is an old primary");
	return false;
}

bool group_log_prove(struct group_log *log, uint64_t epoch, uint64_t applied)
{
	return is_epoch(&log->s, epoch) && touch(&log->s, applied) &&
	    session_prove(&log->s);
}

bool group_log_last(struct group_log *log, uint64_t *lsn)
{
	struct params p = { 0 };
	PGresult *r;
	bool found;

	params_text(&p, log->s.config->name);
	r = session_run(&log->s,
	    "SELECT lsn FROM refd.log WHERE grp = $1 ORDER BY lsn DESC LIMIT 1",
	    &p);
	if (!r)
		return false;
	found = PQntuples(r) == 1;
	if (found)
		*lsn = session_number(r, 0, 0);
	else
		session_fail(&log->s, NULL, "the log of the group has no row");
	PQclear(r);
	return found;
}

bool group_log_compare(struct group_log *log, uint64_t lsn,
    const uint8_t id[GROUP_UUID_BYTES], bool *differs)
{
	struct text ids = { 0 };
	struct params p = { 0 };
	PGresult *r;

	params_array_begin(&ids, PARAMS_BYTEA, 1);
	params_array_bytes(&ids, id, GROUP_UUID_BYTES);
	params_text(&p, log->s.config->name);
	params_number(&p, lsn);
	params_array(&p, &ids);
	r = session_run(&log->s,
	    "SELECT FROM refd.log"
	    " WHERE grp = $1 AND lsn = $2 AND id <> ALL ($3::bytea[])",
	    &p);
	text_done(&ids);
	*differs = r && PQntuples(r) == 1;
	PQclear(r);
	return r != NULL;
}

/* ---- settling ---- */

static PGresult *select_ids(struct session *s,
    const uint8_t (*ids)[GROUP_UUID_BYTES], size_t nr)
{
	struct text array = { 0 };
	struct params p = { 0 };
	PGresult *r;
	size_t i;

	params_array_begin(&array, PARAMS_BYTEA, nr);
	for (i = 0; i < nr; i++)
		params_array_bytes(&array, ids[i], GROUP_UUID_BYTES);
	params_text(&p, s->config->name);
	params_array(&p, &array);
	r = session_run(s,
	    "SELECT nr, lsn FROM unnest($2::bytea[]) WITH ORDINALITY"
	    " AS wanted (id, nr) JOIN refd.log USING (id) WHERE grp = $1",
	    &p);
	text_done(&array);
	return r;
}

static bool find(struct session *s, const uint8_t (*ids)[GROUP_UUID_BYTES],
    size_t nr, uint64_t *lsns)
{
	PGresult *r = select_ids(s, ids, nr);
	uint64_t at;
	int i;

	if (!r)
		return false;
	memset(lsns, 0, nr * sizeof(*lsns));
	for (i = 0; i < PQntuples(r); i++) {
		at = session_number(r, i, 0);
		if (at >= 1 && at <= nr)
			lsns[at - 1] = session_number(r, i, 1);
	}
	PQclear(r);
	return true;
}

/* Settles a doubt after the loss of the epoch. The takeover of the epoch LATER
 * has waited for every earlier transaction. So the epoch LATER must be seen
 * first, and the rows are read after that: then a row that is missing will
 * never come. */
static enum group_settled settle_lost(struct group_log *log, uint64_t later,
    const uint8_t (*ids)[GROUP_UUID_BYTES], size_t nr, uint64_t *lsns)
{
	struct session *s = &log->s;

	return is_epoch(s, later) && find(s, ids, nr, lsns) && touch(s, 0) &&
		session_prove(s) ?
	    GROUP_LOG_LOST :
	    GROUP_LOG_AGAIN;
}

enum group_settled group_log_settle(struct group_log *log, uint64_t epoch,
    const uint8_t (*ids)[GROUP_UUID_BYTES], size_t nr, uint64_t *lsns)
{
	if (!find(&log->s, ids, nr, lsns))
		return GROUP_LOG_AGAIN;
	switch (lease_renew(&log->s, epoch)) {
	case LEASE_DONE:
		return session_prove(&log->s) ? GROUP_LOG_OURS :
						GROUP_LOG_AGAIN;
	case LEASE_LOST:
		return settle_lost(log, epoch + 1, ids, nr, lsns);
	case LEASE_FAILED:
		break;
	}
	return GROUP_LOG_AGAIN;
}

/* ---- reading ---- */

enum { LSN, EPOCH, ID, REPO, TXID, UID, TIME, FINAL, PATH, BODY, OBJECTS };

static const char read_sql[] =
    "SELECT lsn, epoch, id, repo, txid, uid, time_ms, final, path, body,"
    " objects"
    " FROM (SELECT *, sum(length(path) + length(body) + length(objects))"
    "  OVER (ORDER BY lsn) AS total"
    "  FROM (SELECT * FROM refd.log WHERE grp = $1 AND lsn > $2"
    "  ORDER BY lsn LIMIT " ROWS_MOST ") AS first) AS sums"
    " WHERE total <= " BYTES_MOST " OR lsn = $2 + 1 ORDER BY lsn";

static PGresult *select_rows(struct session *s, uint64_t after)
{
	struct params p = { 0 };

	params_text(&p, s->config->name);
	params_number(&p, after);
	return session_run_binary(s, read_sql, &p);
}

static uint64_t number(const PGresult *r, int row, int column)
{
	return params_read_number(PQgetvalue(r, row, column),
	    PQgetlength(r, row, column));
}

static bool copy(uint8_t *to, size_t len, const PGresult *r, int row,
    int column)
{
	if ((size_t)PQgetlength(r, row, column) != len)
		return false;
	memcpy(to, PQgetvalue(r, row, column), len);
	return true;
}

static struct group_bytes borrow(const PGresult *r, int row, int column)
{
	return (
	    struct group_bytes){ (const uint8_t *)PQgetvalue(r, row, column),
		(size_t)PQgetlength(r, row, column) };
}

static bool read_row(const PGresult *r, int i, struct group_row *row)
{
	row->uid = (uint32_t)number(r, i, UID);
	row->time_ms = number(r, i, TIME);
	row->is_final = number(r, i, FINAL) == 1;
	row->path = borrow(r, i, PATH);
	row->record = borrow(r, i, BODY);
	row->objects = borrow(r, i, OBJECTS);
	return group_frame_is_path(row->path) &&
	    copy(row->id, sizeof(row->id), r, i, ID) &&
	    copy(row->repo, sizeof(row->repo), r, i, REPO) &&
	    copy(row->txid.bytes, sizeof(row->txid.bytes), r, i, TXID);
}

/* The first row of a group is there from the start, and has no content. */
static bool is_first(const PGresult *r, int i)
{
	return PQgetlength(r, i, PATH) == 0;
}

static void give(struct group_log *log, const PGresult *r, uint64_t after,
    group_log_row_fn *fn, void *arg)
{
	struct group_row row;
	int i;

	for (i = 0; i < PQntuples(r); i++) {
		if (number(r, i, LSN) != after + 1 + (uint64_t)i ||
		    is_first(r, i))
			group_log_refuse(log,
			    xasprintf("row %llu of the log is missing: old "
				      "rows are deleted, so stop the units of "
				      "this node, and run refd group join",
				(unsigned long long)after + 1 +
				    (unsigned long long)i));
		if (!read_row(r, i, &row))
			die("row %llu of the log is malformed",
			    (unsigned long long)number(r, i, LSN));
		fn(arg, number(r, i, LSN), number(r, i, EPOCH), &row);
	}
}

long group_log_read(struct group_log *log, uint64_t after, uint64_t applied,
    group_log_row_fn *fn, void *arg)
{
	PGresult *r = select_rows(&log->s, after);
	long nr = r ? PQntuples(r) : -1;

	if (nr > 0 && !(touch(&log->s, applied) && session_prove(&log->s)))
		nr = -1;
	if (nr > 0)
		give(log, r, after, fn, arg);
	PQclear(r);
	return nr;
}
