#include "tests/lib/resend_rig.h"

#include <check.h>

struct fake rsd_fake;
struct refd_update rsd_updates[RSD_NR] = { { .name = "refs/heads/a" },
	{ .name = "refs/heads/b" }, { .name = "refs/heads/c" } };
struct refd_request rsd_req;
struct refd_answer rsd_ans;
struct refd_txid rsd_seen;

struct refd *rsd_start_away(void (*script)(struct fake *f))
{
	fake_start(&rsd_fake, script);
	rsd_req = (struct refd_request){ .verb = REFD_VERB_TRANSACTION,
		.git_dir = "/r",
		.deadline_ms = 60000,
		.updates = rsd_updates,
		.nr_updates = RSD_NR };
	return refd_new(rsd_fake.path);
}

struct refd *rsd_start(void (*script)(struct fake *f))
{
	struct refd *r = rsd_start_away(script);

	ck_assert_int_eq(refd_connect(r, 60000), 0);
	return r;
}

int rsd_stop(struct refd *r, int err)
{
	refd_free(r);
	fake_stop(&rsd_fake);
	return err;
}

int rsd_run_for(void (*script)(struct fake *f), int timeout_ms)
{
	struct refd *r = rsd_start(script);

	return rsd_stop(r, refd_call(r, &rsd_req, timeout_ms, &rsd_ans));
}

void rsd_check_all(enum refd_status status)
{
	size_t i;

	ck_assert_int_eq(rsd_ans.kind, REFD_ANSWER_RESULTS);
	ck_assert_uint_eq(rsd_ans.nr_results, RSD_NR);
	for (i = 0; i < RSD_NR; i++) {
		ck_assert_str_eq(rsd_ans.results[i].name, rsd_updates[i].name);
		ck_assert_int_eq(rsd_ans.results[i].status, status);
	}
	ck_assert(refd_txid_eq(&rsd_ans.txid, &rsd_req.txid));
}

/* ---- in the script ---- */

void rsd_take_and_break(struct fake *f)
{
	struct refd_request got;

	fake_serve(f);
	fake_read(f, &got);
	fake_expect(f, got.verb == REFD_VERB_TRANSACTION, "no transaction");
	rsd_seen = got.txid;
	refd_request_done(&got);
	fake_hang_up(f);
}

void rsd_expect_query(struct fake *f, struct refd_request *got)
{
	fake_read(f, got);
	fake_expect(f, got->verb == REFD_VERB_QUERY, "sent without asking");
	fake_expect(f, refd_txid_eq(&got->txid, &rsd_seen), "asks for another");
}

void rsd_answer_done(struct fake *f, struct refd_request *got)
{
	got->updates = rsd_updates;
	got->nr_updates = RSD_NR;
	fake_answer_ok(f, got);
	got->updates = NULL;
	got->nr_updates = 0;
}
