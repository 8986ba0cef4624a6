/*
 * Automatic looks, one at a time: at all repositories of the journal in turn,
 * and at a repository after transactions of the gate.
 *
 * Git renames a branch in files by a deletion, for which it calls the gate, and
 * then writes the new name without a call. So a look follows a deletion that
 * stands alone: otherwise the feed would tell only that the branch is gone. A
 * look needs the refs of an earlier look. So the first transaction of the gate
 * since the repository was opened is followed by a look too.
 *
 * Failure modes: no memory, or a refusal: the next look comes later. Changes
 * that a look has left are looked for again, a few times.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <utlist.h>

#include "daemon/scheduler/looking.h"

/* After an automatic look, the looks rest so many times as long as the look
 * took. */
#define REST 9
/* Git writes the new name within this time after the deletion. Each further
 * attempt waits twice as long: all together more than GATE_OPEN_NS. */
#define AFTER_NS 1000000000
#define TRIES    8
#define DUE_MAX  1000

/* A look at PATH is due at AT_NS, and at LAST_NS or later. */
struct look_due {
	char *path;
	int64_t at_ns, last_ns;
	unsigned tries;
	struct look_due *prev, *next;
};

/* ---- after transactions of the gate ---- */

static void due_free(struct looks *looks, struct look_due *d)
{
	DL_DELETE(looks->due, d);
	looks->nr_due--;
	free(d->path);
	free(d);
}

/* Looks at equal times keep their order. */
static int due_compare(const struct look_due *a, const struct look_due *b)
{
	return a->at_ns > b->at_ns ? 1 : -1;
}

/* An earlier time stays: a later transaction delays no look, but adds one. */
static void due_add(struct looks *looks, const char *path, int64_t at_ns,
    unsigned tries)
{
	struct look_due *d;

	DL_FOREACH(looks->due, d)
		if (strcmp(d->path, path) == 0) {
			d->last_ns = at_ns;
			return;
		}
	if (looks->nr_due == DUE_MAX)
		return;
	d = calloc(1, sizeof(*d));
	if (d == NULL)
		return;
	d->path = strdup(path);
	if (d->path == NULL) {
		free(d);
		return;
	}
	d->at_ns = d->last_ns = at_ns;
	d->tries = tries;
	DL_INSERT_INORDER(looks->due, d, due_compare);
	looks->nr_due++;
}

/* Git deletes HEAD too in the log, if HEAD points to the branch. */
static bool is_lone_deletion(const struct refd_request *req)
{
	size_t i, nr = 0;

	for (i = 0; i < req->nr_updates; i++) {
		if (req->updates[i].action != REFD_DELETE)
			return false;
		nr += strcmp(req->updates[i].name, "HEAD") != 0;
	}
	return nr == 1;
}

void look_after_gate(struct scheduler *e, const struct txn *txn)
{
	if (txn->repo != NULL && txn->nr_of[REFD_OK] > 0 &&
	    (is_lone_deletion(&txn->req) || !e->store.is_looked_at(txn->repo)))
		due_add(&e->looks, e->store.repo_path(txn->repo),
		    e->wall_at_ns + AFTER_NS, 0);
}

/* ---- the end of a look ---- */

void look_rounds_rest(struct scheduler *e, const struct looking *l)
{
	struct looks *looks = &e->looks;
	const int64_t now_ns = e->wall_at_ns;

	looks->is_looking = false;
	looks->rest_ns = now_ns + (now_ns - l->begin_ns) * REST;
	if (l->nr_left > 0 && l->is_due && l->tries < TRIES)
		due_add(looks, l->e->store.repo_path(l->look.repo),
		    now_ns + ((int64_t)AFTER_NS << l->tries), l->tries + 1);
	if (l->is_due)
		return;
	looks->next_ns = looks->rest_ns;
	if (looks->at == looks->nr_paths)
		looks->next_ns += looks->every_ns;
}

/* ---- rounds ---- */

void look_rounds_take(struct looking *l)
{
	struct looks *looks = &l->e->looks;

	looks->paths = l->look.paths;
	looks->nr_paths = l->look.nr_paths;
	looks->at = 0;
	l->look.paths = NULL;
	l->look.nr_paths = 0;
	look_end(l);
}

static void free_paths(struct looks *looks)
{
	while (looks->nr_paths > 0)
		free(looks->paths[--looks->nr_paths]);
	free(looks->paths);
	looks->paths = NULL;
	looks->at = 0;
}

/* Failures end the look, and the next one comes later. NULL: it has ended. */
static struct looking *look_at(struct scheduler *e, const char *path)
{
	struct refd_request req;
	struct txn *txn = NULL;
	struct looking *l;

	if (!look_request(&req, REFD_VERB_LOOK, path))
		return NULL;
	req.gate = REFD_GATE_SEEN;
	txn = txn_new(&req);
	refd_request_done(&req);
	if (txn == NULL)
		return NULL;
	txn->peer.uid = (uint32_t)geteuid();
	l = look_begin(e, txn);
	if (l == NULL) {
		txn_free(txn);
		return NULL;
	}
	e->looks.is_looking = true;
	return l;
}

static void list(struct scheduler *e)
{
	struct looking *l = look_begin(e, NULL);

	free_paths(&e->looks);
	if (l == NULL)
		return;
	e->looks.is_looking = true;
	l->look.step = LOOK_LIST;
	e->store.look(e->store.ctx, &l->look);
}

static bool may_begin(const struct scheduler *e)
{
	return !e->looks.is_looking && !e->is_paused && !e->is_draining &&
	    !e->is_closed;
}

static void run_round(struct scheduler *e, int64_t now_ns)
{
	struct looks *looks = &e->looks;
	struct looking *l;

	/* If nothing can begin. */
	looks->next_ns = now_ns + looks->every_ns;
	if (looks->at == looks->nr_paths) {
		list(e);
		return;
	}
	l = look_at(e, looks->paths[looks->at++]);
	if (l != NULL)
		look_admit(l);
}

static void run_due(struct scheduler *e, struct look_due *d, int64_t now_ns)
{
	struct looking *l = look_at(e, d->path);

	if (l != NULL) {
		l->is_due = true;
		l->tries = d->tries;
	}
	if (d->last_ns <= now_ns) {
		due_free(&e->looks, d);
	} else {
		d->at_ns = d->last_ns;
		DL_DELETE(e->looks.due, d);
		DL_INSERT_INORDER(e->looks.due, d, due_compare);
	}
	if (l != NULL)
		look_admit(l);
}

void look_rounds_run(struct scheduler *e, int64_t now_ns)
{
	struct looks *looks = &e->looks;
	struct look_due *d = looks->due;

	if (looks->next_ns == 0)
		looks->next_ns = now_ns + looks->every_ns;
	if (!may_begin(e) || now_ns < looks->rest_ns)
		return;
	if (d != NULL && d->at_ns <= now_ns)
		run_due(e, d, now_ns);
	else if (looks->every_ns > 0 && now_ns >= looks->next_ns)
		run_round(e, now_ns);
}

int64_t look_rounds_next(const struct scheduler *e)
{
	const struct looks *looks = &e->looks;
	const struct look_due *d = looks->due;
	int64_t next_ns = looks->every_ns > 0 ? looks->next_ns : INT64_MAX;

	if (!may_begin(e))
		return INT64_MAX;
	if (d != NULL && d->at_ns < next_ns)
		next_ns = d->at_ns;
	return next_ns > looks->rest_ns ? next_ns : looks->rest_ns;
}

void look_set(struct scheduler *e, int64_t every_ns)
{
	if (e->looks.every_ns != every_ns)
		e->looks.next_ns = 0;
	e->looks.every_ns = every_ns;
}

void look_done(struct scheduler *e)
{
	struct look_due *d;

	free_paths(&e->looks);
	while ((d = e->looks.due) != NULL)
		due_free(&e->looks, d);
}
