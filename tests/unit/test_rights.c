/*
 * Proves that the longest directory above a repository decides on users and on
 * the least durability. A name with the same beginning is a different
 * directory. New settings replace all earlier settings. The weakest mode is the
 * weakest of all directories.
 */
#include <unistd.h>

#include "daemon/store/repos/rights.h"
#include "tests/lib/suite.h"

#define OWNER  7001
#define FRIEND 7002
#define MEMBER 7003
#define GROUP  8001

static const uint32_t friends[] = { FRIEND }, groups[] = { GROUP };

static struct rights_rule rule(const char *dir, enum refd_durability mode,
    size_t nr_uids, size_t nr_gids)
{
	return (struct rights_rule){ dir, mode,
		{ friends, groups, nr_uids, nr_gids },
		{ .requests = nr_uids + 1 } };
}

/* Of the repository of the last call. */
static uint64_t requests;

static bool may(struct rights *rights, const char *path, uint32_t uid,
    enum refd_durability *least)
{
	uint32_t gids[] = { uid == MEMBER ? GROUP : 1, 2 };
	struct txn_peer peer = { .uid = uid, .gids = gids, .nr_gids = 2 };

	struct rights_given given;
	bool may = rights_allow(rights, path, &peer, &given);

	*least = given.least;
	requests = given.limits.requests;
	return may;
}

TEST(the_longest_directory_has_the_word)
{
	const struct rights_rule list[] = {
		/* Not in the order of length. */
		rule("/", REFD_DURABILITY_PERIODIC, 0, 0),
		rule("/srv/git/closed", REFD_DURABILITY_FSYNC, 0, 1),
		rule("/srv/git", REFD_DURABILITY_NONE, 1, 0),
		rule("/srv/git", REFD_DURABILITY_BATCH, 0, 0),
	};
	const char *const reserved[] = { "refs/pull/" };
	struct rights_settings settings = {
		.general = REFD_DURABILITY_BATCH,
		.rules = list,
		.nr_rules = 4,
		.reserved = reserved,
	};
	enum refd_durability least;
	struct rights rights;

	rights_init(&rights, REFD_DURABILITY_JOURNAL);
	ck_assert(may(&rights, "/srv/git/a", OWNER, &least));
	ck_assert_int_eq(least, REFD_DURABILITY_JOURNAL);
	ck_assert_int_eq(rights_weakest(&rights), REFD_DURABILITY_JOURNAL);
	ck_assert_uint_eq(requests, 0);

	ck_assert_int_eq(rights_set(&rights, &settings), 0);
	ck_assert(may(&rights, "/srv/git/a", FRIEND, &least));
	ck_assert(!rights_is_reserved(&rights, "refs/pull/1"));
	ck_assert_int_eq(least, REFD_DURABILITY_NONE);
	ck_assert_uint_eq(requests, 2);
	ck_assert(!may(&rights, "/srv/git/a", MEMBER, &least));
	ck_assert(!may(&rights, "/srv/git/closed/b", FRIEND, &least));
	ck_assert_int_eq(least, REFD_DURABILITY_FSYNC);
	ck_assert(may(&rights, "/srv/git/closed", MEMBER, &least));
	ck_assert(may(&rights, "/srv/git/closed-not/b", FRIEND, &least));
	ck_assert_int_eq(least, REFD_DURABILITY_NONE);
	ck_assert(!may(&rights, "/srv/gitolite", FRIEND, &least));
	ck_assert_int_eq(least, REFD_DURABILITY_PERIODIC);
	ck_assert(may(&rights, "/srv/git/closed/b", 0, &least));
	ck_assert(may(&rights, "/srv/git/closed/b", geteuid(), &least));
	ck_assert_int_eq(rights_weakest(&rights), REFD_DURABILITY_NONE);

	settings.nr_rules = 0;
	settings.nr_reserved = 1;
	ck_assert_int_eq(rights_set(&rights, &settings), 0);
	ck_assert(rights_is_reserved(&rights, "refs/pull/1"));
	ck_assert(may(&rights, "/srv/git/closed/b", FRIEND, &least));
	ck_assert_int_eq(least, REFD_DURABILITY_BATCH);
	rights_done(&rights);
}
