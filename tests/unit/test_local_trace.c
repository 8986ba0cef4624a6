/*
 * Proves that batches, checkpoints and recovery take the steps of the model of
 * one machine, docs/model/local.pml, in an order which the model allows: with a
 * crash or a power loss at each change of the disk, and with a lock that
 * somebody removed. The names of the steps, and the states before and after,
 * are read from the model, but not their conditions. The steps of the daemon
 * are seen in its system calls. The orders of those mutations of the model that
 * only change an order are refused.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/scripted_txn.h"
#include "tests/lib/suite.h"
#include "tests/lib/world_rig.h"

#define MODEL "docs/model/local.pml"
#define HEADS WORLD_REPO "/refs/heads/"

/* ---- the model ---- */

struct step {
	char name[16];
	uint32_t from, to; /* a bit for each state */
};

/* The daemon and the rounds of its checkpoint, and where each may be. */
static struct machine {
	struct step steps[64];
	size_t nr;
	uint32_t now;
} machines[2];

static uint32_t state_of(const char *name)
{
	static char names[32][16];
	unsigned i = 0;

	while (names[i][0] != '\0' && strcmp(names[i], name) != 0)
		i++;
	ck_assert_uint_lt(i, 31);
	strcpy(names[i], name);
	return UINT32_C(1) << i;
}

static void read_steps(struct machine *m, const char *text, const char *word)
{
	char from[16], to[16];
	struct step *s;

	for (m->nr = 0; (text = strstr(text, word)) != NULL;) {
		text += strlen(word);
		s = &m->steps[m->nr];
		/* The definition of the macro has small letters. */
		if (sscanf(text, "%15[A-Z], %15[a-z], %15[A-Z],", from, s->name,
			to) < 3)
			continue;
		s->from = state_of(from);
		s->to = state_of(to);
		ck_assert_uint_lt(++m->nr, 64);
	}
}

static void read_model(void)
{
	static char text[65536];
	FILE *f = fopen(MODEL, "r");
	size_t len;

	ck_assert_ptr_nonnull(f);
	len = fread(text, 1, sizeof(text) - 1, f);
	ck_assert(feof(f));
	fclose(f);
	text[len] = '\0';
	read_steps(&machines[0], text, " STEP(");
	read_steps(&machines[1], text, " ROUND(");
}

static bool is_at(const char *name)
{
	return ((machines[0].now | machines[1].now) & state_of(name)) != 0;
}

/* No system call shows a decision, and recovery has not always a lock to
 * remove. */
static const char silent[] = "look sweep clean";

/* NAMES: words. No name of a step is a part of another. */
static bool take_in(struct machine *m, const char *names)
{
	uint32_t next = 0, more;
	size_t i;

	for (i = 0; i < m->nr; i++)
		if ((m->now & m->steps[i].from) != 0 &&
		    strstr(names, m->steps[i].name) != NULL)
			next |= m->steps[i].to;
	for (more = next; more != 0; next |= more)
		for (i = 0, more = 0; i < m->nr; i++)
			if ((next & m->steps[i].from) != 0 &&
			    strstr(silent, m->steps[i].name) != NULL)
				more |= m->steps[i].to & ~next;
	if (next != 0)
		m->now = next;
	return next != 0;
}

/* NAMES: what the step may be. False: the model has no such step here. */
static bool take(const char *names)
{
	return take_in(&machines[0], names) || take_in(&machines[1], names);
}

/* ---- the steps of the daemon ---- */

static struct sys before; /* the calls of memfs */
static bool starts;       /* recovery */
static char trace[1024];
static const char *last_said;
static bool was_refused;

/* NAMES: the steps that a call may be. The next call of this kind belongs to
 * the same step, unless LAST_SAID is NULL. */
static void say(const char *names)
{
	if (was_refused || (last_said != NULL && strcmp(names, last_said) == 0))
		return;
	last_said = names;
	strcat(strcat(trace, names), "; ");
	ck_assert_uint_lt(strlen(trace), sizeof(trace) - 64);
	was_refused = !take(names);
}

/* The directory may be open. */
static bool is_named(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');

	return strcmp(slash != NULL ? slash + 1 : path, name) == 0;
}

static int seen_openat(const struct sys *sys, int dirfd, const char *path,
    int flags, mode_t mode)
{
	int fd = before.openat(sys, dirfd, path, flags, mode);

	if (fd >= 0 && !starts && (flags & O_ACCMODE) == O_RDONLY &&
	    is_named(path, "a"))
		say("check");
	if (fd >= 0 && !starts && strncmp(path, "checkpoint", 10) == 0)
		say("count");
	return fd;
}

/* Only the commit log is written by pwrite() under a lock, and synced by
 * fdatasync(). */
static ssize_t seen_pwrite(const struct sys *sys, int fd, const void *buf,
    size_t len, off_t offset)
{
	ssize_t n = before.pwrite(sys, fd, buf, len, offset);

	if (n >= 0 && !starts && memfs_exists(w->fs, HEADS "a.lock"))
		say("append");
	return n;
}

static int seen_fdatasync(const struct sys *sys, int fd)
{
	int r = before.fdatasync(sys, fd);

	if (r < 0)
		return r;
	if (!starts)
		say("flush forget");
	else if (trace[0] == '\0' || strcmp(trace, "open; ") == 0)
		say("open");
	else if (strstr(trace, "sync") != NULL)
		say("forget");
	else {
		last_said = NULL; /* two are no abort */
		say("abort");
	}
	return 0;
}

static int seen_syncfs(const struct sys *sys, int fd)
{
	int r = before.syncfs(sys, fd);

	if (r == 0)
		say("sync");
	return r;
}

static int seen_linkat(const struct sys *sys, int olddirfd, const char *oldpath,
    int newdirfd, const char *newpath)
{
	int r = before.linkat(sys, olddirfd, oldpath, newdirfd, newpath);

	if (r == 0 && is_named(newpath, "a.lock"))
		say("lock");
	return r;
}

static int seen_renameat(const struct sys *sys, int olddirfd,
    const char *oldpath, int newdirfd, const char *newpath)
{
	int r = before.renameat(sys, olddirfd, oldpath, newdirfd, newpath);

	if (r == 0 && is_named(newpath, "a")) {
		say("publish");
		last_said = NULL;
	}
	return r;
}

static int seen_unlinkat(const struct sys *sys, int dirfd, const char *path)
{
	int r = before.unlinkat(sys, dirfd, path);

	if (r == 0 && is_named(path, "a.lock"))
		say(starts ? "sweep release clean" : "release");
	/* A token: token.h. */
	if (r == 0 && !starts && strspn(path, "0123456789abcdef") == 16 &&
	    path[16] == '.')
		say("drop");
	return r;
}

/* ---- the stories ---- */

static void begin(const char *at)
{
	machines[0].now = state_of(at);
	machines[1].now = state_of("REST");
	trace[0] = '\0';
	last_said = NULL;
	was_refused = false;
	starts = strcmp(at, "DOWN") == 0;
}

static void set_up(void)
{
	struct sys *sys;

	read_model();
	w = world_new(memfs_new(), true);
	sys = (struct sys *)(uintptr_t)w->sys;
	before = *sys;
	sys->openat = seen_openat;
	sys->pwrite = seen_pwrite;
	sys->fdatasync = seen_fdatasync;
	sys->syncfs = seen_syncfs;
	sys->linkat = seen_linkat;
	sys->renameat = seen_renameat;
	sys->unlinkat = seen_unlinkat;
	begin("DOWN");
	wr_start();
	wr_ok("a=1");
	ck_assert_int_eq(world_checkpoint(w), 0);
}

/* True: the update of a ref, and a checkpoint, ended before change N. A kill
 * during a sync counts as a failed sync, which is not in the model. */
static bool work(bool is_kill, unsigned long n)
{
	struct txn *txn;
	bool is_ok;

	begin("IDLE");
	if (is_kill)
		memfs_crash_at(w->fs, n);
	else
		memfs_power_loss_at(w->fs, n);
	txn = world_apply(w, "a=2:1", false);
	is_ok = txn != NULL && txn->updates[0].status == REFD_OK &&
	    !memfs_was_hit(w->fs);
	if (txn != NULL)
		world_done(w, txn);
	if (is_ok)
		say("answer");
	if (is_ok && !is_kill)
		world_checkpoint(w);
	return !memfs_was_hit(w->fs);
}

CASE(.setup = set_up, .teardown = wr_teardown, .seconds = 60);

TEST(an_update_and_a_checkpoint)
{
	ck_assert(work(false, 100000));
	ck_assert_str_eq(trace,
	    "lock; check; append; flush forget; publish; release; drop; answer; "
	    "count; sync; flush forget; ");
	ck_assert(!was_refused && is_at("IDLE") && is_at("REST"));
}

static const struct end {
	const char *name;
	bool is_kill, unlocks, writes;
	enum memfs_data data;
	const char *step; /* that recovery takes at least once */
} ends[] = {
	{ "killed", true, false, false, MEMFS_DATA_ALL, "publish" },
	{ "unlocked", true, true, false, MEMFS_DATA_ALL, "lock; publish" },
	{ "overwritten", true, true, true, MEMFS_DATA_ALL, "abort" },
	{ "all is lost", false, false, false, MEMFS_DATA_NONE, "publish" },
	{ "names stay", false, false, false, MEMFS_DATA_NULS, "publish" },
	{ "all stays", false, false, false, MEMFS_DATA_ALL, "sync" },
};

/* After work(): what happens until the next start. */
static void happen(const struct end *e)
{
	struct memfs_choice choice = memfs_choose(1);
	char *five = world_text("@5\n");

	choice.data = e->data;
	choice.keep[0] = e->data == MEMFS_DATA_NONE ? 0 : SCRIPTED_ALL;
	if (e->is_kill)
		memfs_crash(w->fs);
	else
		memfs_power_loss(w->fs, &choice);
	world_crash(w);
	if (e->unlocks)
		wr_remove_locks();
	if (e->writes)
		scripted_git_writes(w, HEADS "a", five);
	free(five);
}

/* Without a record there is nothing to forget. */
static bool has_ended(void)
{
	return is_at("IDLE") ||
	    (is_at("SAFE") && strstr(trace, "publish") == NULL &&
		strstr(trace, "abort") == NULL);
}

TEST(ends_everywhere, .times = sizeof(ends) / sizeof(*ends))
{
	const struct end *e = &ends[_i];
	bool is_done = false, has_step = false;
	unsigned long n;

	for (n = 0; !is_done; n++) {
		wr_teardown();
		set_up();
		is_done = work(e->is_kill, n);
		ck_assert_msg(!was_refused, "%s, change %lu: %s", e->name, n,
		    trace);
		happen(e);
		begin("DOWN");
		ck_assert_int_eq(world_start(w), 0);
		ck_assert_msg(!was_refused && has_ended(),
		    "%s, change %lu, recovery: %s", e->name, n, trace);
		has_step = has_step || strstr(trace, e->step) != NULL;
	}
	ck_assert(has_step);
}

static const struct {
	const char *mutation, *from, *steps, *wrong;
} orders[] = {
	{ "READ_FIRST", "IDLE", "", "check" },
	{ "ANSWER_FIRST", "IDLE", "lock check append", "answer" },
	{ "PUBLISH_FIRST", "IDLE", "lock check", "publish" },
	{ "UNLOCK_FIRST", "IDLE", "lock check append flush", "release" },
	{ "FORGET_FIRST", "IDLE", "count", "forget" },
	{ "COUNT_LATE", "IDLE", "", "sync" },
	{ "READ_UNFLUSHED", "DOWN", "", "publish" },
	{ "ABORT_LATE", "DOWN", "open lock release", "clean" },
	{ "REDO_EACH", "DOWN", "open lock publish", "publish" },
	{ "FORGET_UNSYNCED", "DOWN", "open lock publish clean", "forget" },
	{ "a lock too early", "DOWN", "open publish clean sync", "lock" },
};

TEST(mutated_orders, .times = sizeof(orders) / sizeof(*orders))
{
	const char *rest = orders[_i].steps;
	char step[16];
	int len;

	begin(orders[_i].from);
	for (; sscanf(rest, "%15s%n", step, &len) == 1; rest += len)
		ck_assert_msg(take(step), "%s: %s", orders[_i].mutation, step);
	ck_assert_msg(!take(orders[_i].wrong), "%s is allowed",
	    orders[_i].mutation);
}
