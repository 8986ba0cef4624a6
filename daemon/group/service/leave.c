/*
 * Happy path: one statement looks whether the node leads or runs, and removes
 * the node and its messages, so that nothing can change in between.
 *
 * Failures: the node leads or runs, also since the look: nothing is removed. A
 * removal that is lost with the primary can be repeated.
 */
#include <inttypes.h>
#include <string.h>

#include "daemon/group/service/console_session.h"
#include "daemon/group/service/lease.h"
#include "daemon/group/service/verbs.h"

static const char remove_sql[] =
    "WITH gone AS (DELETE FROM refd.node WHERE grp = $1 AND node = $2"
    "  AND seen <= clock_timestamp() - " CONSOLE_SEEN
    "  AND NOT EXISTS (SELECT FROM refd.lease WHERE grp = $1 AND owner = $2"
    "   AND until > clock_timestamp()) RETURNING node),"
    " want AS (DELETE FROM refd.want USING gone"
    "  WHERE grp = $1 AND want.node = gone.node),"
    " held AS (DELETE FROM refd.held USING gone"
    "  WHERE grp = $1 AND held.node = gone.node)"
    " SELECT count(*) FROM gone";

static void check(struct session *s, const char *node)
{
	struct console_node found;
	struct lease lease;

	if (!console_session_find_node(s, node, &found))
		die("the group '%s' has no node '%s': refd group status lists "
		    "its nodes",
		    s->config->name, node);
	if (!lease_look(s, &lease))
		console_session_die(s, SESSION_AWAY);
	if (!lease.is_over && !strcmp(lease.owner, node))
		die("the node '%s' leads the group: first move the lead by "
		    "refd group promote, and stop refd-group there",
		    node);
	if (found.is_seen)
		die("the node '%s' wrote to the database %" PRIu64
		    " seconds ago: stop refd-group there, and try again after "
		    "15 seconds",
		    node, found.seen_s);
}

static bool remove_node(struct session *s, const char *node)
{
	struct params p = { 0 };
	bool is_removed;
	PGresult *r;

	params_text(&p, s->config->name);
	params_text(&p, node);
	r = session_run(s, remove_sql, &p);
	if (!r)
		console_session_die(s, SESSION_AWAY);
	is_removed = session_number(r, 0, 0) == 1;
	PQclear(r);
	return is_removed;
}

int leave_run(const struct group_config *config, const struct verb_options *opt)
{
	const char *node = opt->operand;
	struct session s = { .config = config };

	console_session_open(&s);
	check(&s, node);
	if (!remove_node(&s, node))
		die("the node '%s' has just written to the database, or leads: "
		    "it still runs",
		    node);
	print_line(stdout, "the node '%s' has left the group '%s'", node,
	    config->name);
	session_done(&s);
	return EXIT_DONE;
}
