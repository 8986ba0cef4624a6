/*
 * Proves how a repair handles git's lock. A repair leaves locks of refd and of
 * any other writer alone. Its own lock becomes the ref only with a value.
 * Nothing is left behind.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "tests/lib/edit_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

CASE(.setup = er_setup, .teardown = er_teardown);

TEST(git_s_lock_leaves_a_token_s_alone)
{
	struct edit ours = er_locked(EVIDENCE_LIVE),
		    e = er_edit(EVIDENCE_REPAIR);

	ck_assert_int_eq(edit_lock(&e, 0755), -EEXIST);
	ck_assert_int_eq(edit_unlock(&e), 0);
	ck_assert(er_is_same_file(ER_LOCK, ER_TOKEN));
	ck_assert_int_eq(edit_unlock(&ours), 0);
}

/* The lock was renamed, so a new lock there belongs to another writer. */
TEST(after_placing_git_s_lock_is_another_s)
{
	struct edit e = er_locked(EVIDENCE_REPAIR);

	er_stage(&e);
	ck_assert_int_eq(edit_place(&e), 0);
	tmp_put(ER_LOCK, "");
	ck_assert_int_eq(edit_unlock(&e), 0);
	ck_assert(tmp_exists(ER_LOCK));
}

/* Directories that were made for the lock go with it. */
TEST(git_s_lock_leaves_nothing_behind)
{
	struct edit e = er_edit(EVIDENCE_REPAIR);

	e.name = "refs/heads/d/e/x";
	ck_assert_int_eq(edit_lock(&e, 0700), 0);
	ck_assert_uint_eq(tmp_mode("r/refs/heads/d/e"), 0700);
	er_stage(&e);
	ck_assert_int_eq(edit_unlock(&e), 0);
	ck_assert(!tmp_exists("r/refs/heads/d"));
	ck_assert(tmp_exists("r/refs/heads"));
	/* The value is lost on the way. */
	e = er_locked(EVIDENCE_REPAIR);
	er_fails_with = -ENOSPC;
	ck_assert_int_eq(edit_stage(&e, &er_two, NULL, 0644), -ENOSPC);
	er_fails_with = 0;
	ck_assert_int_eq(edit_unlock(&e), 0);
	ck_assert(!tmp_exists(ER_LOCK) && !tmp_exists(ER_FILE));
}

/* An empty lock never becomes a ref. */
TEST(git_s_lock_without_a_value_is_a_programming_error, .signal = SIGABRT)
{
	struct edit e = er_locked(EVIDENCE_REPAIR);

	edit_place(&e);
}

TEST(names_too_long_for_a_lock, .times = ER_ALL)
{
	struct edit e = er_edit(er_all[_i]);
	char name[REFD_PATH_MAX];

	memset(name, 'x', sizeof(name));
	name[REFD_PATH_MAX - sizeof(".lock")] = '\0';
	e.name = name;
	ck_assert_int_eq(edit_lock(&e, 0755), -ENAMETOOLONG);
	name[REFD_PATH_MAX - sizeof(".lock")] = 'x';
	name[REFD_PATH_MAX - sizeof(".lock") + 1] = '\0';
	ck_assert_int_eq(edit_lock(&e, 0755), -ENAMETOOLONG);
	ck_assert_int_eq(e.progress, PROGRESS_PLANNED);
}
