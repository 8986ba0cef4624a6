/*
 * Looks for changes by writers who do not tell refd. Only a client begins a
 * look, because a look reads all refs of a repository, and only the
 * administrator knows who writes beside refd.
 *
 *	admit	the repository, with the rights of an update
 *	read	refs as known by the last look, and refs on disk (store). If
 *		there are too many for a small look, again as a large look
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
 *	records are hidden by a slow batch	all changes are counted and left
 *						to the next look
 *	a transaction of the gate is open	the same, after GATE_WAIT_NS
 *	history has lost records		the look begins anew, as the
 *						first look of the repository
 *	pause					the request is refused
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/busy_cause.h"
#include "daemon/scheduler/looking.h"
#include "proto/arena.h"

/* So many requests wait at a time, and so many of a user. */
#define LOOKS_MAX    64
#define LOOKS_OF_ONE 4
#define CHANGES_MAX  1000
/* So many small and large looks have refs in memory. */
#define SMALL_ONES 2
#define LARGE_ONES 1
/* The longest wait of a look for transactions of the gate. */
#define GATE_WAIT_NS 1000000000

/* ---- begin and end ---- */

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

static void forget(struct looking *l)
{
	LIST_REMOVE(l, in_scheduler);
	l->e->nr_lookups--;
	txn_free(l->txn);
	free(l);
}

/* A worker frees the refs, because this takes long. */
static void end(struct looking *l)
{
	struct scheduler *e = l->e;

	e->looks.nr_seen += l->nr_seen;
	answer(l);
	l->waiter = NULL;
	if (l->txn->repo != NULL) {
		store_release(e->store, l->txn->repo);
		l->txn->repo = NULL;
	}
	l->look.repo = NULL;
	l->look.step = LOOK_FREE;
	store_ask(e->store, &l->look.ask);
}

static void fail(struct looking *l, enum refd_status status, const char *text)
{
	free(l->look.why);
	l->look.status = status;
	l->look.why = text != NULL ? strdup(text) : NULL;
	end(l);
}

static bool are_of_one_user(const struct looking *a, const struct looking *b)
{
	return a->txn->peer.uid == b->txn->peer.uid;
}

/* Gives L its turn to read. Users take turns, separately for small and for
 * large looks, so L comes behind the earlier looks of its user. */
static void await_turn(struct looking *l)
{
	const struct looks *looks = &l->e->looks;
	const struct looking *other;

	l->turn = looks->turn[l->look.is_large];
	LIST_FOREACH(other, &looks->all, in_scheduler)
		if (other != l && are_of_one_user(other, l) &&
		    other->look.is_large == l->look.is_large &&
		    other->turn >= l->turn)
			l->turn = other->turn + 1;
}

static struct looking *begin(struct scheduler *e, struct txn *txn)
{
	struct looking *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return NULL;
	l->look.ask.kind = STORE_ASK_LOOK;
	l->e = e;
	l->txn = txn;
	await_turn(l);
	LIST_INSERT_HEAD(&e->looks.all, l, in_scheduler);
	e->nr_lookups++;
	return l;
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
	txn->scheduler = l;
	/* The transaction has no id, so the journal has no row of it, and no
	 * look-up is needed. */
	txn->is_looked_up = true;
	store_admit(e->store, txn);
}

/* ---- a request of the daemon itself ---- */

/* REQ owns all; GIT_DIR is copied. False: no memory. */
bool look_request(struct refd_request *req, enum refd_verb verb,
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

/* L has more refs than a small look may have. */
static void read_as_large(struct looking *l)
{
	l->has_refs = false;
	l->due = DUE_READ;
	await_turn(l);
}

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
		store_ask(l->e->store, &l->look.ask);
		return;
	}
	r = store_look_add(&l->look, ans);
	if (r == -EFBIG && !l->look.is_large) {
		store_look_enlarge(&l->look);
		read_as_large(l);
	} else if (r < 0) {
		fail(l, txn_status_of(r), "there are too many refs");
	} else if (ans->more) {
		l->due = DUE_HISTORY;
	} else {
		l->look.step = LOOK_COMPARE;
		store_ask(l->e->store, &l->look.ask);
	}
}

static void ask(struct looking *l, int64_t now_ns)
{
	const struct txn_peer self = { .uid = (uint32_t)geteuid() };
	struct scheduler *e = l->e;
	struct refd_request req;

	if (!look_request(&req, REFD_VERB_LOG, store_repo_path(l->look.repo))) {
		fail(l, BUSY(MEMORY));
		return;
	}
	req.select.has_journal = req.select.has_after = true;
	memcpy(req.select.journal, store_journal_id(e->store),
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

	if (!look_request(&req, REFD_VERB_TRANSACTION,
		store_repo_path(l->look.repo)))
		return NULL;
	req.gate = REFD_GATE_SEEN;
	store_look_address(&l->look, &req);
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

static void end_recorded(struct looking *l)
{
	l->nr_left = l->look.nr_changes - l->nr_seen;
	end(l);
}

static bool is_gate_open(const struct looking *l, int64_t now_ns)
{
	struct scheduler *e = l->e;

	return gate_is_open(&e->gate, store_repo_key(l->look.repo),
	    l->changes_ns, now_ns);
}

/* A git whose transaction is still open may have made one of the changes. So L
 * waits: after the record of this git, the store drops the change. Returns true
 * if L waits or has ended. */
static bool waits_for_gate(struct looking *l, int64_t now_ns)
{
	if (l->changes_ns == 0)
		l->changes_ns = now_ns;
	if (l->nr_sent > 0 || l->look.nr_changes == 0 ||
	    !is_gate_open(l, now_ns))
		return false;
	l->wait_ns = l->changes_ns + GATE_WAIT_NS;
	if (now_ns < l->wait_ns)
		l->due = DUE_RECORD;
	else
		end_recorded(l);
	return true;
}

static void record(struct looking *l, int64_t now_ns)
{
	const struct store_look_change *c = &l->look.changes[l->nr_sent];
	const size_t rest = l->look.nr_changes - l->nr_sent;
	struct txn *txn;
	size_t nr = 0;

	if (waits_for_gate(l, now_ns))
		return;
	l->wait_ns = 0;
	if (rest == 0) {
		end_recorded(l);
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

void look_admitted(struct txn *txn)
{
	struct looking *l = txn->scheduler;

	l->look.repo = txn->repo;
	if (txn->refused == REFD_OK)
		l->due = DUE_READ;
	else
		fail(l, txn->refused, txn->why);
}

void look_back(struct store_look *look)
{
	struct looking *l = (struct looking *)look;

	if (look->step == LOOK_FREE) {
		forget(l);
		return;
	}
	if (look->status != REFD_OK) {
		end(l);
		return;
	}
	switch (look->step) {
	case LOOK_READ:
		if (l->look.refs == NULL)
			read_as_large(l);
		else
			l->due = DUE_HISTORY;
		break;
	case LOOK_COMPARE:
		if (look->is_early)
			end_recorded(l);
		else
			l->due = DUE_RECORD;
		break;
	case LOOK_FREE:
		break;
	}
}

/* ---- the loop ---- */

/* A repository has one look at a time, because a second look would not know the
 * records of the first. Small looks never wait for large looks. A user reads
 * for one small and one large look at a time. */
static bool may_read(const struct looking *l)
{
	const bool is_large = l->look.is_large;
	const struct scheduler *e = l->e;
	const struct looking *other;
	size_t nr = 0;

	if (l->due != DUE_READ)
		return false;
	LIST_FOREACH(other, &e->looks.all, in_scheduler) {
		if (!other->has_refs)
			continue;
		if (other->look.repo != NULL &&
		    store_repo_key(other->look.repo) ==
			store_repo_key(l->look.repo))
			return false;
		if (other->look.is_large != is_large)
			continue;
		if (are_of_one_user(other, l))
			return false;
		nr++;
	}
	return nr < (is_large ? LARGE_ONES : SMALL_ONES);
}

/* The oldest look of the first turn begins to read. False: none may. */
static bool read_next(struct scheduler *e, bool is_large)
{
	uint64_t *turn = &e->looks.turn[is_large];
	struct looking *l, *first = NULL;

	LIST_FOREACH(l, &e->looks.all, in_scheduler)
		if (l->look.is_large == is_large && may_read(l) &&
		    (first == NULL || l->turn <= first->turn))
			first = l;
	if (first == NULL)
		return false;
	if (first->turn > *turn)
		*turn = first->turn;
	first->due = DUE_NOT;
	first->has_refs = true;
	first->look.step = LOOK_READ;
	store_ask(e->store, &first->look.ask);
	return true;
}

void look_run(struct scheduler *e, int64_t now_ns)
{
	struct looking *l, *next;

	while (read_next(e, false) || read_next(e, true))
		;
	for (l = LIST_FIRST(&e->looks.all); l != NULL; l = next) {
		next = LIST_NEXT(l, in_scheduler);
		switch (l->due) {
		case DUE_NOT:
		case DUE_READ:
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
}

int64_t look_next(const struct scheduler *e, int64_t now_ns)
{
	int64_t next_ns = INT64_MAX;
	const struct looking *l;

	LIST_FOREACH(l, &e->looks.all, in_scheduler) {
		if (l->due == DUE_RECORD && l->wait_ns != 0)
			next_ns = l->wait_ns < next_ns ? l->wait_ns : next_ns;
		else if (l->due == DUE_HISTORY || l->due == DUE_RECORD ||
		    may_read(l))
			return now_ns;
	}
	return next_ns;
}
