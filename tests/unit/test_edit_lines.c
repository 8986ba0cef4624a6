/*
 * Proves for each evidence which log lines an edit appends and takes back. A
 * live edit takes back its own line, wherever the log is by now. After a crash
 * only the last equal line is taken back, after a power loss none.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/edit_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- log lines ---- */

START_TEST(appends)
{
	struct edit e = er_locked(er_all[_i]);

	ck_assert_int_eq(edit_append(&e, &er_plan, &er_member), -ENOENT);
	ck_assert(!e.has_log_fd && !tmp_exists(ER_LOG));
	tmp_put(ER_LOG, ER_OTHER);
	ck_assert_int_eq(edit_append(&e, &er_plan, &er_member), 0);
	ck_assert(e.has_log_fd);
	close(e.log_fd);
	er_check_text(ER_LOG, ER_OTHER ER_LINE);
	er_member.had_old = false;
	ck_assert_int_eq(edit_append(&e, &er_plan, &er_member), 0);
	close(e.log_fd);
	er_check_text(ER_LOG,
	    ER_OTHER ER_LINE ER_NONE " " ER_TWO " " ER_WHO "\tm\n");
	er_plan.committer = "a\nb";
	ck_assert_int_eq(edit_append(&e, &er_plan, &er_member), -ENOMEM);
}
END_TEST

/* The rest of a log after retracting the line (=) among other lines (-). With
 * IS_OURS, the edit itself has appended the last line. */
static const struct {
	enum evidence evidence;
	bool is_ours;
	const char *log, *left;
} retractions[] = {
	{ EVIDENCE_LIVE, true, "=", "" },
	{ EVIDENCE_LIVE, true, "-==", "-=" },
	{ EVIDENCE_LIVE, false, "-=", "-=" },
	{ EVIDENCE_CRASHED, false, "-=", "-" },
	{ EVIDENCE_CRASHED, false, "-==", "-=" },
	{ EVIDENCE_CRASHED, false, "=-", "=-" },
	{ EVIDENCE_CRASHED, false, "", "" },
	{ EVIDENCE_FAILED_SYNC, false, "-=", "-=" },
	{ EVIDENCE_POWER_LOSS, false, "-=", "-=" },
	{ EVIDENCE_POWER_LOSS, false, "==", "==" },
	{ EVIDENCE_REPAIR, false, "-=", "-=" },
};

static void lines_of(const char *marks, size_t nr, char text[1024])
{
	size_t i;

	text[0] = '\0';
	for (i = 0; i < nr; i++)
		strcat(text, marks[i] == '=' ? ER_LINE : ER_OTHER);
}

START_TEST(retracts)
{
	const char *log = retractions[_i].log, *left = retractions[_i].left;
	struct edit e = er_locked(retractions[_i].evidence);
	bool is_ours = retractions[_i].is_ours;
	char text[1024];

	lines_of(log, strlen(log) - is_ours, text);
	tmp_put(ER_LOG, text);
	if (is_ours)
		ck_assert_int_eq(edit_append(&e, &er_plan, &er_member), 0);
	ck_assert_int_eq(edit_retract(&e, &er_plan, &er_member), 0);
	lines_of(left, strlen(left), text);
	er_check_text(ER_LOG, text);
	ck_assert(!e.has_log_fd);
}
END_TEST

/* `git reflog expire` replaces the log by a new file. */
START_TEST(a_moved_log_loses_the_line_through_its_descriptor)
{
	struct edit e = er_locked(EVIDENCE_LIVE);

	tmp_put(ER_LOG, ER_OTHER);
	ck_assert_int_eq(edit_append(&e, &er_plan, &er_member), 0);
	tmp_run("mv " ER_LOG " moved && cp moved " ER_LOG);
	ck_assert_int_eq(edit_retract(&e, &er_plan, &er_member), 0);
	er_check_text("moved", ER_OTHER);
	er_check_text(ER_LOG, ER_OTHER ER_LINE);
	ck_assert(fcntl(e.log_fd, F_GETFD) < 0 && errno == EBADF);
}
END_TEST

/* Then the edit is deferred, so the edit itself must close the log. */
START_TEST(a_line_that_is_not_to_be_had_closes_the_log)
{
	struct edit e = er_locked(EVIDENCE_LIVE);

	tmp_put(ER_LOG, ER_OTHER);
	ck_assert_int_eq(edit_append(&e, &er_plan, &er_member), 0);
	er_plan.committer = "a\nb";
	ck_assert_int_eq(edit_retract(&e, &er_plan, &er_member), -ENOMEM);
	ck_assert(!e.has_log_fd);
	ck_assert(fcntl(e.log_fd, F_GETFD) < 0 && errno == EBADF);
	er_check_text(ER_LOG, ER_OTHER ER_LINE);
}
END_TEST

/* An empty log of the creation would block the name for its new owner. */
START_TEST(a_crashed_creation_leaves_no_empty_log)
{
	struct edit e = er_locked(EVIDENCE_CRASHED);

	tmp_put(ER_LOG, ER_LINE);
	ck_assert_int_eq(edit_retract(&e, &er_plan, &er_member), 0);
	er_check_text(ER_LOG, "");
	er_member.had_old = false;
	tmp_put(ER_LOG, ER_NONE " " ER_TWO " " ER_WHO "\tm\n");
	ck_assert_int_eq(edit_retract(&e, &er_plan, &er_member), 0);
	ck_assert(!tmp_exists(ER_LOG));
	tmp_put(ER_LOG, ER_OTHER);
	ck_assert_int_eq(edit_retract(&e, &er_plan, &er_member), 0);
	er_check_text(ER_LOG, ER_OTHER);
	ck_assert(tmp_exists(ER_LOCK));
}
END_TEST

int main(void)
{
	const int nr_tokens = EVIDENCE_REPAIR;
	Suite *suite = suite_create("edit_lines");
	TCase *tc = tcase_create("edit_lines");

	tcase_add_checked_fixture(tc, er_setup, er_teardown);
	tcase_add_loop_test(tc, appends, 0, nr_tokens);
	tcase_add_loop_test(tc, retracts, 0, COUNT(retractions));
	tcase_add_test(tc, a_moved_log_loses_the_line_through_its_descriptor);
	tcase_add_test(tc, a_line_that_is_not_to_be_had_closes_the_log);
	tcase_add_test(tc, a_crashed_creation_leaves_no_empty_log);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
