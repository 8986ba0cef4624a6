/*
 * Proves that a transaction takes its request over, decides every update once,
 * and counts the outcome from its updates. A large array of an arena keeps its
 * content while it grows.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/txn.h"
#include "proto/arena.h"
#include "tests/lib/suite.h"

static struct txn *make(size_t nr)
{
	struct refd_request req = { .verb = REFD_VERB_TRANSACTION };
	struct txn *txn;
	char name[32];
	size_t i;

	req.arena = refd_arena_new();
	req.git_dir = refd_arena_string(req.arena, "/r.git", 6);
	req.updates = refd_arena_array(req.arena, nr, sizeof(*req.updates));
	req.nr_updates = nr;
	for (i = 0; i < nr; i++) {
		memset(&req.updates[i], 0, sizeof(req.updates[i]));
		snprintf(name, sizeof(name), "refs/heads/%zu", i);
		req.updates[i].name =
		    refd_arena_string(req.arena, name, strlen(name));
	}
	txn = txn_new(&req);
	ck_assert_ptr_nonnull(txn);
	txn_lay_out(txn);
	ck_assert_ptr_null(req.arena);
	ck_assert_ptr_null(req.updates);
	ck_assert_uint_eq(req.nr_updates, 0);
	return txn;
}

TEST(test_takes_the_request_over)
{
	struct txn *txn = make(2);

	ck_assert_uint_eq(txn->nr_updates, 2);
	ck_assert_str_eq(txn->updates[1].ask->name, "refs/heads/1");
	ck_assert_ptr_eq(txn->updates[1].txn, txn);
	ck_assert_int_eq(txn->updates[0].status, REFD_PENDING);
	ck_assert_uint_eq(txn->nr_decided, 0);
	txn_free(txn);
	txn_free(NULL);
}

TEST(test_decides)
{
	struct txn *txn = make(3);

	txn->updates[0].again = TXN_AGAIN_LOCKED;
	txn_decide(&txn->updates[0], REFD_LOCKED, "held");
	ck_assert_str_eq(txn->updates[0].text, "held");
	ck_assert_int_eq(txn->updates[0].again, TXN_AGAIN_NO);
	txn_decidef(&txn->updates[1], REFD_STALE, "at %d", 7);
	ck_assert_str_eq(txn->updates[1].text, "at 7");
	ck_assert_uint_eq(txn->nr_decided, 2);
	/* A decided update stays. */
	txn_lay_out(txn);
	ck_assert_int_eq(txn->updates[1].status, REFD_STALE);
	txn_acknowledge(&txn->updates[2]);
	ck_assert_ptr_null(txn->updates[2].text);
	ck_assert_uint_eq(txn->nr_decided, 3);
	ck_assert_uint_eq(txn->nr_of[REFD_STALE], 1);
	txn->updates[2].status = REFD_UNKNOWN;
	txn_count(txn);
	ck_assert_uint_eq(txn->nr_of[REFD_OK], 0);
	ck_assert_uint_eq(txn->nr_of[REFD_UNKNOWN], 1);
	txn->updates[2].status = REFD_OK;
	txn_count(txn);
	ck_assert_int_eq(txn_outcome(txn), REFD_PARTIAL);
	txn_free(txn);
}

/* A missing or malformed file is no error of a disk. */
TEST(test_errors_of_disks)
{
	static const int none[] = { -ENOENT, -ENOTDIR, -EBADMSG, -ENXIO,
		-ENOSPC, -EACCES, -ENOMEM };
	static const int disk[] = { -EIO, -EROFS, -EUCLEAN };
	uint64_t before = txn_disk_errors();
	size_t i;

	for (i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		txn_status_of(none[i]);
	ck_assert_uint_eq(txn_disk_errors(), before);
	for (i = 0; i < sizeof(disk) / sizeof(disk[0]); i++) {
		ck_assert_int_eq(txn_status_of(disk[i]), REFD_IO);
		ck_assert_uint_eq(txn_disk_errors(), before + i + 1);
	}
}

static void end(struct txn_update *u, enum refd_status status)
{
	if (status == REFD_OK)
		txn_acknowledge(u);
	else
		txn_decide(u, status, NULL);
}

TEST(test_outcomes, .times = 4)
{
	static const struct {
		enum refd_status a, b;
		enum refd_outcome outcome;
	} cases[] = {
		{ REFD_OK, REFD_OK, REFD_COMMITTED },
		{ REFD_OK, REFD_STALE, REFD_PARTIAL },
		{ REFD_STALE, REFD_ABORTED, REFD_REJECTED },
		{ REFD_OK, REFD_UNKNOWN, REFD_OUTCOME_UNKNOWN },
	};
	struct txn *txn = make(2);

	end(&txn->updates[0], cases[_i].a);
	end(&txn->updates[1], cases[_i].b);
	ck_assert_int_eq(txn_outcome(txn), cases[_i].outcome);
	txn_free(txn);
}

TEST(test_twice_is_a_programming_error, .signal = 6)
{
	struct txn *txn = make(1);

	txn_acknowledge(&txn->updates[0]);
	txn_decide(&txn->updates[0], REFD_STALE, NULL);
}

TEST(test_batch_free)
{
	struct batch *b = calloc(1, sizeof(*b));

	b->slices = calloc(2, sizeof(*b->slices));
	b->nr_slices = 2;
	b->slices[0].updates = calloc(3, sizeof(*b->slices[0].updates));
	batch_free(b);
	batch_free(NULL);
}

/* A large array keeps its content while it grows, and the rest is zero. */
TEST(test_arena_array)
{
	struct refd_arena *arena = refd_arena_new();
	size_t i, *array;

	for (i = 0; i < 100000; i++) {
		array = refd_arena_array(arena, i + 1, sizeof(*array));
		ck_assert_ptr_nonnull(array);
		ck_assert_uint_eq(array[i], 0);
		array[i] = i + 1;
	}
	for (i = 0; i < 100000; i++)
		ck_assert_uint_eq(array[i], i + 1);
	refd_arena_free(arena);
}
