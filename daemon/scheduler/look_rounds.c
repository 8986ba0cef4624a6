/*
 * Automatic looks: at all repositories of the journal in turn, one at a time.
 *
 * Failure modes: no memory, or a refusal: the next look comes later.
 */
#include <stdlib.h>
#include <unistd.h>

#include "daemon/scheduler/looking.h"

/* After an automatic look, the looks rest so many times as long as the look
 * took. */
#define REST 9

void look_rounds_rest(struct scheduler *e, const struct looking *l)
{
	struct looks *looks = &e->looks;
	const int64_t now_ns = e->wall_at_ns;

	looks->is_looking = false;
	looks->next_ns = now_ns + (now_ns - l->begin_ns) * REST;
	if (looks->at == looks->nr_paths)
		looks->next_ns += looks->every_ns;
}

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

/* Failures end the look, and the next one comes later. */
static void look_at(struct scheduler *e, const char *path)
{
	struct refd_request req;
	struct txn *txn = NULL;
	struct looking *l;

	if (!look_request(&req, REFD_VERB_LOOK, path))
		return;
	req.gate = REFD_GATE_SEEN;
	txn = txn_new(&req);
	refd_request_done(&req);
	if (txn == NULL)
		return;
	txn->peer.uid = (uint32_t)geteuid();
	l = look_begin(e, txn);
	if (l == NULL) {
		txn_free(txn);
		return;
	}
	e->looks.is_looking = true;
	look_admit(l);
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
	return e->looks.every_ns > 0 && !e->looks.is_looking && !e->is_paused &&
	    !e->is_draining && !e->is_closed;
}

void look_rounds_run(struct scheduler *e, int64_t now_ns)
{
	struct looks *looks = &e->looks;

	if (looks->next_ns == 0)
		looks->next_ns = now_ns + looks->every_ns;
	if (!may_begin(e) || now_ns < looks->next_ns)
		return;
	/* If nothing can begin. */
	looks->next_ns = now_ns + looks->every_ns;
	if (looks->at < looks->nr_paths)
		look_at(e, looks->paths[looks->at++]);
	else
		list(e);
}

int64_t look_rounds_next(const struct scheduler *e)
{
	return may_begin(e) ? e->looks.next_ns : INT64_MAX;
}

void look_set(struct scheduler *e, int64_t every_ns)
{
	if (e->looks.every_ns != every_ns)
		e->looks.next_ns = 0;
	e->looks.every_ns = every_ns;
}

void look_done(struct scheduler *e)
{
	free_paths(&e->looks);
}
