/*
 * Looks for changes by writers who do not tell refd. A client asks for a look,
 * or the scheduler looks at all known repositories in turn.
 *
 *	admit	the repository, with the rights of an update
 *	read	refs as known by the last look, and refs on disk (store)
 *	add	the records of history since the last look, answer by answer
 *	compare	the differences (store)
 *	record	the differences as transactions of the gate, up to CHANGES_MAX
 *		refs each: the store reads the refs again under their locks
 *	answer
 *
 * Steps that call the rest of the scheduler wait for look_run(), because
 * answers arrive in the middle of other work.
 *
 * Failure modes:
 *	a refusal, an error of the disk		ends the look with this answer
 *	a ref is locked, or changed since	is counted; the next look finds
 *						the ref again
 *	history has lost records		the look begins anew, as the
 *						first look of the repository
 *	pause, drain				no automatic look begins
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/busy_cause.h"
#include "daemon/scheduler/state.h"
#include "proto/arena.h"

/* So many requests wait at a time, and so many of a user. */
#define LOOKS_MAX    64
#define LOOKS_OF_ONE 4
#define CHANGES_MAX  1000
/* After an automatic look, the looks rest so many times as long as the look
 * took. */
#define REST 9

struct looking {
	struct store_look look; /* first member */
	struct scheduler *e;
	struct txn *txn;       /* admitted; NULL: lists the repositories */
	struct waiter *waiter; /* NULL: automatic */
	int64_t begin_ns;
	size_t nr_sent, nr_refs; /* changes in transactions so far, of last */
	uint64_t nr_seen, nr_left;
	enum { DUE_NOT, DUE_HISTORY, DUE_RECORD } due;
	LIST_ENTRY(looking) in_scheduler;
};

/* ---- begin and end ---- */

static void rest(struct scheduler *e, const struct looking *l)
{
	struct looks *looks = &e->looks;
	const int64_t now_ns = e->wall_at_ns;

	looks->is_looking = false;
	looks->next_ns = now_ns + (now_ns - l->begin_ns) * REST;
	if (looks->at == looks->nr_paths)
		looks->next_ns += looks->every_ns;
}

static void answer(struct looking *l)
{
	char seen[24], left[24];
	struct refd_pair pairs[] = {
		{ "seen", seen },
		{ "left", left },
		{ "first", l->look.is_first ? "yes" : "no" },
	};
	struct refd_answer ans = { .kind = REFD_ANSWER_PAIRS,
		.pairs = pairs,
		.nr_pairs = sizeof(pairs) / sizeof(pairs[0]) };

	snprintf(seen, sizeof(seen), "%" PRIu64, l->nr_seen);
	snprintf(left, sizeof(left), "%" PRIu64, l->nr_left);
	if (l->look.status != REFD_OK)
		ans = (struct refd_answer){ .kind = REFD_ANSWER_REFUSED,
			.status = l->look.status,
			.text = l->look.why };
	waiter_answer(&l->e->waiters, l->waiter, &ans);
}

static void end(struct looking *l)
{
	struct scheduler *e = l->e;

	LIST_REMOVE(l, in_scheduler);
	e->nr_lookups--;
	e->looks.nr_seen += l->nr_seen;
	if (l->waiter != NULL)
		answer(l);
	else
		rest(e, l);
	if (l->txn != NULL) {
		if (l->txn->repo != NULL)
			e->store.release(e->store.ctx, l->txn->repo);
		l->txn->repo = NULL;
		txn_free(l->txn);
	}
	store_look_done(&l->look);
	free(l);
}

static void fail(struct looking *l, enum refd_status status, const char *text)
{
	free(l->look.why);
	l->look.status = status;
	l->look.why = text != NULL ? strdup(text) : NULL;
	end(l);
}

static struct looking *begin(struct scheduler *e, struct txn *txn)
{
	struct looking *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return NULL;
	l->e = e;
	l->txn = txn;
	l->begin_ns = e->wall_at_ns;
	LIST_INSERT_HEAD(&e->looks.all, l, in_scheduler);
	e->nr_lookups++;
	return l;
}

static void admit(struct looking *l)
{
	l->txn->scheduler = l;
	/* Without an id, the journal has nothing of it. */
	l->txn->is_looked_up = true;
	l->e->store.admit(l->e->store.ctx, l->txn);
}

static bool may_look(const struct scheduler *e, uint32_t uid)
{
	const struct looking *l;
	size_t nr = 0, nr_own = 0;

	LIST_FOREACH(l, &e->looks.all, in_scheduler) {
		nr += l->waiter != NULL;
		nr_own += l->waiter != NULL && l->txn->peer.uid == uid;
	}
	return nr < LOOKS_MAX && nr_own < LOOKS_OF_ONE;
}

void scheduler_look(struct scheduler *e, struct txn *txn,
    scheduler_answer_fn *fn, void *arg)
{
	struct waiter *a = NULL;
	struct looking *l = NULL;

	if (ask_is_too_late(e, &txn->req, fn, arg)) {
		txn_free(txn);
		return;
	}
	if (e->is_paused) {
		ask_refuse(&txn->req, BUSY(PAUSED), fn, arg);
		txn_free(txn);
		return;
	}
	if (!may_look(e, txn->peer.uid)) {
		ask_refuse(&txn->req, BUSY(QUESTIONS), fn, arg);
		txn_free(txn);
		return;
	}
	a = waiter_add(&e->waiters, fn, arg, txn->req.request_id);
	if (a != NULL)
		l = begin(e, txn);
	if (l == NULL) {
		if (a != NULL)
			waiter_drop(&e->waiters, a);
		ask_refuse(&txn->req, BUSY(MEMORY), fn, arg);
		txn_free(txn);
		return;
	}
	l->waiter = a;
	admit(l);
}

/* ---- a request of the daemon itself ---- */

/* REQ owns all; GIT_DIR is copied. False: no memory. */
static bool make_request(struct refd_request *req, enum refd_verb verb,
    const char *git_dir)
{
	*req = (struct refd_request){ .verb = verb,
		.arena = refd_arena_new(),
		.umask = 022 };
	if (req->arena != NULL)
		req->git_dir =
		    refd_arena_string(req->arena, git_dir, strlen(git_dir));
	if (req->git_dir != NULL)
		return true;
	refd_request_done(req);
	return false;
}

/* ---- history ---- */

static void told(void *arg, const struct refd_answer *ans)
{
	struct looking *l = arg;
	int r;

	if (ans->kind != REFD_ANSWER_RECORDS) {
		fail(l, ans->status, ans->text);
		return;
	}
	if (ans->has_gap && !l->look.is_first) {
		l->look.is_first = true;
		l->e->store.look(l->e->store.ctx, &l->look);
		return;
	}
	r = store_look_add(&l->look, ans);
	if (r < 0) {
		fail(l, txn_status_of(r), "there are too many refs");
	} else if (ans->more) {
		l->due = DUE_HISTORY;
	} else {
		l->look.step = LOOK_COMPARE;
		l->e->store.look(l->e->store.ctx, &l->look);
	}
}

static void ask(struct looking *l, int64_t now_ns)
{
	const struct txn_peer self = { .uid = (uint32_t)geteuid() };
	struct scheduler *e = l->e;
	struct refd_request req;

	if (!make_request(&req, REFD_VERB_LOG,
		e->store.repo_path(l->look.repo))) {
		fail(l, BUSY(MEMORY));
		return;
	}
	req.select.has_journal = req.select.has_after = true;
	memcpy(req.select.journal, e->store.journal,
	    sizeof(req.select.journal));
	req.select.after = l->look.at;
	scheduler_history(e, &req, &self, now_ns, told, l);
	/* Empty, unless the question was refused. */
	refd_request_done(&req);
}

/* ---- recording ---- */

static void recorded(void *arg, const struct refd_answer *ans)
{
	struct looking *l = arg;
	size_t i;

	for (i = 0; i < ans->nr_results; i++)
		l->nr_seen += ans->results[i].status == REFD_OK;
	if (ans->goes_on)
		return;
	l->due = DUE_RECORD;
}

static bool set_update(struct refd_request *req, struct refd_update *u,
    const struct store_look_change *c)
{
	*u = (struct refd_update){ .action = REFD_UPDATE, .no_deref = true };
	u->name = refd_arena_string(req->arena, c->name, strlen(c->name));
	u->new_oid = c->oid;
	if (c->target == NULL) {
		if (refd_oid_is_null(&c->oid))
			u->action = REFD_DELETE;
		return u->name != NULL;
	}
	u->action = REFD_SYMREF_UPDATE;
	u->target = refd_arena_string(req->arena, c->target, strlen(c->target));
	return u->name != NULL && u->target != NULL;
}

/* NR changes from C on, of one owner. NULL: no memory. */
static struct txn *make_txn(struct looking *l,
    const struct store_look_change *c, size_t nr)
{
	struct refd_request req;
	struct txn *txn = NULL;
	bool ok;
	size_t i;

	if (!make_request(&req, REFD_VERB_TRANSACTION,
		l->e->store.repo_path(l->look.repo)))
		return NULL;
	req.gate = REFD_GATE_SEEN;
	req.object_format = store_look_format(&l->look);
	req.updates = refd_arena_array(req.arena, nr, sizeof(*req.updates));
	ok = req.updates != NULL && refd_txid_make(&req.txid) == 0;
	for (i = 0; i < nr && ok; i++)
		ok = set_update(&req, &req.updates[i], &c[i]);
	req.nr_updates = nr;
	req.bytes = refd_arena_bytes(req.arena);
	if (ok)
		txn = txn_new(&req);
	if (txn != NULL)
		txn->before = calloc(nr, sizeof(*txn->before));
	refd_request_done(&req);
	if (txn == NULL || txn->before == NULL) {
		txn_free(txn);
		return NULL;
	}
	txn->peer.uid = c->uid;
	txn->seen_lsn = l->look.at.lsn;
	for (i = 0; i < nr; i++)
		txn->before[i] =
		    (struct txn_before){ c[i].has_before, c[i].before };
	return txn;
}

static void record(struct looking *l, int64_t now_ns)
{
	const struct store_look_change *c = &l->look.changes[l->nr_sent];
	const size_t rest = l->look.nr_changes - l->nr_sent;
	struct txn *txn;
	size_t nr = 0;

	if (rest == 0) {
		l->nr_left = l->look.nr_changes - l->nr_seen;
		end(l);
		return;
	}
	while (nr < rest && nr < CHANGES_MAX && c[nr].uid == c->uid)
		nr++;
	l->nr_sent += nr;
	txn = make_txn(l, c, nr);
	if (txn == NULL)
		fail(l, BUSY(MEMORY));
	else
		scheduler_submit(l->e, txn, now_ns, recorded, l);
}

/* ---- steps that come back ---- */

void look_admitted(struct scheduler *e, struct txn *txn)
{
	struct looking *l = txn->scheduler;

	l->look.repo = txn->repo;
	if (txn->refused == REFD_OK)
		e->store.look(e->store.ctx, &l->look);
	else
		fail(l, txn->refused, txn->why);
}

static void take_list(struct looking *l)
{
	struct looks *looks = &l->e->looks;

	looks->paths = l->look.paths;
	looks->nr_paths = l->look.nr_paths;
	looks->at = 0;
	l->look.paths = NULL;
	l->look.nr_paths = 0;
	end(l);
}

void look_back(struct store_look *look)
{
	struct looking *l = (struct looking *)look;

	if (look->status != REFD_OK) {
		end(l);
		return;
	}
	switch (look->step) {
	case LOOK_READ:
		l->due = DUE_HISTORY;
		break;
	case LOOK_COMPARE:
		l->due = DUE_RECORD;
		break;
	case LOOK_LIST:
		take_list(l);
		break;
	}
}

/* ---- all repositories in turn ---- */

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

	if (!make_request(&req, REFD_VERB_LOOK, path))
		return;
	req.gate = REFD_GATE_SEEN;
	txn = txn_new(&req);
	refd_request_done(&req);
	if (txn == NULL)
		return;
	txn->peer.uid = (uint32_t)geteuid();
	l = begin(e, txn);
	if (l == NULL) {
		txn_free(txn);
		return;
	}
	e->looks.is_looking = true;
	admit(l);
}

static void list(struct scheduler *e)
{
	struct looking *l = begin(e, NULL);

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

void look_run(struct scheduler *e, int64_t now_ns)
{
	struct looks *looks = &e->looks;
	struct looking *l, *next;

	for (l = LIST_FIRST(&looks->all); l != NULL; l = next) {
		next = LIST_NEXT(l, in_scheduler);
		switch (l->due) {
		case DUE_NOT:
			break;
		case DUE_HISTORY:
			l->due = DUE_NOT;
			ask(l, now_ns);
			break;
		case DUE_RECORD:
			l->due = DUE_NOT;
			record(l, now_ns);
			break;
		}
	}
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

int64_t look_next(const struct scheduler *e, int64_t now_ns)
{
	const struct looking *l;

	LIST_FOREACH(l, &e->looks.all, in_scheduler)
		if (l->due != DUE_NOT)
			return now_ns;
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
