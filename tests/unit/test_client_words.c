/*
 * Proves that what became of a ref is told in git's words: the details that
 * update-ref prints (as real gits of both versions printed them), with the
 * repository's path as git has it, what it says of names, the reasons of a
 * batch and of a push, and the lines and JSON for programs, whatever bytes the
 * names and texts have.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/hooks/place.h"
#include "client/request/output.h"
#include "client/request/words.h"
#include "tests/lib/suite.h"
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

/* Where DETAIL_239 is NULL both say the same. */
static const struct {
	enum refd_status status;
	const char *text, *detail, *detail_239, *reason, *push;
} cases[] = {
	{ REFD_STALE,
	    "cannot lock ref 'refs/heads/x': is at " B " but expected " A,
	    "cannot lock ref 'refs/heads/x': is at " B " but expected " A, NULL,
	    "incorrect old value provided", "incorrect old value provided" },
	{ REFD_STALE,
	    "verifying symref target: 'refs/heads/x': is at refs/heads/y but "
	    "expected refs/heads/z",
	    "verifying symref target: 'refs/heads/x': is at refs/heads/y but "
	    "expected refs/heads/z",
	    NULL, "incorrect old value provided",
	    "incorrect old value provided" },
	{ REFD_STALE, NULL,
	    "cannot update ref 'refs/heads/x': is at a different value", NULL,
	    "incorrect old value provided", "incorrect old value provided" },
	{ REFD_MISSING,
	    "cannot lock ref 'refs/heads/x': unable to resolve reference "
	    "'refs/heads/x'",
	    "cannot lock ref 'refs/heads/x': unable to resolve reference "
	    "'refs/heads/x'",
	    NULL, "reference does not exist", "reference does not exist" },
	{ REFD_EXISTS,
	    "cannot lock ref 'refs/heads/x': reference already exists",
	    "cannot lock ref 'refs/heads/x': reference already exists", NULL,
	    "reference already exists", "reference already exists" },
	{ REFD_NOTSYMREF,
	    "cannot lock ref 'refs/heads/x': expected symref with target "
	    "'refs/heads/y': but is a regular ref",
	    "cannot lock ref 'refs/heads/x': expected symref with target "
	    "'refs/heads/y': but is a regular ref",
	    NULL, "expected symref but found regular ref",
	    "expected symref but found regular ref" },
	{ REFD_CONFLICT,
	    "'refs/heads/x/y' exists; cannot create 'refs/heads/x'",
	    "'refs/heads/x/y' exists; cannot create 'refs/heads/x'",
	    "cannot lock ref 'refs/heads/x': 'refs/heads/x/y' exists; cannot "
	    "create 'refs/heads/x'",
	    "refname conflict", "refname conflict" },
	{ REFD_CONFLICT,
	    "cannot lock ref 'refs/heads/x': 'refs/heads' exists; cannot create "
	    "'refs/heads/x'",
	    "cannot lock ref 'refs/heads/x': 'refs/heads' exists; cannot create "
	    "'refs/heads/x'",
	    NULL, "refname conflict", "refname conflict" },
	{ REFD_CONFLICT,
	    "cannot process 'refs/heads/x' and 'refs/heads/x/y' at the same "
	    "time",
	    "cannot process 'refs/heads/x' and 'refs/heads/x/y' at the same "
	    "time",
	    "cannot lock ref 'refs/heads/x': cannot process 'refs/heads/x' and "
	    "'refs/heads/x/y' at the same time",
	    "refname conflict", "refname conflict" },
	{ REFD_CONFLICT,
	    "cannot lock ref 'refs/heads/x': cannot process 'refs/heads/x' and "
	    "'refs/heads/x/y' at the same time",
	    "cannot lock ref 'refs/heads/x': cannot process 'refs/heads/x' and "
	    "'refs/heads/x/y' at the same time",
	    "cannot lock ref 'refs/heads/x/y': cannot process 'refs/heads/x/y' "
	    "and 'refs/heads/x' at the same time",
	    "refname conflict", "refname conflict" },
	{ REFD_NOOBJECT,
	    "trying to write ref 'refs/heads/x' with nonexistent object " A,
	    "trying to write ref 'refs/heads/x' with nonexistent object " A,
	    "cannot update ref 'refs/heads/x': trying to write ref "
	    "'refs/heads/x' with nonexistent object " A,
	    "invalid new value provided", "bad pack" },
	/* The ref may be one that a symbolic ref leads to. */
	{ REFD_NOOBJECT,
	    "trying to write ref 'refs/heads/y' with nonexistent object " A,
	    "trying to write ref 'refs/heads/y' with nonexistent object " A,
	    "cannot update ref 'refs/heads/y': trying to write ref "
	    "'refs/heads/y' with nonexistent object " A,
	    "invalid new value provided", "bad pack" },
	{ REFD_NOTCOMMIT,
	    "trying to write non-commit object " A " to branch 'refs/heads/x'",
	    "trying to write non-commit object " A " to branch 'refs/heads/x'",
	    "cannot update ref 'refs/heads/x': trying to write non-commit "
	    "object " A " to branch 'refs/heads/x'",
	    "invalid new value provided", "invalid new value provided" },
	{ REFD_LOCKED,
	    "cannot lock ref 'refs/heads/x': Unable to create '/x.lock': File "
	    "exists.\n\nAnother git process seems to be running in this "
	    "repository, or the lock file may be stale",
	    "cannot lock ref 'refs/heads/x': Unable to create '/x.lock': File "
	    "exists.\n\nAnother git process seems to be running in this "
	    "repository, or the lock file may be stale",
	    "cannot lock ref 'refs/heads/x': Unable to create '/x.lock': File "
	    "exists.\n\nAnother git process seems to be running in this "
	    "repository, e.g.\nan editor opened by 'git commit'. Please make "
	    "sure all processes\nare terminated then try again. If it still "
	    "fails, a git process\nmay have crashed in this repository "
	    "earlier:\nremove the file manually to continue.",
	    "reference already exists", "reference already exists" },
	{ REFD_BADNAME, "refusing to update ref with bad name 'refs/heads/x'",
	    "refusing to update ref with bad name 'refs/heads/x'", NULL,
	    "refname is not valid", "failed to update ref" },
	{ REFD_DUPLICATE, "multiple updates for ref 'refs/heads/x' not allowed",
	    "multiple updates for ref 'refs/heads/x' not allowed", NULL,
	    "refname conflict", "refname conflict" },
	{ REFD_NOSPACE, NULL,
	    "cannot update ref 'refs/heads/x': no space left on the device",
	    NULL, "no space left on the device", "failed to update ref" },
	{ REFD_DENIED, "not yours", "not yours", NULL, "not permitted",
	    "failed to update ref" },
	{ REFD_ABORTED, NULL,
	    "cannot update ref 'refs/heads/x': a sibling update failed", NULL,
	    "a sibling update failed", "failed to update ref" },
};

START_TEST(test_words)
{
	struct refd_update u = update(REFD_UPDATE, A);
	struct refd_result res = result(cases[_i].status, NULL, cases[_i].text);
	struct text t = { 0 };

	words_detail(&u, &res, GIT_2_55, &t);
	ck_assert_str_eq(t.data, cases[_i].detail);
	text_clear(&t);
	words_detail(&u, &res, GIT_2_39, &t);
	ck_assert_str_eq(t.data,
	    cases[_i].detail_239 ? cases[_i].detail_239 : cases[_i].detail);
	ck_assert_str_eq(words_reason(cases[_i].status), cases[_i].reason);
	ck_assert_str_eq(words_push(cases[_i].status), cases[_i].push);
	text_done(&t);
}
END_TEST

START_TEST(test_versions)
{
	enum git_words words = GIT_2_55;

	ck_assert(words_parse("2.39", &words));
	ck_assert_int_eq(words, GIT_2_39);
	ck_assert(!words_parse("", &words));
	ck_assert(!words_parse("2.39.5", &words));
	ck_assert(!words_parse("2.47", &words));
	ck_assert_int_eq(words, GIT_2_39);
	ck_assert(words_parse("2.55", &words));
	ck_assert_int_eq(words, GIT_2_55);
}
END_TEST

static void expect_name(struct refd_update u, const char *name,
    const char *wanted)
{
	struct text t = { 0 };

	u.name = name;
	ck_assert(words_take_name(&u, &t) == !wanted);
	if (wanted)
		ck_assert_str_eq(t.data, wanted);
	text_done(&t);
}

/* What is deleted need not be well-formed, but must look like a ref. */
START_TEST(test_names)
{
	struct refd_update set = update(REFD_UPDATE, NULL);
	struct refd_update drop = update(REFD_DELETE, NULL);
	char *name = malloc(REFD_REFNAME_MAX + 20);

	expect_name(set, "refs/heads/x", NULL);
	expect_name(set, "foo", NULL);
	expect_name(set, "refs/heads/a..b",
	    "refusing to update ref with bad name 'refs/heads/a..b'");
	expect_name(set, "MERGE_HEAD",
	    "refusing to update pseudoref 'MERGE_HEAD'");
	expect_name(drop, "refs/heads/a..b", NULL);
	expect_name(drop, "HEAD", NULL);
	expect_name(drop, "foo", "refusing to update ref with bad name 'foo'");
	expect_name(drop, "refs/../x",
	    "refusing to update ref with bad name 'refs/../x'");
	expect_name(drop, "FETCH_HEAD",
	    "refusing to update pseudoref 'FETCH_HEAD'");
	expect_name(update(REFD_VERIFY, A), "foo",
	    "refusing to update ref with bad name 'foo'");
	expect_name(update(REFD_SYMREF_CREATE, NULL), "foo",
	    "refusing to update ref with bad name 'foo'");
	memset(name, 'x', REFD_REFNAME_MAX + 19);
	name[REFD_REFNAME_MAX + 19] = '\0';
	memcpy(name, "refs/", 5);
	expect_name(drop, name, NULL);
	free(name);
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
		words_detail(&u, &res, GIT_2_39, &t);
		ck_assert_uint_gt(t.len, 0);
		ck_assert_uint_gt(strlen(words_reason(res.status)), 0);
		ck_assert_uint_gt(strlen(words_push(res.status)), 0);
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

static void spell(char *git_dir, const char *text, const char *wanted)
{
	struct place p = { .git_dir = git_dir };
	struct gitdir gd = { .path = "/a/r", .common = "/a/r" };
	struct text t = { 0 };

	text_adds(&t, text);
	place_spell(&p, &gd, &t);
	ck_assert_str_eq(t.data, wanted);
	ck_assert_uint_eq(t.len, strlen(wanted));
	text_done(&t);
}

START_TEST(test_path_as_git_has_it)
{
	static const char text[] = "x: there is a non-empty directory "
				   "'/a/r/refs/x' blocking reference 'x'";

	spell(NULL, text,
	    "x: there is a non-empty directory '.git/refs/x' blocking "
	    "reference 'x'");
	spell("../r", text,
	    "x: there is a non-empty directory '../r/refs/x' blocking "
	    "reference 'x'");
	spell(".",
	    "unable to create lock file /a/r/x.lock; non-directory in the way",
	    "unable to create lock file ./x.lock; non-directory in the way");
	spell(".", "unable to create lock file /a/rr/x.lock",
	    "unable to create lock file /a/rr/x.lock");
	spell(".", "Unable to create '/a/r/x.lock'",
	    "Unable to create '/a/r/x.lock'");
}
END_TEST

static void reject(enum refd_action action, const char *old,
    const char *old_target, enum refd_status status)
{
	struct refd_result res = result(status, NULL, NULL);
	struct refd_update u = update(action, old);

	if (old_target) {
		u.has_old = true;
		u.old_target = old_target;
	}
	output_rejected(&u, u.name, &res);
}

/* Old values that were not given, and new ones where nothing is written, are
 * what C prints for NULL; symbolic refs have null oids. */
START_TEST(test_rejected)
{
	redirect();
	reject(REFD_UPDATE, NULL, NULL, REFD_CONFLICT);
	reject(REFD_UPDATE, B, NULL, REFD_STALE);
	reject(REFD_CREATE, NULL, NULL, REFD_EXISTS);
	reject(REFD_CREATE, NULL, NULL, REFD_NOOBJECT);
	reject(REFD_UPDATE, Z, NULL, REFD_NOTCOMMIT);
	reject(REFD_DELETE, B, NULL, REFD_MISSING);
	reject(REFD_VERIFY, B, NULL, REFD_STALE);
	reject(REFD_SYMREF_UPDATE, NULL, NULL, REFD_LOCKED);
	reject(REFD_SYMREF_UPDATE, NULL, "refs/heads/y", REFD_NOTSYMREF);
	reject(REFD_SYMREF_UPDATE, B, NULL, REFD_STALE);
	reject(REFD_SYMREF_CREATE, NULL, NULL, REFD_EXISTS);
	reject(REFD_SYMREF_DELETE, NULL, "refs/heads/y", REFD_STALE);
	reject(REFD_SYMREF_VERIFY, NULL, "refs/heads/y", REFD_STALE);
	reject(REFD_SYMREF_VERIFY, NULL, NULL, REFD_EXISTS);
#define REJECTED "rejected refs/heads/x "
#define STALE    " incorrect old value provided\n"
#define EXISTS   " reference already exists\n"
	expect_out(REJECTED A
	    " (null) refname conflict\n" REJECTED A " " B STALE REJECTED A
	    " " Z EXISTS REJECTED A
	    " (null) invalid new value provided\n" REJECTED A " " Z
	    " invalid new value provided\n" REJECTED Z " " B
	    " reference does not exist\n" REJECTED "(null) " B STALE REJECTED Z
	    " (null)" EXISTS REJECTED Z " " Z
	    " expected symref but found regular ref\n" REJECTED Z
	    " " B STALE REJECTED Z " " Z EXISTS REJECTED Z " " Z STALE REJECTED
	    "(null) " Z STALE REJECTED "(null) " Z EXISTS);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("client_words");
	TCase *tc = tcase_create("words");

	tcase_add_checked_fixture(tc, tmp_setup, tmp_teardown);
	tcase_add_loop_test(tc, test_words, 0,
	    sizeof(cases) / sizeof(cases[0]));
	tcase_add_test(tc, test_versions);
	tcase_add_test(tc, test_names);
	tcase_add_test(tc, test_all);
	tcase_add_test(tc, test_porcelain);
	tcase_add_test(tc, test_json);
	tcase_add_test(tc, test_path_as_git_has_it);
	tcase_add_test(tc, test_rejected);
	suite_add_tcase(s, tc);
	return suite_run(s);
}
