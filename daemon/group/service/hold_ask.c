#include "daemon/group/service/hold_ask.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "proto/lib/clock.h"

#define WAIT_MS 60000
/* How long a follower may be away. A new start of refd-group on a follower
 * takes less, so a follower that is away for longer will not answer soon. Then
 * the daemon gets NOT_HELD, so that a push gets the reason before the pusher
 * gives up. */
#define AWAY_MS 10000
#define AWAY    "interval '10 s'"

struct hold_ask {
	struct daemon_frame *frame;
	uint64_t epoch;
	/* Random, because a number could come again after a crash of
	 * PostgreSQL, and an old answer would then count. */
	uint8_t id[GROUP_UUID_BYTES];
	uint64_t until_ms;
	uint64_t sent_ms; /* 0: not yet */
	char *why;        /* of a follower, or NULL */
	struct hold_ask *next;
};

void hold_ask_add(struct hold_asks *a, struct daemon_frame *frame,
    uint64_t epoch)
{
	struct hold_ask *asked = xcalloc(1, sizeof(*asked)), **at;

	if (getrandom(asked->id, sizeof(asked->id), 0) != sizeof(asked->id))
		die("the kernel has no random bytes");
	asked->frame = frame;
	asked->epoch = epoch;
	asked->until_ms = clock_now_ms() + WAIT_MS;
	for (at = &a->first; *at; at = &(*at)->next)
		continue;
	*at = asked;
}

/* Takes out the HOLD at AT, and frees it. */
static void drop(struct hold_ask **at)
{
	struct hold_ask *asked = *at;

	*at = asked->next;
	daemon_frame_free(asked->frame);
	free(asked->why);
	free(asked);
}

/* WHY is NULL: held. */
static void answer(struct hold_asks *a, struct hold_ask **at, const char *why)
{
	struct group_frame f = { .type = why ? GROUP_NOT_HELD : GROUP_HELD };
	uint64_t number = (*at)->frame->frame.hold.number;

	if (why) {
		f.not_held.number = number;
		group_frame_reason(f.not_held.reason, why);
	} else {
		f.held.number = number;
	}
	daemon_link_send(a->link, &f);
	drop(at);
}

/* ---- sending ---- */

static void add_oids(struct text *bytes, enum refd_object_format format,
    const struct refd_oid *oids, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		text_add(bytes, oids[i].bytes,
		    refd_object_format_bytes(format));
}

static bool send(struct hold_asks *a, struct session *s, struct hold_ask *asked)
{
	const struct group_frame *f = &asked->frame->frame;
	struct text oids = { 0 }, bases = { 0 };
	struct params p = { 0 };
	PGresult *r;

	add_oids(&oids, f->hold.object_format, f->hold.oids, f->hold.nr_oids);
	add_oids(&bases, f->hold.object_format, f->hold.bases,
	    f->hold.nr_bases);
	params_text(&p, a->config->name);
	params_bytes(&p, asked->id, sizeof(asked->id));
	params_text(&p, a->config->node);
	params_bytes(&p, f->hold.repo, sizeof(f->hold.repo));
	params_bytes(&p, f->hold.path.data, f->hold.path.len);
	params_text(&p, f->hold.is_new ? "true" : "false");
	params_number(&p, f->hold.object_format);
	params_array(&p, &oids);
	params_array(&p, &bases);
	params_number(&p, asked->epoch);
	r = session_run(s,
	    "WITH want AS (INSERT INTO refd.want"
	    " (grp, id, node, repo, path, is_new, format, oids, bases, epoch)"
	    " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
	    " ON CONFLICT DO NOTHING)"
	    " SELECT pg_notify('refd_want', $1)",
	    &p);
	asked->sent_ms = r ? clock_now_ms() : 0;
	PQclear(r);
	text_done(&oids);
	text_done(&bases);
	return asked->sent_ms != 0;
}

/* ---- answers ---- */

static struct hold_ask **find(struct hold_asks *a, const char *id)
{
	struct hold_ask **at = &a->first;

	while (*at && memcmp((*at)->id, id, sizeof((*at)->id)) != 0)
		at = &(*at)->next;
	return at;
}

/* The columns of ROW: the id; the numbers of the nodes that hold the objects,
 * that have answered, and that are known; the reason of a node. */
static void take_answer(struct hold_asks *a, const PGresult *r, int row)
{
	uint64_t numbers[3];
	struct hold_ask **at = find(a, PQgetvalue(r, row, 0));
	int i;

	for (i = 0; i < 3; i++)
		numbers[i] = params_read_number(PQgetvalue(r, row, i + 1),
		    PQgetlength(r, row, i + 1));
	if (!*at)
		return;
	if (numbers[0] >= a->config->held) {
		answer(a, at, NULL);
	} else if (!PQgetisnull(r, row, 4)) {
		free((*at)->why);
		(*at)->why = xstrdup(PQgetvalue(r, row, 4));
		if (numbers[1] >= numbers[2])
			answer(a, at, (*at)->why);
	}
}

static void read_answers(struct hold_asks *a, struct session *s)
{
	const struct hold_ask *asked;
	struct params p = { 0 };
	struct text ids = { 0 };
	size_t nr = 0;
	PGresult *r;
	int i;

	for (asked = a->first; asked; asked = asked->next)
		nr++;
	if (nr == 0)
		return;
	params_array_begin(&ids, PARAMS_UUID, nr);
	for (asked = a->first; asked; asked = asked->next)
		params_array_bytes(&ids, asked->id, sizeof(asked->id));
	params_text(&p, a->config->name);
	params_text(&p, a->config->node);
	params_array(&p, &ids);
	r = session_run_binary(s,
	    "SELECT id, count(*) FILTER (WHERE why IS NULL), count(*),"
	    " (SELECT count(*) FROM refd.node WHERE grp = $1 AND node <> $2),"
	    " min('node ''' || node || ''': ' || why)"
	    " FROM refd.held"
	    " WHERE grp = $1 AND node <> $2 AND id = ANY($3) GROUP BY id",
	    &p);
	for (i = 0; r && i < PQntuples(r); i++)
		take_answer(a, r, i);
	PQclear(r);
	text_done(&ids);
}

static bool is_long_ago(const struct hold_ask *asked)
{
	return asked->sent_ms && clock_now_ms() - asked->sent_ms >= AWAY_MS;
}

/* WHY: which nodes are away. */
static void end_old(struct hold_asks *a, const char *why)
{
	struct hold_ask **at = &a->first;
	struct text all = { 0 };

	while (*at)
		if (is_long_ago(*at)) {
			text_clear(&all);
			text_addf(&all, "%s%s%s", (*at)->why ? (*at)->why : "",
			    (*at)->why ? "; " : "", why);
			answer(a, at, all.data);
		} else {
			at = &(*at)->next;
		}
	text_done(&all);
}

/* While too few nodes are here, no HOLD can succeed, so waiting helps
 * nobody. */
static void end_hopeless(struct hold_asks *a, struct session *s)
{
	struct params p = { 0 };
	struct text why = { 0 };
	PGresult *r;

	params_text(&p, a->config->name);
	params_text(&p, a->config->node);
	r = session_run(s,
	    "SELECT count(*) FILTER (WHERE seen > clock_timestamp() - " AWAY
	    "), coalesce(string_agg(format('node ''%s'' was seen %s seconds"
	    " ago', node, round(extract(epoch FROM clock_timestamp() - seen))),"
	    " ', ' ORDER BY node) FILTER (WHERE seen <= clock_timestamp() - " AWAY
	    "), 'the group has no other node')"
	    " FROM refd.node WHERE grp = $1 AND node <> $2",
	    &p);
	if (r && session_number(r, 0, 0) < a->config->held) {
		text_addf(&why,
		    "%s, and group.held is %" PRIu64
		    ": start refd and refd-group there, or accept a single "
		    "copy of new objects with group.held = 0 on '%s'",
		    PQgetvalue(r, 0, 1), a->config->held, a->config->node);
		end_old(a, why.data);
	}
	PQclear(r);
	text_done(&why);
}

static void end_late(struct hold_asks *a)
{
	struct hold_ask **at = &a->first;

	while (*at)
		if (clock_now_ms() < (*at)->until_ms)
			at = &(*at)->next;
		else
			answer(a, at,
			    (*at)->why ? (*at)->why :
					 "the other nodes have not fetched the "
					 "objects within a minute: does "
					 "refd-group run there?");
}

void hold_ask_turn(struct hold_asks *a, struct session *s)
{
	struct hold_ask **at = &a->first;

	while (*at && s->conn) {
		if (!(*at)->sent_ms && !send(a, s, *at))
			break;
		if (a->config->held == 0)
			answer(a, at, NULL);
		else
			at = &(*at)->next;
	}
	if (s->conn)
		read_answers(a, s);
	if (s->conn && a->first && is_long_ago(a->first))
		end_hopeless(a, s);
	end_late(a);
}

void hold_ask_again(struct hold_asks *a)
{
	struct hold_ask *asked;

	for (asked = a->first; asked; asked = asked->next)
		asked->sent_ms = 0;
}

void hold_ask_done(struct hold_asks *a)
{
	while (a->first)
		drop(&a->first);
}
