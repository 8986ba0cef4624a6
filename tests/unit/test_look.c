/*
 * Proves that looks record the changes of other writers, and no change of refd.
 * The first look records nothing. Records that are larger than an answer of
 * history, and updates of refd during a look, are not seen. Deletions, symbolic
 * refs, and refs instead of directories are seen once. A change of git, which
 * the gate records later, is not seen. If git aborts, or the daemon refuses the
 * record, the change is seen.
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/scheduler/scheduler.h"
#include "daemon/store/store_internal.h"
#include "tests/lib/store_rig.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"
#include "tests/lib/txn_help.h"

/* More refs than an answer of history has changes (BYTES_MAX). */
#define MANY 1000

static struct sys disk;
static struct scheduler *scheduler;
static const char *updated; /* the repository of update() */
/* Before this path is opened or made, the look waits. */
static const char *hold_at;
static atomic_int is_held, let_go;
static char second[REFD_OID_MAX_HEX + 1];
/* The last answer. */
static int nr_answers;
static enum refd_answer_kind kind;
static enum refd_outcome outcome;
static unsigned nr_seen, nr_left;
static bool was_first;
static struct refd_position next;
static bool has_more;
static char list[1000]; /* of seen changes */

static void hold(const char *path)
{
	const char *at = hold_at;

	if (at == NULL || strcmp(path, at) != 0)
		return;
	atomic_store(&is_held, 1);
	while (!atomic_load(&let_go))
		sched_yield();
}

static int held_dir_open(const struct sys *sys, int fd, const char *path,
    struct sys_dir **dir)
{
	hold(path);
	return sys_kernel.dir_open(sys, fd, path, dir);
}

static int held_mkdirat(const struct sys *sys, int fd, const char *path,
    mode_t mode)
{
	hold(path);
	return sys_kernel.mkdirat(sys, fd, path, mode);
}

static void run(void)
{
	scheduler_run(scheduler, SYS(sr_sys, now_mono),
	    SYS(sr_sys, now_wall) / 1000000);
	sched_yield();
}

static void setup(void)
{
	const struct scheduler_config cfg = { .batch_refs = 2 * MANY,
		.lock_wait_ns = INT64_C(1000000000),
		.deadline_ns = INT64_C(600000000000),
		.session_ns = INT64_C(600000000000),
		.retention_ms = INT64_C(86400000),
		.max_waiting_bytes = 1 << 24 };

	disk = sys_kernel;
	disk.dir_open = held_dir_open;
	disk.mkdirat = held_mkdirat;
	hold_at = NULL;
	updated = sr_repo;
	is_held = let_go = nr_answers = 0;
	sr_sys = &disk;
	sr_setup();
	sr_make_commit("y", second);
	scheduler = scheduler_new(&cfg, sr_store);
	ck_assert_ptr_nonnull(scheduler);
	run();
}

static void teardown(void)
{
	while (!scheduler_is_idle(scheduler)) {
		scheduler_drain(scheduler);
		run();
	}
	scheduler_free(scheduler);
	sr_teardown();
}

/* ---- requests ---- */

static void add_change(const struct refd_change *c)
{
	const size_t len = strlen(list);

	if (c->record->origin != REFD_ORIGIN_SEEN || c->status != REFD_OK)
		return;
	snprintf(list + len, sizeof(list) - len, " %s:", c->name);
	if (c->target != NULL)
		strncat(list, c->target, sizeof(list) - strlen(list) - 1);
	else if (refd_oid_is_null(&c->new_oid))
		strcat(list, "gone");
}

static void answered(void *arg, const struct refd_answer *ans)
{
	size_t i;

	(void)arg;
	nr_answers += !ans->goes_on;
	kind = ans->kind;
	outcome = ans->outcome;
	for (i = 0; ans->kind == REFD_ANSWER_PAIRS && i < ans->nr_pairs; i++) {
		if (strcmp(ans->pairs[i].key, "seen") == 0)
			nr_seen = (unsigned)atoi(ans->pairs[i].value);
		if (strcmp(ans->pairs[i].key, "left") == 0)
			nr_left = (unsigned)atoi(ans->pairs[i].value);
		if (strcmp(ans->pairs[i].key, "first") == 0)
			was_first = strcmp(ans->pairs[i].value, "yes") == 0;
	}
	for (i = 0; ans->kind == REFD_ANSWER_RECORDS && i < ans->nr_changes;
	    i++)
		add_change(&ans->changes[i]);
	next = ans->next;
	has_more = ans->more;
}

static void await(int nr)
{
	while (nr_answers < nr)
		run();
}

/* Sends an update of refs/heads/PREFIX0, ... to HEX. */
static void submit(const char *prefix, size_t nr, const char *hex,
    enum refd_gate gate)
{
	struct refd_update *updates = calloc(nr, sizeof(*updates));
	struct refd_request req = { .verb = REFD_VERB_TRANSACTION,
		.request_id = 1,
		.git_dir = updated,
		.umask = 022,
		.gate = gate,
		.gate_key = { { 1 } },
		.updates = updates,
		.nr_updates = nr };
	char(*names)[32] = calloc(nr, sizeof(*names));
	const int before = nr_answers;
	size_t i;

	refd_txid_make(&req.txid);
	for (i = 0; i < nr; i++) {
		snprintf(names[i], sizeof(*names), "refs/heads/%s%zu", prefix,
		    i);
		updates[i].action = REFD_UPDATE;
		updates[i].name = names[i];
		ck_assert_int_eq(refd_oid_parse(hex, REFD_FORMAT_SHA1,
				     &updates[i].new_oid),
		    0);
	}
	scheduler_submit(scheduler, txn_help_own(&req), SYS(sr_sys, now_mono),
	    answered, NULL);
	free(names);
	free(updates);
	await(before + 1);
}

/* Refd sets refs/heads/PREFIX0, ... to HEX. */
static void update(const char *prefix, size_t nr, const char *hex)
{
	submit(prefix, nr, hex, REFD_GATE_NONE);
	ck_assert_int_eq(outcome, REFD_COMMITTED);
}

static void begin_look(void)
{
	struct refd_request req = { .verb = REFD_VERB_LOOK,
		.request_id = 1,
		.git_dir = sr_repo,
		.umask = 022 };
	struct txn *txn = txn_help_own(&req);

	txn->peer.uid = (uint32_t)geteuid();
	nr_seen = nr_left = UINT32_MAX;
	scheduler_look(scheduler, txn, answered, NULL);
}

static void look(void)
{
	const int before = nr_answers;

	begin_look();
	await(before + 1);
	ck_assert_int_eq(kind, REFD_ANSWER_PAIRS);
}

/* A look sees NR changes, and a second look none. */
static void expect(unsigned nr)
{
	look();
	ck_assert(!was_first);
	ck_assert_uint_eq(nr_seen, nr);
	ck_assert_uint_eq(nr_left, 0);
	look();
	ck_assert_uint_eq(nr_seen, 0);
	ck_assert_uint_eq(nr_left, 0);
}

/* All seen changes, in the order of the journal. */
static const char *seen(void)
{
	const struct txn_peer self = { .uid = (uint32_t)geteuid() };
	struct refd_request req;
	int before;

	list[0] = '\0';
	next = (struct refd_position){ 0, 0 };
	do {
		before = nr_answers;
		req = (struct refd_request){ .verb = REFD_VERB_LOG,
			.git_dir = sr_repo,
			.select = { .has_after = true,
			    .after = next,
			    .origin = true } };
		scheduler_history(scheduler, &req, &self, SYS(sr_sys, now_mono),
		    answered, NULL);
		await(before + 1);
		ck_assert_int_eq(kind, REFD_ANSWER_RECORDS);
	} while (has_more);
	return list;
}

/* Begins a look, and waits until it is at PATH. */
static void look_until(const char *path)
{
	hold_at = path;
	begin_look();
	while (!atomic_load(&is_held))
		run();
}

static void look_on(void)
{
	const int before = nr_answers;

	atomic_store(&let_go, 1);
	await(before + 1);
	ck_assert_int_eq(kind, REFD_ANSWER_PAIRS);
	hold_at = NULL;
}

/* ---- tests ---- */

CASE(.setup = setup, .teardown = teardown, .seconds = 120);

TEST(first_look_records_nothing)
{
	tmp_run("git -C r.git update-ref refs/heads/a %s", sr_commit);
	look();
	ck_assert(was_first);
	ck_assert_uint_eq(nr_seen, 0);
	expect(0);
	ck_assert_str_eq(seen(), "");
}

/* An answer of history ends within the record. */
TEST(large_record_is_not_seen)
{
	look();
	update("n", MANY, sr_commit);
	expect(0);
	update("n", MANY, second);
	tmp_run("git -C r.git update-ref -d refs/heads/n%d", MANY - 1);
	tmp_run("git -C r.git update-ref -d refs/heads/n0");
	expect(2);
	ck_assert_uint_ge(strlen(seen()), 1);
	ck_assert_ptr_nonnull(strstr(list, " refs/heads/n0:gone"));
	ck_assert_ptr_nonnull(strstr(list, " refs/heads/n999:gone"));
}

TEST(update_before_refs_are_read_is_not_seen)
{
	update("a", 1, sr_commit);
	look();
	look_until("refs");
	update("a", 1, second);
	update("b", 1, second);
	look_on();
	ck_assert_uint_eq(nr_seen, 0);
	expect(0);
	ck_assert_str_eq(seen(), "");
}

/* A look has compared the refs. Then refd changes one. */
TEST(update_after_refs_are_compared_is_not_seen)
{
	update("a", 2, sr_commit);
	look();
	update("other", 1, sr_commit); /* so the known refs are written */
	tmp_run("git -C r.git update-ref refs/heads/a0 %s", second);
	tmp_run("git -C r.git update-ref refs/heads/a1 %s", second);
	look_until("seen");
	update("a", 1, sr_commit);
	look_on();
	ck_assert_uint_eq(nr_seen, 1);
	ck_assert_uint_eq(nr_left, 1);
	expect(0);
	ck_assert_str_eq(seen(), " refs/heads/a1:");
}

/* A slow batch keeps the records of an earlier look out of history. So this
 * look cannot tell whether the change was recorded, and says that it is left:
 * the client of a gate looks again. */
TEST(change_beside_a_slow_batch_is_left)
{
	struct repo *repo;

	update("a", 1, sr_commit);
	look();
	repo = sr_store->repos.open;
	tmp_run("git -C r.git update-ref refs/heads/a0 %s", second);
	atomic_store(&repo->look_lsn, UINT64_MAX);
	look();
	ck_assert_uint_eq(nr_seen, 0);
	ck_assert_uint_eq(nr_left, 1);
	atomic_store(&repo->look_lsn, 1);
	expect(1);
	ck_assert_str_eq(seen(), " refs/heads/a0:");
}

TEST(each_kind_is_seen_once)
{
	update("a", 2, sr_commit);
	tmp_run("git -C r.git update-ref refs/heads/d/f %s", sr_commit);
	look();
	tmp_run("git -C r.git update-ref -d refs/heads/a0");
	expect(1);
	ck_assert_str_eq(seen(), " refs/heads/a0:gone");
	tmp_run("git -C r.git pack-refs --all");
	tmp_run("git -C r.git update-ref -d refs/heads/a1");
	expect(1);
	tmp_run("git -C r.git symbolic-ref HEAD refs/heads/x");
	expect(1);
	ck_assert_str_eq(seen(),
	    " refs/heads/a0:gone refs/heads/a1:gone HEAD:refs/heads/x");
	tmp_run("git -C r.git update-ref -d refs/heads/d/f");
	tmp_run("git -C r.git update-ref refs/heads/d %s", sr_commit);
	expect(2);
	ck_assert_ptr_nonnull(strstr(seen(), " refs/heads/d/f:gone"));
	ck_assert_ptr_nonnull(strstr(list, " refs/heads/d:"));
}

/* Otherwise retention would delete the records behind the file's LSN, and the
 * next look would be a first look. */
TEST(file_of_quiet_repository_is_renewed)
{
	char *old, *new;
	int i;

	sr_make_other();
	update("a", 1, sr_commit);
	look();
	old = tmp_get("state/seen/1");
	updated = sr_other;
	for (i = 0; i < 4; i++)
		update("b", 1, i % 2 ? sr_commit : second);
	expect(0);
	new = tmp_get("state/seen/1");
	ck_assert_ptr_nonnull(old);
	ck_assert_str_ne(old, new);
	free(old);
	free(new);
}

/* The gate is told of a change, and git makes it. */
static void change_in_open_gate(void)
{
	update("a", 1, sr_commit);
	look();
	submit("a", 1, second, REFD_GATE_PREPARED);
	ck_assert_int_eq(kind, REFD_ANSWER_PONG);
	tmp_run("git -C r.git update-ref refs/heads/a0 %s", second);
}

TEST(change_of_an_open_gate_is_not_seen)
{
	int64_t end_ns;
	int before;

	change_in_open_gate();
	before = nr_answers;
	begin_look();
	end_ns = SYS(sr_sys, now_mono) + 200000000;
	while (SYS(sr_sys, now_mono) < end_ns)
		run();
	ck_assert_int_eq(nr_answers, before);
	submit("a", 1, second, REFD_GATE_COMMITTED);
	ck_assert_int_eq(outcome, REFD_COMMITTED);
	await(before + 2);
	ck_assert_uint_eq(nr_seen, 0);
	ck_assert_uint_eq(nr_left, 1);
	expect(0);
	ck_assert_str_eq(seen(), "");
}

/* The look ends without git. After the end of git, the next look goes on. */
TEST(change_of_an_aborted_gate_is_seen)
{
	change_in_open_gate();
	look();
	ck_assert_uint_eq(nr_seen, 0);
	ck_assert_uint_eq(nr_left, 1);
	submit("a", 1, second, REFD_GATE_ABORTED);
	expect(1);
	ck_assert_str_eq(seen(), " refs/heads/a0:");
}

/* A drained daemon refuses the end of git, which nobody records any more. */
TEST(change_of_a_refused_gate_is_seen)
{
	const struct refd_request close = { .request_id = 1 };
	int before;

	change_in_open_gate();
	before = nr_answers;
	scheduler_close(scheduler, &close, answered, NULL);
	await(before + 1);
	submit("a", 1, second, REFD_GATE_COMMITTED);
	ck_assert_int_eq(kind, REFD_ANSWER_RESULTS);
	ck_assert_int_eq(outcome, REFD_REJECTED);
	scheduler_resume(scheduler);
	expect(1);
	ck_assert_str_eq(seen(), " refs/heads/a0:");
}
