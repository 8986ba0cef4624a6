/*
 * Proves that the digest of a request covers its changes and options but not
 * its way to the daemon, and is the same number in every build.
 */
#include "proto/digest.h"
#include "tests/lib/suite.h"

static uint64_t digest_of(
    void (*change)(struct refd_request *, struct refd_update *))
{
	static const struct refd_oid oid = { .bytes = { 1, 2, 3 } };
	struct refd_update updates[2] = {
		{ .action = REFD_UPDATE,
		    .name = "refs/heads/ab",
		    .new_oid = oid },
		{ .action = REFD_DELETE, .name = "refs/heads/c" },
	};
	struct refd_request req = { .verb = REFD_VERB_TRANSACTION,
		.git_dir = "/srv/a.git",
		.message = "push",
		.updates = updates,
		.nr_updates = 2 };
	uint64_t h;
	size_t i;

	if (change != NULL)
		change(&req, updates);
	h = refd_digest_begin(&req);
	for (i = 0; i < req.nr_updates; i++)
		h = refd_digest_update(h, req.object_format, &updates[i]);
	return h;
}

static void another_way(struct refd_request *req, struct refd_update *u)
{
	(void)u;
	req->request_id = 9;
	req->txid.bytes[3] = 9;
	req->deadline_ms = 9;
	req->committer = "A U Thor <a@b> 2 +0000";
	req->trace2_sid = "sid";
	req->common_dev = req->common_ino = 9;
}

/* The ok of a weaker mode must not answer for it. */
static void durable(struct refd_request *req, struct refd_update *u)
{
	(void)u;
	req->durability = REFD_DURABILITY_JOURNAL;
}

static void more_durable(struct refd_request *req, struct refd_update *u)
{
	(void)u;
	req->durability = REFD_DURABILITY_FSYNC;
}

static void other_dir(struct refd_request *req, struct refd_update *u)
{
	(void)u;
	req->git_dir = "/srv/b.git";
}

static void session(struct refd_request *req, struct refd_update *u)
{
	(void)u;
	req->verb = REFD_VERB_SESSION;
}

static void atomic(struct refd_request *req, struct refd_update *u)
{
	(void)u;
	req->atomic = true;
}

static void no_message(struct refd_request *req, struct refd_update *u)
{
	(void)u;
	req->message = NULL;
}

static void empty_message(struct refd_request *req, struct refd_update *u)
{
	(void)u;
	req->message = "";
}

static void sha256(struct refd_request *req, struct refd_update *u)
{
	(void)u;
	req->object_format = REFD_FORMAT_SHA256;
}

static void local(struct refd_request *req, struct refd_update *u)
{
	(void)u;
	req->level.kind = REFD_LEVEL_LOCAL;
}

static void held(struct refd_request *req, struct refd_update *u)
{
	(void)u;
	req->level = (struct refd_level){ REFD_LEVEL_HELD, 1 };
}

static void applied(struct refd_request *req, struct refd_update *u)
{
	(void)u;
	req->level = (struct refd_level){ REFD_LEVEL_APPLIED, 1 };
}

static void held_by_two(struct refd_request *req, struct refd_update *u)
{
	(void)u;
	req->level = (struct refd_level){ REFD_LEVEL_HELD, 2 };
}

static void fewer(struct refd_request *req, struct refd_update *u)
{
	(void)u;
	req->nr_updates = 1;
}

static void other_name(struct refd_request *req, struct refd_update *u)
{
	(void)req;
	u[0].name = "refs/heads/a";
}

static void other_new(struct refd_request *req, struct refd_update *u)
{
	(void)req;
	u[0].new_oid.bytes[19] = 1;
}

static void with_old(struct refd_request *req, struct refd_update *u)
{
	(void)req;
	u[1].has_old = true;
}

static void other_action(struct refd_request *req, struct refd_update *u)
{
	(void)req;
	u[1].action = REFD_VERIFY;
}

static void swapped(struct refd_request *req, struct refd_update *u)
{
	struct refd_update tmp = u[0];

	(void)req;
	u[0] = u[1];
	u[1] = tmp;
}

TEST(a_digest_is_of_what_is_asked_for)
{
	static void (*const changes[])(struct refd_request *,
	    struct refd_update *) = { NULL, other_dir, session, atomic, durable,
		more_durable, no_message, empty_message, sha256, local, held,
		applied, held_by_two, fewer, other_name, other_new, with_old,
		other_action, swapped };
	const size_t nr = sizeof(changes) / sizeof(changes[0]);
	size_t i, k;

	ck_assert_uint_eq(digest_of(NULL), digest_of(another_way));
	for (i = 0; i < nr; i++)
		for (k = 0; k < i; k++)
			ck_assert_msg(digest_of(changes[i]) !=
				digest_of(changes[k]),
			    "changes %zu and %zu", i, k);
}

/* Journals contain digests: every build must compute the same number. */
TEST(a_digest_stays_the_same_for_ever)
{
	ck_assert_uint_eq(digest_of(NULL), 0xe96a6f5d158dfb71ULL);
}
