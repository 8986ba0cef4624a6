/*
 * Proves the rules of the queues of admission. Users take turns, regardless of
 * the number of paths of a user, and so do the paths of a user. Transactions of
 * one path keep their order. A repository, a file system and a user have no
 * more workers than permitted. A removed transaction is not handed out any
 * more. A queue that waits for a repository is ready when the repository is
 * free.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/admission/admission_queues.h"
#include "tests/lib/suite.h"

static struct admission_queues a;
static struct txn txns[64];
static size_t nr;
static char paths[64][16];
static const char disk[] = "disk", other_disk[] = "other";

static void setup(void)
{
	memset(&a, 0, sizeof(a));
	memset(txns, 0, sizeof(txns));
	nr = 0;
}

static struct txn *put(uint32_t uid, const char *path, const void *place)
{
	struct txn *txn = &txns[nr];

	snprintf(paths[nr], sizeof(paths[nr]), "%s", path);
	txn->req.git_dir = paths[nr++];
	txn->peer.uid = uid;
	ck_assert_int_eq(admission_queues_put(&a, txn, place), 0);
	return txn;
}

/* Worker SLOT takes one transaction, and its turn is over. */
static const char *turn(size_t slot)
{
	struct txn *txn;

	if (admission_queues_begin(&a, slot, 1) == NULL)
		return "";
	txn = admission_queues_take(&a, slot, UINT64_MAX);
	admission_queues_end(&a, slot);
	return txn->req.git_dir;
}

static void teardown(void)
{
	size_t i;

	for (i = 0; i < ADMISSION_WORKERS; i++)
		if (a.slots[i].queue != NULL)
			admission_queues_end(&a, i);
	while (turn(0)[0] != '\0')
		;
	ck_assert_ptr_null(a.by_path);
}

CASE(.setup = setup, .teardown = teardown);

TEST(users_take_turns_and_so_do_their_paths)
{
	put(1, "a", disk);
	put(1, "a", disk);
	put(1, "b", disk);
	put(1, "c", disk);
	put(2, "x", disk);
	ck_assert_str_eq(turn(0), "a");
	ck_assert_str_eq(turn(0), "x");
	ck_assert_str_eq(turn(0), "b");
	put(2, "y", disk);
	ck_assert_str_eq(turn(0), "c");
	ck_assert_str_eq(turn(0), "y");
	ck_assert_str_eq(turn(0), "a");
	ck_assert_str_eq(turn(0), "");
}

TEST(one_path_keeps_its_order)
{
	struct txn *first = put(1, "a", disk), *second = put(2, "a", disk);

	ck_assert_ptr_nonnull(admission_queues_begin(&a, 0, 1));
	ck_assert(!admission_queues_has_work(&a));
	ck_assert_ptr_eq(admission_queues_take(&a, 0, 1), first);
	/* The transaction came after the beginning of the turn. */
	ck_assert_ptr_null(admission_queues_take(&a, 0, 1));
	admission_queues_put_back(&a, 0, first);
	admission_queues_end(&a, 0);
	ck_assert_ptr_nonnull(admission_queues_begin(&a, 0, 1));
	ck_assert_ptr_eq(admission_queues_take(&a, 0, 2), first);
	ck_assert_ptr_eq(admission_queues_take(&a, 0, 2), second);
}

/* Hanging repositories hold no more workers than permitted. */
TEST(a_file_system_has_few_workers)
{
	char path[8];
	size_t i;

	for (i = 0; i < 5; i++) {
		snprintf(path, sizeof(path), "%zu", i);
		put((uint32_t)i, path, disk);
	}
	put(9, "x", other_disk);
	for (i = 0; i < ADMISSION_PER_PLACE; i++)
		ck_assert_ptr_eq(admission_queues_begin(&a, i, 1)->place, disk);
	ck_assert_str_eq(turn(i), "x");
	ck_assert_ptr_null(admission_queues_begin(&a, i, 1));
	admission_queues_end(&a, 0);
	ck_assert_ptr_nonnull(admission_queues_begin(&a, 0, 1));
}

TEST(a_user_leaves_a_worker_to_others)
{
	char path[8];
	size_t i;

	for (i = 0; i < ADMISSION_WORKERS; i++) {
		snprintf(path, sizeof(path), "%zu", i);
		put(1, path, &paths[i]);
	}
	for (i = 0; i < ADMISSION_WORKERS - 1; i++)
		ck_assert_ptr_nonnull(admission_queues_begin(&a, i, 1));
	ck_assert_ptr_null(admission_queues_begin(&a, i, 1));
	put(2, "x", other_disk);
	ck_assert_str_eq(turn(i), "x");
}

TEST(what_is_removed_is_not_handed_out)
{
	struct txn *only = put(1, "a", disk), *first = put(1, "b", disk);

	put(2, "b", disk);
	admission_queues_remove(&a, only);
	ck_assert_ptr_null(only->queue);
	/* The queue now counts as the queue of the next user. */
	admission_queues_remove(&a, first);
	ck_assert_int_eq(admission_queues_begin(&a, 0, 1)->uid, 2);
	ck_assert_uint_eq(HASH_COUNT(a.by_path), 1);
}

TEST(what_is_removed_leaves_the_queue_to_its_worker)
{
	struct txn *later;

	put(1, "a", disk);
	later = put(1, "a", disk);
	ck_assert_ptr_nonnull(admission_queues_begin(&a, 0, 1));
	ck_assert_ptr_nonnull(admission_queues_take(&a, 0, UINT64_MAX));
	admission_queues_remove(&a, later);
	ck_assert_uint_eq(HASH_COUNT(a.by_path), 1);
	ck_assert_ptr_null(a.ready);
	admission_queues_end(&a, 0);
	ck_assert_ptr_null(a.by_path);
}

TEST(two_paths_to_one_repository)
{
	put(1, "a", disk);
	put(2, "b", disk);
	ck_assert_ptr_nonnull(admission_queues_begin(&a, 0, 1));
	ck_assert(admission_queues_claim(&a, 0, 7));
	ck_assert_ptr_nonnull(admission_queues_begin(&a, 1, 1));
	ck_assert(!admission_queues_claim(&a, 1, 7));
	admission_queues_end(&a, 1);
	ck_assert(!admission_queues_has_work(&a));
	admission_queues_take(&a, 0, UINT64_MAX);
	admission_queues_end(&a, 0);
	ck_assert_str_eq(turn(1), "b");
}

/* The repository becomes free before the second worker reports the conflict. */
TEST(a_repository_that_is_free_meanwhile)
{
	put(1, "a", disk);
	put(2, "b", disk);
	admission_queues_begin(&a, 0, 1);
	admission_queues_claim(&a, 0, 7);
	admission_queues_begin(&a, 1, 1);
	ck_assert(!admission_queues_claim(&a, 1, 7));
	admission_queues_end(&a, 0);
	admission_queues_end(&a, 1);
	ck_assert_ptr_null(a.waiting);
	ck_assert(admission_queues_has_work(&a));
}
