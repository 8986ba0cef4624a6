#include "daemon/group/service/hold_fetch.h"

#include <stdlib.h>
#include <string.h>

#include "proto/lib/clock.h"

/* Rows of one question. */
#define WANTS_MOST 16
#define TELL_MS    60000

static void keep_answer(struct hold_fetches *h, struct fetch_job *job)
{
	struct fetch_job **at;

	for (at = &h->answers; *at; at = &(*at)->next)
		continue;
	*at = job;
}

/* The leader has the objects of its rows, unless it has lost them with its
 * disk. Then a node that waits for these objects could never lead, although a
 * third node has them. So a failed fetch for the daemon is repeated from each
 * other node. A leader without a lease comes last, because its machine may be
 * lost, but may also be the only machine with the objects. False: all were
 * asked. */
static bool ask_next(struct hold_fetches *h, struct fetch_job *job)
{
	const struct group_config *config = h->config;
	const char *last = job->source;

	if (!fetch_job_is_of_daemon(job) || job->is_held ||
	    job->epoch < h->epoch || config->nr_roots == 0)
		return false;
	while (job->nr_asked < config->nr_sources &&
	    (job->source == last || job->source == h->lost))
		job->source = config->sources[job->nr_asked++].url;
	if (job->source == last || job->source == h->lost) {
		if (!h->lost || job->is_last)
			return false;
		job->source = h->lost;
		job->is_last = true;
	}
	if (job->why.len > 0)
		text_adds(&job->why, "; then: ");
	job->is_taken = job->is_late = false;
	fetch_pool_add(h->pool, job);
	return true;
}

/* Owns JOB. The objects come from NODE. */
static void begin(struct hold_fetches *h, struct fetch_job *job,
    const char *node)
{
	job->source = group_config_source(h->config, node);
	if (job->source && h->config->nr_roots > 0) {
		if (job->source != h->lost || !ask_next(h, job))
			fetch_pool_add(h->pool, job);
		return;
	}
	if (!job->source)
		text_addf(&job->why,
		    "group.source in the configuration here does not name the "
		    "node '%s'",
		    node);
	else
		text_adds(&job->why,
		    "the configuration here has no daemon.root");
	if (!ask_next(h, job))
		keep_answer(h, job);
}

void hold_fetch_begin_epoch(struct hold_fetches *h, uint64_t epoch)
{
	if (epoch == h->epoch)
		return;
	h->epoch = epoch;
	fetch_pool_end_fetches(h->pool, epoch, NULL);
}

/* If the lease of NODE is over, its machine may be lost, and fetches from there
 * may not end. A node that lacks objects cannot lead, so no later epoch would
 * end its fetch. So it gets the objects from a third node. Only the second look
 * counts, because a leader renews its lease as soon as PostgreSQL is back. */
void hold_fetch_lose(struct hold_fetches *h, const char *node)
{
	const char *url = node ? group_config_source(h->config, node) : NULL;

	if (url && url == h->suspected && url != h->lost &&
	    h->config->nr_sources > 1)
		fetch_pool_end_fetches(h->pool, h->epoch + 1, url);
	h->lost = url == h->suspected ? url : NULL;
	h->suspected = url;
}

/* The path of the repository by its last row, because the leader may have
 * renamed the repository since the row that needs the objects. NULL: no
 * answer. */
static char *ask_path(struct hold_fetches *h, struct session *s,
    const uint8_t *repo)
{
	struct params p = { 0 };
	struct group_bytes path;
	char *copy = NULL;
	PGresult *r;

	params_text(&p, h->config->name);
	params_bytes(&p, repo, GROUP_UUID_BYTES);
	r = session_run_binary(s,
	    "SELECT path FROM refd.log WHERE grp = $1 AND repo = $2"
	    " ORDER BY lsn DESC LIMIT 1",
	    &p);
	if (r && PQntuples(r) == 1) {
		path =
		    (struct group_bytes){ (const uint8_t *)PQgetvalue(r, 0, 0),
			    (size_t)PQgetlength(r, 0, 0) };
		if (group_frame_is_path(path))
			copy = xasprintf("%.*s", (int)path.len,
			    (const char *)path.data);
	}
	PQclear(r);
	return copy;
}

void hold_fetch_add(struct hold_fetches *h, struct session *s,
    const struct group_frame *hold, const char *leader)
{
	struct fetch_job *job = fetch_job_new(&hold->hold.path, hold->hold.oids,
	    hold->hold.nr_oids, hold->hold.bases, hold->hold.nr_bases);
	char *path;

	job->number = hold->hold.number;
	job->epoch = h->epoch;
	job->format = hold->hold.object_format;
	memcpy(job->uuid, hold->hold.repo, sizeof(job->uuid));
	/* The daemon asks often, and ask_path() searches the log, so a needless
	 * question ends here. */
	if (fetch_pool_has(h->pool, job)) {
		fetch_job_free(job);
		return;
	}
	path = s->conn ? ask_path(h, s, job->uuid) : NULL;
	if (path) {
		free(job->source_path);
		job->source_path = path;
	}
	begin(h, job, leader);
}

/* ---- rows ---- */

/* The ids in the binary value, or NULL: a wrong length. */
static struct refd_oid *read_oids(const PGresult *r, int row, int column,
    enum refd_object_format format, size_t *nr)
{
	size_t each = refd_object_format_bytes(format), i;
	size_t len = (size_t)PQgetlength(r, row, column);
	struct refd_oid *oids;

	if (len % each != 0)
		return NULL;
	*nr = len / each;
	oids = xcalloc(*nr + 1, sizeof(*oids));
	for (i = 0; i < *nr; i++)
		memcpy(oids[i].bytes, PQgetvalue(r, row, column) + i * each,
		    each);
	return oids;
}

/* Columns: id, node, repo, path, format, oids, bases, is_new, epoch. NULL: a
 * wrong row. */
static struct fetch_job *read_want(const PGresult *r, int row)
{
	struct group_bytes path = { (const uint8_t *)PQgetvalue(r, row, 3),
		(size_t)PQgetlength(r, row, 3) };
	enum refd_object_format format =
	    params_read_number(PQgetvalue(r, row, 4), PQgetlength(r, row, 4)) ==
		REFD_FORMAT_SHA256 ?
	    REFD_FORMAT_SHA256 :
	    REFD_FORMAT_SHA1;
	size_t nr_oids = 0, nr_bases = 0;
	struct refd_oid *oids = read_oids(r, row, 5, format, &nr_oids);
	struct refd_oid *bases = read_oids(r, row, 6, format, &nr_bases);
	struct fetch_job *job = NULL;

	if (oids && bases && group_frame_is_path(path)) {
		job = fetch_job_new(&path, oids, nr_oids, bases, nr_bases);
		job->format = format;
		memcpy(job->id, PQgetvalue(r, row, 0), sizeof(job->id));
		memcpy(job->uuid, PQgetvalue(r, row, 2), sizeof(job->uuid));
		job->is_new = *PQgetvalue(r, row, 7) != 0;
		job->epoch = params_read_number(PQgetvalue(r, row, 8),
		    PQgetlength(r, row, 8));
	}
	free(oids);
	free(bases);
	return job;
}

static void take_want(struct hold_fetches *h, const PGresult *r, int row)
{
	struct fetch_job *job = read_want(r, row);

	text_add(&h->ids, PQgetvalue(r, row, 0), GROUP_UUID_BYTES);
	if (job) {
		/* A new leader can ask before this node has the new role, so
		 * the epoch in the row of the leader counts at once. */
		fetch_pool_end_fetches(h->pool, job->epoch, NULL);
		begin(h, job, PQgetvalue(r, row, 1));
	} else {
		say_warning("refd.want has a wrong row: which program wrote "
			    "it?");
	}
}

static PGresult *ask_wants(struct hold_fetches *h, struct session *s)
{
	size_t at, nr = h->ids.len / GROUP_UUID_BYTES;
	struct params p = { 0 };
	struct text ids = { 0 };
	PGresult *r;

	params_array_begin(&ids, PARAMS_UUID, nr);
	for (at = 0; at < nr; at++)
		params_array_bytes(&ids, h->ids.data + at * GROUP_UUID_BYTES,
		    GROUP_UUID_BYTES);
	params_text(&p, h->config->name);
	params_text(&p, h->config->node);
	params_array(&p, &ids);
	params_number(&p, WANTS_MOST);
	params_number(&p, h->epoch);
	r = session_run_binary(s,
	    "SELECT id, node, repo, path, format, oids, bases, is_new, epoch"
	    " FROM refd.want"
	    " WHERE grp = $1 AND node <> $2 AND id <> ALL($3)"
	    " AND at > clock_timestamp() - interval '1 minute'"
	    " AND epoch >= $5"
	    " AND NOT EXISTS (SELECT FROM refd.held WHERE held.grp = $1"
	    " AND held.id = want.id AND held.node = $2)"
	    " ORDER BY at LIMIT $4",
	    &p);
	text_done(&ids);
	return r;
}

static void read_wants(struct hold_fetches *h, struct session *s)
{
	PGresult *r;
	int i, nr;

	do {
		r = ask_wants(h, s);
		nr = r ? PQntuples(r) : 0;
		for (i = 0; i < nr; i++)
			take_want(h, r, i);
		PQclear(r);
	} while (nr == WANTS_MOST);
}

/* ---- answers ---- */

static void answer_daemon(struct hold_fetches *h, const struct fetch_job *job)
{
	struct group_frame f = { .type = job->is_held ? GROUP_HELD :
							GROUP_NOT_HELD };

	if (job->is_held) {
		f.held.number = job->number;
	} else {
		f.not_held.number = job->number;
		group_frame_reason(f.not_held.reason, job->why.data);
	}
	daemon_link_send(h->link, &f);
}

static void forget_id(struct hold_fetches *h, const uint8_t *id)
{
	size_t at = 0;

	while (memcmp(h->ids.data + at, id, GROUP_UUID_BYTES) != 0)
		at += GROUP_UUID_BYTES;
	h->ids.len -= GROUP_UUID_BYTES;
	memmove(h->ids.data + at, h->ids.data + at + GROUP_UUID_BYTES,
	    h->ids.len - at);
}

static bool write_held(struct hold_fetches *h, struct session *s,
    const struct fetch_job *job)
{
	struct params p = { 0 };
	struct text why = { 0 };
	PGresult *r;

	/* A path can have bytes that are no text for PostgreSQL, so only
	 * visible ones are sent. */
	if (!job->is_held)
		text_add_visible(&why, job->why.data);
	params_text(&p, h->config->name);
	params_bytes(&p, job->id, sizeof(job->id));
	params_text(&p, h->config->node);
	params_text(&p, why.data);
	r = session_run(s,
	    "WITH held AS (INSERT INTO refd.held (grp, id, node, why)"
	    " VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING)"
	    " SELECT pg_notify('refd_held', $1)",
	    &p);
	PQclear(r);
	text_done(&why);
	return r != NULL;
}

/* At most once a minute. */
static void tell_failure(struct hold_fetches *h, const struct fetch_job *job)
{
	uint64_t now = clock_now_ms();

	if (job->is_held || (h->told_ms && now - h->told_ms < TELL_MS))
		return;
	h->told_ms = now;
	say_warning("%s", job->why.data);
}

void hold_fetch_collect(struct hold_fetches *h)
{
	struct fetch_job *job;

	while ((job = fetch_pool_done(h->pool))) {
		if (ask_next(h, job))
			continue;
		tell_failure(h, job);
		keep_answer(h, job);
	}
}

static void send_answers(struct hold_fetches *h, struct session *s)
{
	struct fetch_job **at = &h->answers, *job;

	while ((job = *at)) {
		if (fetch_job_is_of_daemon(job)) {
			answer_daemon(h, job);
		} else if (s->conn && write_held(h, s, job)) {
			forget_id(h, job->id);
		} else {
			at = &job->next;
			continue;
		}
		*at = job->next;
		fetch_job_free(job);
	}
}

void hold_fetch_turn(struct hold_fetches *h, struct session *s)
{
	if (s->conn)
		read_wants(h, s);
	send_answers(h, s);
}

void hold_fetch_done(struct hold_fetches *h)
{
	struct fetch_job *next;

	for (; h->answers; h->answers = next) {
		next = h->answers->next;
		fetch_job_free(h->answers);
	}
	text_done(&h->ids);
}
