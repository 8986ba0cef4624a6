/*
 * Proves that locks and refs stay correct while repositories and worktrees
 * move. A full table of repositories drops a doomed opening whose lock is about
 * to be shared. A worktree that is gone never turns into the main worktree.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "daemon/store/repos/repo_internal.h"
#include "tests/lib/scripted_txn.h"
#include "tests/lib/suite.h"
#include "tests/lib/sweep.h"
#include "tests/lib/txn_help.h"

#define WORKTREE WORLD_REPO "/worktrees/wt"

static struct world *w;

static void setup(void)
{
	w = world_new(memfs_new(), true);
	ck_assert_int_eq(world_start(w), 0);
}

static void teardown(void)
{
	world_free(w);
}

static struct repo *get(const char *git_dir)
{
	struct repo *repo = world_repo(w, git_dir);

	ck_assert_ptr_nonnull(repo);
	return repo;
}

CASE(.setup = setup, .teardown = teardown, .seconds = 300);

TEST(full_table_lets_go_of_a_doomed_one)
{
	struct repo *repo;

	w->store.repos.max_open = 1;
	repo_put(&w->store.repos, get(WORLD_REPO));
	memfs_write(w->fs, WORLD_REPO "/config", "[core]\n\tbare = yes\n");
	repo = get(WORLD_REPO);
	ck_assert_uint_eq(repo->lock->refs, 1);
	ck_assert_uint_eq(memfs_bad_fds(w->fs), 0);
	repo_put(&w->store.repos, repo);
}

/* Creates NAME, seen from GIT_DIR. */
static enum refd_status create_at(const char *git_dir, const char *name,
    void (*before)(void))
{
	struct refd_update update = { .action = REFD_UPDATE,
		.name = name,
		.new_oid = world_oid('1') };
	struct refd_request req = { .verb = REFD_VERB_TRANSACTION,
		.request_id = 1,
		.git_dir = git_dir,
		.umask = 022,
		.updates = &update,
		.nr_updates = 1 };
	enum refd_status status;
	struct txn_update *u;
	struct txn_slice slice;
	struct batch win = { .slices = &slice, .nr_slices = 1 };
	struct txn *txn;

	refd_txid_make(&req.txid);
	txn = txn_help_own(&req);
	txn_lay_out(txn);
	txn->repo = get(git_dir);
	if (before != NULL)
		before();
	u = &txn->updates[0];
	slice = (struct txn_slice){ .txn = txn, .updates = &u, .nr = 1 };
	apply_batch(&w->store.pipeline->applier, &win);
	status = u->status;
	world_done(w, txn);
	return status;
}

static void make_worktree(void)
{
	memfs_write(w->fs, WORKTREE "/commondir", "../..\n");
	memfs_write(w->fs, WORKTREE "/HEAD", "ref: refs/heads/wt\n");
}

static void remove_worktree(void)
{
	const struct sys *sys = memfs_other(w->fs);

	SYS(sys, unlinkat, AT_FDCWD, WORKTREE "/commondir");
	SYS(sys, unlinkat, AT_FDCWD, WORKTREE "/HEAD");
	ck_assert_int_eq(SYS(sys, rmdirat, AT_FDCWD, WORKTREE), 0);
}

TEST(worktree_that_is_gone)
{
	make_worktree();
	ck_assert_int_ne(create_at(WORKTREE, "refs/bisect/x", remove_worktree),
	    REFD_OK);
	ck_assert(!memfs_exists(w->fs, WORLD_REPO "/refs/bisect/x"));
}

static void point_elsewhere(void)
{
	const struct sys *sys = memfs_other(w->fs);

	memfs_mkdirs(w->fs, "/srv/other.git/refs");
	ck_assert_int_eq(SYS(sys, unlinkat, AT_FDCWD, "/srv/link"), 0);
	memfs_symlink(w->fs, "/srv/other.git", "/srv/link");
}

TEST(path_that_leads_elsewhere_by_now)
{
	make_worktree();
	memfs_symlink(w->fs, WORKTREE, "/srv/link");
	ck_assert_int_ne(
	    create_at("/srv/link", "refs/bisect/x", point_elsewhere), REFD_OK);
	ck_assert(!memfs_exists(w->fs, "/srv/other.git/refs/bisect/x"));
	ck_assert(!memfs_exists(w->fs, WORLD_REPO "/refs/bisect/x"));
}

/* The reason why WORKTREE is no git-dir. */
static char *why_not(void)
{
	struct repo_place place;
	char *why = NULL;

	ck_assert_int_ne(repo_find(&w->store.repos, WORKTREE, &place, &why),
	    REFD_OK);
	ck_assert_ptr_nonnull(why);
	return why;
}

/* The target has the content of a worktree's commondir. */
TEST(commondir_that_is_a_link_is_not_read)
{
	const struct sys *sys = memfs_other(w->fs);

	make_worktree();
	memfs_write(w->fs, "/etc/secret", "../..\n");
	SYS(sys, unlinkat, AT_FDCWD, WORKTREE "/commondir");
	memfs_symlink(w->fs, "/etc/secret", WORKTREE "/commondir");
	free(why_not());
}

TEST(commondir_is_never_quoted)
{
	static const char *const texts[] = { "/secret/place\n", "secret\n",
		"../../../../secret\n" };
	char *why;
	size_t i;

	make_worktree();
	for (i = 0; i < 3; i++) {
		memfs_write(w->fs, WORKTREE "/commondir", texts[i]);
		why = why_not();
		ck_assert_msg(strstr(why, "secret") == NULL, "%s", why);
		free(why);
	}
}

/* An absolute path must lie below the roots as well. */
TEST(commondir_outside_of_the_roots)
{
	make_worktree();
	memfs_write(w->fs, WORKTREE "/commondir", "/elsewhere/r.git\n");
	memfs_write(w->fs, "/elsewhere/r.git/HEAD", "ref: refs/heads/main\n");
	memfs_mkdirs(w->fs, "/elsewhere/r.git/objects");
	memfs_mkdirs(w->fs, "/elsewhere/r.git/refs");
	free(why_not());
}

/* A git-dir whose common directory has a different owner. */
TEST(commondir_of_another)
{
	struct repo_place place;
	char *why;

	/* A daemon of root refuses the owner of this git-dir anyway. */
	if (geteuid() == 0)
		ck_assert_int_eq(seteuid(65534), 0);
	make_worktree();
	memfs_set_owner(w->fs, WORKTREE, 1001, 1001);
	why = why_not();
	ck_assert_ptr_nonnull(strstr(why, "same owner or group"));
	free(why);
	memfs_set_owner(w->fs, WORKTREE, 1001, 0);
	ck_assert_int_eq(repo_find(&w->store.repos, WORKTREE, &place, &why),
	    REFD_OK);
	SYS(memfs_sys(w->fs), close, place.fd);
	/* The leak sanitizer traces its process, which a change of the account
	 * forbids. */
	ck_assert_int_eq(seteuid(getuid()), 0);
	prctl(PR_SET_DUMPABLE, 1);
}

static int path_elsewhere(const struct sys *sys, int fd, char *path,
    size_t size)
{
	(void)sys;
	(void)fd;
	return snprintf(path, size, "/elsewhere/r.git") < (int)size ? 0 :
								      -ERANGE;
}

/* A link leads to the directory, which is moved out of the roots after the
 * opening. */
TEST(one_that_is_moved_out_of_the_roots)
{
	struct sys sys = *w->store.repos.sys;
	struct repos repos = w->store.repos;
	struct repo_place place;
	char *why;

	sys.fd_path = path_elsewhere;
	repos.sys = &sys;
	memfs_symlink(w->fs, WORLD_REPO, "/srv/link.git");
	ck_assert_int_eq(repo_find(&repos, "/srv/link.git", &place, &why),
	    REFD_NOREPO);
	ck_assert_ptr_nonnull(strstr(why, "not under a root"));
	free(why);
	ck_assert_uint_eq(memfs_bad_fds(w->fs), 0);
}

/* The kernel reports a failed write-back once. A failure that was found for
 * objects must count for a repository that is opened beside them later. */
TEST(one_file_system_of_objects_and_refs)
{
	struct repos *repos = &w->store.repos;
	struct repo *repo;
	struct fs *fs, *again;
	int fd;

	fd =
	    SYS(w->sys, openat, SYS_TRUSTED, "/srv", O_RDONLY | O_DIRECTORY, 0);
	ck_assert_int_eq(fs_of(repos, fd, &fs), 0);
	ck_assert_int_lt(fs->marker_fd, 0);
	repo = get(WORLD_REPO);
	ck_assert_ptr_eq(repo->fs, fs);
	ck_assert_int_ge(fs->marker_fd, 0);
	ck_assert_int_eq(fs_of(repos, fd, &again), 0);
	ck_assert_ptr_eq(again, fs);
	SYS(w->sys, close, fd);
	ck_assert_int_eq(world_checkpoint(w), 0);
	ck_assert(repo_is_there(repos, repo));
	fs_fail(repos, fs, -EIO);
	ck_assert(!repo_is_there(repos, repo));
	repo_put(repos, repo);
	ck_assert_uint_eq(memfs_bad_fds(w->fs), 0);
}

static bool is_away;

/* Out of the roots. The daemon's sandbox forbids links there. */
static void move_away(void)
{
	const struct sys *sys = memfs_other(w->fs);

	if (!is_away)
		ck_assert_int_eq(SYS(sys, renameat, AT_FDCWD, WORLD_REPO,
				     AT_FDCWD, "/away.git"),
		    0);
	is_away = true;
}

static int linkat_away(const struct sys *sys, int from, const char *name,
    int to, const char *new_name)
{
	(void)sys;
	(void)from;
	(void)name;
	(void)to;
	(void)new_name;
	move_away();
	return -EXDEV;
}

static int commit_then_move(void *arg, struct journal_row *rows, size_t nr,
    bool flush)
{
	int r = journal_commit(w->store.journal, rows, nr, flush);

	(void)arg;
	move_away();
	memfs_fail_call(w->fs, MEMFS_RENAMEAT, 0, -EXDEV);
	return r;
}

/* The repository moves while its locks are taken, or after the commit. */
TEST(norepo_of_one_that_is_moved_away, .times = 2)
{
	struct sys sys = *w->store.pipeline->applier.sys;

	is_away = false;
	sys.linkat = linkat_away;
	if (_i == 0)
		w->store.pipeline->applier.sys = &sys;
	else
		w->store.pipeline->applier.commit = commit_then_move;
	ck_assert_int_eq(create_at(WORLD_REPO, "refs/heads/x", NULL),
	    REFD_NOREPO);
	ck_assert(is_away);
	ck_assert(!memfs_exists(w->fs, "/away.git/refs/heads/x"));
	memfs_fail_none(w->fs);
}

/* Every call of an opening fails in turn. The opening then succeeds without the
 * call, or the answer permits a retry. The id stays, and so does the note that
 * shows an older copy of the journal or of the repository. */
TEST(a_failed_call_says_nothing_of_the_repository, .times = 4)
{
	static const int errors[] = { -EMFILE, -ENFILE, -ENOMEM, -EIO };
	static const char seen[] = WORLD_REPO "/refd/checkpoint";
	enum refd_status status;
	struct repo *repo;
	unsigned long n;
	char *why, *id, *note;

	repo_put(&w->store.repos, get(WORLD_REPO));
	id = memfs_read(w->fs, WORLD_REPO "/refd/id", NULL);
	note = memfs_read(w->fs, seen, NULL);
	/* A first note would have another LSN from here on. */
	ck_assert_int_eq(create_at(WORLD_REPO, "refs/heads/a", NULL), REFD_OK);
	ck_assert_uint_gt(journal_durable_lsn(w->store.repos.journal), 0);
	for (n = 0; n == 0 || memfs_was_hit(w->fs); n++) {
		ck_assert_msg(memfs_holds(w->fs, seen, note), "%s",
		    memfs_hit(w->fs));
		ck_assert_msg(memfs_holds(w->fs, WORLD_REPO "/refd/id", id),
		    "%s", memfs_hit(w->fs));
		repos_trim(&w->store.repos, -1);
		memfs_fail(w->fs, n, errors[_i]);
		repo =
		    repos_get(&w->store.repos, WORLD_REPO, NULL, &status, &why);
		if (repo != NULL) {
			repo_put(&w->store.repos, repo);
			continue;
		}
		ck_assert_msg(status == REFD_BUSY || status == REFD_IO,
		    "%s: %s (%s)", memfs_hit(w->fs), refd_status_name(status),
		    why);
		free(why);
	}
	memfs_fail_none(w->fs);
	ck_assert_uint_gt(n, 20);
	free(note);
	free(id);
}

static void cut_and_start(void)
{
	struct memfs_choice choice = memfs_choose(1);

	choice.data = MEMFS_DATA_NONE;
	choice.keep[0] = choice.keep[1] = 0;
	memfs_power_loss(w->fs, &choice);
	world_crash(w);
	ck_assert_int_eq(world_start(w), 0);
}

/* The client may spell the path in any way. */
TEST(recovery_knows_the_worktree)
{
	static const char *const spellings[] = { WORKTREE, WORKTREE "/",
		WORKTREE "/.", "/srv/link" };
	size_t i;

	for (i = 0; i < 4; i++) {
		world_free(w);
		setup();
		make_worktree();
		memfs_symlink(w->fs, WORKTREE, "/srv/link");
		ck_assert_int_eq(create_at(spellings[i], "refs/bisect/x", NULL),
		    REFD_OK);
		ck_assert(memfs_exists(w->fs, WORKTREE "/refs/bisect/x"));
		cut_and_start();
		ck_assert_msg(memfs_exists(w->fs, WORKTREE "/refs/bisect/x"),
		    "%s", spellings[i]);
		ck_assert(!memfs_exists(w->fs, WORLD_REPO "/refs/bisect/x"));
	}
}

/* The id was not yet synced, so no record names the id. */
TEST(id_that_a_power_loss_left_empty, .times = 2)
{
	static const char zeroes[100];

	memfs_mkdirs(w->fs, WORLD_REPO "/refd");
	memfs_write_bytes(w->fs, WORLD_REPO "/refd/id", zeroes,
	    _i == 0 ? 0 : sizeof(zeroes));
	ck_assert_int_eq(create_at(WORLD_REPO, "refs/heads/x", NULL), REFD_OK);
	cut_and_start();
	ck_assert(memfs_exists(w->fs, WORLD_REPO "/refs/heads/x"));
}

/* A copy by hard links (cp -al) shares all files with the original. */
TEST(a_copy_by_hard_links_has_a_lock_of_its_own)
{
	const struct sys *sys = memfs_other(w->fs);
	struct repo *repo;
	int fd;

	memfs_write(w->fs, "/srv/copy-lock", "");
	memfs_mkdirs(w->fs, WORLD_REPO "/refd");
	ck_assert_int_eq(SYS(sys, linkat, AT_FDCWD, "/srv/copy-lock", AT_FDCWD,
			     WORLD_REPO "/refd/lock"),
	    0);
	repo = get(WORLD_REPO);
	fd = SYS(sys, openat, AT_FDCWD, "/srv/copy-lock", O_RDWR, 0);
	ck_assert_int_eq(SYS(sys, flock_try, fd), 0);
	SYS(sys, close, fd);
	fd = SYS(sys, openat, AT_FDCWD, WORLD_REPO "/refd/lock", O_RDWR, 0);
	ck_assert_int_eq(SYS(sys, flock_try, fd), -EAGAIN);
	SYS(sys, close, fd);
	repo_put(&w->store.repos, repo);
}

#define COPY "/srv/copy.git"

/* A repository and its copy by hard links, with x at 1. No logs: refd leaves a
 * log with two names to git. */
static const char *const pair[] = { WORLD_REPO, COPY };

struct copied {
	struct world *w;
	int first; /* of the pair, to be opened */
	struct {
		struct scripted_txn h; /* the last transaction, of x to 2 */
		bool is_told_ok;
		char value;
	} of[2];
};

static void *set_up_copy(struct memfs *fs, void *arg)
{
	static const char *const shared[] = { "HEAD", "config", "refd/id",
		"refd/lock", "refs/heads/x" };
	const struct sys *sys = memfs_other(fs);
	struct copied *s = calloc(1, sizeof(*s));
	char from[64], to[64];
	size_t i;

	s->first = arg != NULL;
	s->of[0].value = s->of[1].value = '1';
	s->w = world_new(fs, true);
	s->w->packed_least = SIZE_MAX;
	ck_assert_int_eq(world_start(s->w), 0);
	world_done(s->w, world_apply(s->w, "x=1", false));
	ck_assert_int_eq(world_stop(s->w), 0);
	memfs_mkdirs(fs, COPY "/refd");
	memfs_mkdirs(fs, COPY "/objects/pack");
	memfs_mkdirs(fs, COPY "/refs/heads");
	for (i = 0; i < sizeof(shared) / sizeof(*shared); i++) {
		snprintf(from, sizeof(from), WORLD_REPO "/%s", shared[i]);
		snprintf(to, sizeof(to), COPY "/%s", shared[i]);
		ck_assert_int_eq(SYS(sys, linkat, AT_FDCWD, from, AT_FDCWD, to),
		    0);
	}
	scripted_sync(s->w);
	return s;
}

static bool move(struct copied *s, int at, const char *spec)
{
	struct txn *txn = world_begin_in(s->w, pair[at], spec, false);

	if (txn == NULL)
		return false;
	s->of[at].h = (struct scripted_txn){ .w = s->w, .txid = txn->req.txid };
	world_batch(s->w, &txn, 1);
	s->of[at].is_told_ok = txn->updates[0].status == REFD_OK;
	world_done(s->w, txn);
	return s->of[at].is_told_ok;
}

static int move_both(void *state)
{
	struct copied *s = state;
	int r = world_start(s->w);

	if (r < 0)
		return r;
	move(s, s->first, "x=2:1");
	move(s, 1 - s->first, "x=2:1");
	return 0;
}

static int start_again(void *state)
{
	struct copied *s = state;

	world_crash(s->w);
	return world_start(s->w);
}

static const char *check_one(struct copied *s, int at)
{
	static char text[256];
	char path[64], *holds, want[] = "@1\n";
	enum refd_status status = REFD_PENDING;
	bool is;

	if (s->of[at].h.w != NULL)
		status = scripted_status(&s->of[at].h, 0);
	if (s->of[at].is_told_ok && status != REFD_OK)
		return "an acknowledged update is missing";
	if (status == REFD_OK && s->of[at].value == '1')
		s->of[at].value = '2';
	want[1] = s->of[at].value;
	snprintf(path, sizeof(path), "%s/refs/heads/x", pair[at]);
	holds = world_text(want);
	is = memfs_holds(s->w->fs, path, holds);
	free(holds);
	snprintf(text, sizeof(text), "%s: the answer by id and the disk differ",
	    pair[at]);
	return is ? NULL : text;
}

static const char *check_both(void *state, const struct sweep_now *now)
{
	const struct sys *sys;
	struct copied *s = state;
	struct sys_stat locks[2];
	const char *what;
	int at;

	if (now->when == SWEEP_ALIVE)
		return NULL;
	for (at = 0; at < 2; at++) {
		what = check_one(s, at);
		if (what != NULL)
			return what;
	}
	/* Neither has stopped, and each has a lock of its own. */
	for (at = 0; at < 2; at++) {
		if (!move(s, at, "x=3"))
			return "a repository has stopped";
		s->of[at].value = '3';
	}
	sys = memfs_other(s->w->fs);
	SYS(sys, lstatat, AT_FDCWD, WORLD_REPO "/refd/lock", &locks[0]);
	SYS(sys, lstatat, AT_FDCWD, COPY "/refd/lock", &locks[1]);
	return locks[0].ino == locks[1].ino ? "the lock is shared" :
					      world_litter(s->w);
}

static void tear_down_both(void *state)
{
	struct copied *s = state;

	world_free(s->w);
	free(s);
}

TEST(a_copy_by_hard_links_stopped_anywhere, .times = 6)
{
	static const int errs[] = { -EIO, 0 };
	struct sweep_report report = { 0 };
	struct sweep s = { .name = "copy",
		.arg = _i % 2 == 0 ? NULL : &w,
		.setup = set_up_copy,
		.run = move_both,
		.recover = start_again,
		.check = check_both,
		.done = tear_down_both,
		.choices = 3 };
	bool ok = _i / 2 == 0 ? sweep_crash(&s, &report) :
	    _i / 2 == 1       ? sweep_power_loss(&s, &report) :
				sweep_errno(&s, errs, &report);

	ck_assert_msg(ok, "%s", report.text);
	ck_assert_uint_gt(report.points, 40);
}

/* Another daemon starts, replaces a lock file with two names, and keeps the new
 * one locked. */
static void another_starts(struct memfs *fs, void *arg)
{
	const struct sys *sys = memfs_other(fs);
	int *held = arg, fd;

	fd = SYS(sys, openat, AT_FDCWD, WORLD_REPO "/refd/lock",
	    O_RDWR | O_CREAT, 0600);
	*held = SYS(sys, flock_try, fd) == 0;
	if (*held) {
		SYS(sys, unlinkat, AT_FDCWD, WORLD_REPO "/refd/lock");
		SYS(sys, close, fd);
		fd = SYS(sys, openat, AT_FDCWD, WORLD_REPO "/refd/lock",
		    O_RDWR | O_CREAT, 0600);
		ck_assert_int_eq(SYS(sys, flock_try, fd), 0);
	}
}

/* The lock that was replaced has a single name afterwards, in the copy. */
TEST(a_lock_that_another_daemon_replaces)
{
	unsigned long n, nr_held = 0;
	enum refd_status status;
	struct repo *repo;
	static int held; /* the last call can come in teardown() */
	char *why = NULL;

	for (n = 0; held >= 0 && n < 100; n++) {
		teardown();
		setup();
		memfs_write(w->fs, "/srv/copy-lock", "");
		memfs_mkdirs(w->fs, WORLD_REPO "/refd");
		ck_assert_int_eq(SYS(memfs_other(w->fs), linkat, AT_FDCWD,
				     "/srv/copy-lock", AT_FDCWD,
				     WORLD_REPO "/refd/lock"),
		    0);
		held = -1;
		memfs_between(w->fs, n, another_starts, &held);
		repo =
		    repos_get(&w->store.repos, WORLD_REPO, NULL, &status, &why);
		ck_assert_msg(held != 1 || repo == NULL,
		    "call %lu: two daemons have the repository", n);
		nr_held += held == 1;
		if (repo != NULL)
			repo_put(&w->store.repos, repo);
		else
			free(why);
	}
	ck_assert_uint_gt(nr_held, 5);
}

/* The path looks like the path of a worktree. */
TEST(repository_in_a_directory_called_worktrees)
{
	static const char path[] = "/srv/worktrees/s.git";
	char name[128];

	memfs_mkdirs(w->fs, "/srv/worktrees/s.git/refs/heads");
	memfs_write(w->fs, "/srv/worktrees/s.git/HEAD",
	    "ref: refs/heads/main\n");
	memfs_write(w->fs, "/srv/worktrees/s.git/config", "");
	ck_assert_int_eq(create_at(path, "refs/bisect/x", NULL), REFD_OK);
	cut_and_start();
	snprintf(name, sizeof(name), "%s/refs/bisect/x", path);
	ck_assert(memfs_exists(w->fs, name));
}

/* A ref that is unreadable for the daemon would end the next recovery. */
TEST(umask_takes_nothing_from_the_daemon)
{
	struct repo repo = { .shared_perm = 0 };

	ck_assert_uint_eq(repo_file_mode(repo.shared_perm, 0777), 0600);
	ck_assert_uint_eq(repo_dir_mode(repo.shared_perm, 0777), 0700);
	ck_assert_uint_eq(repo_file_mode(repo.shared_perm, 0022), 0644);
}
