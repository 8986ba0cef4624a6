#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/group/service/console_session.h"
#include "daemon/group/service/damage.h"
#include "daemon/group/service/group_log.h"
#include "daemon/group/service/guard.h"
#include "daemon/group/service/schema.h"
#include "daemon/group/service/verbs.h"
#include "proto/left_log.h"

static bool is_true(struct session *s, const char *sql)
{
	PGresult *r = session_run(s, sql, NULL);
	bool result = r && *PQgetvalue(r, 0, 0) == 't';

	if (!r)
		console_session_die(s, SESSION_AWAY);
	PQclear(r);
	return result;
}

static uint64_t read_number(struct session *s, const char *sql)
{
	PGresult *r = session_run(s, sql, NULL);
	uint64_t nr;

	if (!r)
		console_session_die(s, SESSION_AWAY);
	nr = session_number(r, 0, 0);
	PQclear(r);
	return nr;
}

/* Standbys for which a COMMIT can wait. */
static uint64_t count_standbys(struct session *s)
{
	return read_number(s,
	    "SELECT count(DISTINCT application_name) FROM pg_stat_replication"
	    " WHERE sync_state IN ('sync', 'quorum')"
	    " AND flush_lsn IS NOT NULL");
}

/* Standbys for which a COMMIT waits by synchronous_standby_names: the number
 * before the parenthesis, or 1. */
static uint64_t count_awaited(struct session *s)
{
	return read_number(s,
	    "SELECT coalesce(substring("
	    "current_setting('synchronous_standby_names')"
	    " FROM '(?i)^\\s*(?:(?:any|first)\\s)?\\s*(\\d+)\\s*[(]'), '1')");
}

static bool sees_standbys(struct session *s)
{
	return is_true(s,
	    "SELECT pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')");
}

/* ---- create ---- */

void console_check_server(struct session *s)
{
	uint64_t nr, awaited;

	if (!sees_standbys(s))
		die("the role of group.database may not see the standbys: as "
		    "a superuser of PostgreSQL, GRANT pg_read_all_stats TO the "
		    "role");
	nr = count_standbys(s);
	if (nr < s->config->copies)
		die("PostgreSQL has %" PRIu64
		    " synchronous standbys, and group.copies is %" PRIu64
		    ": set synchronous_standby_names, and look at "
		    "pg_stat_replication",
		    nr, s->config->copies);
	awaited = count_awaited(s);
	if (s->config->copies < awaited)
		die("synchronous_standby_names waits for %" PRIu64
		    " standbys, and group.copies is %" PRIu64
		    ": a row with fewer copies would count, so set "
		    "group.copies to %" PRIu64 " on every node",
		    awaited, s->config->copies, awaited);
}

int console_create(const struct group_config *config,
    const struct verb_options *opt)
{
	uint8_t origin[GROUP_UUID_BYTES];
	struct session s = { .config = config };
	enum session_result result = session_open(&s);

	if (result == SESSION_OK) {
		console_check_server(&s);
		result = schema_create(&s,
		    opt->operand && left_log_parse(opt->operand, origin) ?
			origin :
			NULL);
	}
	if (result != SESSION_OK)
		console_session_die(&s, result);
	if (!session_prove(&s))
		die("the group '%s' was created, but no standby is known to "
		    "have it: %s; see refd group status",
		    config->name, s.why.data);
	print_line(stdout, "created the group '%s'; the node '%s' can lead it",
	    config->name, config->node);
	session_done(&s);
	return EXIT_DONE;
}

/* ---- status ---- */

static void say_damage(const char *node, const char *damage)
{
	char hex[FETCH_ID_HEX + 1], *path;
	size_t at = 0;

	if (!damage_is_list(damage))
		say_error(
		    "the node '%s' has damaged objects in '%s', and leads "
		    "only if no other node can: run refd group verify "
		    "--repair there",
		    node, damage);
	while (damage_is_list(damage) &&
	    (path = damage_next_absent(damage, &at, hex))) {
		say_error(
		    "the node '%s' has joined without '%s', and cannot lead: "
		    "copy the repository from the leader, with refd/, and run "
		    "refd group verify there",
		    node, path);
		free(path);
	}
}

/* False: a node cannot use the log, or is damaged. */
static bool print_nodes(struct session *s)
{
	struct params p = { 0 };
	bool are_right = true;
	PGresult *r;
	int i;

	params_text(&p, s->config->name);
	r = session_run(s,
	    "SELECT node, applied, greatest(0,"
	    "  (SELECT max(lsn) FROM refd.log WHERE grp = $1) - applied),"
	    " CASE seen WHEN " CONSOLE_JOINS " THEN 'joins the group'"
	    " ELSE format('was seen %s seconds ago', greatest(0,"
	    "  round(extract(epoch FROM now() - seen)))) END, refuses, damaged"
	    " FROM refd.node WHERE grp = $1 ORDER BY node",
	    &p);
	if (!r)
		console_session_die(s, SESSION_AWAY);
	for (i = 0; i < PQntuples(r); i++) {
		if (!PQgetisnull(r, i, 4)) {
			are_right = false;
			say_error("the node '%s' takes no part in the group: "
				  "%s",
			    PQgetvalue(r, i, 0), PQgetvalue(r, i, 4));
			continue;
		}
		print_line(stdout,
		    "node %s: has applied LSN %s, lacks %s rows, %s",
		    PQgetvalue(r, i, 0), PQgetvalue(r, i, 1),
		    PQgetvalue(r, i, 2), PQgetvalue(r, i, 3));
		if (PQgetisnull(r, i, 5))
			continue;
		are_right = false;
		say_damage(PQgetvalue(r, i, 0), PQgetvalue(r, i, 5));
	}
	PQclear(r);
	return are_right;
}

/* The objects of an update must get to group.held nodes that run. So if fewer
 * nodes run, each update with new objects is held up. */
static void warn_of_nodes(struct session *s, const struct lease *lease)
{
	struct params p = { 0 };
	uint64_t nr;
	PGresult *r;

	params_text(&p, s->config->name);
	params_text(&p, lease->owner);
	r = session_run(s,
	    "SELECT count(*) FROM refd.node WHERE grp = $1 AND node <> $2"
	    " AND seen > clock_timestamp() - " CONSOLE_SEEN,
	    &p);
	if (!r)
		console_session_die(s, SESSION_AWAY);
	nr = session_number(r, 0, 0);
	PQclear(r);
	if (nr < s->config->held)
		say_warning("%" PRIu64
			    " nodes besides the leader are here, and "
			    "group.held is %" PRIu64 ": updates with new "
			    "objects wait, and are refused",
		    nr, s->config->held);
}

static int print_standbys(struct session *s, const struct lease *lease)
{
	uint64_t nr = count_standbys(s), awaited = count_awaited(s);
	bool is_low = s->config->copies < awaited;

	print_line(stdout,
	    "copies: %" PRIu64 " synchronous standbys, %" PRIu64 " needed", nr,
	    s->config->copies);
	if (!lease->waits_for_standbys)
		say_warning("synchronous_standby_names is empty: new batches "
			    "are refused");
	else if (nr < s->config->copies)
		say_warning("%s",
		    sees_standbys(s) ?
			"standbys are missing: batches wait. "
			"pg_stat_replication has the standbys" :
			"the role may not see the standbys: as a superuser of "
			"PostgreSQL, GRANT pg_read_all_stats TO the role");
	if (is_true(s, "SELECT current_setting('fsync') = 'off'"))
		say_warning("fsync is off in PostgreSQL: a loss of power can "
			    "lose rows that count");
	if (is_low)
		say_warning("group.copies is lower than the %" PRIu64
			    " standbys of synchronous_standby_names: a row "
			    "with fewer copies counts",
		    awaited);
	if (lease->is_over)
		say_warning("no node leads: is refd-group running?");
	return !lease->waits_for_standbys || nr < s->config->copies || is_low ||
		lease->is_over ?
	    EXIT_FAILED :
	    EXIT_DONE;
}

static void print_log(struct session *s)
{
	struct params p = { 0 };
	PGresult *r;

	params_text(&p, s->config->name);
	r = session_run(s,
	    "SELECT min(lsn), max(lsn) FROM refd.log WHERE grp = $1", &p);
	if (!r)
		console_session_die(s, SESSION_AWAY);
	print_line(stdout, "group %s: the log has the rows %s to %s",
	    s->config->name, PQgetvalue(r, 0, 0), PQgetvalue(r, 0, 1));
	PQclear(r);
}

static void print_leader(const struct lease *lease)
{
	print_part(stdout, "leader: %s, epoch %" PRIu64, lease->owner,
	    lease->epoch);
	if (lease->is_over)
		print_part(stdout, ", but the lease is over");
	else if (lease->is_handed)
		print_part(stdout, ", which has not begun yet");
	else if (lease->is_wished)
		print_part(stdout, "; the node '%s' shall lead",
		    lease->successor);
	print_lines(stdout, "\n");
}

int console_status(const struct group_config *config,
    const struct verb_options *opt)
{
	struct group_log log = { .s.config = config };
	enum session_result result = group_log_open(&log);
	struct lease lease;
	int rc;

	(void)opt;
	if (result != SESSION_OK)
		console_session_die(&log.s, result);
	if (!lease_look(&log.s, &lease))
		console_session_die(&log.s, SESSION_AWAY);
	print_log(&log.s);
	print_leader(&lease);
	rc = print_standbys(&log.s, &lease);
	if (!guard_check_all(config))
		rc = EXIT_FAILED;
	if (!print_nodes(&log.s))
		rc = EXIT_FAILED;
	warn_of_nodes(&log.s, &lease);
	group_log_done(&log);
	return rc;
}
