/*
 * Proves that questions about history take turns: users in turn, regardless of
 * the number of connections and questions of a user; a user's connections in
 * turn; a connection's questions in order. Questions without a waiting client
 * are found among all questions.
 */
#include <string.h>

#include <utlist.h>

#include "daemon/store/history/history_queue.h"
#include "tests/lib/suite.h"

static struct history_queue queue;
static const char clients[8];

/* Question ID of user UID on connection number CLIENT. */
static struct store_question *put(uint32_t uid, unsigned client, uint32_t id)
{
	struct store_question *ask = question_new(STORE_ASK_HISTORY);

	ck_assert_ptr_nonnull(ask);
	ask->req.request_id = id;
	ask->peer.uid = uid;
	ask->client = &clients[client];
	history_queue_put(&queue, ask);
	return ask;
}

/* Expects the ids of the next NR questions, in order; 0 behind the last. */
static void expect(const uint32_t *ids, size_t nr)
{
	struct store_question *ask;
	size_t i;

	for (i = 0; i < nr; i++) {
		ask = history_queue_take(&queue);
		ck_assert_uint_eq(ask != NULL ? ask->req.request_id : 0,
		    ids[i]);
		question_free(ask);
	}
}
#define EXPECT(...)                                                            \
	expect((const uint32_t[]){ __VA_ARGS__ },                              \
	    sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))

static void setup(void)
{
	memset(&queue, 0, sizeof(queue));
}

static void teardown(void)
{
	question_free(history_queue_take(&queue));
	ck_assert(history_queue_is_empty(&queue));
}

CASE(.setup = setup, .teardown = teardown);

TEST(a_connection_is_answered_in_order)
{
	ck_assert(history_queue_is_empty(&queue));
	put(5, 0, 1);
	put(5, 0, 2);
	put(5, 0, 3);
	ck_assert(!history_queue_is_empty(&queue));
	EXPECT(1, 2, 3, 0);
}

TEST(connections_take_turns)
{
	put(5, 0, 1);
	put(5, 0, 2);
	put(5, 0, 3);
	put(5, 1, 11);
	put(5, 1, 12);
	put(5, 2, 21);
	EXPECT(1, 11, 21, 2, 12, 3, 0);
}

/* Regardless of the number of connections of a user. */
TEST(users_take_turns)
{
	unsigned client;

	for (client = 0; client < 7; client++) {
		put(5, client, 100 + client);
		put(5, client, 200 + client);
	}
	put(6, 7, 1);
	put(6, 7, 2);
	EXPECT(100, 1, 101, 2, 102, 103, 104, 105, 106, 200);
	/* A new user waits for one question. */
	put(7, 7, 3);
	EXPECT(201, 3, 202, 203, 204, 205, 206, 0);
}

/* A user just served goes behind all unserved users, also with the rest of the
 * same question. */
TEST(who_asks_again_waits_again)
{
	put(5, 0, 1);
	put(6, 1, 11);
	put(7, 2, 21);
	EXPECT(1);
	put(5, 0, 2);
	EXPECT(11, 21, 2, 0);
}

TEST(those_that_nobody_waits_for_are_found)
{
	struct store_question *dropped = NULL, *ask, *next;
	unsigned nr = 0, i;

	for (i = 0; i < 60; i++) {
		ask = put(5 + i % 3, i % 4, i + 1);
		if (i % 5 != 0 && i % 3 != 1)
			atomic_store(&ask->is_dropped, true);
	}
	history_queue_take_dropped(&queue, &dropped);
	DL_FOREACH_SAFE(dropped, ask, next) {
		ck_assert(atomic_load(&ask->is_dropped));
		nr++;
		question_free(ask);
	}
	ck_assert_uint_eq(nr, 32);
	for (; (ask = history_queue_take(&queue)) != NULL; nr++) {
		ck_assert(!atomic_load(&ask->is_dropped));
		question_free(ask);
	}
	ck_assert_uint_eq(nr, 60);
}
