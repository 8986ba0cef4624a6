/*
 * Proves that questions about history are answered correctly. Every filter
 * finds the right rows, forward and backward, page by page, with the index,
 * with half of the index and without. All members of a record are reported.
 * Updates that were taken back are reported with their final state.
 */
#include <stdio.h>
#include <string.h>

#include "tests/lib/history_fixture.h"
#include "tests/lib/suite.h"

CASE(.setup = fixture_setup, .teardown = fixture_teardown, .seconds = 60);

TEST(what_is_asked_for_is_found, .times = FIXTURE_WAYS)
{
	fixture_some();
	fixture_open(_i);
	ck_assert_str_eq(fixture_log(NULL, NULL, false, 0, NULL),
	    " refs/heads/main@1 refs/heads/main@2 refs/heads/topic/x@3"
	    " refs/tags/v1@3 refs/tags/v2@3:stale refs/heads/topic/y@4"
	    " refs/heads/main@5 refs/heads/main@6");
	ck_assert_str_eq(fixture_log("a.git", NULL, false, 0, NULL),
	    " refs/heads/main@1 refs/heads/topic/x@3 refs/tags/v1@3"
	    " refs/tags/v2@3:stale refs/heads/main@5 refs/heads/main@6");
	ck_assert_str_eq(fixture_log("a.git", "refs/heads/main", true, 0, NULL),
	    " refs/heads/main@6 refs/heads/main@5 refs/heads/main@1");
	ck_assert_str_eq(fixture_log(NULL, "refs/heads/main", true, 0, NULL),
	    " refs/heads/main@6 refs/heads/main@5 refs/heads/main@2"
	    " refs/heads/main@1");
	ck_assert_str_eq(fixture_log(NULL, "refs/heads/topic/", false, 0, NULL),
	    " refs/heads/topic/x@3 refs/heads/topic/y@4");
	ck_assert_str_eq(fixture_log("b.git", "refs/*/?", false, 0, NULL),
	    " refs/heads/topic/y@4");
	ck_assert_str_eq(fixture_log("a.git", "refs/tags/*", true, 0, NULL),
	    " refs/tags/v2@3:stale refs/tags/v1@3");
	ck_assert_str_eq(
	    fixture_log("a.git", "refs/heads/nothing", false, 0, NULL), "");
	ck_assert_str_eq(fixture_log("c.git", NULL, false, 0, NULL), "");
}

/* Pages of any size give every row once and in order. */
TEST(pages_join, .times = FIXTURE_WAYS)
{
	unsigned pages;
	char whole[1000];

	fixture_some();
	fixture_open(_i);
	snprintf(whole, sizeof(whole), "%s",
	    fixture_log("a.git", NULL, false, 0, &pages));
	ck_assert_uint_eq(pages, 1);
	ck_assert_str_eq(fixture_log("a.git", NULL, false, 1, &pages), whole);
	ck_assert_uint_ge(pages, 6);
	ck_assert_str_eq(fixture_log("a.git", NULL, false, 2, NULL), whole);
	snprintf(whole, sizeof(whole), "%s",
	    fixture_log(NULL, "refs/*", true, 0, &pages));
	ck_assert_str_eq(fixture_log(NULL, "refs/*", true, 1, &pages), whole);
	ck_assert_str_eq(fixture_log(NULL, "refs/*", true, 3, &pages), whole);
}

/* The time is over after every row: an answer may come in very many parts. */
TEST(slow_reading_loses_nothing, .times = FIXTURE_WAYS)
{
	unsigned pages;
	char whole[1000];

	fixture_some();
	fixture_open(_i);
	snprintf(whole, sizeof(whole), "%s",
	    fixture_log("a.git", "refs/*", false, 0, NULL));
	fixture.mono_step_ns = 1000000000;
	ck_assert_str_eq(fixture_log("a.git", "refs/*", false, 0, &pages),
	    whole);
	ck_assert_uint_ge(pages, 4);
	snprintf(whole, sizeof(whole), "%s",
	    fixture_log(NULL, NULL, true, 0, &pages));
	fixture.mono_step_ns = 0;
	ck_assert_str_eq(fixture_log(NULL, NULL, true, 0, NULL), whole);
}

static const char *log_patterns(const char *const *patterns, size_t nr,
    bool reverse, uint32_t limit)
{
	struct store_question *ask = fixture_ask(REFD_VERB_LOG);

	memcpy(ask->req.select.patterns, patterns, nr * sizeof(*patterns));
	ask->req.select.nr_patterns = nr;
	ask->req.select.reverse = reverse;
	ask->req.select.limit = limit;
	return fixture_told(ask, NULL);
}

/* Names may have any byte. A pattern may begin with its first star. */
TEST(names_and_patterns_join, .times = FIXTURE_WAYS)
{
	static const char *const some[] = { "refs/heads/x", "refs/*/y",
		"refs/heads/x", "refs/heads/\xff*", "refs/heads/\xff/" };
	static const char *const all[] = { "refs/heads/x", "*" };
	static const char *const updates[] = { "refs/heads/x",
		"refs/heads/\xff\xff", "refs/heads/z", "refs/heads/y",
		"refs/heads/x",
		"refs/heads/\xff/"
		"a",
		"refs/heads/xx" };
	uint32_t limit;
	size_t i;

	fixture_a = fixture_repo("a.git", 0755);
	for (i = 0; i < sizeof(updates) / sizeof(updates[0]); i++)
		fixture_update(fixture_a, updates[i]);
	fixture_open(_i);
	for (limit = 0; limit < 3; limit++) {
		ck_assert_str_eq(log_patterns(some, 5, false, limit),
		    " refs/heads/x@1 refs/heads/\xff\xff@2 refs/heads/y@4"
		    " refs/heads/x@5 refs/heads/\xff/"
		    "a@6");
		ck_assert_str_eq(log_patterns(some, 5, true, limit),
		    " refs/heads/\xff/"
		    "a@6 refs/heads/x@5 refs/heads/y@4"
		    " refs/heads/\xff\xff@2 refs/heads/x@1");
		ck_assert_str_eq(log_patterns(all, 2, true, limit),
		    " refs/heads/xx@7 refs/heads/\xff/"
		    "a@6 refs/heads/x@5"
		    " refs/heads/y@4 refs/heads/z@3 refs/heads/\xff\xff@2"
		    " refs/heads/x@1");
	}
}

static const char *log_user(bool has_uid, uint32_t uid, const char *user)
{
	struct store_question *ask = fixture_ask(REFD_VERB_LOG);

	ask->req.select.has_uid = has_uid;
	ask->req.select.uid = uid;
	ask->req.select.user = user;
	return fixture_told(ask, NULL);
}

TEST(who_is_found, .times = FIXTURE_WAYS)
{
	struct fixture_record r;

	fixture_some();
	fixture_begin(&r, fixture_a, "refs/heads/ssh"); /* 7 */
	r.row.uid = 1002;
	r.rec.identities[0] = (struct refd_identity){ "SSH_CONNECTION",
		"192.0.2.1 50000 192.0.2.9 22" };
	r.rec.identities[1] = (struct refd_identity){ "X", "Ada L. King" };
	r.rec.nr_identities = 2;
	fixture_commit(&r);
	fixture_open(_i);
	ck_assert_str_eq(log_user(false, 0, "bob"), " refs/heads/topic/y@4");
	ck_assert_str_eq(log_user(true, 1001, NULL), " refs/heads/topic/y@4");
	ck_assert_str_eq(log_user(true, 1002, "bob"),
	    " refs/heads/topic/y@4 refs/heads/ssh@7");
	ck_assert_str_eq(log_user(false, 0, "192.0.2.1"), " refs/heads/ssh@7");
	ck_assert_str_eq(log_user(false, 0, "192.0.2"), "");
	ck_assert_str_eq(log_user(false, 0, "50000"), "");
	/* The whole name or the first word, with and without the index. */
	ck_assert_str_ne(log_user(false, 0, "Ada L. King"), "");
	ck_assert_str_eq(log_user(false, 0, "Ada"), " refs/heads/ssh@7");
	ck_assert_str_eq(log_user(false, 0, "Ada L."), "");
}

TEST(times_are_found_whatever_the_clock_did, .times = FIXTURE_WAYS)
{
	static const int64_t steps_ms[] = { 0, 1000, -5000, 2000, 90000,
		-92000 };
	struct store_question *ask;
	int64_t start_ms = fixture.wall_ms;
	size_t i;

	fixture_a = fixture_repo("a.git", 0755);
	for (i = 0; i < 6; i++) {
		fixture.wall_ms += steps_ms[i];
		fixture_update(fixture_a, "refs/heads/main");
	}
	fixture_open(_i);
	ask = fixture_ask(REFD_VERB_LOG);
	ask->req.select.since_ms = (uint64_t)start_ms;
	ask->req.select.until_ms = (uint64_t)start_ms + 1000;
	ck_assert_str_eq(fixture_told(ask, NULL),
	    " refs/heads/main@1 refs/heads/main@2");
	ask = fixture_ask(REFD_VERB_LOG);
	ask->req.select.until_ms = (uint64_t)start_ms - 1;
	ask->req.select.reverse = true;
	ck_assert_str_eq(fixture_told(ask, NULL),
	    " refs/heads/main@6 refs/heads/main@4 refs/heads/main@3");
	ask = fixture_ask(REFD_VERB_LOG);
	ask->req.select.since_ms = (uint64_t)start_ms + 1001;
	ck_assert_str_eq(fixture_told(ask, NULL), " refs/heads/main@5");
	ask = fixture_ask(REFD_VERB_LOG);
	ask->req.select.since_ms = (uint64_t)start_ms + 1000000;
	ck_assert_str_eq(fixture_told(ask, NULL), "");
	/* The largest number of the protocol. */
	ask = fixture_ask(REFD_VERB_LOG);
	ask->req.select.since_ms = (uint64_t)start_ms + 1000;
	ask->req.select.until_ms = UINT64_MAX;
	ck_assert_str_eq(fixture_told(ask, NULL),
	    " refs/heads/main@2 refs/heads/main@5");
}

TEST(a_transaction_is_found, .times = FIXTURE_WAYS)
{
	struct store_question *ask = fixture_ask(REFD_VERB_LOG);
	struct fixture_record r, second;

	fixture_some();
	fixture_begin(&r, fixture_a, "refs/heads/p"); /* 7 */
	fixture_commit(&r);
	fixture_update(fixture_a, "refs/heads/other");     /* 8 */
	fixture_begin(&second, fixture_a, "refs/heads/q"); /* 9 */
	second.row.txid = r.row.txid;
	fixture_commit(&second);
	fixture_open(_i);
	ask->req.txid = r.row.txid;
	ask->req.select.reverse = true;
	ask->req.select.limit = 1;
	ck_assert_str_eq(fixture_told(ask, NULL),
	    " refs/heads/q@9 refs/heads/p@7");
}

TEST(all_of_a_record_is_told, .times = FIXTURE_WAYS)
{
	struct store_question *ask = fixture_ask(REFD_VERB_LOG);
	const struct refd_change *c;
	struct fixture_record r;

	fixture_a = fixture_repo("a.git", 0755);
	fixture_begin(&r, fixture_a, "refs/heads/new");
	r.members[0].had_old = false;
	memset(&r.members[0].old_oid, 0, sizeof(r.members[0].old_oid));
	fixture_add(&r, "HEAD")->worktree = "wt";
	r.members[1].target = "refs/heads/x";
	memset(&r.members[1].new_oid, 0, sizeof(r.members[1].new_oid));
	fixture_add(&r, "refs/heads/gone")->action = RECORD_DELETE;
	memset(&r.members[2].new_oid, 0, sizeof(r.members[2].new_oid));
	fixture_add(&r, "refs/heads/no")->status = REFD_STALE;
	r.members[3].has_found = true;
	r.members[3].text = "is elsewhere";
	fixture_commit(&r);
	fixture_open(_i);
	ck_assert(fixture_answer(ask));
	ck_assert_uint_eq(ask->answer.nr_changes, 4);
	c = ask->answer.changes;
	ck_assert_uint_eq(c[0].record->lsn, 1);
	ck_assert_uint_eq(c[0].record->time_ms, (uint64_t)fixture.wall_ms);
	ck_assert_uint_eq(c[0].record->uid, 1000);
	ck_assert_uint_eq(c[0].record->pid, 42);
	ck_assert(refd_txid_eq(&c[0].record->txid, &r.row.txid));
	ck_assert_ptr_nonnull(strstr(c[0].record->repo, "/root/a.git"));
	ck_assert_str_eq(c[0].record->message, "push");
	ck_assert_str_eq(c[0].record->identities[0].value, "alice");
	ck_assert_ptr_eq(c[0].record, c[3].record);
	ck_assert(c[0].has_old && refd_oid_is_null(&c[0].old_oid));
	ck_assert(c[0].has_new && c[0].new_oid.bytes[0] == 0xbb);
	ck_assert_str_eq(c[1].name, "worktrees/wt/HEAD");
	ck_assert_str_eq(c[1].target, "refs/heads/x");
	ck_assert(!c[1].has_new);
	ck_assert(c[2].has_new && refd_oid_is_null(&c[2].new_oid));
	ck_assert(c[3].has_old && !c[3].has_new);
	ck_assert_str_eq(c[3].text, "is elsewhere");
	ck_assert_uint_eq(c[3].nr, 4);
	fixture_free(ask);
	ck_assert_str_eq(fixture_log(NULL, "worktrees/wt/HEAD", false, 0, NULL),
	    " worktrees/wt/HEAD@1");
}

/* ---- taken back ---- */

static uint64_t take_back(uint64_t lsn, const struct fixture_record *of,
    enum journal_kind kind)
{
	struct fixture_record r;

	fixture_begin(&r, of->row.repo, of->members[0].name);
	r.row.txid = of->row.txid;
	r.row.kind = kind;
	r.row.refers_to = lsn;
	if (kind == JOURNAL_ABORT) {
		r.members[0].status = REFD_CONFLICT;
		r.members[0].text = "taken";
	}
	return fixture_commit(&r);
}

TEST(what_was_taken_back_at_once_is_no_change, .times = FIXTURE_WAYS)
{
	struct store_question *ask;
	struct fixture_record r;

	fixture_a = fixture_repo("a.git", 0755);
	fixture_begin(&r, fixture_a, "refs/heads/a");
	fixture_add(&r, "refs/heads/b");
	take_back(fixture_commit(&r), &r, JOURNAL_ABORT);
	fixture_open(_i);
	ck_assert_str_eq(fixture_log(NULL, NULL, false, 0, NULL),
	    " refs/heads/a@1:conflict refs/heads/b@1");
	ask = fixture_ask(REFD_VERB_WATCH);
	ask->req.select.has_after = true;
	ck_assert_str_eq(fixture_told(ask, NULL), " refs/heads/b@1");
	ask = fixture_ask(REFD_VERB_WATCH);
	ask->req.select.has_after = ask->req.select.all = true;
	ck_assert_str_eq(fixture_told(ask, NULL),
	    " refs/heads/a@1:conflict refs/heads/b@1");
}

/* By recovery: from the row, or from a deferred copy of the row. */
TEST(what_was_taken_back_later_is_told_by_itself, .times = FIXTURE_WAYS)
{
	struct store_question *ask;
	struct fixture_record r, s;
	uint64_t copy;

	fixture_a = fixture_repo("a.git", 0755);
	fixture_begin(&r, fixture_a, "refs/heads/a");
	fixture_commit(&r);
	fixture_begin(&s, fixture_a, "refs/heads/b");
	fixture_commit(&s);
	fixture_close();
	fixture_open_journal();
	take_back(1, &r, JOURNAL_ABORT);
	copy = take_back(2, &s, JOURNAL_DEFERRED);
	ck_assert_uint_eq(take_back(copy, &s, JOURNAL_ABORT), 5);
	fixture_open(_i);
	ck_assert_str_eq(fixture_log(NULL, NULL, false, 0, NULL),
	    " refs/heads/a@1:conflict refs/heads/b@2:conflict");
	ask = fixture_ask(REFD_VERB_WATCH);
	ask->req.select.has_after = true;
	ck_assert_str_eq(fixture_told(ask, NULL),
	    " refs/heads/a@3voids:conflict refs/heads/b@5voids:conflict");
}

/* Several updates of a row, in any order, one of them twice: the last record
 * counts. */
TEST(several_are_taken_back, .times = FIXTURE_WAYS)
{
	static const uint32_t order[] = { 3, 1, 2, 1 };
	struct fixture_record r, s;
	uint64_t lsn;
	size_t i;

	fixture_a = fixture_repo("a.git", 0755);
	fixture_begin(&r, fixture_a, "refs/heads/0");
	fixture_add(&r, "refs/heads/1");
	fixture_add(&r, "refs/heads/2");
	fixture_add(&r, "refs/heads/3");
	fixture_add(&r, "refs/heads/4");
	lsn = fixture_commit(&r);
	for (i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		fixture_begin(&s, fixture_a, r.members[order[i]].name);
		s.row.txid = r.row.txid;
		s.row.kind = JOURNAL_ABORT;
		s.row.refers_to = lsn;
		s.members[0].index = order[i];
		s.members[0].status = i < 3 ? REFD_CONFLICT : REFD_IO;
		fixture_commit(&s);
	}
	fixture_open(_i);
	ck_assert_str_eq(fixture_log(NULL, NULL, false, 0, NULL),
	    " refs/heads/0@1 refs/heads/1@1:io refs/heads/2@1:conflict"
	    " refs/heads/3@1:conflict refs/heads/4@1");
}

/* A row of MANY refs, the last of them called LAST. */
#define MANY 1000

static void commit_many(uint64_t repo, unsigned row, const char *last)
{
	static struct record_member members[MANY];
	static char names[MANY][64];
	struct fixture_record r;
	unsigned i;

	fixture_begin(&r, repo, "refs/heads/main");
	for (i = 0; i < MANY; i++) {
		snprintf(names[i], sizeof(names[i]), "refs/heads/%u/%u", row,
		    i);
		members[i] = r.members[0];
		members[i].name = names[i];
		members[i].index = i;
	}
	snprintf(names[MANY - 1], sizeof(names[0]), "refs/heads/%u/%s", row,
	    last);
	r.rec.members = members;
	r.rec.nr_members = r.rec.nr_updates = MANY;
	fixture_commit(&r);
}

/* Too many names for one turn: the rows are read instead. */
TEST(a_pattern_may_mean_very_many_names)
{
	unsigned i;

	fixture_a = fixture_repo("a.git", 0755);
	for (i = 1; i <= 103; i++)
		commit_many(fixture_a, i, i % 50 == 1 ? "rare" : "often");
	fixture_open(2);
	fixture.mono_step_ns = 10000;
	ck_assert_str_eq(fixture_log(NULL, "refs/heads/*/rare", false, 0, NULL),
	    " refs/heads/1/rare@1 refs/heads/51/rare@51"
	    " refs/heads/101/rare@101");
	ck_assert_str_eq(fixture_log("a.git", "refs/heads/*/rare", true, 1,
			     NULL),
	    " refs/heads/101/rare@101 refs/heads/51/rare@51"
	    " refs/heads/1/rare@1");
	ck_assert_str_eq(fixture_log(NULL, "refs/heads/7/rar*", false, 0, NULL),
	    "");
	ck_assert_str_eq(fixture_log(NULL, "refs/heads/51/rare", true, 0, NULL),
	    " refs/heads/51/rare@51");
}

/* A record may have 100,000 refs: a turn ends within a record. */
TEST(a_turn_ends_within_a_record, .times = FIXTURE_WAYS)
{
	const char *told;
	char whole[100];
	unsigned pages;

	fixture_a = fixture_repo("a.git", 0755);
	commit_many(fixture_a, 1, "last");
	fixture_open(_i);
	/* Some looks at the clock, and as many refs. */
	fixture.mono_step_ns = 1100000;
	told = fixture_log("a.git", "refs/*/last", false, 0, &pages);
	ck_assert_str_eq(told, " refs/heads/1/last@1");
	ck_assert_uint_ge(pages, MANY / 20);
	snprintf(whole, sizeof(whole), "%s",
	    fixture_log("a.git", "refs/*/last", true, 0, NULL));
	ck_assert_str_eq(whole, " refs/heads/1/last@1");
	/* No row comes twice, and no row is missing. */
	told = fixture_log("a.git", "refs/*/9?", true, 0, NULL);
	ck_assert_uint_eq(strlen(told), 10 * strlen(" refs/heads/1/90@1"));
	told = fixture_log("a.git", "refs/*/9?", false, 0, NULL);
	ck_assert_uint_eq(strlen(told), 10 * strlen(" refs/heads/1/90@1"));
}

/* The list of repositories is unreadable. The answer is an error, and never an
 * empty list. */
TEST(no_repositories_no_answer, .times = FIXTURE_WAYS)
{
	struct store_question *ask;
	char path[4200];

	fixture_some();
	fixture_open(_i);
	fixture_sql("journal.db", "ALTER TABLE repo RENAME TO gone");
	ask = fixture_ask(REFD_VERB_LOG);
	snprintf(path, sizeof(path), "%s/a.git", fixture.root);
	ask->req.git_dir = path;
	ck_assert(fixture_answer(ask));
	ck_assert_int_eq(ask->answer.kind, REFD_ANSWER_REFUSED);
	ck_assert_int_eq(ask->answer.status, REFD_IO);
	fixture_free(ask);
	fixture_sql("journal.db", "ALTER TABLE gone RENAME TO repo");
	ck_assert_str_eq(fixture_log("a.git", "refs/heads/main", false, 0,
			     NULL),
	    " refs/heads/main@1 refs/heads/main@5 refs/heads/main@6");
}
