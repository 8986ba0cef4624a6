/*
 * Proves for each evidence which log lines an edit appends and takes back. A
 * live edit takes back its own line, wherever the log is by now. After a crash
 * only the last equal line is taken back, after a power loss none.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/edit_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- log lines ---- */

CASE(.setup = er_setup, .teardown = er_teardown);

TEST(appends, .times = EVIDENCE_REPAIR)
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

TEST(retracts, .times = COUNT(retractions))
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

/* `git reflog expire` replaces the log by a new file. */
TEST(a_moved_log_loses_the_line_through_its_descriptor)
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

/* Then the edit is deferred, so the edit itself must close the log. */
TEST(a_line_that_is_not_to_be_had_closes_the_log)
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

/* An empty log of the creation would block the name for its new owner. */
TEST(a_crashed_creation_leaves_no_empty_log)
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
