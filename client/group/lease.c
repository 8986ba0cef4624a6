#include "client/group/lease.h"

#include <poll.h>
#include <string.h>

#define GRACE_MS 500 /* of a transaction that blocks a takeover */

static void name_group(struct params *p, const struct session *s)
{
	params_text(p, s->config->name);
}

bool lease_look(struct session *s, struct lease *lease)
{
	struct params p = { 0 };
	PGresult *r;
	bool found;

	name_group(&p, s);
	r = session_run(s,
	    "SELECT epoch, owner, until <= clock_timestamp(),"
	    " current_setting('synchronous_standby_names') <> ''"
	    " FROM refd.lease WHERE grp = $1",
	    &p);
	if (!r)
		return false;
	found = PQntuples(r) == 1 && group_frame_is_name(PQgetvalue(r, 0, 1));
	if (found) {
		lease->epoch = session_number(r, 0, 0);
		strcpy(lease->owner, PQgetvalue(r, 0, 1));
		lease->is_over = *PQgetvalue(r, 0, 2) == 't';
		lease->waits_for_standbys = *PQgetvalue(r, 0, 3) == 't';
	} else {
		session_fail(s, NULL, "the group has no lease");
	}
	PQclear(r);
	return found;
}

static enum lease_result change(struct session *s, const char *sql,
    uint64_t epoch, uint64_t ms)
{
	struct params p = { 0 };
	long changed;

	name_group(&p, s);
	params_text(&p, s->config->node);
	params_number(&p, epoch);
	params_number(&p, ms);
	changed = session_change(s, sql, &p);
	return changed < 0 ? LEASE_FAILED :
	    changed == 0   ? LEASE_LOST :
			     LEASE_DONE;
}

enum lease_result lease_renew(struct session *s, uint64_t epoch)
{
	return change(s, LEASE_PROLONG, epoch, s->config->lease_ms);
}

enum lease_result lease_leave(struct session *s, uint64_t epoch)
{
	return change(s,
	    LEASE_PROLONG
	    " AND set_config('synchronous_commit', 'local', true) = 'local'",
	    epoch, 0);
}

/* ---- taking over ---- */

/* The epoch is in a unique index. So the update waits for every transaction
 * that has locked the row FOR KEY SHARE. */
static const char take[] =
    "UPDATE refd.lease SET epoch = epoch + 1, owner = $2,"
    " until = clock_timestamp() + $4 * interval '1 millisecond'"
    " WHERE grp = $1 AND epoch = $3"
    " AND (owner = $2 OR until <= clock_timestamp())";

/* A leader that pauses in a transaction has no timeout in a pipeline. */
static void end_blockers(const struct group_config *config, int pid)
{
	struct session other = { .config = config };
	struct params p = { 0 };
	PGresult *r;

	params_number(&p, (uint64_t)pid);
	if (session_open(&other) == SESSION_OK) {
		r = session_run(&other,
		    "SELECT pg_terminate_backend(pid)"
		    " FROM unnest(pg_blocking_pids($1::int)) AS pid",
		    &p);
		PQclear(r);
	}
	session_done(&other);
}

static void wait_for_fences(struct session *s)
{
	struct pollfd fd = { .fd = PQsocket(s->conn), .events = POLLIN };

	while (PQconsumeInput(s->conn) && PQisBusy(s->conn))
		if (poll(&fd, 1, GRACE_MS) == 0)
			end_blockers(s->config, PQbackendPID(s->conn));
}

static long send_take(struct session *s, uint64_t from)
{
	struct params p = { 0 };
	PGresult *r;
	long changed = -1;

	name_group(&p, s);
	params_text(&p, s->config->node);
	params_number(&p, from);
	params_number(&p, s->config->lease_ms);
	if (!PQsendQueryParams(s->conn, take, p.nr, NULL, p.values, p.lengths,
		p.formats, 0)) {
		session_fail(s, NULL, "no connection");
		return -1;
	}
	wait_for_fences(s);
	r = session_finish(s);
	if (r)
		changed = *PQcmdTuples(r) == '1';
	PQclear(r);
	return changed;
}

enum lease_result lease_take(struct session *s, uint64_t from)
{
	long changed = s->conn ? send_take(s, from) : -1;

	if (changed <= 0)
		return changed == 0 ? LEASE_LOST : LEASE_FAILED;
	return session_prove(s) ? LEASE_DONE : LEASE_FAILED;
}
