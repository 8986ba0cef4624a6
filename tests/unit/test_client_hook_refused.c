/*
 * Proves the reports of the hook when the daemon refuses the push. A denial is
 * reported in the daemon's words and never left to git. A busy daemon is tried
 * again. A push with a name too long for refd is left to git. Of git's own
 * transactions the gate passes over such names in all phases, and says so.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/gate/gate.h"
#include "proto/lib/cli.h"
#include "proto/limits.h"
#include "tests/lib/hook_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

CASE(.setup = hook_setup, .teardown = hook_teardown, .seconds = 60);

/* A denial is no absence, although git would be permitted during an absence.
 * The order of the denial and of the check of names is not defined. */
TEST(test_turned_away)
{
	char *got;

	hook_serve("away=denied");
	ck_assert_int_eq(mkdir("refd", 0777), 0);
	hook_push(Z " " A " refs/heads/a", Z " " A " refs/heads/x..y", NULL);
	got = hook_run();
	ck_assert_ptr_eq(
	    strstr(got, "ng refs/heads/a failed to update ref: refd: "), got);
	ck_assert_ptr_nonnull(strstr(got, "turned us away: " FAKE_WHY "\n"));
	ck_assert_ptr_nonnull(strstr(got, "\nng refs/heads/x..y "));
	ck_assert_ptr_null(strstr(got, "fall-through"));
	free(got);
}

/* No daemon ever served the repository, so the set-up is wrong. */
TEST(test_turned_away_untouched)
{
	hook_serve("away=denied");
	hook_push(Z " " A " refs/heads/a", NULL);
	hook_expect("ok refs/heads/a\noption fall-through\n");
}

TEST(test_full_once)
{
	hook_serve("away=busy serve transaction=ok");
	hook_push(Z " " A " refs/heads/a", NULL);
	hook_expect("ok refs/heads/a\n");
}

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

static void put_name(const char *oids, const char *name)
{
	char *command = xasprintf("%s %s", oids, name);

	hook_put(command);
	free(command);
}

static char *too_long_name(int i)
{
	return i == 0 ? long_name(REFD_REFNAME_MAX + 1, 200) :
			long_name(400, 300);
}

/* git may accept such names, so the hook leaves them to git. */
TEST(test_long_names, .times = 2)
{
	char *fits = long_name(REFD_REFNAME_MAX, 200);
	char *too_long = too_long_name(_i);
	char *wanted = xasprintf("ok %s\noption fall-through\n"
				 "ok %s\noption fall-through\n",
	    fits, too_long);

	hook_serve("");
	hook_begin(false);
	put_name(Z " " A, fits);
	put_name(Z " " A, too_long);
	hook_expect(wanted);
	free(wanted);
	free(fits);
	free(too_long);
}

/* ---- the gate ---- */

/* Runs the gate on LINES of git. Its messages are in SAID. */
static int gate(const char *phase, const char *lines, struct text *said)
{
	int in[2], err = dup(2), rc;
	int fd = open("said", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	ck_assert_int_eq(pipe(in), 0);
	ck_assert_int_eq(write(in[1], lines, strlen(lines)),
	    (ssize_t)strlen(lines));
	close(in[1]);
	ck_assert_int_ge(dup2(in[0], 0), 0);
	close(in[0]);
	ck_assert_int_ge(dup2(fd, 2), 0);
	rc = gate_run(NULL, phase);
	dup2(err, 2);
	close(err);
	close(fd);
	text_clear(said);
	text_adds(said, "");
	ck_assert_int_eq(text_read_file(said, "said", SMALL_FILE_BYTES), 0);
	return rc;
}

/* The request of a phase, which has nothing but refs/heads/a. */
static void take_a(struct fake *f, enum refd_gate phase,
    struct refd_request *req)
{
	fake_serve(f);
	fake_read(f, req);
	fake_expect(f, req->gate == phase, "the phase");
	fake_expect(f,
	    req->nr_updates == 1 &&
		!strcmp(req->updates[0].name, "refs/heads/a"),
	    "the long name was sent");
}

static void sees_a(struct fake *f)
{
	struct refd_request prepared, committed;

	take_a(f, REFD_GATE_PREPARED, &prepared);
	fake_answer_kind(f, &prepared, REFD_ANSWER_PONG);
	take_a(f, REFD_GATE_COMMITTED, &committed);
	fake_answer_ok(f, &committed);
	fake_expect(f, refd_txid_eq(&prepared.gate_key, &committed.gate_key),
	    "the phases of one transaction have two keys");
	refd_request_done(&prepared);
	refd_request_done(&committed);
}

TEST(test_gate_records_the_rest, .times = 2)
{
	char *too_long = too_long_name(_i);
	char *lines =
	    xasprintf(Z " " A " %s\n" Z " " A " refs/heads/a\n", too_long);
	struct text said = { 0 };

	hook_serve_script(sees_a);
	ck_assert_int_eq(gate("prepared", lines, &said), 0);
	ck_assert_str_eq(said.data, "");
	ck_assert_int_eq(gate("committed", lines, &said), 1);
	ck_assert_ptr_nonnull(strstr(said.data,
	    "could not record: refname is too long for refd: 'refs/heads/x"));
	ck_assert_ptr_null(strstr(said.data, "more"));
	text_done(&said);
	free(lines);
	free(too_long);
}

/* Also as a target. */
TEST(test_gate_of_long_names, .times = 2)
{
	char *too_long = too_long_name(_i);
	char *lines = xasprintf(Z " " A " %s\n" Z " ref:%s refs/heads/s\n",
	    too_long, too_long);
	struct text said = { 0 };

	hook_serve("");
	ck_assert_int_eq(gate("prepared", lines, &said), 0);
	ck_assert_str_eq(said.data, "");
	ck_assert_int_eq(gate("committed", lines, &said), 1);
	ck_assert_ptr_nonnull(strstr(said.data, "' (and 1 more); "));
	text_done(&said);
	free(lines);
	free(too_long);
}

static void forgets_a(struct fake *f)
{
	struct refd_request req;

	take_a(f, REFD_GATE_ABORTED, &req);
	fake_answer_kind(f, &req, REFD_ANSWER_PONG);
	refd_request_done(&req);
}

/* The rest is a deletion, of which git tells twice. */
TEST(test_gate_forgets_the_rest, .times = 2)
{
	char *too_long = too_long_name(_i);
	char *lines =
	    xasprintf(A " " B " %s\n" Z " " Z " refs/heads/a\n", too_long);
	struct text said = { 0 };

	hook_serve_script(forgets_a);
	ck_assert_int_eq(gate("aborted", lines, &said), 0);
	ck_assert_str_eq(said.data, "");
	text_done(&said);
	free(lines);
	free(too_long);
}
