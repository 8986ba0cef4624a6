/*
 * refd group promote: moves the lead to another node. The happy path:
 *
 *	1. The wish is written into the lease: the successor.
 *	2. The leader reads the wish, takes no further batch, and gives the
 *	   lease to the successor.
 *	3. The successor takes the lease after the last row, which ends the
 *	   wish.
 *
 * Failures: a leader that does not answer keeps the lead, and the wish is taken
 * back. A successor that does not take the lease loses it after group.lease, so
 * any node can lead then. The command can die before it takes the wish back, so
 * a wish has no effect after some time, nor in a later epoch.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/group/service/console_session.h"
#include "daemon/group/service/lease.h"
#include "daemon/group/service/verbs.h"
#include "proto/lib/clock.h"

#define LAG_MOST  1000
#define LOOK_MS   20
#define SILENCE_S 5
#define APPLY_S   5 /* for the rows that the node lacks at the start */

struct promotion {
	struct session s;
	const char *node;
	uint64_t epoch; /* of the leader who is asked */
	char *asked;    /* the moment, which names this wish */
	uint64_t until_ms;
	uint64_t led_ms; /* when the leader was last seen to lead */
};

static void look(struct promotion *p, struct lease *lease)
{
	if (!lease_look(&p->s, lease))
		console_session_die(&p->s, SESSION_AWAY);
}

/* ---- asking ---- */

/* A node writes once a second, also while nothing happens, so silence means
 * that the node does not run. */
static void find_node(struct promotion *p, struct console_node *node)
{
	if (!console_session_find_node(&p->s, p->node, node))
		die("the group '%s' has no node '%s': refd group status lists "
		    "its nodes",
		    p->s.config->name, p->node);
	if (node->seen_s >= SILENCE_S)
		die("the node '%s' wrote %" PRIu64
		    " seconds ago for the last time: does refd-group run "
		    "there, and does its daemon answer?",
		    p->node, node->seen_s);
}

/* A node that waits at a row cannot lead, so the row must be applied first. */
static void check_node(struct promotion *p)
{
	uint64_t until_ms = clock_now_ms() + APPLY_S * 1000, last;
	struct console_node node;

	find_node(p, &node);
	if (node.lacks_repo)
		die("the node '%s' has joined without some repositories, so it "
		    "cannot lead: refd group status names them",
		    p->node);
	last = node.last;
	if (node.applied + LAG_MOST < last)
		die("the node '%s' lacks %" PRIu64
		    " rows: wait until it has applied them, see refd group "
		    "status",
		    p->node, last - node.applied);
	while (node.applied < last) {
		if (clock_now_ms() >= until_ms)
			die("the node '%s' has not applied the row %" PRIu64
			    " of the log within %d seconds: the log of its "
			    "daemon has the reason (group-row-waits)",
			    p->node, node.applied + 1, APPLY_S);
		usleep(LOOK_MS * 1000);
		find_node(p, &node);
	}
}

/* True: the wish is written. */
static bool ask(struct promotion *p)
{
	struct params q = { 0 };
	PGresult *r;
	bool is_asked;

	params_text(&q, p->s.config->name);
	params_text(&q, p->node);
	params_number(&q, p->epoch);
	r = session_run(&p->s,
	    "UPDATE refd.lease"
	    " SET successor = $2, asked = clock_timestamp()"
	    " WHERE grp = $1 AND epoch = $3 AND until > clock_timestamp()"
	    " AND owner <> $2 AND successor IS DISTINCT FROM owner"
	    " AND (coalesce(successor, $2) = $2"
	    "  OR asked <= clock_timestamp() - " LEASE_WISH ")"
	    " RETURNING asked",
	    &q);
	if (!r)
		console_session_die(&p->s, SESSION_AWAY);
	is_asked = PQntuples(r) == 1;
	if (is_asked)
		p->asked = xstrdup(PQgetvalue(r, 0, 0));
	PQclear(r);
	p->until_ms = clock_now_ms() + LEASE_WISH_MS;
	return is_asked;
}

static void __attribute__((noreturn)) die_unasked(struct promotion *p)
{
	struct lease lease;

	look(p, &lease);
	if (lease.is_over)
		cli_die(EXIT_FAILED,
		    "no node leads the group '%s', so the lead cannot be "
		    "moved: see refd group status",
		    p->s.config->name);
	if (*lease.successor)
		cli_die(EXIT_FAILED,
		    "the lead is being moved to the node '%s' already: try "
		    "again later",
		    lease.successor);
	cli_die(EXIT_FAILED, "the lead has just changed: try again");
}

/* True: the wish is taken back. False: it is not there any more. */
static bool take_back(struct promotion *p)
{
	struct params q = { 0 };
	long changed;

	params_text(&q, p->s.config->name);
	params_number(&q, p->epoch);
	params_text(&q, p->asked);
	changed = session_change(&p->s,
	    "UPDATE refd.lease SET successor = NULL, asked = NULL"
	    " WHERE grp = $1 AND epoch = $2 AND asked = $3::timestamptz",
	    &q);
	if (changed < 0)
		console_session_die(&p->s, SESSION_AWAY);
	return changed == 1;
}

/* ---- waiting ---- */

/* The command ends here, unless the leader has just given the lead away. */
static void end_late(struct promotion *p, struct lease *lease)
{
	if (take_back(p))
		cli_die(EXIT_FAILED,
		    "the leader '%s' has not given the lead away within %d "
		    "seconds, so the wish is taken back: see the logs of its "
		    "daemon and its refd-group",
		    lease->owner, LEASE_WISH_MS / 1000);
	look(p, lease);
	if (lease->epoch == p->epoch)
		cli_die(EXIT_FAILED,
		    "the leader '%s' has not given the lead away within %d "
		    "seconds, and a later refd group promote has taken the "
		    "place of this one",
		    lease->owner, LEASE_WISH_MS / 1000);
}

/* The leader has given the lease to the node, which does not lead yet. */
static void check_lease(const struct promotion *p, const struct lease *lease)
{
	if (lease->is_over)
		cli_die(EXIT_FAILED,
		    "the node '%s' has not taken the lead in time, and any "
		    "node can take it now: see refd group status, and the log "
		    "of refd-group on '%s'",
		    p->node, p->node);
}

/* True: the node leads. */
static bool has_moved(struct promotion *p, struct lease *lease)
{
	look(p, lease);
	if (lease->epoch == p->epoch) {
		p->led_ms = clock_now_ms();
		if (p->led_ms >= p->until_ms)
			end_late(p, lease);
		return false;
	}
	if (strcmp(lease->owner, p->node) != 0)
		cli_die(EXIT_FAILED,
		    "the node '%s' has taken the lead in epoch %" PRIu64
		    ", and '%s' has not: see refd group status",
		    lease->owner, lease->epoch, p->node);
	if (!lease->is_handed)
		return true;
	check_lease(p, lease);
	return false;
}

static void await(struct promotion *p, struct lease *lease)
{
	p->led_ms = clock_now_ms();
	while (!has_moved(p, lease))
		usleep(LOOK_MS * 1000);
}

int promote_run(const struct group_config *config,
    const struct verb_options *opt)
{
	const char *node = opt->operand;
	struct promotion p = { .s.config = config, .node = node };
	struct lease lease;

	console_session_open(&p.s);
	/* A wish that is lost with the primary does no harm. */
	if (!session_do(&p.s, "SET synchronous_commit = local"))
		console_session_die(&p.s, SESSION_AWAY);
	look(&p, &lease);
	p.epoch = lease.epoch;
	if (!strcmp(lease.owner, node) && !lease.is_over && !lease.is_handed) {
		print_line(stdout, "the node '%s' leads the group '%s' already",
		    node, config->name);
	} else {
		check_node(&p);
		if (!ask(&p))
			die_unasked(&p);
		await(&p, &lease);
		print_line(stdout,
		    "the node '%s' leads the group '%s' in epoch %" PRIu64
		    "; writes stood still for at most %" PRIu64 " ms",
		    node, config->name, lease.epoch, clock_now_ms() - p.led_ms);
	}
	free(p.asked);
	session_done(&p.s);
	return EXIT_DONE;
}
