/*
 * Proves that what became of a ref is told in git's words: the details that
 * update-ref prints (as a real git printed them), the reasons of a batch and
 * of a push, and the lines and JSON for programs, whatever bytes the names
 * and texts have.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/output.h"
#include "client/words.h"
#include "tests/lib/tmp.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define Z "0000000000000000000000000000000000000000"

static struct refd_oid oid(const char *hex)
{
	struct refd_oid o;

	ck_assert_int_eq(refd_oid_parse(hex, &o), 0);
	return o;
}

static struct refd_update update(enum refd_action action, const char *old)
{
	struct refd_update u = { .action = action, .name = "refs/heads/x" };

	if (action == REFD_UPDATE || action == REFD_CREATE)
		u.new_oid = oid(A);
	if (old) {
		u.has_old = true;
		u.old_oid = oid(old);
	}
	return u;
}

static struct refd_result result(enum refd_status status, const char *found,
    const char *text)
{
	struct refd_result res = { .name = "refs/heads/x",
		.status = status,
		.text = text };

	if (found) {
		res.has_found = true;
		res.found = oid(found);
	}
	return res;
}

static const struct {
	enum refd_status status;
	const char *found, *text, *detail, *reason, *push;
} cases[] = {
	{ REFD_STALE, B, "incorrect old value provided",
	    "cannot lock ref 'refs/heads/x': is at " B " but expected " A,
	    "incorrect old value provided",
	    "incorrect old value provided: is at " B " but expected " A },
	{ REFD_STALE, Z, NULL,
	    "cannot lock ref 'refs/heads/x': unable to resolve reference "
	    "'refs/heads/x'",
	    "reference does not exist", "reference does not exist" },
	{ REFD_MISSING, NULL, NULL,
	    "cannot lock ref 'refs/heads/x': unable to resolve reference "
	    "'refs/heads/x'",
	    "reference does not exist", "reference does not exist" },
	{ REFD_EXISTS, B, NULL,
	    "cannot lock ref 'refs/heads/x': reference already exists",
	    "reference already exists", "reference already exists" },
	{ REFD_CONFLICT, NULL,
	    "'refs/heads/x/y' exists; cannot create 'refs/heads/x'",
	    "cannot lock ref 'refs/heads/x': 'refs/heads/x/y' exists; cannot "
	    "create 'refs/heads/x'",
	    "refname conflict",
	    "refname conflict: 'refs/heads/x/y' exists; cannot create "
	    "'refs/heads/x'" },
	{ REFD_NOOBJECT, NULL, NULL,
	    "trying to write ref 'refs/heads/x' with nonexistent object " A,
	    "invalid new value provided", "bad pack" },
	{ REFD_NOTCOMMIT, NULL, NULL,
	    "trying to write non-commit object " A " to branch 'refs/heads/x'",
	    "invalid new value provided", "invalid new value provided" },
	{ REFD_BADNAME, NULL, "whatever",
	    "refusing to update ref with bad name 'refs/heads/x'",
	    "refname is not valid", "funny refname" },
	{ REFD_DUPLICATE, NULL, NULL,
	    "multiple updates for ref 'refs/heads/x' not allowed",
	    "refname conflict", "refname conflict" },
	{ REFD_NOSPACE, NULL, NULL,
	    "cannot update ref 'refs/heads/x': no space left on the device",
	    "no space left on the device",
	    "failed to update ref: no space left on the device" },
	{ REFD_DENIED, NULL, "not yours",
	    "cannot update ref 'refs/heads/x': not yours", "not permitted",
	    "failed to update ref: not yours" },
	{ REFD_UNSUPPORTED, NULL, "a symref",
	    "cannot update ref 'refs/heads/x': not supported by refd: a symref",
	    "not supported by refd", "failed to update ref: a symref" },
	{ REFD_ABORTED, NULL, NULL,
	    "cannot update ref 'refs/heads/x': a sibling update failed",
	    "a sibling update failed", "atomic transaction failed" },
};

START_TEST(test_words)
{
	struct refd_update u = update(REFD_UPDATE, A);
	struct refd_result res =
	    result(cases[_i].status, cases[_i].found, cases[_i].text);
	struct text t = { 0 };

	words_detail(&u, &res, NULL, &t);
	ck_assert_str_eq(t.data, cases[_i].detail);
	ck_assert_str_eq(words_reason(&res), cases[_i].reason);
	text_clear(&t);
	words_push(&u, &res, true, &t);
	ck_assert_str_eq(t.data, cases[_i].push);
	text_done(&t);
}
END_TEST

START_TEST(test_locked)
{
	struct gitdir gd = { .path = (char *)"/w", .common = (char *)"/c" };
	struct refd_update u = update(REFD_UPDATE, NULL);
	struct refd_result res = result(REFD_LOCKED, NULL, NULL);
	struct text t = { 0 };

	words_detail(&u, &res, &gd, &t);
	ck_assert_ptr_nonnull(strstr(t.data,
	    "cannot lock ref 'refs/heads/x': Unable to create "
	    "'/c/refs/heads/x.lock': File exists.\n"));
	/* The daemon may name another lock than the ref's. */
	text_clear(&t);
	res.text = "Unable to create 'packed-refs.lock': somebody has it";
	words_detail(&u, &res, &gd, &t);
	ck_assert_ptr_nonnull(strstr(t.data, "'/c/packed-refs.lock'"));
	text_clear(&t);
	res.text = "Unable to create 'HEAD.lock': somebody has it";
	words_detail(&u, &res, &gd, &t);
	ck_assert_ptr_nonnull(strstr(t.data, "'/w/HEAD.lock': File"));
	res.text = NULL;
	text_clear(&t);
	u.name = "HEAD";
	words_detail(&u, &res, &gd, &t);
	ck_assert_ptr_nonnull(strstr(t.data, "'/w/HEAD.lock'"));
	text_done(&t);
}
END_TEST

/* Every status has words of all three kinds. */
START_TEST(test_all)
{
	struct refd_update u = update(REFD_UPDATE, NULL);
	struct text t = { 0 };
	unsigned code;

	for (code = 1; code <= REFD_NOTSYMREF; code++) {
		struct refd_result res;

		res = result((enum refd_status)code, NULL, NULL);
		text_clear(&t);
		words_detail(&u, &res, NULL, &t);
		ck_assert_uint_gt(t.len, 0);
		ck_assert_uint_gt(strlen(words_reason(&res)), 0);
		text_clear(&t);
		words_push(&u, &res, false, &t);
		ck_assert_uint_gt(t.len, 0);
	}
	text_done(&t);
}
END_TEST

/* ---- lines ---- */

static void redirect(void)
{
	char path[600];

	snprintf(path, sizeof(path), "%s/out", tmp_root);
	ck_assert_ptr_nonnull(freopen(path, "w", stdout));
}

static void expect_out(const char *wanted)
{
	char *got;

	ck_assert_int_eq(fflush(stdout), 0);
	got = tmp_get("out");
	ck_assert_str_eq(got, wanted);
	free(got);
}

static struct refd_result three[3];

static struct refd_answer three_results(void)
{
	struct refd_answer ans = { .kind = REFD_ANSWER_RESULTS,
		.results = three,
		.nr_results = 3,
		.nr_updates = 3,
		.outcome = REFD_PARTIAL,
		.lsn = 12 };

	three[0] = result(REFD_OK, NULL, NULL);
	three[1] = result(REFD_STALE, B, "two\nlines \"x\\y\"");
	three[1].name = "refs/heads/caf\303\251";
	three[2] = result(REFD_IO, NULL, NULL);
	three[2].name = "refs/heads/\351\200";
	refd_txid_parse("0192f0c1d2e30001020304050607abcd", &ans.txid);
	return ans;
}

START_TEST(test_porcelain)
{
	struct refd_answer ans = three_results();

	redirect();
	output_porcelain(&ans);
	expect_out("ok refs/heads/x\n"
		   "ng refs/heads/caf\303\251 stale two lines \"x\\y\"\n"
		   "ng refs/heads/\351\200 io input/output error\n"
		   "txn 0192f0c1d2e30001020304050607abcd partial\n");
}
END_TEST

START_TEST(test_json)
{
	struct refd_answer ans = three_results();
	struct refd_pair pairs[] = { { "state", "serving" },
		{ "flushes", "120" }, { "odd", "007" }, { "none", "" } };

	redirect();
	output_json(&ans);
	output_json_pairs(pairs, 4);
	expect_out("{\"txn\":\"0192f0c1d2e30001020304050607abcd\","
		   "\"outcome\":\"partial\",\"lsn\":12,\"refs\":["
		   "{\"ref\":\"refs/heads/x\",\"status\":\"ok\"},"
		   "{\"ref\":\"refs/heads/caf\303\251\",\"status\":\"stale\","
		   "\"found\":\"" B "\","
		   "\"text\":\"two\\u000alines \\\"x\\\\y\\\"\"},"
		   "{\"ref\":\"refs/heads/\\ufffd\\ufffd\",\"status\":\"io\","
		   "\"text\":\"input/output error\"}]}\n"
		   "{\"state\":\"serving\",\"flushes\":120,\"odd\":\"007\","
		   "\"none\":\"\"}\n");
}
END_TEST

START_TEST(test_rejected)
{
	struct refd_result res = result(REFD_STALE, B, NULL);
	struct refd_update u;

	redirect();
	u = update(REFD_UPDATE, NULL);
	output_rejected(&u, &res);
	u = update(REFD_UPDATE, B);
	output_rejected(&u, &res);
	u = update(REFD_CREATE, NULL);
	output_rejected(&u, &res);
	u = update(REFD_DELETE, B);
	output_rejected(&u, &res);
	u = update(REFD_VERIFY, B);
	output_rejected(&u, &res);
#define WHY "incorrect old value provided\n"
	expect_out(
	    "rejected refs/heads/x " A " (null) " WHY "rejected refs/heads/x " A
	    " " B " " WHY "rejected refs/heads/x " A " " Z " " WHY
	    "rejected refs/heads/x " Z " " B " " WHY
	    "rejected refs/heads/x (null) " B " " WHY);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("client_words");
	TCase *tc = tcase_create("words");
	SRunner *sr;
	int failed;

	tcase_add_checked_fixture(tc, tmp_setup, tmp_teardown);
	tcase_add_loop_test(tc, test_words, 0,
	    sizeof(cases) / sizeof(cases[0]));
	tcase_add_test(tc, test_locked);
	tcase_add_test(tc, test_all);
	tcase_add_test(tc, test_porcelain);
	tcase_add_test(tc, test_json);
	tcase_add_test(tc, test_rejected);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
