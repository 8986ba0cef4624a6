/*
 * Proves by random schedules that no replaced value comes back unnoticed
 * (returned.h). Two gits run `pack-refs --auto` all the time: each reads the
 * loose refs, is held there, and packs what it has read. Meanwhile refd makes,
 * moves and deletes refs, as files and as lines of packed-refs, makes
 * checkpoints, is killed, and loses power. After every step, the refs without
 * their last acknowledged value are those of which returned_find() tells.
 *
 * And the search reads each record once, however many refs the records have.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/recovery/returned.h"
#include "tests/lib/failing_malloc.h"
#include "tests/lib/scripted_txn.h"
#include "tests/lib/suite.h"
#include "tests/lib/sweep.h"
#include "tests/lib/world_rig.h"

#define SCHEDULES 500
#define STEPS     20
#define NAMES     6
#define GITS      2
#define PACKED    WORLD_REPO "/packed-refs"

static unsigned long allocations;

#if CAN_FAIL

static bool may_allocate(void)
{
	allocations++;
	return true;
}

#endif

static const char names[NAMES + 1] = "abcdef";
static uint64_t random_state;
static unsigned nr_returned;
static char truth[NAMES];          /* the last acknowledged values */
static char has_read[GITS][NAMES]; /* loose values; '0': none */
static bool is_held[GITS];
static bool is_told[NAMES];

static unsigned any(unsigned n)
{
	random_state =
	    random_state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (unsigned)(random_state >> 33) % n;
}

static const char *loose(unsigned i)
{
	static char path[64];

	snprintf(path, sizeof(path), WORLD_REPO "/refs/heads/%c", names[i]);
	return path;
}

/* ---- git ---- */

static void git_reads(unsigned git)
{
	unsigned i;

	for (i = 0; i < NAMES; i++)
		has_read[git][i] = memfs_exists(w->fs, loose(i)) ?
		    world_ref(w, (char[]){ names[i], '\0' }) :
		    '0';
	is_held[git] = true;
}

/* The value of a line of packed-refs. */
static char packed_value(const char *text, char name)
{
	const size_t hex = refd_object_format_hex(world_format());
	char line[32];
	const char *at;

	snprintf(line, sizeof(line), " refs/heads/%c\n", name);
	at = text != NULL ? strstr(text, line) : NULL;
	return at == NULL ?
	    '0' :
	    (char)strtol((char[]){ at[-(long)hex], at[1 - (long)hex], '\0' },
		NULL, 16);
}

/* The file is synced, as `refd enable` sets it. Files of the packed values go
 * afterwards. */
static void git_packs(unsigned git)
{
	const struct sys *sys = memfs_other(w->fs);
	char *old = memfs_read(w->fs, PACKED, NULL), text[512], *filled;
	char values[NAMES];
	size_t len;
	unsigned i;
	int fd;

	is_held[git] = false;
	memfs_advance(w->fs, 1000000000);
	len = (size_t)snprintf(text, sizeof(text),
	    "# pack-refs with: peeled fully-peeled sorted \n");
	for (i = 0; i < NAMES; i++) {
		values[i] = has_read[git][i] != '0' ?
		    has_read[git][i] :
		    packed_value(old, names[i]);
		if (values[i] != '0')
			len += (size_t)snprintf(text + len, sizeof(text) - len,
			    "@%c refs/heads/%c\n", values[i], names[i]);
	}
	free(old);
	filled = world_text(text);
	fd = SYS(sys, openat, AT_FDCWD, PACKED ".new",
	    O_WRONLY | O_CREAT | O_TRUNC, 0644);
	ck_assert_int_eq(SYS(sys, write_all, fd, filled, strlen(filled)), 0);
	ck_assert_int_eq(SYS(sys, fsync, fd), 0);
	SYS(sys, close, fd);
	free(filled);
	wr_rename(PACKED ".new", PACKED);
	for (i = 0; i < NAMES; i++)
		if (has_read[git][i] != '0' && memfs_exists(w->fs, loose(i)) &&
		    world_ref(w, (char[]){ names[i], '\0' }) == values[i])
			wr_unlink(loose(i));
}

/* ---- refd ---- */

static void tell(void *arg, const struct returned *r)
{
	const char *at = strchr(names, r->name[strlen("refs/heads/")]);

	(void)arg;
	is_told[at - names] = true;
}

static void check(uint64_t schedule, unsigned step)
{
	struct repo *repo = world_repo(w, WORLD_REPO);
	unsigned i;
	char is;

	memset(is_told, 0, sizeof(is_told));
	ck_assert_int_eq(
	    returned_find(w->sys, w->store.journal, repo, tell, NULL), 0);
	repo_put(&w->store.repos, repo);
	for (i = 0; i < NAMES; i++) {
		is = world_ref(w, (char[]){ names[i], '\0' });
		ck_assert_msg((is != truth[i]) == is_told[i],
		    "schedule %llu, step %u: %c is %c, refd said %c, and %s",
		    (unsigned long long)schedule, step, names[i], is, truth[i],
		    is_told[i] ? "it is told" : "nothing is told");
		nr_returned += is_told[i];
	}
	ck_assert_ptr_null(world_litter(w));
}

static void start_again(bool loses_power)
{
	struct memfs_choice choice = memfs_choose(any(1U << 30));

	if (loses_power) {
		memfs_power_loss(w->fs, &choice);
		memset(is_held, 0, sizeof(is_held));
	} else {
		memfs_crash(w->fs);
	}
	world_crash(w);
	wr_start();
}

/* One update or several creations. Half of all are killed or lose power. */
static void update(void)
{
	const unsigned from = any(NAMES), nr = any(3) == 0 ? 3 : 1;
	const char value = any(4) == 0 ? '0' : (char)('1' + any(4));
	struct scripted_txn h = { .w = w };
	unsigned at[3], i, end = any(4);
	char spec[64] = "";
	struct txn *txn;
	size_t len = 0;

	for (i = 0; i < nr; i++) {
		at[i] = (from + i) % NAMES;
		len += (size_t)snprintf(spec + len, sizeof(spec) - len,
		    value == '0' ? "%s-%c" : "%s%c=%c", i > 0 ? ";" : "",
		    names[at[i]], value);
	}
	txn = world_begin(w, spec, any(2) == 0);
	ck_assert_ptr_nonnull(txn);
	h.txid = txn->req.txid;
	if (end == 0)
		memfs_crash_at(w->fs, any(40));
	else if (end == 1)
		memfs_power_loss_at(w->fs, any(40));
	world_batch(w, &txn, 1);
	memfs_fail_none(w->fs);
	for (i = 0; i < nr; i++)
		if (txn->updates[i].status == REFD_OK)
			truth[at[i]] = value;
	world_done(w, txn);
	if (end > 1)
		return;
	start_again(end == 1);
	for (i = 0; i < nr; i++)
		if (scripted_status(&h, i) == REFD_OK)
			truth[at[i]] = value;
}

static void one_step(void)
{
	const unsigned git = any(GITS);

	memfs_advance(w->fs, 1000000000);
	switch (any(8)) {
	case 0:
	case 1:
		if (is_held[git])
			git_packs(git);
		else
			git_reads(git);
		break;
	case 2:
		ck_assert_int_eq(world_checkpoint(w), 0);
		break;
	default:
		update();
	}
}

CASE(.setup = wr_setup_apart, .teardown = wr_teardown, .seconds = 300);

TEST(schedules)
{
	/* In fewer, a ref may never return. */
	const uint64_t most = SCHEDULES / sweep_step(),
		       nr = most < 100 ? 100 : most;
	uint64_t schedule;
	unsigned step;

	for (schedule = 1; schedule <= nr; schedule++) {
		random_state = schedule * 0x9e3779b97f4a7c15ULL;
		memset(truth, '0', sizeof(truth));
		memset(is_held, 0, sizeof(is_held));
		world_free(w);
		wr_setup_apart();
		ck_assert_int_eq(world_stop(w), 0);
		w->packed_least = 3;
		wr_start();
		for (step = 0; step < STEPS; step++) {
			one_step();
			check(schedule, step);
		}
	}
	ck_assert_uint_gt(nr_returned, nr / 4);
}

#define MANY      300
#define MANY_ROWS 20

/* Row I of all refs has the value 2 or 3. */
static void put_many(uint64_t repo, char (*refs)[32], unsigned i)
{
	struct record_member m[MANY];
	struct record rec = { .committer = "",
		.message = "",
		.members = m,
		.nr_members = MANY,
		.nr_updates = MANY,
		.object_format = world_format() };
	struct journal_row row = { .kind = JOURNAL_SLICE,
		.repo = repo,
		.time_us = SYS(w->sys, now_wall) / 1000,
		.final = true };
	uint8_t *body;
	unsigned at;

	for (at = 0; at < MANY; at++)
		m[at] = (struct record_member){ .index = at,
			.name = refs[at],
			.worktree = "",
			.action = RECORD_WRITE,
			.new_oid = world_oid(i % 2 == 0 ? '2' : '3') };
	body = record_encode(&rec, &row.len);
	row.body = body;
	refd_txid_make(&row.txid);
	ck_assert_int_eq(journal_commit(w->store.journal, &row, 1, true), 0);
	free(body);
}

/* No row tells of the packed values. */
TEST(many_refs_in_many_rows)
{
	static char refs[MANY][32], text[MANY * 32 + 64];
	struct repo *repo = world_repo(w, WORLD_REPO);
	size_t len = (size_t)snprintf(text, sizeof(text),
	    "# pack-refs with: peeled fully-peeled sorted \n");
	unsigned i;
	int r;

	for (i = 0; i < MANY; i++) {
		snprintf(refs[i], sizeof(refs[i]), "refs/heads/n%03u", i);
		len += (size_t)snprintf(text + len, sizeof(text) - len,
		    "@1 %s\n", refs[i]);
	}
	world_write(w->fs, PACKED, text);
	for (i = 0; i < MANY_ROWS; i++)
		put_many(repo->id, refs, i);
	allocations = 0;
	r = returned_find(w->sys, w->store.journal, repo, tell, NULL);
	ck_assert_int_eq(r, 0);
	ck_assert_uint_lt(allocations, MANY * MANY_ROWS / 2);
	if (CAN_FAIL)
		ck_assert_uint_ge(allocations, MANY);
	repo_put(&w->store.repos, repo);
}
