/*
 * Proves that the pool of workers keeps work apart. A disk that hangs in
 * batches and in admissions does not stop the admission of other repositories,
 * and no question about history. A question that hangs takes no worker from
 * batches, and the next question gets its answer later.
 * The watchdog notices if all workers of batches hang. It notices no stall if
 * one disk hangs and batches of another disk are only busy. A batch without a
 * worker delays no flush. If the barrier's worker applies a batch, the next
 * round of the barrier does not wait.
 */
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/service/stall.h"
#include "daemon/store/admission/admission_queues.h"
#include "daemon/store/checkpoint/checkpointer.h"
#include "daemon/store/history/historian.h"
#include "daemon/store/pipeline/pipeline_internal.h"
#include "daemon/store/store_internal.h"
#include "tests/lib/store_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"
#include "tests/lib/txn_help.h"

#define NS_PER_S INT64_C(1000000000)
/* More than all hanging calls of a test. */
#define CALLS_MAX 64

static struct sys disk;
/* The calls that hang: opens and fsyncs below a directory "hung...", opens for
 * a question about history there, renames to a name "held...", every syncfs. */
static _Atomic bool opens_hang, fsyncs_hang, asks_hang, renames_hang,
    syncs_hang;
/* The store's clock stands still: no batch runs out of time. */
static _Atomic int64_t now_ns;
static sem_t is_held, let_go, sync_go;

static void hang_until(sem_t *go)
{
	sem_post(&is_held);
	sem_wait(go);
}

static int disk_open_below(const struct sys *sys, int dirfd, const char *path,
    bool *is_plain)
{
	if (opens_hang && strstr(path, "hung") != NULL)
		hang_until(&let_go);
	if (asks_hang && strstr(path, "hung") != NULL)
		hang_until(&sync_go);
	return sys_kernel.open_below(sys, dirfd, path, is_plain);
}

static int disk_fsync(const struct sys *sys, int fd)
{
	char path[4096];

	if (fsyncs_hang &&
	    sys_kernel.fd_path(sys, fd, path, sizeof(path)) == 0 &&
	    strstr(path, "hung") != NULL)
		hang_until(&let_go);
	return sys_kernel.fsync(sys, fd);
}

static int disk_renameat(const struct sys *sys, int olddirfd,
    const char *oldpath, int newdirfd, const char *newpath)
{
	if (renames_hang && strstr(newpath, "held") != NULL)
		hang_until(&let_go);
	return sys_kernel.renameat(sys, olddirfd, oldpath, newdirfd, newpath);
}

static int disk_syncfs(const struct sys *sys, int fd)
{
	if (syncs_hang)
		hang_until(&sync_go);
	return sys_kernel.syncfs(sys, fd);
}

static int64_t disk_now_mono(const struct sys *sys)
{
	(void)sys;
	return now_ns;
}

static void setup_mode(enum refd_durability mode)
{
	disk = sys_kernel;
	disk.open_below = disk_open_below;
	disk.fsync = disk_fsync;
	disk.renameat = disk_renameat;
	disk.syncfs = disk_syncfs;
	disk.fs_type = sr_other_fs_type;
	disk.now_mono = disk_now_mono;
	opens_hang = fsyncs_hang = renames_hang = syncs_hang = false;
	asks_hang = false;
	now_ns = sys_kernel.now_mono(&sys_kernel);
	sem_init(&is_held, 0, 0);
	sem_init(&let_go, 0, 0);
	sem_init(&sync_go, 0, 0);
	sr_sys = &disk;
	sr_mode = mode;
	sr_interval_ns = 3600 * NS_PER_S;
	sr_setup();
	tmp_run("for i in 0 1 2; do cp -r r.git hung$i.git; done");
}

static void setup_fsync(void)
{
	setup_mode(REFD_DURABILITY_FSYNC);
}

static void setup_journal(void)
{
	setup_mode(REFD_DURABILITY_JOURNAL);
}

static void await_held(size_t nr)
{
	while (nr-- > 0)
		sr_await(&is_held);
}

/* An update of two refs, NAME-0 and NAME-1. */
static struct txn *make(const char *repo, const char *name, const char *hex)
{
	struct refd_update updates[2] = { { .action = REFD_UPDATE },
		{ .action = REFD_UPDATE } };
	struct refd_request req = { .verb = REFD_VERB_TRANSACTION,
		.request_id = 1,
		.umask = 022,
		.updates = updates,
		.nr_updates = 2 };
	char path[sizeof(sr_repo) + 32], names[2][64];
	size_t i;

	snprintf(path, sizeof(path), "%s/%s", tmp_root, repo);
	req.git_dir = path;
	refd_txid_make(&req.txid);
	for (i = 0; i < 2; i++) {
		snprintf(names[i], sizeof(names[i]), "refs/heads/%s-%zu", name,
		    i);
		updates[i].name = names[i];
		ck_assert_int_eq(refd_oid_parse(hex, REFD_FORMAT_SHA1,
				     &updates[i].new_oid),
		    0);
	}
	return txn_help_own(&req);
}

static struct txn *admit(const char *repo, const char *name)
{
	struct txn *txn = make(repo, name, sr_commit);

	store_admit(sr_store, txn);
	ck_assert_ptr_eq(sr_wait_done().admitted, txn);
	ck_assert_int_eq(txn->refused, REFD_OK);
	return txn;
}

static struct txn *admit_nr(const char *repo, const char *name, size_t nr)
{
	char numbered[32];

	snprintf(numbered, sizeof(numbered), "%s%zu", name, nr);
	return admit(repo, numbered);
}

static struct batch *make_batch(struct txn *txn)
{
	struct batch *b = calloc(1, sizeof(*b));
	size_t i;

	b->slices = calloc(1, sizeof(*b->slices));
	b->nr_slices = 1;
	b->slices[0].txn = txn;
	b->slices[0].nr = txn->nr_updates;
	b->slices[0].updates =
	    calloc(txn->nr_updates, sizeof(*b->slices[0].updates));
	for (i = 0; i < txn->nr_updates; i++)
		b->slices[0].updates[i] = &txn->updates[i];
	return b;
}

/* NR transactions come back, admitted or applied. */
static void take_back(size_t nr)
{
	struct store_done done;
	struct txn *txn;

	while (nr-- > 0) {
		done = sr_wait_done();
		txn = done.admitted;
		if (done.applied != NULL) {
			txn = done.applied->slices[0].txn;
			ck_assert_int_eq(txn->updates[0].status, REFD_OK);
			ck_assert_int_eq(txn->updates[1].status, REFD_OK);
			batch_free(done.applied);
		}
		ck_assert_ptr_nonnull(txn);
		ck_assert_int_eq(txn->refused, REFD_OK);
		sr_done_with(txn);
	}
}

/* The disk is back, and so are NR transactions. */
static void come_back(size_t nr)
{
	int i;

	opens_hang = fsyncs_hang = renames_hang = syncs_hang = false;
	for (i = 0; i < CALLS_MAX; i++) {
		sem_post(&let_go);
		sem_post(&sync_go);
	}
	take_back(nr);
}

static struct store_question *ask_history(const char *repo)
{
	struct store_question *ask = question_new(STORE_ASK_HISTORY);
	char path[sizeof(sr_repo) + 32];

	ck_assert_ptr_nonnull(ask);
	snprintf(path, sizeof(path), "%s/%s", tmp_root, repo);
	ask->req.verb = REFD_VERB_LOG;
	ask->req.git_dir = strdup(path);
	store_ask(sr_store, ask);
	return ask;
}

static void expect_answer(struct store_question *ask)
{
	ck_assert_ptr_eq(sr_wait_done().answered, ask);
	ck_assert_int_eq(ask->answer.kind, REFD_ANSWER_RECORDS);
	free((char *)(uintptr_t)ask->req.git_dir);
	question_free(ask);
}

CASE(.name = "fsync", .setup = setup_fsync, .teardown = sr_teardown,
    .seconds = 60);

/* A disk hangs in fsync, in all workers that batches and the flusher get, and
 * then in admissions. */
TEST(others_are_admitted_while_batches_hang)
{
	const size_t nr_held = STORE_WORKERS - BARRIERS_RESERVED -
	    CHECKPOINTER_RESERVED - ADMISSION_RESERVED - PACKER_RESERVED -
	    LOOKER_RESERVED - HISTORIAN_RESERVED;
	struct txn *txns[PIPELINE_BATCHES], *other;
	size_t i;

	sr_done_with(admit("r.git", "first"));
	for (i = 0; i < PIPELINE_BATCHES; i++)
		txns[i] = admit_nr("hung0.git", "a", i);
	fsyncs_hang = opens_hang = true;
	for (i = 0; i < PIPELINE_BATCHES; i++)
		store_apply(sr_store, make_batch(txns[i]));
	await_held(nr_held);
	store_admit(sr_store, make("hung1.git", "a", sr_commit));
	store_admit(sr_store, make("hung2.git", "a", sr_commit));
	await_held(ADMISSION_PER_PLACE);
	other = make("r.git", "a", sr_commit);
	store_admit(sr_store, other);
	ck_assert_ptr_eq(sr_wait_done().admitted, other);
	ck_assert_int_eq(other->refused, REFD_OK);
	sr_done_with(other);
	expect_answer(ask_history("r.git"));
	come_back(PIPELINE_BATCHES + 2);
}

/* Work that has lasted for LIMIT_NS is stuck. */
static bool stops_all(int64_t limit_ns)
{
	struct store_progress progress[STORE_STAGES];

	store_progress(sr_store, limit_ns, progress);
	return stall_stops_all(progress);
}

/* A transaction may be back before its worker is idle. The worker counts until
 * then. */
static void expect_service(int64_t limit_ns)
{
	while (stops_all(limit_ns))
		sched_yield();
}

/* NR batches hang while they publish their first ref. */
static void hold_batches(size_t nr)
{
	struct txn *txn;
	size_t i;

	renames_hang = true;
	for (i = 0; i < nr; i++) {
		txn = admit_nr("r.git", "held", i);
		store_apply(sr_store, make_batch(txn));
		await_held(1);
	}
}

CASE(.name = "journal", .setup = setup_journal, .teardown = sr_teardown,
    .seconds = 60);

/* Every batch gets a worker beside a question that hangs, which keeps the only
 * worker of history. */
TEST(history_takes_no_worker_from_batches)
{
	struct store_question *hung, *next;

	asks_hang = true;
	hung = ask_history("hung0.git");
	await_held(1);
	next = ask_history("r.git");
	hold_batches(PIPELINE_BATCHES);
	asks_hang = false;
	sem_post(&sync_go);
	expect_answer(hung);
	expect_answer(next);
	come_back(PIPELINE_BATCHES);
}

TEST(all_workers_of_batches_hang)
{
	hold_batches(PIPELINE_BATCHES - 1);
	expect_service(0);
	store_apply(sr_store, make_batch(admit("r.git", "a")));
	take_back(1);
	store_apply(sr_store, make_batch(admit("r.git", "held-too")));
	await_held(1);
	ck_assert(stops_all(0));
	come_back(PIPELINE_BATCHES);
	expect_service(0);
}

/* Two admissions of one disk are stuck. Batches of another disk have just begun
 * and have all workers of batches. */
TEST(one_disk_hangs_while_another_is_busy)
{
	struct txn *txns[PIPELINE_BATCHES];
	const size_t nr = PIPELINE_BATCHES;
	size_t i;

	for (i = 0; i < nr; i++)
		txns[i] = admit_nr("r.git", "held", i);
	opens_hang = true;
	store_admit(sr_store, make("hung1.git", "a", sr_commit));
	store_admit(sr_store, make("hung2.git", "a", sr_commit));
	await_held(ADMISSION_PER_PLACE);
	now_ns += 600 * NS_PER_S;
	renames_hang = true;
	for (i = 0; i < nr; i++)
		store_apply(sr_store, make_batch(txns[i]));
	await_held(nr);
	expect_service(300 * NS_PER_S);
	come_back(ADMISSION_PER_PLACE + nr);
}

/* A batch waits for the locks of other batches before it goes to the log. A
 * batch without a worker can't take locks, so no batch waits for it. */
TEST(a_batch_without_a_worker_delays_no_flush)
{
	struct pipeline *p = sr_store->pipeline;
	struct batch *queued;

	hold_batches(PIPELINE_BATCHES);
	queued = make_batch(admit("r.git", "a"));
	store_apply(sr_store, queued);
	mutex_lock(&p->mutex);
	ck_assert_ptr_eq(p->to_apply.head, queued);
	ck_assert_uint_eq(p->nr_preparing, 1);
	ck_assert_uint_eq(p->nr_locking, 0);
	mutex_unlock(&p->mutex);
	come_back(PIPELINE_BATCHES + 1);
}

/* Has a worker looked at the barrier, and left a transaction waiting? */
static bool waits_at_the_barrier(void)
{
	struct barriers *bs = &sr_store->barriers;
	bool waits;

	mutex_lock(&bs->mutex);
	waits = bs->waiting.head != NULL && bs->source.due_ns != 0;
	mutex_unlock(&bs->mutex);
	return waits;
}

/* The worker applies the batch of a transaction from the barrier, and hangs.
 * Another worker serves the next round. The store's clock is ahead, so no
 * worker looks at the barrier again by itself. */
TEST(the_barrier_goes_on)
{
	char hex[REFD_OID_MAX_HEX + 1];
	struct txn *first = admit("r.git", "first"), *direct, *next;

	now_ns += 600 * NS_PER_S;
	sr_make_commit("new", hex);
	syncs_hang = renames_hang = true;
	direct = make("r.git", "held", hex);
	txn_lay_out(direct);
	direct->direct = make_batch(direct);
	direct->direct_repo = store_repo_key(first->repo);
	direct->times.checked_ns = now_ns;
	sr_done_with(first);
	store_admit(sr_store, direct);
	await_held(1);
	next = make("r.git", "a", hex);
	store_admit(sr_store, next);
	while (!waits_at_the_barrier())
		sched_yield();
	syncs_hang = false;
	sem_post(&sync_go);
	await_held(1);
	ck_assert_ptr_eq(sr_wait_done().admitted, next);
	sr_done_with(next);
	come_back(1);
}
