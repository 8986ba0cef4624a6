#include "tests/lib/scheduler_rig.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "daemon/scheduler/state.h"
#include "proto/arena.h"
#include "proto/digest.h"
#include "tests/lib/scheduler_rig_internal.h"

#define ASKS_MAX 200000

struct scheduler *rig_scheduler;
int64_t rig_now, rig_wall_ms, rig_next;
void (*rig_on_answer)(struct rig_ask *ask);

struct rig_config rig_config;
char rig_io[256];
struct rig_ask *rig_asks;
size_t rig_nr_asks;
int64_t rig_arrivals;

static struct rig_client nobody;
static uint64_t last_id;

/* ---- set up, take down ---- */

static void note_io(void *arg, const struct scheduler_io *io)
{
	(void)arg;
	snprintf(rig_io, sizeof(rig_io), "%zu %s: %s", io->nr, io->ref,
	    io->why != NULL ? io->why : "");
}

void rig_setup(const struct rig_config *cfg)
{
	struct scheduler_config ec = { .batch_refs = cfg->batch_refs,
		.lock_wait_ns = 1000 * RIG_MS,
		.deadline_ns = 30000 * RIG_MS,
		.session_ns = 20000 * RIG_MS,
		.retention_ms = 7 * 86400 * 1000LL,
		.joined_ms = cfg->joined_ms,
		.max_waiting_bytes = cfg->max_bytes,
		.quotas = cfg->quotas,
		.on_io = note_io };

	rig_config = *cfg;
	rig_io[0] = '\0';
	rig_store_setup();
	rig_now = 5 * RIG_MS;
	rig_wall_ms = 1700000000000;
	rig_nr_asks = last_id = 0;
	rig_on_answer = NULL;
	rig_asks = calloc(ASKS_MAX, sizeof(*rig_asks));
	rig_scheduler = scheduler_new(&ec, NULL);
	ck_assert(rig_asks != NULL && rig_scheduler != NULL);
	rig_run();
}

static void setup(size_t committers, size_t batch_refs)
{
	struct rig_config cfg = { .committers = committers,
		.batch_refs = batch_refs,
		.max_bytes = 1000000 };

	rig_setup(&cfg);
}

void rig_setup_one_committer(void)
{
	setup(1, 10);
}

void rig_setup_committers(void)
{
	setup(3, 10);
}

void rig_setup_roomy(void)
{
	setup(2, 100);
}

/* If a count is not decremented on some path, the room is lost forever. */
static void check_nothing_held(void)
{
	const struct scheduler *e = rig_scheduler;

	/* Names rest for a while. */
	rig_pass(3600000 * RIG_MS);
	MUST(e->table.head == NULL && e->held_bytes == 0);
	MUST(e->quotas.head == NULL && e->quotas.clients == NULL);
	MUST(e->ref_queues.bytes == 0 && e->ref_queues.asleep.root == NULL);
	MUST(e->fairness.table == NULL && e->fairness.ready == NULL &&
	    e->fairness.nr_ready == 0 && e->fairness.arriving == NULL);
	MUST(e->sessions == NULL && e->untold == NULL && e->decided == NULL);
	MUST(e->untold_large == NULL && e->ending == NULL);
	MUST(e->decided_large == NULL && e->found == NULL && e->asked == NULL);
	MUST(e->waiters.head == NULL && e->closers == NULL);
	MUST(e->deadlines.root == NULL && e->unrecorded.nr == 0);
}

static void finish(void)
{
	struct store_question *q;
	size_t i;

	scheduler_hurry(rig_scheduler);
	for (i = 0; i < 100 && !scheduler_is_idle(rig_scheduler); i++) {
		while ((q = rig_lookups) != NULL)
			rig_found(q, false);
		rig_admit_all();
		rig_back_all();
	}
	ck_assert(scheduler_is_idle(rig_scheduler));
	for (i = 0; i < rig_nr_asks; i++)
		MUST(
		    (rig_asks[i].is_forgotten || rig_asks[i].nr_answers == 1) &&
		    !rig_asks[i].is_prepared);
	check_nothing_held();
}

void rig_teardown(void)
{
	size_t i;

	if (rig_scheduler != NULL)
		finish();
	scheduler_free(rig_scheduler);
	ck_assert_uint_eq(rig_nr_repos, 0);
	for (i = 0; i < rig_nr_asks; i++) {
		free(rig_asks[i].statuses);
		free(rig_asks[i].text);
	}
	free(rig_asks);
}

/* ---- requests ---- */

static void rig_answered(void *arg, const struct refd_answer *ans)
{
	struct rig_ask *ask = &rig_asks[ans->request_id];
	size_t i;

	ck_assert_uint_lt(ans->request_id, rig_nr_asks);
	ck_assert_ptr_eq(arg, ask->client);
	ck_assert(!ask->is_forgotten);
	ck_assert_uint_eq(ask->nr_answers, 0);
	ck_assert(ans->is_continued == (ask->nr_parts > 0));
	ask->nr_parts++;
	ask->nr_answers += !ans->goes_on;
	ask->kind = ans->kind;
	ask->outcome = ans->outcome;
	ask->refused = ans->status;
	ask->retry_after_ms = ans->retry_after_ms;
	ask->rewrites_packed = ans->rewrites_packed;
	ask->statuses = realloc(ask->statuses,
	    (ask->nr + ans->nr_results + 1) * sizeof(*ask->statuses));
	for (i = 0; i < ans->nr_results; i++) {
		ask->statuses[ask->nr++] = ans->results[i].status;
		MUST(ans->results[i].status != REFD_PENDING);
		if (ask->text == NULL && ans->results[i].text != NULL)
			ask->text = strdup(ans->results[i].text);
	}
	if (ans->text != NULL)
		ask->text = strdup(ans->text);
	if (rig_on_answer != NULL && !ans->goes_on)
		rig_on_answer(ask);
}

static struct rig_ask *ask_new(struct rig_client *client)
{
	struct rig_ask *ask = &rig_asks[rig_nr_asks++];

	ck_assert_uint_lt(rig_nr_asks, ASKS_MAX);
	ask->client = client != NULL ? client : &nobody;
	return ask;
}

static void make_id(struct refd_txid *id, uint64_t nr, int64_t born_ms)
{
	uint64_t ms = (uint64_t)(rig_wall_ms + born_ms);
	int i;

	memset(id, 0, sizeof(*id));
	for (i = 0; i < 6; i++)
		id->bytes[i] = (uint8_t)(ms >> (40 - 8 * i));
	memcpy(id->bytes + 8, &nr, sizeof(nr));
}

static struct txn *make_txn(const struct rig_txn *t)
{
	struct refd_request req = { .verb = REFD_VERB_TRANSACTION };
	struct txn *txn;
	char dir[16];
	size_t i;

	if (t->session)
		req.verb = REFD_VERB_SESSION;
	req.request_id = (uint32_t)(rig_nr_asks - 1);
	make_id(&req.txid, t->id != 0 ? t->id : ++last_id, t->born_ms);
	req.arena = refd_arena_new();
	snprintf(dir, sizeof(dir), "%u", t->repo);
	req.git_dir = refd_arena_string(req.arena, dir, strlen(dir));
	req.atomic = t->atomic;
	req.push = t->push;
	req.gate = t->gate;
	/* 'k' and 'p' are parts of the same transaction. */
	req.gate_key.bytes[8] = t->gate_key == 'p' ? 'k' : t->gate_key;
	req.gate_key.bytes[15] = t->gate_key == 'p';
	req.has_ref_lock_timeout = t->ref_lock_timeout_ms != 0;
	if (req.has_ref_lock_timeout)
		req.ref_lock_timeout_ms = t->ref_lock_timeout_ms - 1;
	req.has_packed_refs_timeout = t->packed_refs_timeout_ms != 0;
	if (req.has_packed_refs_timeout)
		req.packed_refs_timeout_ms = t->packed_refs_timeout_ms - 1;
	req.deadline_ms = t->deadline_ms;
	req.bytes = t->bytes;
	req.nr_updates = t->nr;
	req.updates = refd_arena_array(req.arena, t->nr, sizeof(*req.updates));
	if (t->nr > 0)
		memset(req.updates, 0, t->nr * sizeof(*req.updates));
	for (i = 0; i < t->nr; i++) {
		req.updates[i].name = refd_arena_string(req.arena, t->names[i],
		    strlen(t->names[i]));
		memset(req.updates[i].new_oid.bytes,
		    t->deletes ? 0 : t->fill + 1, REFD_SHA1_BYTES);
	}
	req.digest = refd_digest_begin(&req);
	for (i = 0; i < t->nr; i++)
		req.digest = refd_digest_update(req.digest, req.object_format,
		    &req.updates[i]);
	txn = txn_new(&req);
	ck_assert_ptr_nonnull(txn);
	txn->peer.uid = t->uid;
	txn->peer.pid = ++rig_arrivals;
	return txn;
}

struct rig_ask *rig_submit(const struct rig_txn *t)
{
	struct rig_ask *ask = ask_new(t->client);
	struct txn *txn = make_txn(t);

	ask->txn = txn;
	ask->id = t->id != 0 ? t->id : last_id;
	scheduler_submit(rig_scheduler, txn, rig_now, rig_answered,
	    ask->client);
	return ask;
}

uint64_t rig_last_id(void)
{
	return last_id;
}

typedef void rig_verb_fn(struct scheduler *e, const struct refd_request *req,
    uint32_t uid, int64_t now_ns, scheduler_answer_fn *fn, void *arg);

static struct rig_ask *rig_verb(rig_verb_fn *verb, struct rig_client *client,
    uint32_t uid, uint64_t id, int64_t born_ms)
{
	struct refd_request req = { 0 };
	struct rig_ask *ask = ask_new(client);

	req.request_id = (uint32_t)(rig_nr_asks - 1);
	make_id(&req.txid, id, born_ms);
	verb(rig_scheduler, &req, uid, rig_now, rig_answered, ask->client);
	return ask;
}

struct rig_ask *rig_query(uint32_t uid, uint64_t id, int64_t born_ms)
{
	return rig_verb(scheduler_query, NULL, uid, id, born_ms);
}

struct rig_ask *rig_query_of(struct rig_client *client, uint32_t uid,
    uint64_t id)
{
	return rig_verb(scheduler_query, client, uid, id, 0);
}

struct rig_ask *rig_cancel(uint32_t uid, uint64_t id)
{
	return rig_verb(scheduler_cancel, NULL, uid, id, 0);
}

struct rig_ask *rig_commit(uint32_t uid, uint64_t id)
{
	return rig_verb(scheduler_commit, NULL, uid, id, 0);
}

struct rig_ask *rig_abort(uint32_t uid, uint64_t id)
{
	return rig_verb(scheduler_abort, NULL, uid, id, 0);
}

void rig_forget(struct rig_client *client)
{
	size_t i;

	for (i = 0; i < rig_nr_asks; i++)
		if (rig_asks[i].client == client)
			rig_asks[i].is_forgotten = true;
	scheduler_forget_client(rig_scheduler, client, rig_now);
}

/* ---- time, and combined steps ---- */

void rig_run(void)
{
	do {
		rig_next = scheduler_run(rig_scheduler, rig_now, rig_wall_ms);
	} while (rig_next <= rig_now || rig_has_admitted());
}

void rig_pass(int64_t ns)
{
	rig_now += ns;
	rig_run();
}

struct rig_ask *rig_go(const struct rig_txn *t)
{
	struct rig_ask *ask = rig_submit(t);

	rig_admit_all();
	return ask;
}

struct rig_ask *rig_prepare(const struct rig_txn *t)
{
	struct rig_txn session = *t;
	struct rig_ask *ask;

	session.session = true;
	ask = rig_go(&session);
	rig_back_all();
	ck_assert_int_eq(ask->kind, REFD_ANSWER_PREPARED);
	return ask;
}

void rig_expect_results(const struct rig_ask *ask, enum refd_outcome outcome,
    enum refd_status status)
{
	size_t i;

	ck_assert_uint_eq(ask->nr_answers, 1);
	ck_assert_int_eq(ask->kind, REFD_ANSWER_RESULTS);
	ck_assert_int_eq(ask->outcome, outcome);
	ck_assert_uint_eq(ask->nr, 2);
	for (i = 0; i < ask->nr; i++)
		ck_assert_int_eq(ask->statuses[i], status);
}

struct rig_ask *rig_go_one(const char *name)
{
	struct rig_txn t = { RIG_NAMES(name) };

	return rig_go(&t);
}

const char **rig_names(const char *prefix, size_t nr)
{
	const char **names = calloc(nr, sizeof(*names));
	char *p;
	size_t i;

	for (i = 0; i < nr; i++) {
		MUST(asprintf(&p, "%s%zu", prefix, i) > 0);
		names[i] = p;
	}
	return names;
}

void rig_names_free(const char **names, size_t nr)
{
	while (nr-- > 0)
		free((char *)(uintptr_t)names[nr]);
	free(names);
}

struct rig_ask *rig_go_many(unsigned repo, bool atomic, const char *prefix,
    size_t nr)
{
	const char **names = rig_names(prefix, nr);
	struct rig_txn t = { .repo = repo,
		.atomic = atomic,
		.names = names,
		.nr = nr };
	struct rig_ask *ask = rig_go(&t);

	rig_names_free(names, nr);
	return ask;
}
