#include "daemon/group/service/lease.h"

#include <string.h>
#include <time.h>

#include "daemon/group/service/damage.h"
#include "proto/lib/clock.h"

#define GRACE_MS 500 /* of a transaction that blocks a takeover */
/* Between two wishes of any nodes, if nobody calls refd group promote. */
#define WISH_PAUSE "interval '1 minute'"
/* A node with damaged objects leaves a lease that is over to other nodes. */
#define DAMAGED_PAUSE "interval '2 s'"

/* NODE must not lead (damage.h). */
#define LACKS_REPO(node)                                                       \
	"EXISTS (SELECT FROM refd.node AS n WHERE n.grp = $1"                  \
	" AND n.node = " node " AND " DAMAGE_IS_LIST ")"

/* Group, node, epoch, milliseconds. */
#define PROLONG                                                                \
	"UPDATE refd.lease"                                                    \
	" SET until = clock_timestamp() + $4 * interval '1 millisecond'"       \
	" WHERE grp = $1 AND owner = $2 AND epoch = $3"

static void name_group(struct params *p, const struct session *s)
{
	params_text(p, s->config->name);
}

uint64_t lease_now_ms(void)
{
	return clock_read_ms(CLOCK_BOOTTIME);
}

bool lease_look(struct session *s, struct lease *lease)
{
	struct params p = { 0 };
	PGresult *r;
	bool found;

	name_group(&p, s);
	r = session_run(s,
	    "SELECT epoch, owner, until <= clock_timestamp(),"
	    " current_setting('synchronous_standby_names') <> '',"
	    " coalesce(successor, owner), successor IS NOT NULL,"
	    " coalesce(successor <> owner"
	    "  AND asked > clock_timestamp() - " LEASE_WISH ", false)"
	    " FROM refd.lease WHERE grp = $1",
	    &p);
	if (!r)
		return false;
	found = PQntuples(r) == 1 && group_frame_is_name(PQgetvalue(r, 0, 1)) &&
	    group_frame_is_name(PQgetvalue(r, 0, 4));
	if (found) {
		lease->epoch = session_number(r, 0, 0);
		strcpy(lease->owner, PQgetvalue(r, 0, 1));
		lease->is_over = *PQgetvalue(r, 0, 2) == 't';
		lease->waits_for_standbys = *PQgetvalue(r, 0, 3) == 't';
		strcpy(lease->successor,
		    *PQgetvalue(r, 0, 5) == 't' ? PQgetvalue(r, 0, 4) : "");
		lease->is_wished = *PQgetvalue(r, 0, 6) == 't';
		lease->is_handed = !strcmp(lease->successor, lease->owner);
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
	return change(s, PROLONG, epoch, s->config->lease_ms);
}

enum lease_result lease_leave(struct session *s, uint64_t epoch)
{
	return change(s,
	    PROLONG
	    " AND set_config('synchronous_commit', 'local', true) = 'local'",
	    epoch, 0);
}

enum lease_result lease_hand(struct session *s, uint64_t epoch)
{
	return change(s,
	    "UPDATE refd.lease SET epoch = epoch + 1, owner = successor,"
	    " until = clock_timestamp() + $4 * interval '1 millisecond'"
	    " WHERE grp = $1 AND owner = $2 AND epoch = $3"
	    " AND successor <> owner"
	    " AND asked > clock_timestamp() - " LEASE_WISH
	    " AND NOT " LACKS_REPO("successor"),
	    epoch, s->config->lease_ms);
}

/* A takeover ends the wish, and keeps its time in the column ASKED. */
enum lease_result lease_wish(struct session *s, uint64_t epoch, bool is_full)
{
	return change(s,
	    "UPDATE refd.lease"
	    " SET successor = roomy.node, asked = clock_timestamp()"
	    " FROM (SELECT node FROM refd.node"
	    "  WHERE grp = $1 AND node <> $2 AND has_room"
	    "  AND (damaged IS NULL OR ($4 = 1 AND NOT " DAMAGE_IS_LIST "))"
	    "  AND applied = (SELECT max(lsn) FROM refd.log WHERE grp = $1)"
	    "  AND seen BETWEEN clock_timestamp() - interval '5 seconds'"
	    "  AND clock_timestamp() + interval '5 seconds'"
	    "  ORDER BY damaged IS NOT NULL, node LIMIT 1) AS roomy"
	    " WHERE grp = $1 AND owner = $2 AND epoch = $3"
	    " AND coalesce(asked, '-infinity')"
	    "  < clock_timestamp() - " WISH_PAUSE,
	    epoch, is_full);
}

/* ---- taking over ---- */

/* The epoch is in a unique index, so this update conflicts with FOR KEY SHARE.
 * So the update waits for every transaction that has locked the row by FOR KEY
 * SHARE. */
static const char take[] =
    "UPDATE refd.lease SET epoch = epoch + 1, owner = $2, successor = NULL,"
    " until = clock_timestamp() + $4 * interval '1 millisecond'"
    " WHERE grp = $1 AND epoch = $3"
    " AND (owner = $2 OR until <= clock_timestamp()"
    " - coalesce((SELECT " DAMAGED_PAUSE " FROM refd.node WHERE grp = $1"
    " AND node = $2 AND damaged IS NOT NULL), '0'))"
    " AND NOT " LACKS_REPO("$2");

struct blockers {
	struct session *s;  /* which is blocked */
	uint64_t due_ms;    /* the next attempt to end the blockers */
	struct session own; /* its failure is the reason */
};

/* A leader may pause in a transaction. In a pipeline no timeout of PostgreSQL
 * ends such a transaction, so its session is ended here. */
static bool end_blockers(void *arg)
{
	struct blockers *b = arg;
	struct params p = { 0 };

	if (clock_now_ms() < b->due_ms)
		return false;
	params_number(&p, (uint64_t)PQbackendPID(b->s->conn));
	text_clear(&b->own.why);
	if (session_open_beside(&b->own, b->s) == SESSION_OK)
		PQclear(session_run(&b->own,
		    "SELECT pg_terminate_backend(pid)"
		    " FROM unnest(pg_blocking_pids($1::int)) AS pid",
		    &p));
	session_close(&b->own);
	b->due_ms = clock_now_ms() + GRACE_MS;
	return false;
}

static void add_reason(struct session *s, const struct text *why)
{
	if (why->len == 0)
		return;
	text_adds(&s->why,
	    "; sessions that block the takeover cannot be ended, so end those "
	    "of pg_blocking_pids(): ");
	text_add(&s->why, why->data, why->len);
}

enum lease_result lease_take(struct session *s, uint64_t from)
{
	struct blockers b = { .s = s,
		.due_ms = clock_now_ms() + GRACE_MS,
		.own.config = s->config };
	session_tick_fn *tick = s->tick;
	void *tick_arg = s->tick_arg;
	enum lease_result result;

	s->tick = end_blockers;
	s->tick_arg = &b;
	result = change(s, take, from, s->config->lease_ms);
	s->tick = tick;
	s->tick_arg = tick_arg;
	if (result == LEASE_DONE && !session_prove(s))
		result = LEASE_FAILED;
	if (result == LEASE_FAILED)
		add_reason(s, &b.own.why);
	session_done(&b.own);
	return result;
}
