/*
 * Proves that a user or a repository gets only a share of requests, refs,
 * memory, sessions, locks, clients and time in the scheduler. Any excess is
 * refused as busy with a time to retry, and costs no memory. Other clients are
 * served meanwhile. A decision frees the room at once.
 */
#include "tests/lib/scheduler_rig.h"
#include "tests/lib/suite.h"

static void setup(void)
{
	static const struct rig_config cfg = { .committers = 2,
		.batch_refs = 10,
		.max_bytes = 8000,
		.quotas = { .of_user = { .requests = 3,
				.refs = 5,
				.bytes = 5000,
				.sessions = 1 },
		    .own_uid = 77 },
		.of_repo = { .requests = 4,
		    .refs = 8,
		    .sessions = 2,
		    .locks = 3,
		    .clients = 3 } };

	rig_setup(&cfg);
}

static void check_put_off(const struct rig_ask *ask)
{
	ck_assert_uint_eq(ask->nr_answers, 1);
	ck_assert_int_eq(ask->kind, REFD_ANSWER_REFUSED);
	ck_assert_int_eq(ask->refused, REFD_BUSY);
	ck_assert_uint_ge(ask->retry_after_ms, 50);
	ck_assert_uint_le(ask->retry_after_ms, 2000);
}

/* From user UID, to a new repository. */
static struct rig_ask *go(uint32_t uid, size_t nr, bool session)
{
	static unsigned repo = 10;
	const char **names = rig_names("refs/heads/", nr);
	struct rig_txn t = { .uid = uid,
		.repo = repo++,
		.names = names,
		.nr = nr,
		.session = session };
	struct rig_ask *ask = rig_go(&t);

	rig_names_free(names, nr);
	return ask;
}

CASE(.setup = setup, .teardown = rig_teardown);

TEST(test_requests_of_a_user)
{
	struct rig_ask *first = go(5, 1, false), *more;
	struct rig_txn again = { .uid = 5, RIG_NAMES("refs/heads/0") };

	go(5, 1, false);
	go(5, 1, false);
	more = go(5, 1, false);
	check_put_off(more);
	again.id = more->id;
	/* Other users, and users without a limit. */
	ck_assert_uint_eq(go(6, 1, false)->nr_answers, 0);
	go(0, 1, false);
	go(0, 1, false);
	go(0, 1, false);
	ck_assert_uint_eq(go(0, 1, false)->nr_answers, 0);
	go(77, 5, false);
	ck_assert_uint_eq(go(77, 5, false)->nr_answers, 0);
	rig_back_all();
	rig_back_all();
	ck_assert_uint_eq(first->nr_answers, 1);
	/* The same id, which is still unused. */
	more = rig_go(&again);
	rig_back_all();
	ck_assert_int_eq(more->outcome, REFD_COMMITTED);
	ck_assert_int_eq(more->kind, REFD_ANSWER_RESULTS);
}

TEST(test_refs_of_a_user)
{
	ck_assert_uint_eq(go(5, 4, false)->nr_answers, 0);
	check_put_off(go(5, 2, false));
	ck_assert_uint_eq(go(5, 1, false)->nr_answers, 0);
	/* A user's only transaction may have any size. */
	ck_assert_uint_eq(go(6, 100, false)->nr_answers, 0);
	check_put_off(go(6, 1, false));
}

TEST(test_sessions_of_a_user)
{
	struct rig_ask *held = go(5, 1, true);

	rig_back_all();
	ck_assert_int_eq(held->kind, REFD_ANSWER_PREPARED);
	/* A session counts for as long as its locks are held. */
	check_put_off(go(5, 1, true));
	ck_assert_uint_eq(go(5, 1, false)->nr_answers, 0);
	rig_abort(5, held->id);
	rig_run();
	rig_back_all();
	ck_assert_uint_eq(go(5, 1, true)->nr_answers, 0);
}

static struct rig_ask *go_to(uint32_t uid, unsigned repo, const char *name,
    bool session)
{
	struct rig_txn t = { .uid = uid,
		.repo = repo,
		.session = session,
		.names = &name,
		.nr = 1 };

	return rig_go(&t);
}

TEST(test_requests_of_a_repository)
{
	static const char *const names[] = { "refs/a", "refs/b", "refs/c",
		"refs/d" };
	struct rig_ask *more;
	unsigned i;

	for (i = 0; i < 4; i++)
		go_to(100 + i, 3, names[i], false);
	more = go_to(110, 3, "refs/e", false);
	check_put_off(more);
	/* The limit holds for every user. */
	check_put_off(go_to(0, 3, "refs/f", false));
	ck_assert_uint_eq(go_to(110, 4, "refs/e", false)->nr_answers, 0);
	rig_back_all();
	rig_back_all();
	more = go_to(110, 3, "refs/e", false);
	ck_assert_uint_eq(more->nr_answers, 0);
}

TEST(test_sessions_of_a_repository)
{
	struct rig_ask *a = go_to(100, 3, "refs/a", true);

	go_to(101, 3, "refs/b", true);
	rig_back_all();
	ck_assert_int_eq(a->kind, REFD_ANSWER_PREPARED);
	check_put_off(go_to(102, 3, "refs/c", true));
	ck_assert_uint_eq(go_to(102, 3, "refs/d", false)->nr_answers, 0);
}

static struct rig_ask *go_bytes(uint32_t uid, size_t bytes)
{
	static unsigned repo = 1000;
	struct rig_txn t = { .uid = uid,
		.repo = repo++,
		.bytes = bytes,
		RIG_NAMES("refs/heads/a") };

	return rig_go(&t);
}

TEST(test_half_of_the_memory)
{
	ck_assert_uint_eq(go_bytes(5, 4500)->nr_answers, 0);
	ck_assert_uint_eq(go_bytes(6, 2000)->nr_answers, 0);
	/* User 5 has more than half, and this would need the last eighth. */
	check_put_off(go_bytes(5, 1000));
	ck_assert_uint_eq(go_bytes(6, 1000)->nr_answers, 0);
}

TEST(test_bytes_of_a_user)
{
	ck_assert_uint_eq(go_bytes(5, 3000)->nr_answers, 0);
	check_put_off(go_bytes(5, 2001));
	ck_assert_uint_eq(go_bytes(5, 2000)->nr_answers, 0);
}

TEST(test_locks_of_a_repository)
{
	const char *two[] = { "refs/b", "refs/c", "refs/d" };
	struct rig_txn more = { .uid = 101,
		.repo = 3,
		.session = true,
		.names = two,
		.nr = 3 };

	go_to(100, 3, "refs/a", true);
	check_put_off(rig_go(&more));
	more.nr = 2;
	more.id = 0;
	ck_assert_uint_eq(rig_go(&more)->nr_answers, 0);
	/* A transaction without a session holds locks only briefly. */
	ck_assert_uint_eq(go_to(102, 3, "refs/e", false)->nr_answers, 0);
}

/* The locks of an ended session no longer count for the user, even while
 * another session of the user goes on. */
TEST(test_locks_of_an_ended_session)
{
	const char *two[] = { "refs/c", "refs/d" };
	struct rig_txn more = { .uid = 102,
		.repo = 3,
		.session = true,
		.names = two,
		.nr = 2 };
	struct rig_ask *first = go_to(100, 3, "refs/a", true);

	go_to(101, 3, "refs/b", true);
	rig_back_all();
	rig_abort(100, first->id);
	rig_run();
	rig_back_all();
	ck_assert_uint_eq(rig_go(&more)->nr_answers, 0);
}

static struct rig_ask *go_as(struct rig_client *client, uint32_t uid,
    unsigned repo, const char *name)
{
	struct rig_txn t = { .uid = uid,
		.repo = repo,
		.client = client,
		.names = &name,
		.nr = 1 };

	return rig_go(&t);
}

TEST(test_clients_of_a_repository)
{
	struct rig_client c[4];

	go_as(&c[0], 100, 3, "refs/a");
	go_as(&c[1], 101, 3, "refs/b");
	go_as(&c[2], 102, 3, "refs/c");
	check_put_off(go_as(&c[3], 103, 3, "refs/e"));
	/* A client of the repository may send more. A new client may use
	 * another repository. */
	ck_assert_uint_eq(go_as(&c[2], 102, 3, "refs/f")->nr_answers, 0);
	ck_assert_uint_eq(go_as(&c[3], 103, 4, "refs/e")->nr_answers, 0);
	rig_back_all();
	rig_back_all();
	ck_assert_uint_eq(go_as(&c[3], 103, 3, "refs/g")->nr_answers, 0);
}
