/*
 * Proves that looks at small repositories never wait for looks at large ones,
 * also of the same user, that one large look at a time has refs in memory, and
 * that users take turns, however many looks a user has. A repository has one
 * look at a time.
 */
#include <errno.h>
#include <string.h>

#include "daemon/scheduler/looking.h"
#include "tests/lib/suite.h"

#define NOW_NS  1000000000LL
#define WALL_MS 1785542400000LL
#define NR      20

static struct scheduler *e;
static struct store_done back[4 * NR];
static size_t nr_back;
static struct store_look *reading[NR]; /* in the order of their begin */
static size_t nr_reading, nr_answered;
static char repos[NR];
static int64_t now_ns;

bool store_takes(struct store *store)
{
	(void)store;
	return true;
}

void store_admit(struct store *store, struct txn *txn)
{
	(void)store;
	/* The path is the number of the repository. */
	txn->repo = (struct repo *)(void *)&repos[txn->req.git_dir[0] - 'a'];
	back[nr_back++] = (struct store_done){ .admitted = txn };
}

void store_ask(struct store *store, struct store_question *q)
{
	struct store_look *look = (struct store_look *)q;

	(void)store;
	if (look->step == LOOK_READ)
		reading[nr_reading++] = look;
	else
		back[nr_back++] = (struct store_done){ .answered = q };
}

void store_release(struct store *store, struct repo *repo)
{
	(void)store;
	(void)repo;
}

uint64_t store_repo_key(const struct repo *repo)
{
	return (uint64_t)((const char *)repo - repos);
}

const char *store_repo_path(const struct repo *repo)
{
	static char path[2];

	path[0] = (char)('a' + store_repo_key(repo));
	return path;
}

bool store_reap(struct store *store, struct store_done *done)
{
	(void)store;
	if (nr_back == 0)
		return false;
	*done = back[0];
	memmove(back, back + 1, --nr_back * sizeof(*back));
	return true;
}

/* ---- the rest of the double of the store ---- */

static uint8_t journal_id[REFD_JOURNAL_ID_BYTES];

size_t store_max_batches(const struct store *store)
{
	(void)store;
	return 1;
}

const uint8_t *store_journal_id(const struct store *store)
{
	(void)store;
	return journal_id;
}

bool store_may_commit(struct store *store, const struct txn *txn)
{
	(void)store;
	(void)txn;
	return true;
}

bool store_writes_alone(const struct repo *repo)
{
	(void)repo;
	return false;
}

void store_give_up(struct store *store, struct txn *txn)
{
	(void)store;
	(void)txn;
}

void store_discard(struct store *store, struct txn *txn)
{
	(void)store;
	(void)txn;
}

void store_apply(struct store *store, struct batch *b)
{
	(void)store;
	(void)b;
}

void store_tell_service(struct store *store, enum store_service service)
{
	(void)store;
	(void)service;
}

void store_token_log(struct store *store, uint8_t id[REFD_JOURNAL_ID_BYTES])
{
	(void)store;
	(void)id;
}

static void answered(void *arg, const struct refd_answer *ans)
{
	(void)arg;
	(void)ans;
	nr_answered++;
}

static void run(void)
{
	do {
		scheduler_run(e, now_ns, WALL_MS);
	} while (nr_back > 0);
}

static void setup(void)
{
	const struct scheduler_config cfg = { .batch_refs = 10,
		.max_waiting_bytes = 1 << 20 };

	nr_back = nr_reading = nr_answered = 0;
	now_ns = NOW_NS;
	e = scheduler_new(&cfg, NULL);
	ck_assert_ptr_nonnull(e);
	run();
}

static void teardown(void)
{
	ck_assert(scheduler_is_idle(e));
	scheduler_free(e);
}

/* UID asks for a look at the repositories 'a', 'b', ... of NAMES. */
static void ask(uint32_t uid, const char *names)
{
	struct refd_request req;
	char name[2] = "";
	struct txn *txn;

	for (; *names != '\0'; names++) {
		name[0] = *names;
		ck_assert(look_request(&req, REFD_VERB_LOOK, name));
		txn = txn_new(&req);
		ck_assert_ptr_nonnull(txn);
		txn->peer.uid = uid;
		scheduler_look(e, txn, answered, NULL);
	}
	run();
}

/* The repositories that are being read. */
static const char *being_read(void)
{
	static char names[NR + 1];
	size_t i;

	for (i = 0; i < nr_reading; i++)
		names[i] = (char)('a' + store_repo_key(reading[i]->repo));
	names[i] = '\0';
	return names;
}

static struct store_look *take(char name)
{
	size_t i = (size_t)(strchr(being_read(), name) - being_read());
	struct store_look *look = reading[i];

	memmove(reading + i, reading + i + 1,
	    (--nr_reading - i) * sizeof(*reading));
	return look;
}

/* Each look of NAMES has found too many refs. */
static void is_large(const char *names)
{
	struct store_look *look;

	for (; *names != '\0'; names++) {
		look = take(*names);
		ck_assert(!look->is_large);
		store_look_enlarge(look);
		back[nr_back++] = (struct store_done){ .answered = &look->ask };
		run();
	}
}

static void ends(char name)
{
	struct store_look *look = take(name);

	look->status = REFD_IO;
	back[nr_back++] = (struct store_done){ .answered = &look->ask };
	run();
}

CASE(.setup = setup, .teardown = teardown);

TEST(small_ones_pass_large_ones)
{
	ask(1, "a");
	ask(2, "b");
	ck_assert_str_eq(being_read(), "ab");
	is_large("ab");
	ck_assert_str_eq(being_read(), "a");
	ck_assert(reading[0]->is_large);
	/* A small look of the same user. */
	ask(1, "c");
	ck_assert_str_eq(being_read(), "ac");
	ask(3, "d");
	ask(4, "e");
	ck_assert_str_eq(being_read(), "acd");
	ends('d');
	ck_assert_str_eq(being_read(), "ace");
	ends('c');
	ends('e');
	ck_assert_str_eq(being_read(), "a");
	ends('a');
	ck_assert_str_eq(being_read(), "b");
	ends('b');
	ck_assert_uint_eq(nr_answered, 5);
}

TEST(users_take_turns)
{
	ask(1, "abcd");
	ck_assert_str_eq(being_read(), "a");
	is_large("abcd");
	ck_assert_str_eq(being_read(), "a");
	ask(2, "ef");
	is_large("ef");
	ask(3, "g");
	is_large("g");
	ends('a');
	ck_assert_str_eq(being_read(), "e");
	/* One more comes behind those who wait. */
	ask(4, "h");
	is_large("h");
	ends('e');
	ends('g');
	ends('h');
	ck_assert_str_eq(being_read(), "b");
	ask(5, "i");
	is_large("i");
	ends('b');
	ck_assert_str_eq(being_read(), "f");
	ends('f');
	ck_assert_str_eq(being_read(), "i");
	ends('i');
	ends('c');
	ends('d');
	ck_assert_uint_eq(nr_answered, 9);
}

TEST(one_look_at_a_repository)
{
	ask(1, "a");
	is_large("a");
	ask(2, "a");
	ask(3, "b");
	ck_assert_str_eq(being_read(), "ab");
	ends('a');
	ck_assert_str_eq(being_read(), "ba");
	ck_assert(!reading[1]->is_large);
	ends('b');
	ends('a');
}
