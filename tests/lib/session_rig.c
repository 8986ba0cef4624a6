#include "tests/lib/session_rig.h"

#include <check.h>
#include <errno.h>

struct fake ses_fake;
struct refd_update ses_updates[SES_NR] = { { .name = "refs/heads/a" },
	{ .name = "refs/heads/b" } };
struct refd_request ses_req, ses_end;
struct refd_answer ses_ans;
struct refd *ses_refd;

void ses_begin(void (*script)(struct fake *f))
{
	fake_start(&ses_fake, script);
	ses_refd = refd_new(ses_fake.path);
	ses_req = (struct refd_request){ .verb = REFD_VERB_SESSION,
		.git_dir = "/r",
		.atomic = true,
		.updates = ses_updates,
		.nr_updates = SES_NR };
	ck_assert_int_eq(refd_connect(ses_refd, 60000), 0);
}

void ses_finish(void)
{
	refd_answer_done(&ses_ans);
	refd_free(ses_refd);
	fake_stop(&ses_fake);
}

void ses_prepare(void)
{
	ck_assert_int_eq(refd_call(ses_refd, &ses_req, 100000, &ses_ans), 0);
	ck_assert_int_eq(ses_ans.kind, REFD_ANSWER_PREPARED);
	ck_assert_uint_eq(ses_ans.nr_results, SES_NR);
	refd_answer_done(&ses_ans);
}

struct refd_request *ses_end_by(enum refd_verb verb)
{
	ses_end = ses_req;
	ses_end.verb = verb;
	return &ses_end;
}

int ses_finish_by(enum refd_verb verb, int timeout_ms)
{
	return refd_call(ses_refd, ses_end_by(verb), timeout_ms, &ses_ans);
}

/* While the daemon lives, there is no answer in time. */
int ses_finish_in_vain(enum refd_verb verb)
{
	int err = refd_submit(ses_refd, ses_end_by(verb));

	ck_assert_int_eq(err, 0);
	do
		err = refd_wait(ses_refd, &ses_end, 300, &ses_ans);
	while (err == -ETIMEDOUT);
	return err;
}

void ses_check_over(void)
{
	ck_assert_int_eq(ses_ans.kind, REFD_ANSWER_REFUSED);
	ck_assert_int_eq(ses_ans.status, REFD_ABORTED);
	ck_assert(refd_txid_eq(&ses_ans.txid, &ses_req.txid));
}

void ses_check_all(enum refd_status status)
{
	size_t i;

	ck_assert_int_eq(ses_ans.kind, REFD_ANSWER_RESULTS);
	ck_assert_uint_eq(ses_ans.nr_results, SES_NR);
	for (i = 0; i < SES_NR; i++)
		ck_assert_int_eq(ses_ans.results[i].status, status);
}

/* ---- in the script ---- */

void ses_take(struct fake *f, enum refd_verb verb, struct refd_request *got)
{
	fake_read(f, got);
	fake_expect(f, got->verb == verb, "another request than expected");
	fake_expect(f,
	    f->first.nr_updates == 0 ||
		refd_txid_eq(&got->txid, &f->first.txid),
	    "another transaction");
}

void ses_take_session(struct fake *f)
{
	fake_play(f, "serve session=prepared");
}
