/*
 * Proves that refd prints git's messages (recorded from real gits of both
 * versions): details with the path that git prints, names, the reasons of a
 * batch and of a push, and lines and JSON for programs with arbitrary bytes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/hooks/place.h"
#include "client/request/git_messages.h"
#include "client/request/output.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define Z "0000000000000000000000000000000000000000"

static struct refd_oid oid(const char *hex)
{
	struct refd_oid o;

	ck_assert_int_eq(refd_oid_parse(hex, REFD_FORMAT_SHA1, &o), 0);
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

#define X                 "refs/heads/x"
#define M                 "\1"
#define D1(word, a)       M word M a
#define D2(word, a, b)    D1(word, a) M b
#define D3(word, a, b, c) D2(word, a, b) M c
#define RUNNING                                                                \
	"\n\nAnother git process seems to be running in this repository, or "  \
	"the lock file may be stale"
#define RUNNING_239                                                            \
	"\n\nAnother git process seems to be running in this repository, "     \
	"e.g.\nan editor opened by 'git commit'. Please make sure all "        \
	"processes\nare terminated then try again. If it still fails, a git "  \
	"process\nmay have crashed in this repository earlier:\nremove the "   \
	"file manually to continue."

/* If DETAIL_239 is NULL, both versions print the same. */
static const struct {
	enum refd_status status;
	const char *text, *detail, *detail_239, *reason, *push;
} cases[] = {
	{ REFD_STALE, D3("differs", X, B, A),
	    "cannot lock ref 'refs/heads/x': is at " B " but expected " A, NULL,
	    "incorrect old value provided", "incorrect old value provided" },
	{ REFD_STALE, D3("symref-differs", X, "refs/heads/y", "refs/heads/z"),
	    "verifying symref target: 'refs/heads/x': is at refs/heads/y but expected refs/heads/z",
	    NULL, "incorrect old value provided",
	    "incorrect old value provided" },
	{ REFD_STALE, NULL,
	    "cannot update ref 'refs/heads/x': is at a different value", NULL,
	    "incorrect old value provided", "incorrect old value provided" },
	{ REFD_MISSING, D2("unresolved", X, X),
	    "cannot lock ref 'refs/heads/x': unable to resolve reference 'refs/heads/x'",
	    NULL, "reference does not exist", "reference does not exist" },
	{ REFD_MISSING, D2("absent", X, A),
	    "cannot lock ref 'refs/heads/x': reference is missing but expected " A,
	    NULL, "reference does not exist", "reference does not exist" },
	{ REFD_EXISTS, D1("exists", X),
	    "cannot lock ref 'refs/heads/x': reference already exists", NULL,
	    "reference already exists", "reference already exists" },
	{ REFD_EXISTS, D1("dangling", X),
	    "cannot lock ref 'refs/heads/x': dangling symref already exists",
	    NULL, "reference already exists", "reference already exists" },
	{ REFD_NOTSYMREF, D2("not-symref", X, "refs/heads/y"),
	    "cannot lock ref 'refs/heads/x': expected symref with target 'refs/heads/y': but is a regular ref",
	    NULL, "expected symref but found regular ref",
	    "expected symref but found regular ref" },
	{ REFD_BROKEN, D2("broken", X, "refs/heads/y"),
	    "cannot lock ref 'refs/heads/x': unable to resolve reference 'refs/heads/y': reference broken",
	    NULL, "reference broken", "failed to update ref" },
	{ REFD_BROKEN, D1("unreadable", X),
	    "cannot lock ref 'refs/heads/x': error reading reference", NULL,
	    "reference broken", "failed to update ref" },
	{ REFD_CONFLICT, D3("name-taken", X, X "/y", X),
	    "'refs/heads/x/y' exists; cannot create 'refs/heads/x'",
	    "cannot lock ref 'refs/heads/x': 'refs/heads/x/y' exists; cannot create 'refs/heads/x'",
	    "refname conflict", "refname conflict" },
	{ REFD_CONFLICT, D3("name-taken-early", X, "refs/heads", X),
	    "cannot lock ref 'refs/heads/x': 'refs/heads' exists; cannot create 'refs/heads/x'",
	    NULL, "refname conflict", "refname conflict" },
	{ REFD_CONFLICT, D3("names-clash", X, X, X "/y"),
	    "cannot process 'refs/heads/x' and 'refs/heads/x/y' at the same time",
	    "cannot lock ref 'refs/heads/x': cannot process 'refs/heads/x' and 'refs/heads/x/y' at the same time",
	    "refname conflict", "refname conflict" },
	{ REFD_CONFLICT, D3("names-clash-early", X, X, X "/y"),
	    "cannot lock ref 'refs/heads/x': cannot process 'refs/heads/x' and 'refs/heads/x/y' at the same time",
	    "cannot lock ref 'refs/heads/x/y': cannot process 'refs/heads/x/y' and 'refs/heads/x' at the same time",
	    "refname conflict", "refname conflict" },
	{ REFD_CONFLICT, D3("directory", X, "/r/refs/heads/x", X),
	    "cannot lock ref 'refs/heads/x': there is a non-empty directory '/r/refs/heads/x' blocking reference 'refs/heads/x'",
	    NULL, "refname conflict", "refname conflict" },
	{ REFD_CONFLICT, D2("not-directory", X, "/r/refs/heads/x.lock"),
	    "cannot lock ref 'refs/heads/x': unable to create lock file /r/refs/heads/x.lock; non-directory in the way",
	    NULL, "refname conflict", "refname conflict" },
	{ REFD_CONFLICT, D2("logs-below", X, "/r/logs/x"),
	    "cannot update the ref 'refs/heads/x': there are still logs under '/r/logs/x'",
	    NULL, "refname conflict", "refname conflict" },
	{ REFD_CONFLICT, D2("log-blocked", X, "/r/logs/x"),
	    "cannot update the ref 'refs/heads/x': unable to append to '/r/logs/x': Not a directory",
	    NULL, "refname conflict", "refname conflict" },
	{ REFD_CONFLICT, D1("duplicate-head", X),
	    "multiple updates for 'HEAD' (including one via its referent 'refs/heads/x') are not allowed",
	    NULL, "refname conflict", "refname conflict" },
	{ REFD_CONFLICT, D2("duplicate-symref", X, "HEAD"),
	    "multiple updates for 'refs/heads/x' (including one via symref 'HEAD') are not allowed",
	    NULL, "refname conflict", "refname conflict" },
	{ REFD_NOOBJECT, D2("no-object", X, A),
	    "trying to write ref 'refs/heads/x' with nonexistent object " A,
	    "cannot update ref 'refs/heads/x': trying to write ref 'refs/heads/x' with nonexistent object " A,
	    "invalid new value provided", "bad pack" },
	/* The ref may be the target of a symbolic ref. */
	{ REFD_NOOBJECT, D2("no-object", "refs/heads/y", A),
	    "trying to write ref 'refs/heads/y' with nonexistent object " A,
	    "cannot update ref 'refs/heads/y': trying to write ref 'refs/heads/y' with nonexistent object " A,
	    "invalid new value provided", "bad pack" },
	{ REFD_NOTCOMMIT, D2("no-commit", A, X),
	    "trying to write non-commit object " A " to branch 'refs/heads/x'",
	    "cannot update ref 'refs/heads/x': trying to write non-commit object " A
	    " to branch 'refs/heads/x'",
	    "invalid new value provided", "invalid new value provided" },
	{ REFD_LOCKED, D2("locked", X, "/x.lock"),
	    "cannot lock ref 'refs/heads/x': Unable to create '/x.lock': File exists." RUNNING,
	    "cannot lock ref 'refs/heads/x': Unable to create '/x.lock': File exists." RUNNING_239,
	    "reference already exists", "failed to update ref" },
	/* HEAD is locked for the log line of a branch. */
	{ REFD_LOCKED, D2("locked", "HEAD", "/HEAD.lock"),
	    "cannot lock ref 'refs/heads/x': Unable to create '/HEAD.lock': File exists." RUNNING,
	    "cannot lock ref 'HEAD': Unable to create '/HEAD.lock': File exists." RUNNING_239,
	    "reference already exists", "failed to update ref" },
	{ REFD_LOCKED, D1("packed-locked", "/packed-refs.lock"),
	    "Unable to create '/packed-refs.lock': File exists." RUNNING,
	    "Unable to create '/packed-refs.lock': File exists." RUNNING_239,
	    "reference already exists", "failed to update ref" },
	{ REFD_BADNAME, D1("bad-name", X),
	    "refusing to update ref with bad name 'refs/heads/x'", NULL,
	    "refname is not valid", "failed to update ref" },
	{ REFD_BADNAME, D2("bad-target", X, ".."),
	    "refusing to point ref 'refs/heads/x' to bad name '..'", NULL,
	    "refname is not valid", "failed to update ref" },
	{ REFD_BADNAME, M "funny-name", "funny refname", NULL,
	    "refname is not valid", "failed to update ref" },
	{ REFD_DUPLICATE, D1("duplicate", X),
	    "multiple updates for ref 'refs/heads/x' not allowed", NULL,
	    "refname conflict", "refname conflict" },
	/* From a later daemon. */
	{ REFD_STALE, D2("later-word", X, "y"),
	    "cannot update ref 'refs/heads/x': is at a different value", NULL,
	    "incorrect old value provided", "incorrect old value provided" },
	{ REFD_NOSPACE, NULL,
	    "cannot update ref 'refs/heads/x': no space left on the device",
	    NULL, "no space left on the device", "failed to update ref" },
	{ REFD_DENIED, "not yours", "not yours", NULL, "not permitted",
	    "failed to update ref" },
	{ REFD_ABORTED, NULL,
	    "cannot update ref 'refs/heads/x': a sibling update failed", NULL,
	    "a sibling update failed", "failed to update ref" },
};

CASE(.setup = tmp_setup, .teardown = tmp_teardown);

TEST(test_words, .times = sizeof(cases) / sizeof(cases[0]))
{
	struct refd_update u = update(REFD_UPDATE, A);
	struct refd_result res = result(cases[_i].status, NULL, cases[_i].text);
	struct text t = { 0 };

	git_messages_detail(&u, &res, GIT_2_55, NULL, &t);
	ck_assert_str_eq(t.data, cases[_i].detail);
	text_clear(&t);
	git_messages_detail(&u, &res, GIT_2_39, NULL, &t);
	ck_assert_str_eq(t.data,
	    cases[_i].detail_239 ? cases[_i].detail_239 : cases[_i].detail);
	ck_assert_str_eq(git_messages_reason(cases[_i].status),
	    cases[_i].reason);
	ck_assert_str_eq(git_messages_push(cases[_i].status), cases[_i].push);
	text_done(&t);
}

/* Only checks that need all locks. */
TEST(test_said_last)
{
	static const struct {
		const char *text;
		bool is_last;
	} told[] = {
		{ D3("name-taken", X, X "/y", X), true },
		{ D3("names-clash", X, X, X "/y"), true },
		{ D3("name-taken-early", X, "refs/heads", X), false },
		{ D3("names-clash-early", X, X, X "/y"), false },
		{ D3("directory", X, "/r/refs/heads/x", X), false },
		{ D2("later-word", X, X), false },
		{ "'" X "' is said by the daemon itself", false },
		{ NULL, false },
	};
	struct refd_result res;
	size_t i;

	for (i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
		res = result(REFD_CONFLICT, NULL, told[i].text);
		ck_assert_msg(git_messages_is_said_last(&res) ==
			told[i].is_last,
		    "case %zu", i);
	}
}

TEST(test_versions)
{
	enum git_messages_version version = GIT_2_55;

	ck_assert(git_messages_parse("2.39", &version));
	ck_assert_int_eq(version, GIT_2_39);
	ck_assert(!git_messages_parse("", &version));
	ck_assert(!git_messages_parse("2.39.5", &version));
	ck_assert(!git_messages_parse("2.47", &version));
	ck_assert_int_eq(version, GIT_2_39);
	ck_assert(git_messages_parse("2.55", &version));
	ck_assert_int_eq(version, GIT_2_55);
}

static void expect_name(struct refd_update u, const char *name,
    const char *wanted)
{
	struct text t = { 0 };

	u.name = name;
	ck_assert(git_messages_take_name(&u, &t) == !wanted);
	if (wanted)
		ck_assert_str_eq(t.data, wanted);
	text_done(&t);
}

/* A ref to delete may be malformed, but must look like a ref. */
TEST(test_names)
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

/* Every status has words of all three kinds. */
TEST(test_all)
{
	struct refd_update u = update(REFD_UPDATE, NULL);
	struct text t = { 0 };
	unsigned code;

	for (code = 1; code < REFD_STATUSES; code++) {
		struct refd_result res;

		res = result((enum refd_status)code, NULL, NULL);
		text_clear(&t);
		git_messages_detail(&u, &res, GIT_2_39, NULL, &t);
		ck_assert_uint_gt(t.len, 0);
		ck_assert_uint_gt(strlen(git_messages_reason(res.status)), 0);
		ck_assert_uint_gt(strlen(git_messages_push(res.status)), 0);
	}
	text_done(&t);
}

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

TEST(test_porcelain)
{
	struct refd_answer ans = three_results();

	redirect();
	output_results(&ans, false);
	expect_out("ok refs/heads/x\n"
		   "ng refs/heads/caf\303\251 stale two lines \"x\\y\"\n"
		   "ng refs/heads/\351\200 io input/output error\n"
		   "txn 0192f0c1d2e30001020304050607abcd partial\n");
}

TEST(test_json)
{
	struct refd_answer ans = three_results();
	struct refd_pair pairs[] = { { "state", "serving" },
		{ "flushes", "120" }, { "odd", "007" }, { "none", "" } };

	redirect();
	output_json(&ans);
	output_json_pairs(pairs, 4);
	expect_out(
	    "{\"txn\":\"0192f0c1d2e30001020304050607abcd\","
	    "\"outcome\":\"partial\",\"token\":\"00000000000000000000000000000000:12\",\"refs\":["
	    "{\"ref\":\"refs/heads/x\",\"status\":\"ok\"},"
	    "{\"ref\":\"refs/heads/caf\303\251\",\"status\":\"stale\","
	    "\"found\":\"" B "\","
	    "\"text\":\"two\\u000alines \\\"x\\\\y\\\"\"},"
	    "{\"ref\":\"refs/heads/\\ufffd\\ufffd\",\"ref_hex\":\"726566732f68656164732fe980\",\"status\":\"io\","
	    "\"text\":\"input/output error\"}]}\n"
	    "{\"state\":\"serving\",\"flushes\":120,\"odd\":\"007\","
	    "\"none\":\"\"}\n");
}

static void spell(char *git_dir, const char *text, const char *wanted)
{
	struct place p = { .git_dir = git_dir };
	struct gitdir gd = { .path = "/a/r", .common = "/a/r" };
	struct git_messages_place place = { .from = gd.common };
	struct refd_update u = update(REFD_UPDATE, NULL);
	struct refd_result res = result(REFD_CONFLICT, NULL, text);
	struct text t = { 0 };

	ck_assert(place_spells(&p, &gd, &place.to));
	git_messages_detail(&u, &res, GIT_2_55, &place, &t);
	ck_assert_str_eq(t.data, wanted);
	text_done(&t);
	gd.path = "/a/r/worktrees/w";
	ck_assert(!place_spells(&p, &gd, &place.to));
}

TEST(test_path_as_git_has_it)
{
	static const char text[] = D3("directory", "x", "/a/r/refs/x", "x");

	spell(NULL, text,
	    "cannot lock ref 'x': there is a non-empty directory "
	    "'.git/refs/x' blocking reference 'x'");
	spell("../r", text,
	    "cannot lock ref 'x': there is a non-empty directory "
	    "'../r/refs/x' blocking reference 'x'");
	spell(".", D2("not-directory", "x", "/a/r/x.lock"),
	    "cannot lock ref 'x': unable to create lock file ./x.lock; "
	    "non-directory in the way");
	spell(".", D2("not-directory", "x", "/a/rr/x.lock"),
	    "cannot lock ref 'x': unable to create lock file /a/rr/x.lock; "
	    "non-directory in the way");
	spell(".", D1("packed-locked", "/a/r/x.lock"),
	    "Unable to create '/a/r/x.lock': File exists." RUNNING);
}

#define STALE   " incorrect old value provided"
#define EXISTS  " reference already exists"
#define INVALID " invalid new value provided"

/* Missing old values, and new values where nothing is written, look like C's
 * NULL. Symbolic refs have null oids. */
static const struct {
	enum refd_action action;
	const char *old, *old_target;
	enum refd_status status;
	const char *said;
} rejections[] = {
	{ REFD_UPDATE, NULL, NULL, REFD_CONFLICT,
	    A " (null) refname conflict" },
	{ REFD_UPDATE, B, NULL, REFD_STALE, A " " B STALE },
	{ REFD_CREATE, NULL, NULL, REFD_EXISTS, A " " Z EXISTS },
	{ REFD_CREATE, NULL, NULL, REFD_NOOBJECT, A " (null)" INVALID },
	{ REFD_UPDATE, Z, NULL, REFD_NOTCOMMIT, A " " Z INVALID },
	{ REFD_DELETE, B, NULL, REFD_MISSING,
	    Z " " B " reference does not exist" },
	{ REFD_VERIFY, B, NULL, REFD_STALE, "(null) " B STALE },
	{ REFD_SYMREF_UPDATE, NULL, NULL, REFD_LOCKED, Z " (null)" EXISTS },
	{ REFD_SYMREF_UPDATE, NULL, "refs/heads/y", REFD_NOTSYMREF,
	    Z " " Z " expected symref but found regular ref" },
	{ REFD_SYMREF_UPDATE, B, NULL, REFD_STALE, Z " " B STALE },
	{ REFD_SYMREF_CREATE, NULL, NULL, REFD_EXISTS, Z " " Z EXISTS },
	{ REFD_SYMREF_DELETE, NULL, "refs/heads/y", REFD_STALE, Z " " Z STALE },
	{ REFD_SYMREF_VERIFY, NULL, "refs/heads/y", REFD_STALE,
	    "(null) " Z STALE },
	{ REFD_SYMREF_VERIFY, NULL, NULL, REFD_EXISTS, "(null) " Z EXISTS },
};

TEST(test_rejected, .times = sizeof(rejections) / sizeof(rejections[0]))
{
	struct refd_result res = result(rejections[_i].status, NULL, NULL);
	struct refd_update u =
	    update(rejections[_i].action, rejections[_i].old);
	char wanted[200];

	if (rejections[_i].old_target) {
		u.has_old = true;
		u.old_target = rejections[_i].old_target;
	}
	redirect();
	output_rejected(&u, u.name, &res, REFD_FORMAT_SHA1);
	snprintf(wanted, sizeof(wanted), "rejected refs/heads/x %s\n",
	    rejections[_i].said);
	expect_out(wanted);
}
