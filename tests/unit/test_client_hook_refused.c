/*
 * Proves the reports of the hook when the daemon refuses the push. A denial is
 * reported in the daemon's words and never left to git. A busy daemon is tried
 * again. A push with a name too long for refd is left to git.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/cli.h"
#include "proto/limits.h"
#include "tests/lib/hook_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

static void turn_away(struct fake *f, enum refd_status status)
{
	struct refd_answer no = { .kind = REFD_ANSWER_REFUSED,
		.status = status,
		.text = "because" };

	fake_serve(f);
	fake_answer(f, &no);
	fake_hang_up(f);
}

static void turns_away(struct fake *f)
{
	turn_away(f, REFD_DENIED);
}

/* A denial is no absence, although git would be permitted during an absence.
 * The order of the denial and of the check of names is not defined. */
START_TEST(test_turned_away)
{
	char *got;

	hook_serve(turns_away);
	hook_begin(false);
	hook_put(Z " " A " refs/heads/a");
	hook_put(Z " " A " refs/heads/x..y");
	got = hook_run();
	ck_assert_ptr_eq(
	    strstr(got, "ng refs/heads/a failed to update ref: refd: "), got);
	ck_assert_ptr_nonnull(strstr(got, "turned us away: because\n"));
	ck_assert_ptr_nonnull(strstr(got, "\nng refs/heads/x..y "));
	ck_assert_ptr_null(strstr(got, "fall-through"));
	free(got);
}
END_TEST

static void is_full_once(struct fake *f)
{
	struct refd_request got;

	turn_away(f, REFD_BUSY);
	fake_serve(f);
	fake_read(f, &got);
	if (got.verb == REFD_VERB_QUERY) {
		fake_answer_kind(f, &got, REFD_ANSWER_NEVER_SEEN);
		refd_request_done(&got);
		fake_read(f, &got);
	}
	fake_answer_ok(f, &got);
	refd_request_done(&got);
}

START_TEST(test_full_once)
{
	hook_serve(is_full_once);
	hook_begin(false);
	hook_put(Z " " A " refs/heads/a");
	hook_expect("ok refs/heads/a\n");
}
END_TEST

/* Makes a name that would make the daemon refuse the whole request. */
static char *long_name(size_t len, size_t component)
{
	struct text t = { 0 };

	text_adds(&t, "refs/heads");
	while (t.len < len)
		text_addc(&t, t.len % (component + 1) == 10 ? '/' : 'x');
	if (t.data[t.len - 1] == '/')
		t.data[t.len - 1] = 'x';
	return t.data;
}

static void never_called(struct fake *f)
{
	(void)f;
}

static void put_name(const char *oids, const char *name)
{
	char *command = xasprintf("%s %s", oids, name);

	hook_put(command);
	free(command);
}

/* git may accept such names, so the hook leaves them to git. */
START_TEST(test_long_names)
{
	char *fits = long_name(REFD_REFNAME_MAX, 200);
	char *too_long = _i == 0 ? long_name(REFD_REFNAME_MAX + 1, 200) :
				   long_name(400, 300);
	char *wanted = xasprintf("ok %s\noption fall-through\n"
				 "ok %s\noption fall-through\n",
	    fits, too_long);

	hook_serve(never_called);
	hook_begin(false);
	put_name(Z " " A, fits);
	put_name(Z " " A, too_long);
	hook_expect(wanted);
	free(wanted);
	free(fits);
	free(too_long);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("client_hook_refused");
	TCase *tc = tcase_create("hook");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, hook_setup, hook_teardown);
	tcase_add_test(tc, test_turned_away);
	tcase_add_test(tc, test_full_once);
	tcase_add_loop_test(tc, test_long_names, 0, 2);
	suite_add_tcase(s, tc);
	return suite_run(s);
}
