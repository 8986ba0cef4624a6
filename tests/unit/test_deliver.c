/*
 * Proves the parts of refd-deliver: signatures are those of RFC 4231, pauses
 * grow within their limits, a stream has one delivery at a time and goes on
 * only after the result, the outbox keeps order and position across a restart,
 * and what does not fit becomes a gap.
 */
#include <stdlib.h>
#include <string.h>

#include "client/deliver/delivery.h"
#include "client/deliver/intake.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

/* ---- signatures ---- */

static const struct {
	const char *key, *data, *sum;
} vectors[] = {
	/* RFC 4231, test cases 1, 2 and 6 (a key longer than a block). */
	{ "\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b"
	  "\x0b\x0b\x0b",
	    "Hi There",
	    "sha256=b0344c61d8db38535ca8afceaf0bf12b"
	    "881dc200c9833da726e9376c2e32cff7" },
	{ "Jefe", "what do ya want for nothing?",
	    "sha256=5bdcc146bf60754e6a042426089575c7"
	    "5a003f089d2739839dec58b964ec3843" },
	{ NULL, "Test Using Larger Than Block-Size Key - Hash Key First",
	    "sha256=60e431591ee0b67f0d8a26aacbf5b77f"
	    "8e0bc6213728c5140546040f0ee37f54" },
	/* GitHub's documentation of webhooks. */
	{ "It's a Secret to Everybody", "Hello, World!",
	    "sha256=757107ea0eb2509fc211221cce984b8a"
	    "37570b6d7586c22c46f4379c8b043e17" },
};

CASE(.name = "pure");

TEST(signatures_are_those_of_the_standard,
    .times = sizeof(vectors) / sizeof(vectors[0]))
{
	char text[SIGNATURE_LEN + 1], long_key[132] = "";
	const char *key = vectors[_i].key;

	memset(long_key, 0xaa, 131);
	if (!key)
		key = long_key;
	ck_assert_str_eq(delivery_sign(key, strlen(key), vectors[_i].data,
			     strlen(vectors[_i].data), text),
	    vectors[_i].sum);
}

/* ---- pauses ---- */

TEST(pauses_double_up_to_their_limit)
{
	uint64_t failures, most = 1000;

	for (failures = 1; failures < 2000; failures++) {
		if (most > ATTEMPT_MOST_MS)
			most = ATTEMPT_MOST_MS;
		ck_assert_uint_eq(delivery_pause_ms(failures, 0), most / 2);
		ck_assert_uint_eq(
		    delivery_pause_ms(failures, (uint32_t)most / 2), most);
		ck_assert_uint_ge(delivery_pause_ms(failures, UINT32_MAX),
		    most / 2);
		ck_assert_uint_le(delivery_pause_ms(failures, UINT32_MAX),
		    most);
		most *= 2;
	}
}

/* ---- streams ---- */

static struct endpoint endpoint = { .parallel = 8 };

TEST(a_stream_delivers_one_at_a_time)
{
	struct receiver to = { .endpoint = &endpoint };
	struct stream *a, *b;

	streams_add(streams_of(&to, "a"), 2, 20);
	streams_add(streams_of(&to, "b"), 1, 5);
	ck_assert_uint_eq(to.bytes, 25);
	a = streams_take(&to);
	b = streams_take(&to);
	ck_assert_str_eq(a->repo, "a");
	ck_assert_str_eq(b->repo, "b");
	streams_add(a, 1, 10);
	ck_assert_ptr_null(streams_take(&to));
	streams_done(a, 10);
	ck_assert_ptr_eq(streams_take(&to), a);
	streams_pause(a, 1000);
	ck_assert_ptr_null(streams_take(&to));
	ck_assert_uint_eq(streams_wake(&to, 999), 1000);
	ck_assert_ptr_null(streams_take(&to));
	ck_assert_uint_eq(streams_wake(&to, 1000), UINT64_MAX);
	ck_assert_ptr_eq(streams_take(&to), a);
	streams_done(b, 5);
	ck_assert_uint_eq(to.bytes, 20);
	ck_assert_uint_eq(HASH_COUNT(to.streams), 1);
	streams_free(&to);
}

/* ---- the outbox ---- */

static struct outbox *outbox;

static void open_outbox(void)
{
	outbox = outbox_open(tmp_root, true);
}

static void setup(void)
{
	tmp_setup();
	open_outbox();
}

static void teardown(void)
{
	outbox_close(outbox);
	tmp_teardown();
}

static void reopen(void)
{
	outbox_close(outbox);
	open_outbox();
}

static void add(int64_t endpoint_id, const char *repo, const char *id)
{
	struct outbox_row row = { .repo = (char *)repo,
		.id = (char *)id,
		.event = (char *)"change",
		.body = (char *)"{}",
		.len = 2,
		.time_ms = 1 };

	outbox_begin(outbox);
	outbox_add(outbox, endpoint_id, &row);
	outbox_commit(outbox);
}

/* The first waiting row, with the number of its failures. */
static int64_t head(int64_t endpoint_id, const char *repo, const char *id,
    uint64_t failures)
{
	struct outbox_row row;
	int64_t seq;

	ck_assert(outbox_head(outbox, endpoint_id, repo, &row));
	ck_assert_str_eq(row.id, id);
	ck_assert_str_eq(row.repo, repo);
	ck_assert_str_eq(row.body, "{}");
	ck_assert_uint_eq(row.failures, failures);
	seq = row.seq;
	outbox_row_done(&row);
	return seq;
}

CASE(.name = "outbox", .setup = setup, .teardown = teardown);

TEST(the_outbox_survives)
{
	struct outbox_position p,
	    q = { .is_known = true,
		    .journal = "0123456789abcde",
		    .at = { UINT64_MAX, UINT32_MAX } };
	int64_t one = outbox_endpoint(outbox, "one", &p);
	int64_t two = outbox_endpoint(outbox, "two", &p), seq;
	struct outbox_row row;

	ck_assert(!p.is_known);
	outbox_move(outbox, two, &q);
	add(one, "a\xff", "1");
	add(one, "a\xff", "2");
	add(two, "a\xff", "1");
	add(one, "b", "3");
	reopen();
	ck_assert_int_eq(outbox_endpoint(outbox, "two", &p), two);
	ck_assert(intake_is_same(&p, &q));
	seq = head(one, "a\xff", "1", 0);
	outbox_failed(outbox, one, seq, "no", 0);
	reopen();
	ck_assert_int_eq(head(one, "a\xff", "1", 1), seq);
	outbox_delivered(outbox, one, seq, 7);
	reopen();
	head(one, "a\xff", "2", 0);
	head(two, "a\xff", "1", 0);
	head(one, "b", "3", 0);
	ck_assert(!outbox_head(outbox, two, "b", &row));
}

static void count_dead(void *arg, const struct outbox_row *row)
{
	ck_assert_str_eq(row->error, "no");
	ck_assert_uint_eq(row->died_ms, 5);
	(*(int *)arg)++;
}

static int dead(const char *name)
{
	int nr = 0;

	outbox_each_dead(outbox, name, count_dead, &nr);
	return nr;
}

TEST(dead_letters_leave_the_stream)
{
	struct outbox_position p;
	int64_t one = outbox_endpoint(outbox, "one", &p);

	add(one, "a", "1");
	add(one, "a", "2");
	outbox_failed(outbox, one, head(one, "a", "1", 0), "no", 5);
	head(one, "a", "2", 0);
	ck_assert_int_eq(dead(NULL), 1);
	ck_assert_int_eq(dead("two"), 0);
	ck_assert_uint_eq(outbox_retry(outbox, "two", NULL), 0);
	ck_assert_uint_eq(outbox_retry(outbox, "one", "2"), 0);
	ck_assert_uint_eq(outbox_retry(outbox, "one", "1"), 1);
	outbox_failed(outbox, one, head(one, "a", "1", 1), "no", 5);
	ck_assert_uint_eq(outbox_drop(outbox, "one", NULL), 1);
	ck_assert_int_eq(dead(NULL), 0);
	head(one, "a", "2", 0);
}

TEST(another_process_is_noticed)
{
	struct outbox *other = outbox_open(tmp_root, false);
	struct outbox_position p;

	ck_assert(!outbox_changed(outbox));
	outbox_endpoint(outbox, "one", &p);
	ck_assert(!outbox_changed(outbox));
	outbox_endpoint(other, "two", &p);
	ck_assert(outbox_changed(outbox));
	ck_assert(!outbox_changed(outbox));
	outbox_close(other);
}

/* Also in a transaction, which keeps other processes out afterwards. */
TEST(another_process_is_noticed_in_a_transaction)
{
	struct outbox *other = outbox_open(tmp_root, false);
	struct outbox_position p;

	ck_assert(!outbox_changed(outbox));
	outbox_endpoint(other, "two", &p);
	outbox_begin(outbox);
	ck_assert(outbox_changed(outbox));
	outbox_commit(outbox);
	ck_assert(!outbox_changed(outbox));
	outbox_close(other);
}

/* The service still has the endpoint, and adds a change. */
TEST(nobody_inherits_from_a_forgotten_endpoint)
{
	struct outbox_position p;
	int64_t one = outbox_endpoint(outbox, "one", &p), two;
	struct outbox_row row;

	outbox_begin(outbox);
	outbox_forget(outbox, "one");
	outbox_commit(outbox);
	add(one, "a", "1");
	two = outbox_endpoint(outbox, "two", &p);
	ck_assert(!outbox_head(outbox, two, "a", &row));
	reopen();
	ck_assert(!outbox_head(outbox, one, "a", &row));
}

/* ---- answers of the feed ---- */

static struct refd_record record = { .lsn = 7, .repo = "/a.git" };

/* An answer with one change; the position behind it is 7.NR. */
static void take(struct receiver *to, uint32_t nr)
{
	struct refd_change change = { .record = &record,
		.nr = nr,
		.name = "refs/heads/x" };
	struct refd_answer ans = { .kind = REFD_ANSWER_RECORDS,
		.changes = &change,
		.nr_changes = 1,
		.next = { 7, nr } };
	struct outbox_position asked = to->position;

	outbox_begin(outbox);
	intake_take(outbox, to, 1, &asked, &ans);
	outbox_commit(outbox);
}

static void event_is(const struct receiver *to, const char *repo,
    const char *event, const char *body)
{
	struct outbox_row row;

	ck_assert(outbox_head(outbox, to->id, repo, &row));
	ck_assert_str_eq(row.event, event);
	ck_assert_ptr_nonnull(strstr(row.body, body));
	outbox_delivered(outbox, to->id, row.seq, 0);
	outbox_row_done(&row);
}

TEST(a_long_stream_ends_with_a_gap)
{
	struct receiver to = { .endpoint = &endpoint };
	struct stream *s = streams_of(&to, "/a.git");
	struct outbox_row row;

	endpoint.name = (char *)"one";
	to.id = outbox_endpoint(outbox, "one", &to.position);
	take(&to, 1);
	streams_set(s, 1, INTAKE_STREAM_BYTES);
	take(&to, 2);
	take(&to, 3);
	ck_assert_uint_eq(to.position.at.nr, 3);
	streams_set(s, 1, 10);
	take(&to, 4);
	event_is(&to, "/a.git", "change", ":7.1\"");
	event_is(&to, "/a.git", "gap", ":7.2\",\"gap\":7,\"repo\":\"/a.git\"");
	event_is(&to, "/a.git", "change", ":7.4\"");
	ck_assert(!outbox_head(outbox, to.id, "/a.git", &row));
	streams_free(&to);
}

TEST(a_full_endpoint_takes_nothing)
{
	struct receiver to = { .endpoint = &endpoint };
	struct stream *s = streams_of(&to, "/b.git");

	to.id = outbox_endpoint(outbox, "one", &to.position);
	streams_set(s, 1, INTAKE_RECEIVER_BYTES);
	take(&to, 1);
	ck_assert(to.is_full);
	take(&to, 2);
	ck_assert_uint_eq(to.position.at.nr, 1);
	streams_set(s, 1, INTAKE_RECEIVER_BYTES / 2);
	intake_reopen(&to);
	ck_assert(to.is_full);
	streams_set(s, 1, 10);
	intake_reopen(&to);
	take(&to, 2);
	ck_assert_uint_eq(to.position.at.nr, 2);
	streams_free(&to);
}

TEST(a_gap_of_history_is_delivered)
{
	struct refd_answer ans = { .kind = REFD_ANSWER_RECORDS,
		.has_gap = true,
		.gap = 5,
		.next = { 5, 0 } };
	struct receiver to = { .endpoint = &endpoint };
	struct outbox_position asked;

	endpoint.name = (char *)"one";
	to.id = outbox_endpoint(outbox, "one", &to.position);
	asked = to.position;
	intake_take(outbox, &to, 1, &asked, &ans);
	ck_assert_ptr_null(to.streams);
	ans.gap = 9;
	ans.next.lsn = 9;
	asked = to.position;
	intake_take(outbox, &to, 1, &asked, &ans);
	event_is(&to, "", "gap", ":9\",\"gap\":9}");
	streams_free(&to);
}
