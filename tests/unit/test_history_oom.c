/*
 * Proves that no failed allocation, SQLite's included, hides a change: the
 * answer to a question about history is refused, or ends early, and the next
 * answers have the rest. A client of the feed would never notice a missing
 * change.
 *
 * Under a sanitizer nothing fails here (failing_malloc.h).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"
#include "tests/lib/failing_malloc.h"
#include "tests/lib/history_fixture.h"
#include "tests/lib/suite.h"

/* -1: none fails. */
static long allocations, fail_at = -1;
static bool was_hit;

#if CAN_FAIL

static bool may_allocate(void)
{
	if (fail_at < 0 || allocations++ != fail_at)
		return true;
	was_hit = true;
	return false;
}

#endif

/* Patterns as long as the protocol allows, so that SQLite has no room for
 * copies in memory that it already holds. */
static char patterns[REFD_PATTERNS_MAX][REFD_REFNAME_MAX + 1];

static struct store_question *question(void)
{
	struct store_question *ask = fixture_ask(REFD_VERB_LOG);
	size_t i;

	for (i = 0; i < REFD_PATTERNS_MAX; i++)
		ask->req.select.patterns[i] = patterns[i];
	ask->req.select.nr_patterns = REFD_PATTERNS_MAX;
	return ask;
}

static void make_patterns(void)
{
	size_t i;

	for (i = 0; i < REFD_PATTERNS_MAX; i++) {
		memset(patterns[i], 'a' + (int)i, REFD_REFNAME_MAX);
		memcpy(patterns[i], "refs/heads/", 11);
		patterns[i][REFD_REFNAME_MAX - 1] = '*';
	}
}

/* Asks until there is no more, and counts the changes. Allocation AT fails, and
 * a refused question is asked again. */
static size_t count_with_failure(long at)
{
	struct store_question *ask = question();
	struct refd_selection *s = &ask->req.select;
	bool more = true, is_told;
	size_t nr = 0;

	was_hit = false;
	allocations = 0;
	while (more) {
		fail_at = was_hit ? -1 : at;
		is_told = fixture_answer(ask);
		fail_at = -1;
		ck_assert(is_told);
		more =
		    ask->answer.kind != REFD_ANSWER_RECORDS || ask->answer.more;
		if (ask->answer.kind == REFD_ANSWER_RECORDS) {
			nr += ask->answer.nr_changes;
			s->has_after = true;
			s->after = ask->answer.next;
		}
		refd_answer_done(&ask->answer);
	}
	fixture_free(ask);
	return nr;
}

CASE(.setup = fixture_setup, .teardown = fixture_teardown, .seconds = 120);

TEST(a_failure_hides_no_change)
{
	long n = 0;
	size_t i;

	make_patterns();
	fixture.has_index = true;
	fixture_a = fixture_repo("a.git", 0755);
	for (i = 0; i < REFD_PATTERNS_MAX; i++)
		fixture_update(fixture_a, patterns[i]);
	do {
		fixture_history();
		ck_assert_msg(count_with_failure(n++) == REFD_PATTERNS_MAX,
		    "allocation %ld", n - 1);
	} while (was_hit);
}
