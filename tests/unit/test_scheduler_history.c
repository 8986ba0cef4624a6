/*
 * Proves that questions about history pass through the scheduler to the store
 * and back. Every answer goes to its client under the id of the request.
 * Questions of a vanished client are marked, and nobody gets the answers. A
 * stop asks for the end of all questions and waits. Too many questions are
 * refused, and so are questions that together hold too much memory.
 */
#include <string.h>

#include "daemon/scheduler/state.h"
#include "tests/lib/scheduler_rig.h"
#include "tests/lib/suite.h"

#define NOW_NS  1000000000LL
#define WALL_MS 1785542400000LL

static struct scheduler *e;
static struct store_question *given[20000];
static size_t nr_given;

static uint32_t answered_id[20000];
static enum refd_answer_kind answered_kind;
static size_t nr_answered;

static void take_history(struct store_question *ask)
{
	given[nr_given++] = ask;
}

static void answer(void *arg, const struct refd_answer *ans)
{
	(void)arg;
	answered_id[nr_answered++] = ans->request_id;
	answered_kind = ans->kind;
}

static uint32_t asking_uid;
static size_t asking_bytes;

#define MAX_BYTES 64000000

static void setup(void)
{
	const struct rig_config cfg = { .batch_refs = 10,
		.committers = 1,
		.max_bytes = MAX_BYTES };

	nr_given = nr_answered = 0;
	asking_uid = 5;
	asking_bytes = 0;
	rig_setup(&cfg);
	rig_on_question = take_history;
	e = rig_scheduler;
	scheduler_run(e, NOW_NS, WALL_MS);
}

static void teardown(void)
{
	rig_teardown();
}

static void ask(uint32_t id, uint32_t deadline_ms, void *client)
{
	uint32_t gids[] = { 7, 8 };
	struct txn_peer peer = { .uid = asking_uid,
		.gids = gids,
		.nr_gids = 2 };
	struct refd_request req = { .verb = REFD_VERB_WATCH,
		.request_id = id,
		.deadline_ms = deadline_ms,
		.bytes = asking_bytes };

	scheduler_history(e, &req, &peer, NOW_NS, answer, client);
}

static void give_back(size_t i)
{
	given[i]->answer.kind = REFD_ANSWER_RECORDS;
	rig_question_back(given[i]);
	scheduler_run(e, NOW_NS, WALL_MS);
}

CASE(.setup = setup, .teardown = teardown);

TEST(it_goes_there_and_back)
{
	int client;

	ask(3, 20000, &client);
	ask(4, 0, &client);
	ck_assert_uint_eq(nr_given, 2);
	ck_assert_uint_eq(given[0]->peer.uid, 5);
	ck_assert_uint_eq(given[0]->peer.gids[1], 8);
	ck_assert_int_eq(given[0]->deadline_ns, NOW_NS + 20000 * 1000000LL);
	ck_assert_int_eq(given[1]->deadline_ns,
	    NOW_NS + REFD_WATCH_MS * 1000000LL);
	ck_assert(!scheduler_is_idle(e));
	give_back(1);
	give_back(0);
	ck_assert_uint_eq(nr_answered, 2);
	ck_assert_uint_eq(answered_id[0], 4);
	ck_assert_uint_eq(answered_id[1], 3);
	ck_assert_int_eq(answered_kind, REFD_ANSWER_RECORDS);
	ck_assert(scheduler_is_idle(e));
}

TEST(who_is_gone_hears_nothing)
{
	int one, other;

	ask(1, 0, &one);
	ask(1, 0, &other);
	scheduler_forget_client(e, &one, 0);
	ck_assert(atomic_load(&given[0]->is_dropped));
	ck_assert(!atomic_load(&given[1]->is_dropped));
	give_back(0);
	ck_assert_uint_eq(nr_answered, 0);
	give_back(1);
	ck_assert_uint_eq(nr_answered, 1);
}

TEST(stopping_awaits_them)
{
	int client;

	ask(1, 0, &client);
	scheduler_drain(e);
	ck_assert_uint_eq(rig_nr_stops, 1);
	ck_assert(!scheduler_is_idle(e));
	give_back(0);
	ck_assert(scheduler_is_idle(e));
	/* No client asks for more. */
	ask(2, 0, &client);
	ck_assert_int_eq(answered_kind, REFD_ANSWER_REFUSED);
	ck_assert_uint_eq(nr_answered, 2);
	ck_assert(scheduler_is_idle(e));
}

TEST(too_many_are_busy)
{
	int client;
	size_t nr;
	uint32_t id;

	for (id = 1; nr_answered == 0; id++)
		ask(id, 0, &client);
	ck_assert_int_eq(answered_kind, REFD_ANSWER_REFUSED);
	nr = nr_given;
	ck_assert_uint_gt(nr, 10000);
	give_back(0);
	ask(id, 0, &client);
	ck_assert_uint_eq(nr_given, nr + 1);
	for (nr = 1; nr < nr_given; nr++)
		give_back(nr);
}

TEST(one_user_leaves_room_for_others)
{
	int client;
	size_t nr, i;

	for (nr = 1; nr_answered == 0; nr++)
		ask((uint32_t)nr, 0, &client);
	nr = nr_given;
	asking_uid = 6;
	for (i = 0; i < 1000; i++)
		ask((uint32_t)i, 0, &client);
	ck_assert_uint_eq(nr_given, nr + 1000);
	ck_assert_uint_eq(nr_answered, 1);
	/* The limit of a user is still large. */
	ck_assert_uint_gt(nr, 10000);
	for (i = 0; i < nr_given; i++)
		give_back(i);
	asking_uid = 5;
	ask(1, 0, &client);
	give_back(nr_given - 1);
}

/* Until one is refused; returns how many are not. */
static size_t ask_many(void *client)
{
	size_t nr = nr_given;
	uint32_t id = 1;

	for (nr_answered = 0; nr_answered == 0; id++)
		ask(id, 0, client);
	ck_assert_int_eq(answered_kind, REFD_ANSWER_REFUSED);
	return nr_given - nr;
}

/* Questions with long patterns. */
TEST(their_memory_has_a_limit)
{
	int client;
	size_t nr;

	asking_bytes = MAX_BYTES / 100;
	nr = ask_many(&client);
	ck_assert_uint_ge(nr, 80);
	ck_assert_uint_le(nr, 90);
	asking_uid = 6;
	nr = ask_many(&client);
	ck_assert_uint_ge(nr, 10);
	asking_uid = 7;
	ck_assert_uint_eq(ask_many(&client), 0);
	give_back(0);
	ck_assert_uint_eq(ask_many(&client), 1);
	for (nr = 1; nr < nr_given; nr++)
		give_back(nr);
	ck_assert_uint_eq(e->held_bytes, 0);
	ck_assert_ptr_null(e->quotas.head);
}

TEST(the_limit_of_a_user_counts)
{
	const struct scheduler_limits limits = { .batch_refs = 10,
		.of_user = { .bytes = MAX_BYTES / 10 } };
	int client;
	size_t nr;

	scheduler_set_limits(e, &limits);
	asking_bytes = MAX_BYTES / 100;
	ck_assert_uint_eq(ask_many(&client), 9);
	asking_uid = 6;
	ck_assert_uint_eq(ask_many(&client), 9);
	asking_uid = 0;
	ck_assert_uint_ge(ask_many(&client), 70);
	for (nr = 0; nr < nr_given; nr++)
		give_back(nr);
}
