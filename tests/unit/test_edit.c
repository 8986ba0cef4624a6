/*
 * Proves the steps of a ref edit on a real directory. The tests cover the
 * permitted order of states, and for each evidence the files after staging,
 * locking, placing, linking and removing, also after a failure. Log lines are
 * in test_edit_lines.c, git's lock in test_edit_git.c.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/edit_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- progress ---- */

static const char *const names[PROGRESS_STATES] = { "PLANNED", "STAGED",
	"LOCKED", "LINKED", "PUBLISHED", "DONE", "RELEASED", "DEFERRED" };

/* All permitted transitions. */
static const char *const rows[] = {
	"PLANNED -> STAGED",
	"PLANNED -> LOCKED",
	"STAGED -> STAGED",
	"STAGED -> LOCKED",
	"STAGED -> PLANNED",
	"LOCKED -> LINKED",
	"LOCKED -> PUBLISHED",
	"LOCKED -> RELEASED",
	"LOCKED -> DEFERRED",
	"LINKED -> LOCKED",
	"LINKED -> PUBLISHED",
	"LINKED -> DEFERRED",
	"PUBLISHED -> DONE",
	"PUBLISHED -> DEFERRED",
	"DEFERRED -> DEFERRED",
};

static bool is_in_rows(const char *row)
{
	size_t i;

	for (i = 0; i < COUNT(rows); i++)
		if (strcmp(rows[i], row) == 0)
			return true;
	return false;
}

CASE(.setup = er_setup, .teardown = er_teardown);

TEST(transitions)
{
	unsigned from, to, allowed = 0;
	char row[40];

	for (from = 0; from < PROGRESS_STATES; from++)
		for (to = 0; to < PROGRESS_STATES; to++) {
			snprintf(row, sizeof(row), "%s -> %s", names[from],
			    names[to]);
			ck_assert_msg(edit_progress_may(from, to) ==
				is_in_rows(row),
			    "%s", row);
			allowed += edit_progress_may(from, to);
		}
	ck_assert_uint_eq(allowed, COUNT(rows));
}

TEST(a_forbidden_step_is_a_programming_error, .signal = SIGABRT)
{
	struct edit e = er_edit(EVIDENCE_LIVE);

	edit_to(&e, PROGRESS_PUBLISHED);
}

TEST(which_states_hold_a_lock)
{
	/* PLANNED first, DEFERRED last. */
	static const char locked[] = "--+++---", published[] = "----++--";
	struct edit e = er_edit(EVIDENCE_LIVE);
	unsigned i;

	for (i = 0; i < PROGRESS_STATES; i++) {
		e.progress = i;
		ck_assert_msg(edit_is_locked(&e) == (locked[i] == '+'), "%s",
		    names[i]);
		ck_assert_msg(edit_is_published(&e) == (published[i] == '+'),
		    "%s", names[i]);
	}
}

/* ---- the value ---- */

TEST(a_value_is_staged_and_discarded)
{
	struct edit e = er_edit(EVIDENCE_LIVE);
	int fd;

	er_stage(&e);
	ck_assert_int_eq(e.progress, PROGRESS_STAGED);
	er_check_text(ER_STAGED, ER_TWO "\n");
	ck_assert_uint_eq(tmp_mode(ER_STAGED), 0640);
	er_fails_with = -EIO;
	ck_assert_int_eq(edit_discard(&e), -EIO);
	ck_assert(e.has_value && e.progress == PROGRESS_STAGED);
	er_fails_with = 0;
	ck_assert_int_eq(edit_discard(&e), 0);
	ck_assert(!e.has_value && e.progress == PROGRESS_PLANNED);
	ck_assert(!tmp_exists(ER_STAGED));
	ck_assert_int_eq(edit_discard(&e), 0);
	fd = edit_stage(&e, &er_two, "refs/heads/y", 0644);
	ck_assert_int_ge(fd, 0);
	close(fd);
	er_check_text(ER_STAGED, "ref: refs/heads/y\n");
	/* Another program removed the file. */
	tmp_run("rm " ER_STAGED);
	ck_assert_int_eq(edit_discard(&e), 0);
	ck_assert(!e.has_value);
}

TEST(a_value_is_handed_over)
{
	struct edit from = er_edit(EVIDENCE_LIVE), to = from, third = from;

	to.value_nr = 4;
	third.value_nr = 5;
	er_stage(&from);
	ck_assert_int_eq(edit_lock(&from, 0755), 0);
	edit_hand_over(&from, &to);
	ck_assert(!from.has_value && from.progress == PROGRESS_LOCKED);
	ck_assert(to.has_value && to.progress == PROGRESS_STAGED);
	ck_assert_uint_eq(to.value_nr, 3);
	edit_hand_over(&from, &third);
	ck_assert(!third.has_value && third.progress == PROGRESS_PLANNED);
	ck_assert_int_eq(edit_unlock(&from), 0);
	ck_assert_int_eq(edit_discard(&to), 0);
	ck_assert(!tmp_exists(ER_STAGED));
}

/* ---- the lock ---- */

#define GIT_WRITES "git -C r symbolic-ref " ER_REF " refs/heads/y"

/* Git respects either lock. */
TEST(locks, .times = ER_ALL)
{
	struct edit e = er_locked(er_all[_i]), other = er_edit(er_all[_i]);

	if (er_all[_i] == EVIDENCE_REPAIR)
		ck_assert_uint_eq(er_stat(ER_LOCK).st_nlink, 1);
	else
		ck_assert(er_is_same_file(ER_LOCK, ER_TOKEN));
	ck_assert_int_eq(er_stat(ER_LOCK).st_size, 0);
	ck_assert_int_ne(tmp_status(GIT_WRITES), 0);
	ck_assert_int_eq(edit_lock(&other, 0755), -EEXIST);
	ck_assert_int_eq(other.progress, PROGRESS_PLANNED);
	ck_assert_int_eq(edit_unlock(&other), 0);
	ck_assert(tmp_exists(ER_LOCK));
	er_fails_with = -EIO;
	ck_assert_int_eq(edit_unlock(&e), -EIO);
	ck_assert(tmp_exists(ER_LOCK) && e.progress == PROGRESS_LOCKED);
	er_fails_with = 0;
	ck_assert_int_eq(edit_unlock(&e), 0);
	ck_assert(!tmp_exists(ER_LOCK) && e.progress == PROGRESS_RELEASED);
	ck_assert_int_eq(tmp_status(GIT_WRITES), 0);
}

TEST(a_lock_that_is_gone_counts_as_unlocked, .times = ER_ALL)
{
	struct edit e = er_locked(er_all[_i]);

	tmp_run("rm " ER_LOCK);
	ck_assert_int_eq(edit_unlock(&e), 0);
	ck_assert_int_eq(e.progress, PROGRESS_RELEASED);
}

TEST(a_lock_of_an_earlier_run_stays, .times = EVIDENCE_REPAIR)
{
	struct edit e = er_locked(er_all[_i]);

	e.is_earlier = true;
	ck_assert_int_eq(edit_unlock(&e), 0);
	ck_assert(tmp_exists(ER_LOCK) && e.progress == PROGRESS_LOCKED);
	er_stage(&e);
	ck_assert_int_eq(edit_place(&e), 0);
	ck_assert_int_eq(edit_unlock(&e), 0);
	ck_assert(tmp_exists(ER_LOCK) && e.progress == PROGRESS_PUBLISHED);
}

TEST(a_deferred_lock_stays)
{
	struct edit e = er_locked(EVIDENCE_LIVE);

	edit_to(&e, PROGRESS_DEFERRED);
	ck_assert_int_eq(edit_unlock(&e), 0);
	ck_assert(tmp_exists(ER_LOCK));
}

/* ---- publishing ---- */

/* The disk renames or links, and reports an error. */
TEST(a_failed_placing_may_have_happened, .times = ER_ALL)
{
	struct edit e = er_locked(er_all[_i]);
	bool is_repair = er_all[_i] == EVIDENCE_REPAIR;

	er_stage(&e);
	er_places_with = -ENOSPC;
	ck_assert_int_eq(edit_place(&e), -ENOSPC);
	ck_assert(!e.is_doubtful && e.progress == PROGRESS_LOCKED);
	er_places_with = -EIO;
	ck_assert_int_eq(edit_place(&e), -EIO);
	er_check_text(ER_FILE, ER_TWO "\n");
	ck_assert(e.is_doubtful);
	ck_assert_int_eq(e.progress,
	    is_repair ? PROGRESS_DEFERRED : PROGRESS_LOCKED);
	/* Git's lock became the ref, so a new lock is another writer's. */
	if (is_repair)
		tmp_put(ER_LOCK, "");
	ck_assert_int_eq(edit_unlock(&e), 0);
	ck_assert(tmp_exists(ER_LOCK) == is_repair);
}

TEST(a_failed_link_is_taken_back, .times = EVIDENCE_REPAIR)
{
	struct edit e = er_locked(er_all[_i]);

	er_stage(&e);
	er_places_with = -ENOSPC;
	ck_assert_int_eq(edit_link(&e), -ENOSPC);
	ck_assert_int_eq(e.progress, PROGRESS_LOCKED);
	er_places_with = -EIO;
	ck_assert_int_eq(edit_link(&e), -EIO);
	er_check_text(ER_FILE, ER_TWO "\n");
	ck_assert_int_eq(e.progress, PROGRESS_LINKED);
	ck_assert_int_eq(edit_take_back(&e), 0);
	ck_assert(!tmp_exists(ER_FILE) && e.progress == PROGRESS_LOCKED);
}

/* Nobody else would know that the lock is there. */
TEST(a_failed_lock_that_is_there_is_ours, .times = EVIDENCE_REPAIR)
{
	struct edit e = er_edit(er_all[_i]);

	er_places_with = -EIO;
	ck_assert_int_eq(edit_lock(&e, 0755), 0);
	ck_assert(er_is_same_file(ER_LOCK, ER_TOKEN));
	ck_assert_int_eq(edit_unlock(&e), 0);
	/* The disk did nothing, and the lock is another writer's. */
	tmp_put(ER_LOCK, "");
	er_places_with = -ENOMEM;
	e = er_edit(er_all[_i]);
	ck_assert_int_eq(edit_lock(&e, 0755), -ENOMEM);
	ck_assert_int_eq(e.progress, PROGRESS_PLANNED);
}

TEST(places, .times = ER_ALL)
{
	struct edit e = er_locked(er_all[_i]);
	bool is_repair = er_all[_i] == EVIDENCE_REPAIR;

	tmp_put(ER_FILE, "broken");
	er_stage(&e);
	er_check_text(ER_FILE, "broken");
	ck_assert_int_eq(e.progress, PROGRESS_LOCKED);
	ck_assert_int_eq(edit_place(&e), 0);
	er_check_text(ER_FILE, ER_TWO "\n");
	ck_assert_uint_eq(tmp_mode(ER_FILE), 0640);
	ck_assert(!e.has_value && !tmp_exists(ER_STAGED));
	ck_assert(tmp_exists(ER_LOCK) == !is_repair);
	ck_assert_int_eq(e.progress,
	    is_repair ? PROGRESS_DONE : PROGRESS_PUBLISHED);
	ck_assert_int_eq(edit_unlock(&e), 0);
	ck_assert(!tmp_exists(ER_LOCK) && e.progress == PROGRESS_DONE);
}

TEST(empty_directories_make_room, .times = ER_ALL)
{
	struct edit e = er_locked(er_all[_i]);
	int r;

	tmp_mkdir(ER_FILE "/a/b");
	er_stage(&e);
	r = edit_place(&e);
	if (er_all[_i] == EVIDENCE_REPAIR) {
		ck_assert_int_eq(r, -EISDIR);
		ck_assert(tmp_exists(ER_FILE "/a/b"));
		ck_assert_int_eq(e.progress, PROGRESS_LOCKED);
	} else {
		ck_assert_int_eq(r, 0);
		er_check_text(ER_FILE, ER_TWO "\n");
	}
}

TEST(a_ref_below_is_in_the_way, .times = ER_ALL)
{
	struct edit e = er_locked(er_all[_i]);
	int r;

	tmp_put(ER_FILE "/y", ER_ONE "\n");
	er_stage(&e);
	r = edit_place(&e);
	ck_assert(r == -EISDIR || r == -ENOTEMPTY);
	ck_assert_int_eq(e.progress, PROGRESS_LOCKED);
	ck_assert(e.has_value == tmp_exists(ER_STAGED));
	er_check_text(ER_FILE "/y", ER_ONE "\n");
	ck_assert_int_eq(edit_discard(&e), 0);
	ck_assert_int_eq(edit_unlock(&e), 0);
	ck_assert(!tmp_exists(ER_LOCK) && !tmp_exists(ER_STAGED));
}

TEST(a_link_is_taken_back, .times = EVIDENCE_REPAIR)
{
	struct edit e = er_locked(er_all[_i]);

	er_stage(&e);
	ck_assert_int_eq(edit_link(&e), 0);
	ck_assert_int_eq(e.progress, PROGRESS_LINKED);
	ck_assert(er_is_same_file(ER_FILE, ER_STAGED));
	er_fails_with = -EIO;
	ck_assert_int_eq(edit_take_back(&e), -EIO);
	ck_assert_int_eq(e.progress, PROGRESS_LINKED);
	er_fails_with = 0;
	ck_assert_int_eq(edit_take_back(&e), 0);
	ck_assert(!tmp_exists(ER_FILE) && tmp_exists(ER_STAGED));
	ck_assert(tmp_exists(ER_LOCK) && e.progress == PROGRESS_LOCKED);
	ck_assert_int_eq(edit_link(&e), 0);
	tmp_run("rm " ER_FILE);
	ck_assert_int_eq(edit_take_back(&e), 0);
	ck_assert_int_eq(e.progress, PROGRESS_LOCKED);
}

TEST(a_link_becomes_the_ref, .times = EVIDENCE_REPAIR)
{
	struct edit e = er_locked(er_all[_i]);

	er_stage(&e);
	ck_assert_int_eq(edit_link(&e), 0);
	ck_assert_int_eq(edit_place(&e), 0);
	ck_assert(e.progress == PROGRESS_PUBLISHED && e.has_value);
	ck_assert_int_eq(edit_discard(&e), 0);
	ck_assert_int_eq(e.progress, PROGRESS_PUBLISHED);
	ck_assert_int_eq(edit_unlock(&e), 0);
	er_check_text(ER_FILE, ER_TWO "\n");
	ck_assert_uint_eq(er_stat(ER_FILE).st_nlink, 1);
}

TEST(empty_directories_make_room_for_a_link, .times = EVIDENCE_REPAIR)
{
	struct edit e = er_locked(er_all[_i]);

	tmp_mkdir(ER_FILE "/a/b");
	er_stage(&e);
	ck_assert_int_eq(edit_link(&e), 0);
	ck_assert_int_eq(e.progress, PROGRESS_LINKED);
	er_check_text(ER_FILE, ER_TWO "\n");
}

TEST(a_link_replaces_nothing, .times = EVIDENCE_REPAIR)
{
	struct edit e = er_locked(er_all[_i]);

	tmp_put(ER_FILE, ER_ONE "\n");
	er_stage(&e);
	ck_assert_int_eq(edit_link(&e), -EEXIST);
	ck_assert_int_eq(e.progress, PROGRESS_LOCKED);
	er_check_text(ER_FILE, ER_ONE "\n");
}

TEST(removes, .times = EVIDENCE_REPAIR)
{
	struct edit e = er_locked(er_all[_i]);

	tmp_put(ER_FILE, ER_ONE "\n");
	tmp_put(ER_LOG, ER_LINE);
	ck_assert_int_eq(edit_remove(&e, true), 0);
	ck_assert(!tmp_exists(ER_FILE) && tmp_exists(ER_LOG));
	ck_assert(tmp_exists(ER_LOCK) && e.progress == PROGRESS_PUBLISHED);
	ck_assert_int_eq(edit_unlock(&e), 0);
	e = er_locked(er_all[_i]);
	ck_assert_int_eq(edit_remove(&e, true), 0);
	ck_assert_int_eq(edit_unlock(&e), 0);
	e = er_locked(er_all[_i]);
	tmp_put(ER_FILE, ER_ONE "\n");
	ck_assert_int_eq(edit_remove(&e, false), 0);
	ck_assert_int_eq(e.progress, PROGRESS_PUBLISHED);
	ck_assert(tmp_exists(ER_FILE));
}

TEST(removes_a_log, .times = EVIDENCE_REPAIR)
{
	struct edit e = er_locked(er_all[_i]);

	e.name = ER_REF "/y";
	tmp_put(ER_LOG "/y", ER_LINE);
	ck_assert_int_eq(edit_remove_log(&e), 0);
	ck_assert(!tmp_exists(ER_LOG));
	ck_assert(tmp_exists("r/logs/refs/heads"));
	ck_assert_int_eq(edit_remove_log(&e), 0);
	ck_assert_int_eq(e.progress, PROGRESS_LOCKED);
	er_fails_with = -EROFS;
	ck_assert_int_eq(edit_remove_log(&e), -EROFS);
}

TEST(a_failed_removal_publishes_nothing, .times = EVIDENCE_REPAIR)
{
	struct edit e = er_locked(er_all[_i]);

	tmp_mkdir(ER_FILE);
	ck_assert_int_eq(edit_remove(&e, true), -EISDIR);
	ck_assert_int_eq(e.progress, PROGRESS_LOCKED);
}

TEST(a_packed_ref_needs_no_step, .times = EVIDENCE_REPAIR)
{
	struct edit e = er_locked(er_all[_i]);

	edit_to(&e, PROGRESS_PUBLISHED);
	ck_assert_int_eq(edit_unlock(&e), 0);
	ck_assert_int_eq(e.progress, PROGRESS_DONE);
	ck_assert(!tmp_exists(ER_FILE) && !tmp_exists(ER_LOCK));
}
