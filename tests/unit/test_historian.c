/*
 * Proves how the historian works beside all other parts of the store. A watch
 * hears of each commit once, in order, and without a wait for the next tick.
 * Users take turns. If the daemon stops, a watch comes back, a later one does
 * so at once, and a log gets its answer. A store that is stopped gives all
 * questions back.
 */
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/store/store_internal.h"
#include "tests/lib/store_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define NS_PER_S INT64_C(1000000000)

static struct sys disk;
/* Opens below a directory "hung" hang. */
static _Atomic bool opens_hang;
static sem_t is_held, let_go;
/* The time at which the clock stands, or 0. */
static _Atomic int64_t stands_ns;

static int64_t disk_now_mono(const struct sys *sys)
{
	int64_t ns = stands_ns;

	return ns != 0 ? ns : sys_kernel.now_mono(sys);
}

static int disk_open_below(const struct sys *sys, int dirfd, const char *path,
    bool *is_plain)
{
	if (opens_hang && strstr(path, "hung") != NULL) {
		sem_post(&is_held);
		sem_wait(&let_go);
	}
	return sys_kernel.open_below(sys, dirfd, path, is_plain);
}

static void setup(void)
{
	disk = sys_kernel;
	disk.open_below = disk_open_below;
	disk.now_mono = disk_now_mono;
	stands_ns = 0;
	opens_hang = false;
	sem_init(&is_held, 0, 0);
	sem_init(&let_go, 0, 0);
	sr_sys = &disk;
	sr_interval_ns = 3600 * NS_PER_S;
	sr_setup();
}

static int64_t now_ns(void)
{
	return SYS(&disk, now_mono);
}

static void forget(struct store_question *q)
{
	free((char *)(uintptr_t)q->req.git_dir);
	question_free(q);
}

static struct store_question *make(enum refd_verb verb, const char *repo)
{
	struct store_question *ask = question_new(STORE_ASK_HISTORY);
	char path[sizeof(sr_repo) + 32];

	ck_assert_ptr_nonnull(ask);
	snprintf(path, sizeof(path), "%s/%s", tmp_root, repo);
	ask->req.verb = verb;
	ask->req.git_dir = strdup(path);
	ask->deadline_ns = now_ns() + 3600 * NS_PER_S;
	return ask;
}

static struct store_question *ask(enum refd_verb verb, const char *repo)
{
	struct store_question *q = make(verb, repo);

	store_ask(sr_store, q);
	return q;
}

/* The number of changes in its answer. */
static size_t await_answer(struct store_question *q)
{
	size_t nr;

	ck_assert_ptr_eq(sr_wait_done().answered, q);
	ck_assert_int_eq(q->answer.kind, REFD_ANSWER_RECORDS);
	nr = q->answer.nr_changes;
	forget(q);
	return nr;
}

static void await_watching(uint64_t nr)
{
	const struct timespec nap = { .tv_nsec = 100000 };
	struct store_stats stats;

	do {
		nanosleep(&nap, NULL);
		store_stats(sr_store, &stats);
	} while (stats.watching != nr);
}

static struct txn *admit(unsigned nr)
{
	struct refd_txid id;
	char name[64];

	refd_txid_make(&id);
	snprintf(name, sizeof(name), "refs/heads/n%u", nr);
	return sr_admit(&id, sr_repo, name, sr_commit);
}

/* Applies an update beside the watch Q, which hears of it alone. Returns how
 * long it took until the watch came back. */
static int64_t hear_of(struct txn *txn, struct store_question *q)
{
	int64_t begin_ns = now_ns();
	struct store_done done;
	bool is_heard = false, is_applied = false;

	store_apply(sr_store, sr_make_batch(txn));
	while (!is_heard || !is_applied) {
		done = sr_wait_done();
		if (done.applied != NULL) {
			is_applied = true;
			batch_free(done.applied);
		} else {
			ck_assert_ptr_eq(done.answered, q);
			is_heard = true;
		}
	}
	ck_assert_uint_eq(q->answer.nr_changes, 1);
	ck_assert_str_eq(q->answer.changes[0].name, txn->updates[0].ask->name);
	sr_done_with(txn);
	return now_ns() - begin_ns;
}

CASE(.setup = setup, .teardown = sr_teardown, .seconds = 60);

/* The tick comes once a second, so without a turn of its own, most commits
 * would wait more than a quarter of a second. Whether a watch is in its list,
 * or its turn is not over yet, the commit begins a turn. */
TEST(a_watch_hears_of_each_commit)
{
	const unsigned nr = 40;
	struct store_question *q, *last = NULL;
	struct txn *txn;
	unsigned i, nr_slow = 0;

	for (i = 0; i < nr; i++) {
		txn = admit(i);
		q = make(REFD_VERB_WATCH, "r.git");
		if (last != NULL) {
			q->req.select.has_after = true;
			q->req.select.after = last->answer.next;
			forget(last);
		}
		store_ask(sr_store, q);
		await_watching(1);
		nr_slow += hear_of(txn, q) > NS_PER_S / 4;
		last = q;
	}
	forget(last);
	ck_assert_uint_lt(nr_slow, nr / 4);
}

TEST(users_take_turns)
{
	struct store_question *hung, *asks[4];
	size_t i;

	tmp_run("cp -r r.git hung.git");
	opens_hang = true;
	hung = ask(REFD_VERB_LOG, "hung.git");
	sr_await(&is_held);
	for (i = 0; i < 4; i++) {
		asks[i] = make(REFD_VERB_LOG, "r.git");
		asks[i]->peer.uid = i < 3 ? 0 : 1;
		store_ask(sr_store, asks[i]);
	}
	opens_hang = false;
	sem_post(&let_go);
	await_answer(hung);
	await_answer(asks[0]);
	await_answer(asks[3]);
	await_answer(asks[1]);
	await_answer(asks[2]);
}

TEST(a_stop_ends_watches)
{
	struct txn *txn = admit(0);
	struct store_question *watch;

	sr_apply(txn);
	sr_done_with(txn);
	watch = ask(REFD_VERB_WATCH, "r.git");
	await_watching(1);
	store_tell_service(sr_store, STORE_PAUSES);
	ck_assert_uint_eq(await_answer(ask(REFD_VERB_LOG, "r.git")), 1);
	await_watching(1);
	/* The second in which a question is answered does not end. */
	stands_ns = now_ns();
	store_tell_service(sr_store, STORE_STOPS);
	ck_assert_uint_eq(await_answer(watch), 0);
	ck_assert_uint_eq(await_answer(ask(REFD_VERB_WATCH, "r.git")), 0);
	ck_assert_uint_eq(await_answer(ask(REFD_VERB_LOG, "r.git")), 1);
}

TEST(a_store_gives_all_back)
{
	struct store_done done;
	unsigned i, nr = 0;

	for (i = 0; i < 100; i++)
		ask(i % 2 == 0 ? REFD_VERB_LOG : REFD_VERB_WATCH, "r.git");
	ck_assert_int_eq(store_stop(sr_store), 0);
	for (; store_reap(sr_store, &done); nr++)
		forget(done.answered);
	ck_assert_uint_eq(nr, 100);
	store_free(sr_store);
	sr_store = NULL;
}
