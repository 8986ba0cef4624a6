/*
 * Proves when the packer packs. A repository is packed at the threshold, after
 * a checkpoint, also if it was closed between its updates. A packing that
 * failed is tried again later, without further refs. A closing does not end the
 * rest of a repository. While packing is not allowed, a request comes back at
 * once, and no repository is packed. A packed-refs of git that brings a deleted
 * ref back is noticed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/store/store_internal.h"
#include "tests/lib/store_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define THRESHOLD 3
#define WAIT_MS   20000

/* A try takes more than a second, and a repository rests a hundred times as
 * long. */
#define REST_NS (1000 * INT64_C(1000000000))

static struct sys disk;
static _Atomic int64_t ahead_ns;
static char lock[4200];
static unsigned nr_made;
static sem_t has_returned;
static char returned[1024];

static int64_t disk_now_mono(const struct sys *sys)
{
	return sys_kernel.now_mono(sys) + ahead_ns;
}

static void note_event(enum store_event event, const char *place,
    const char *why)
{
	if (event != STORE_REF_RETURNED)
		return;
	ck_assert_str_eq(place, sr_repo);
	snprintf(returned, sizeof(returned), "%s", why);
	sem_post(&has_returned);
}

static void setup(void)
{
	sem_init(&has_returned, 0, 0);
	sr_event = note_event;
	disk = sys_kernel;
	disk.now_mono = disk_now_mono;
	ahead_ns = 0;
	nr_made = 0;
	sr_sys = &disk;
	sr_interval_ns = 3600 * INT64_C(1000000000);
	sr_pack_refs = THRESHOLD;
	sr_setup();
	snprintf(lock, sizeof(lock), "%s/packed-refs.lock", sr_repo);
}

static struct txn *admit(void)
{
	struct refd_txid id;
	char name[64];

	refd_txid_make(&id);
	snprintf(name, sizeof(name), "refs/heads/n%u", nr_made++);
	return sr_admit(&id, sr_repo, name, sr_commit);
}

static void apply(struct txn *txn)
{
	sr_apply(txn);
	ck_assert_int_eq(txn->updates[0].status, REFD_OK);
	sr_done_with(txn);
}

static void make_ref(void)
{
	apply(admit());
}

static void make_refs(unsigned nr)
{
	while (nr-- > 0)
		make_ref();
}

static void checkpoint(void)
{
	struct store_question cp = { .kind = STORE_ASK_CHECKPOINT };

	store_ask(sr_store, &cp);
	ck_assert_ptr_eq(sr_wait_done().answered, &cp);
	ck_assert_int_eq(cp.answer.kind, REFD_ANSWER_PAIRS);
}

static struct store_stats stats(void)
{
	struct store_stats stats = { .batches = 0 };

	store_stats(sr_store, &stats);
	return stats;
}

static void await_stats(uint64_t packed, uint64_t failures)
{
	const struct timespec nap = { .tv_nsec = 1000000 };
	unsigned i;

	for (i = 0; i < WAIT_MS &&
	    (stats().packed_refs < packed || stats().pack_failures < failures);
	    i++)
		nanosleep(&nap, NULL);
	ck_assert_uint_eq(stats().packed_refs, packed);
	ck_assert_uint_eq(stats().pack_failures, failures);
}

/* The number of packed refs. The repository has no open packing afterwards. */
static uint64_t ask_for(enum refd_status status)
{
	struct store_question *q = question_new(STORE_ASK_PACK);
	uint64_t nr = 0;

	q->txn = admit();
	store_ask(sr_store, q);
	ck_assert_ptr_eq(sr_wait_done().answered, q);
	ck_assert_int_eq(q->answer.status, status);
	if (status == REFD_OK) {
		ck_assert_str_eq(q->answer.pairs[1].key, "packed");
		nr = strtoull(q->answer.pairs[1].value, NULL, 10);
	}
	sr_done_with(q->txn);
	q->txn = NULL;
	question_free(q);
	return nr;
}

CASE(.setup = setup, .teardown = sr_teardown, .seconds = 60);

TEST(packs_at_the_threshold)
{
	make_refs(THRESHOLD - 1);
	checkpoint();
	ck_assert_uint_eq(ask_for(REFD_OK), THRESHOLD - 1);
	/* The refs that were packed on request count too. */
	make_ref();
	checkpoint();
	await_stats(THRESHOLD, 0);
}

static bool is_open(struct repos *repos)
{
	bool is_open;

	mutex_lock(&repos->mutex);
	is_open = repos->open != NULL;
	mutex_unlock(&repos->mutex);
	return is_open;
}

/* A quiet repository is closed between its updates. */
static void await_closing(void)
{
	while (is_open(&sr_store->repos))
		repos_trim(&sr_store->repos, -1);
}

TEST(counts_on_after_a_closing)
{
	make_refs(THRESHOLD - 1);
	await_closing();
	make_ref();
	checkpoint();
	await_stats(THRESHOLD, 0);
}

/* Lets the time of a rest pass. An idle repository would be closed, and only an
 * open one is packed: a waiting transaction keeps it open. */
static void rest(void)
{
	struct txn *waiting = admit();

	ahead_ns += REST_NS;
	checkpoint();
	sr_done_with(waiting);
}

TEST(rests_for_a_minute)
{
	make_refs(THRESHOLD);
	checkpoint();
	await_stats(THRESHOLD, 0);
	make_refs(THRESHOLD);
	checkpoint();
	ck_assert_uint_eq(ask_for(REFD_OK), THRESHOLD);
	make_ref();
	rest();
	await_stats(2 * THRESHOLD + 1, 0);
}

TEST(tries_again_after_a_failure)
{
	close(open(lock, O_CREAT | O_WRONLY, 0600));
	make_refs(THRESHOLD);
	checkpoint();
	await_stats(0, 1);
	ck_assert_int_eq(unlink(lock), 0);
	make_ref();
	rest();
	await_stats(THRESHOLD + 1, 1);
}

/* A failed packing leaves loose refs behind, a good one leaves none. */
TEST(rests_after_a_closing, .times = 2)
{
	const bool fails = _i == 0;

	if (fails)
		close(open(lock, O_CREAT | O_WRONLY, 0600));
	make_refs(THRESHOLD);
	checkpoint();
	await_stats(fails ? 0 : THRESHOLD, fails);
	if (fails)
		ck_assert_int_eq(unlink(lock), 0);
	await_closing();
	make_refs(THRESHOLD);
	checkpoint();
	ck_assert_uint_eq(ask_for(REFD_OK), fails ? 2 * THRESHOLD : THRESHOLD);
}

static atomic_bool has_failed;
/* The first line in the list of failed syncs after the failure. */
static char first_mark[65];

/* The file of another writer. */
static int fail_packed_refs(const struct sys *sys, int fd)
{
	char proc[64], path[4200] = "";

	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	if (readlink(proc, path, sizeof(path) - 1) < 0 ||
	    strcmp(strrchr(path, '/'), "/packed-refs") != 0)
		return sys_kernel.fsync(sys, fd);
	has_failed = true;
	return -EIO;
}

static ssize_t note_mark(const struct sys *sys, int fd, const void *bytes,
    size_t len, off_t at)
{
	/* Not the line of a sync that begins meanwhile. */
	if (len == sizeof(first_mark) - 1 && at >= (off_t)len && has_failed &&
	    *(const char *)bytes != 's' && first_mark[0] == '\0')
		memcpy(first_mark, bytes, len);
	return sys_kernel.pwrite(sys, fd, bytes, len, at);
}

/* A kill may come after any line. So no line says that the sync went well. */
TEST(a_failed_sync_is_noted_first)
{
	struct txn *txn;

	disk.fsync = fail_packed_refs;
	disk.pwrite = note_mark;
	has_failed = false;
	first_mark[0] = '\0';
	make_ref();
	tmp_run("git -C r.git pack-refs --all");
	make_refs(THRESHOLD);
	txn = admit();
	checkpoint();
	await_stats(0, 1);
	ck_assert(has_failed);
	ck_assert_msg(first_mark[1] == 'r', "'%.30s'", first_mark);
	sr_done_with(txn);
}

/* Git takes no lock there, and removes the old files of the refs. */
TEST(leaves_a_migration_alone)
{
	tmp_run("mkdir r.git/ref_migration.a1B2c3");
	make_refs(THRESHOLD);
	checkpoint();
	await_stats(0, 1);
	ask_for(REFD_LOCKED);
	tmp_run("rmdir r.git/ref_migration.*");
	ck_assert_uint_eq(ask_for(REFD_OK), THRESHOLD);
}

TEST(packs_nothing_while_not_allowed)
{
	store_tell_service(sr_store, STORE_PAUSES);
	make_refs(THRESHOLD);
	checkpoint();
	ask_for(REFD_BUSY);
	ck_assert_uint_eq(stats().packed_refs, 0);
	store_tell_service(sr_store, STORE_SERVES);
	ck_assert_uint_eq(ask_for(REFD_OK), THRESHOLD);
}

/* Git has read n1 before refd deleted it, and packs it now. */
TEST(tells_of_a_returned_ref)
{
	struct refd_txid id;

	make_refs(2);
	refd_txid_make(&id);
	apply(sr_admit(&id, sr_repo, "refs/heads/n1",
	    "0000000000000000000000000000000000000000"));
	tmp_run("cd r.git && rm refs/heads/n0 && "
		"printf '# pack-refs with: peeled fully-peeled sorted \n"
		"%s refs/heads/n0\n%s refs/heads/n1\n' >new && "
		"mv new packed-refs",
	    sr_commit, sr_commit);
	make_ref();
	checkpoint();
	ck_assert_int_eq(sem_trywait(&has_returned), -1);
	make_ref();
	rest();
	sr_await(&has_returned);
	ck_assert_ptr_nonnull(
	    strstr(returned, "refs/heads/n1: packed-refs has"));
	ck_assert_ptr_nonnull(strstr(returned,
	    "'refd restore --at 3 --undo-git --force --ref refs/heads/n1'"));
	/* It is told once: the file of refd is no cause to compare again. */
	ask_for(REFD_OK);
	make_ref();
	checkpoint();
	make_ref();
	rest();
	sr_close();
	ck_assert_int_eq(sem_trywait(&has_returned), -1);
	sr_open();
}
