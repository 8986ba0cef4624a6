/*
 * Proves that librefd reports lack of memory like any other error. Whichever
 * allocation fails while connecting, sending or waiting, the call fails with a
 * sentence. No answer is invented, and no transaction goes out under a wrong
 * id. With memory, the same handle and requests get their answers. If the
 * memory is gone for good, a transaction that was sent ends as unknown, because
 * a caller would take an error for a failure. A request that cannot be sent
 * again for lack of memory ends alone. If it is a session that is held already,
 * it still gets the outcome of the commit beside it.
 *
 * Allocations of the server's thread do not count. Under a sanitizer nothing
 * fails here (failing_malloc.h).
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "client/librefd/refd_internal.h"
#include "tests/lib/failing_malloc.h"
#include "tests/lib/fake_refd.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

/* For an answer of the server's thread, which may get no processor for long. */
#define ANSWER_MS 10000

static pthread_t client;
static long allocations, fail_at = -1;
static bool for_good, was_hit;

#if CAN_FAIL
static bool may_allocate(void)
{
	long n;

	if (fail_at < 0 || !pthread_equal(pthread_self(), client))
		return true;
	n = allocations++;
	if (for_good ? n < fail_at : n != fail_at)
		return true;
	was_hit = true;
	return false;
}
#endif

/* The allocations of this thread fail, from the one with number AT on. */
static void fail_from(long at)
{
	client = pthread_self();
	allocations = 0;
	was_hit = false;
	fail_at = at;
}

/* ---- the server ---- */

#define NR_REQUESTS 2

static struct refd_request requests[NR_REQUESTS];
static bool is_foreign; /* a foreign id came */

static bool has_more(struct fake *f)
{
	char c;

	return f->in_len > 0 || recv(f->conn, &c, 1, MSG_PEEK) == 1;
}

/* Answers a resend or a query by id, with all updates. */
static void answer_one(struct fake *f)
{
	struct refd_request req = { 0 }, whole;
	bool is_ours = false;
	int i;

	fake_read(f, &req);
	if (f->wrong[0] != '\0')
		return;
	for (i = 0; i < NR_REQUESTS; i++) {
		if (!refd_txid_eq(&req.txid, &requests[i].txid))
			continue;
		is_ours = true;
		whole = requests[i];
		whole.request_id = req.request_id;
		fake_answer_ok(f, &whole);
	}
	is_foreign = is_foreign || !is_ours;
	refd_request_done(&req);
}

/* A client may hang up and come again. */
static void serve(struct fake *f)
{
	for (;;) {
		f->wrong[0] = '\0';
		fake_serve(f);
		if (f->conn < 0)
			break;
		while (f->wrong[0] == '\0' && has_more(f))
			answer_one(f);
	}
	f->wrong[0] = '\0';
}

/* ---- the client ---- */

static struct refd_update updates[2];

static void fill(void)
{
	int i;

	for (i = 0; i < 2; i++) {
		updates[i] = (struct refd_update){ .action = REFD_UPDATE };
		memset(updates[i].new_oid.bytes, i + 1, REFD_SHA1_BYTES);
	}
	updates[0].name = "refs/heads/a";
	updates[1].name = "refs/heads/b";
	for (i = 0; i < NR_REQUESTS; i++) {
		requests[i] =
		    (struct refd_request){ .verb = REFD_VERB_TRANSACTION,
			    .git_dir = "/r",
			    .updates = updates,
			    .nr_updates = 2 };
		ck_assert_int_eq(refd_txid_make(&requests[i].txid), 0);
	}
}

static bool is_said(struct refd *r, int err)
{
	const char *why;

	if (err == 0)
		return true;
	why = refd_error(r);
	return err < 0 && why != NULL && why[0] != '\0';
}

static bool is_whole(const struct refd_answer *ans)
{
	return ans->kind == REFD_ANSWER_RESULTS && ans->nr_results == 2 &&
	    ans->results[0].status == REFD_OK &&
	    ans->results[1].status == REFD_OK;
}

/* The result of checks at a time when libcheck may not allocate. */
static bool all_said, all_whole;

static bool is_sent[NR_REQUESTS], is_answered[NR_REQUESTS];

static int send_one(struct refd *r, int i)
{
	int err;

	if (is_sent[i])
		return 0;
	err = refd_submit(r, &requests[i]);
	is_sent[i] = err == 0;
	return err;
}

static int wait_for_one(struct refd *r, int i)
{
	struct refd_answer ans;
	int err;

	if (is_answered[i])
		return 0;
	err = refd_wait(r, &requests[i], ANSWER_MS, &ans);
	/* An earlier wait gave the request up: it may be sent again
	 * unchanged. */
	if (err == -EINVAL)
		is_sent[i] = false;
	if (err != 0)
		return err;
	all_whole = all_whole && is_whole(&ans);
	refd_answer_done(&ans);
	is_answered[i] = true;
	return 0;
}

/* Runs everything up to the first error. */
static void go(struct refd *r)
{
	int i, err;

	err = refd_connect(r, ANSWER_MS);
	for (i = 0; i < NR_REQUESTS && err == 0; i++)
		err = send_one(r, i);
	for (i = 0; i < NR_REQUESTS && err == 0; i++)
		err = wait_for_one(r, i);
	all_said = all_said && is_said(r, err);
}

static bool run_once(long at)
{
	struct fake fake;
	struct refd *r;
	int i;

	fill();
	is_foreign = false;
	all_said = all_whole = true;
	memset(is_sent, 0, sizeof(is_sent));
	memset(is_answered, 0, sizeof(is_answered));
	fake_start_script(&fake, serve);
	fail_from(at);
	r = refd_new(fake.path);
	if (r != NULL)
		go(r);
	fail_at = -1;
	if (r == NULL)
		r = refd_new(fake.path);
	ck_assert_ptr_nonnull(r);
	for (i = 0; i < 1 + NR_REQUESTS; i++)
		go(r);
	ck_assert_msg(all_said, "allocation %ld: an error without words", at);
	ck_assert_msg(all_whole, "allocation %ld: another answer", at);
	for (i = 0; i < NR_REQUESTS; i++)
		ck_assert_msg(is_answered[i], "allocation %ld: request %d: %s",
		    at, i, refd_error(r));
	refd_free(r);
	shutdown(fake.listener, SHUT_RDWR);
	fake_stop(&fake);
	ck_assert(!is_foreign);
	return was_hit;
}

CASE(.setup = tmp_setup, .teardown = tmp_teardown, .seconds = 60);

TEST(each_allocation_fails)
{
	long n = 0;

	while (run_once(n))
		n++;
	ck_assert(!CAN_FAIL || n > 5);
}

static struct refd *connect_to(struct fake *fake,
    void (*script)(struct fake *f))
{
	struct refd *r;

	fake_start_script(fake, script);
	r = refd_new(fake->path);
	ck_assert_ptr_nonnull(r);
	ck_assert_int_eq(refd_connect(r, ANSWER_MS), 0);
	return r;
}

/* Whole, or unknown with the id. */
static bool is_honest(const struct refd_answer *ans)
{
	const struct refd_request *req = &requests[0];

	return refd_txid_eq(&ans->txid, &req->txid) &&
	    (is_whole(ans) ||
		(ans->kind == REFD_ANSWER_REFUSED &&
		    ans->status == REFD_UNKNOWN && req->maybe_sent));
}

static bool run_without(long at)
{
	struct refd_answer ans = { 0 };
	struct fake fake;
	struct refd *r;
	int sent, err = 0;

	fill();
	r = connect_to(&fake, serve);
	for_good = true;
	fail_from(at);
	sent = refd_submit(r, &requests[0]);
	if (sent == 0)
		err = refd_wait(r, &requests[0], ANSWER_MS, &ans);
	fail_at = -1;
	for_good = false;
	ck_assert_msg(err == 0, "allocation %ld: %s", at, refd_error(r));
	ck_assert_msg(sent != 0 || is_honest(&ans), "allocation %ld", at);
	refd_answer_done(&ans);
	refd_free(r);
	shutdown(fake.listener, SHUT_RDWR);
	fake_stop(&fake);
	return was_hit;
}

TEST(no_memory_hides_an_outcome)
{
	long n = 0;

	while (run_without(n))
		n++;
	ck_assert(!CAN_FAIL || n > 2);
}

static sem_t may_answer;

static void puts_one_off(struct fake *f)
{
	struct refd_request got[NR_REQUESTS];
	int i;

	fake_serve(f);
	for (i = 0; i < NR_REQUESTS; i++)
		fake_read(f, &got[i]);
	fake_answer_as(f, &got[1], "busy/500");
	sem_wait(&may_answer);
	fake_answer_ok(f, &got[0]);
	for (i = 0; i < NR_REQUESTS; i++)
		refd_request_done(&got[i]);
}

/* Waits for REQ until an allocation has failed. */
static void wait_for_failure(struct refd *r, struct refd_request *req)
{
	struct refd_answer ans;
	int err;

	fail_from(0);
	do
		err = refd_wait(r, req, 10, &ans);
	while (err == -ETIMEDOUT && !was_hit);
	fail_at = -1;
	ck_assert_int_eq(err, -ETIMEDOUT);
	ck_assert_int_eq(sem_post(&may_answer), 0);
}

static void wait_for_whole(struct refd *r, struct refd_request *req)
{
	struct refd_answer ans;

	ck_assert_int_eq(refd_wait(r, req, ANSWER_MS, &ans), 0);
	ck_assert(is_whole(&ans));
	refd_answer_done(&ans);
}

/* The time to send the second request again comes while its caller waits for
 * the first, which the daemon has. */
TEST(no_memory_for_one_ends_no_other)
{
	struct refd_answer ans;
	struct fake fake;
	struct refd *r;
	int i, err;

	if (!CAN_FAIL)
		return;
	fill();
	ck_assert_int_eq(sem_init(&may_answer, 0, 0), 0);
	r = connect_to(&fake, puts_one_off);
	for (i = 0; i < NR_REQUESTS; i++)
		ck_assert_int_eq(refd_submit(r, &requests[i]), 0);
	do
		err = refd_wait(r, &requests[0], 10, &ans);
	while (err == -ETIMEDOUT && requests[1].maybe_sent);
	ck_assert_int_eq(err, -ETIMEDOUT);
	wait_for_failure(r, &requests[0]);
	wait_for_whole(r, &requests[0]);
	ck_assert_int_lt(refd_wait(r, &requests[1], ANSWER_MS, &ans), 0);
	ck_assert(!requests[1].maybe_sent);
	refd_free(r);
	fake_stop(&fake);
	sem_destroy(&may_answer);
}

static void puts_off_beside_a_commit(struct fake *f)
{
	int i;

	fake_play(f, "serve session=prepared session=busy/500 commit");
	sem_wait(&may_answer);
	fake_serve(f);
	for (i = 0; i < 2; i++)
		answer_one(f);
}

/* The session cannot be sent again, and then the connection is lost, so the
 * library asks for its outcome. */
TEST(no_memory_hides_the_commit_beside)
{
	struct refd_request commit;
	struct refd_answer ans;
	struct fake fake;
	struct refd *r;
	int err;

	if (!CAN_FAIL)
		return;
	fill();
	requests[0].verb = REFD_VERB_SESSION;
	ck_assert_int_eq(sem_init(&may_answer, 0, 0), 0);
	r = connect_to(&fake, puts_off_beside_a_commit);
	ck_assert_int_eq(refd_call(r, &requests[0], ANSWER_MS, &ans), 0);
	ck_assert_int_eq(ans.kind, REFD_ANSWER_PREPARED);
	refd_answer_done(&ans);
	ck_assert_int_eq(refd_submit(r, &requests[0]), 0);
	commit = requests[0];
	commit.verb = REFD_VERB_COMMIT;
	ck_assert_int_eq(refd_submit(r, &commit), 0);
	do
		err = refd_wait(r, &commit, 10, &ans);
	while (err == -ETIMEDOUT && r->flights[0]->state != FLIGHT_LATER);
	ck_assert_int_eq(err, -ETIMEDOUT);
	wait_for_failure(r, &commit);
	wait_for_whole(r, &commit);
	wait_for_whole(r, &requests[0]);
	refd_free(r);
	fake_stop(&fake);
	sem_destroy(&may_answer);
}
