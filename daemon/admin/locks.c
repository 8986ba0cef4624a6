/*
 * "refd locks --clear-dead": removes the locks that nobody holds.
 *
 * Happy path, for each repository:
 *	find	open the locks
 *	prove	look for locks older than this boot, then list the processes,
 *		again and again until each lock is dead or the time is over
 *		(dead_lock.h)
 *	ask	on a terminal
 *	remove	the dead locks
 *
 * Failures: if this process does not see all processes, or the file system can
 * belong to several machines, a holder may be out of sight, so nothing is
 * proved and nothing is removed. A lock without proof is kept, and the report
 * names a process that may hold the lock.
 *
 * Exit: 0 no lock is left; 1 a lock is left; 128 a repository could not be
 * checked.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/admin/admin.h"
#include "daemon/admin/locks_internal.h"
#include "daemon/base/fs_type.h"
#include "daemon/base/time.h"
#include "daemon/store/repos/lock_walk.h"
#include "daemon/store/repos/repo_internal.h"
#include "proto/lib/array.h"
#include "proto/lib/consent.h"
#include "proto/lib/lock_pid.h"
#include "proto/lib/worker.h"

/* Every lock keeps a descriptor open, so there is a limit. */
#define LOCKS_MAX 400
#define CAPITALS  "ABCDEFGHIJKLMNOPQRSTUVWXYZ_-0123456789"
#define LOOK_NS   (100 * NS_PER_MS)
/* For the flock of a removal. */
#define FLOCK_LOOKS 20
/* Longer than a push waits for a lock. */
#define WAIT_S 10
/* The limit of the work, to which the time of --wait is added. An owner can
 * hold the work up, for example by a file system of their own. */
#define CLEAR_SECONDS 3600

struct locks_options {
	bool clear_dead, yes, json;
	int wait_s;
};

static const struct command_option options[] = {
	{ OPTION_FLAG("clear-dead", 0, "remove the locks that nobody holds",
	      struct locks_options, clear_dead),
	    .required = true },
	{ OPTION_FLAG("yes", 0, "do not ask", struct locks_options, yes) },
	{ OPTION_NUMBER("wait", 0, "SECONDS",
	    "wait for the end of processes, for at most SECONDS",
	    struct locks_options, wait_s, 0, 24 * 3600) },
	{ OPTION_FLAG("json", 0, "print JSON, for programs",
	    struct locks_options, json) },
	{ 0 },
};

static const struct command command = {
	.name = "locks",
	.usage = "refd locks --clear-dead [--yes] [--wait SECONDS] [--json] "
		 "<repository>...",
	.arguments = "<repository>...",
	.purpose = "Removes the locks of refs that nobody holds, with a proof "
		   "for each.",
	.example = "refd locks --clear-dead /srv/git/project.git",
	.manual = "refd-locks(1)",
	.least = 1,
	.most = COMMAND_ARGUMENTS_ANY,
	.options = options,
};

/* ---- questions about a process, to root's process ---- */

struct process_question {
	int64_t doubt, pid;
};

static bool ask(const struct sys *sys, enum process_doubt doubt, long pid)
{
	const struct process_question q = { (int64_t)doubt, pid };

	(void)sys;
	return worker_tell(&q, sizeof(q)) != 0;
}

static int hear(void *arg, const char *data, size_t len)
{
	struct process_question q;

	(void)arg;
	if (len != sizeof(q))
		return -EINVAL;
	memcpy(&q, data, sizeof(q));
	return processes_answer(&sys_kernel, (enum process_doubt)q.doubt,
	    (long)q.pid);
}

/* ---- the search ---- */

struct found_locks {
	const struct sys *sys;
	int git_dir; /* borrowed: the common dir */
	struct found_lock *list;
	size_t nr, size;
	bool has_more; /* than LOCKS_MAX */
	struct ref_places places;
};

/* config.lock, index.lock and shallow.lock block no ref. */
static bool blocks_refs(const char *path)
{
	return strchr(path, '/') != NULL ||
	    strcmp(path, "packed-refs.lock") == 0 ||
	    strspn(path, CAPITALS) == lock_file_len(path);
}

/* lock_file_fn. Locks of refd, which have several names, are left out. */
static int add_lock(void *arg, const struct lock_file *file)
{
	const char *worktree = file->place->worktree;
	const int dirfd = file->place->dirfd;
	struct found_locks *all = arg;
	struct found_lock *grown, *f;
	uid_t owner;
	int r;

	if (!blocks_refs(file->path))
		return 0;
	if (all->nr == LOCKS_MAX) {
		all->has_more = true;
		return 0;
	}
	grown = array_room(all->list, all->nr, &all->size, sizeof(*grown));
	if (grown == NULL)
		return -ENOMEM;
	all->list = grown;
	f = &all->list[all->nr];
	memset(f, 0, sizeof(*f));
	r = dead_lock_open(&f->lock, all->sys, dirfd, file->path);
	if (r == -ENOENT || r == -ENOTDIR || r == -EMLINK || r == -ENOMEM)
		return r == -ENOMEM ? r : 0;
	if (r < 0) {
		f->lock.fd = -1;
		f->fate = LOCK_FAILED;
		f->err = r;
	} else {
		f->named = lock_pid_read(
		    lock_walk_open_pid(all->sys, dirfd, file->path), &owner);
	}
	if (asprintf(&f->name, "%s%s%s%s", *worktree ? "worktrees/" : "",
		worktree, *worktree ? "/" : "", file->path) < 0) {
		dead_lock_close(&f->lock, all->sys);
		return -ENOMEM;
	}
	all->nr++;
	return 0;
}

static void close_all(struct found_locks *all)
{
	size_t i;

	for (i = 0; i < all->nr; i++) {
		dead_lock_close(&all->list[i].lock, all->sys);
		free(all->list[i].name);
	}
	free(all->list);
	lock_places_close(&all->places, all->sys);
}

/* ---- proofs ---- */

static void find_older(struct found_locks *all)
{
	struct this_boot boot;
	size_t i;

	this_boot_find(all->sys, &boot);
	for (i = 0; i < all->nr; i++) {
		struct found_lock *f = &all->list[i];

		if (f->fate != LOCK_UNDECIDED)
			continue;
		f->not_older = dead_lock_not_older(&f->lock, all->sys, &boot);
		if (f->not_older == NULL)
			f->fate = LOCK_DEAD;
	}
}

/* Decides each undecided lock, and returns true if some are left. */
static bool decide(struct found_locks *all, const struct processes *running)
{
	bool left = false;
	size_t i;

	for (i = 0; i < all->nr; i++) {
		struct found_lock *f = &all->list[i];

		if (f->fate != LOCK_UNDECIDED)
			continue;
		f->holder = dead_lock_holder(&f->lock, running, &f->nr_holders);
		if (f->holder == NULL)
			f->fate = LOCK_DEAD;
		left |= f->holder != NULL;
	}
	return left;
}

/* RUNNING becomes the list of the processes, made after the locks were opened.
 * At the end it has only the processes that still run. */
static int prove(struct found_locks *all, struct processes *running,
    int64_t wait_ns)
{
	const struct sys *sys = all->sys;
	int64_t end_ns = SYS(sys, now_mono) + wait_ns;
	struct processes now = { 0 };
	size_t i;
	int r;

	find_older(all);
	r = processes_find(sys, (long)getpid(), ask, running);
	while (r == 0 && decide(all, running) && SYS(sys, now_mono) < end_ns) {
		SYS(sys, sleep_ns, LOOK_NS);
		r = processes_find(sys, (long)getpid(), ask, &now);
		if (r == 0)
			processes_keep(running, &now);
		processes_done(&now);
	}
	for (i = 0; i < all->nr; i++)
		if (all->list[i].fate == LOCK_UNDECIDED)
			all->list[i].fate = LOCK_KEPT;
	return r;
}

/* ---- consent and removal ---- */

static bool may_remove(const struct locks_options *opt, size_t nr)
{
	enum consent consent;
	char question[64];

	if (opt->yes)
		return true;
	snprintf(question, sizeof(question), "Remove %zu dead lock%s?", nr,
	    nr > 1 ? "s" : "");
	consent = consent_ask(question);
	if (consent == CONSENT_NOBODY)
		admin_say("nothing was removed: --yes removes the dead locks");
	else if (consent == CONSENT_NO)
		admin_say("nothing was removed");
	return consent == CONSENT_YES;
}

/* Recovery holds the flock for a moment, and so does this command in another
 * process. But everybody who may read the repository can hold the flock for any
 * time, so the wait has an end. */
static int take_flock(const struct found_locks *all)
{
	int i, r = -EAGAIN;

	for (i = 0; i < FLOCK_LOOKS && r == -EAGAIN; i++) {
		if (i > 0)
			SYS(all->sys, sleep_ns, LOOK_NS);
		r = SYS(all->sys, flock_try, all->git_dir);
	}
	return r;
}

static void remove_dead(struct found_locks *all, const char *path, bool as_json)
{
	const int r = take_flock(all);
	const struct sys *sys = all->sys;
	struct found_lock *f = all->list;

	for (; f < all->list + all->nr; f++) {
		if (f->fate != LOCK_DEAD)
			continue;
		f->err =
		    r < 0 ? r : dead_lock_remove(&f->lock, sys, all->git_dir);
		f->fate = f->err < 0 ? LOCK_FAILED : LOCK_REMOVED;
		locks_print(f, path, SYS(sys, now_wall), as_json);
	}
}

static size_t count(const struct found_locks *all, enum lock_fate fate)
{
	size_t i, nr = 0;

	for (i = 0; i < all->nr; i++)
		nr += all->list[i].fate == fate;
	return nr;
}

/* False: a lock is left. */
static bool clear(struct found_locks *all, const struct locks_options *opt,
    const char *path)
{
	size_t i, nr = count(all, LOCK_DEAD);

	for (i = 0; i < all->nr; i++)
		locks_print(&all->list[i], path, SYS(all->sys, now_wall),
		    opt->json);
	if (all->has_more)
		admin_say("'%s' has more than %d locks: run the command again",
		    path, LOCKS_MAX);
	if (nr > 0 && may_remove(opt, nr))
		remove_dead(all, path, opt->json);
	return count(all, LOCK_REMOVED) == all->nr && !all->has_more;
}

/* ---- one repository ---- */

/* May another machine hold a lock here? */
static int check_place(const struct sys *sys, const struct repo_place *place,
    char **why)
{
	uint64_t type;
	int r = SYS(sys, fs_type, place->fd, &type);

	if (r == 0 && !fs_type_has_our_clock(type)) {
		*why = repo_why("another machine may hold a lock in '%s', on a "
				"network file system or FUSE: no lock is "
				"proved dead there",
		    place->path);
		return -EXDEV;
	}
	return r;
}

/* Returns 1 if no lock is left, 0 if a lock is left, or a negative errno and
 * *WHY. */
static int clear_repo(const struct repos *repos,
    const struct locks_options *opt, const struct repo_place *place, char **why)
{
	struct repo repo = { .fd = place->fd };
	struct processes running = { 0 };
	struct found_locks all = { .sys = repos->sys, .git_dir = place->fd };
	size_t left = LOCK_WALK_WORK;
	bool is_clear = false;
	int r;

	r = lock_walk(all.sys, &repo, &all.places, &left, add_lock, &all);
	if (r == 0)
		r = prove(&all, &running, opt->wait_s * NS_PER_S);
	if (r == 0)
		is_clear = clear(&all, opt, place->path);
	else
		*why = repo_why("can't look for locks in '%s': %s", place->path,
		    r == -EUSERS ?
			"it has more than 4,000,000 entries, or 4,000 "
			"worktrees" :
			strerror(-r));
	processes_done(&running);
	close_all(&all);
	return r < 0 ? r : is_clear;
}

struct clearing {
	const char *arg;
	const struct locks_options *opt;
};

/* Returns the exit status. */
static int clear_in(void *data)
{
	const struct clearing *c = data;
	static const char *const roots[] = { "/" };
	struct repo_place place = { .fd = -1 };
	struct repos repos;
	const char *hidden = processes_hidden(&sys_kernel);
	char *why = NULL;
	int r;

	if (hidden != NULL) {
		admin_say("no lock can be proved dead: refd %s", hidden);
		return 128;
	}
	repos_init(&repos, &sys_kernel, NULL, roots, 1, 1);
	r = repo_find_named(&repos, c->arg, &place, &why) == REFD_OK ? 0 :
								       -ENOENT;
	if (r == 0)
		r = check_place(repos.sys, &place, &why);
	if (r == 0)
		r = clear_repo(&repos, c->opt, &place, &why);
	if (r < 0)
		admin_say("%s", why != NULL ? why : strerror(-r));
	free(why);
	if (place.fd >= 0)
		SYS(repos.sys, close, place.fd);
	repos_done(&repos);
	return r < 0 ? 128 : r == 0;
}

int admin_locks(int argc, char **argv)
{
	struct locks_options opt = { .wait_s = WAIT_S };
	int i, r, worst = 0;

	admin_parse(&command, &opt, &argc, &argv);
	umask(0);
	for (i = 0; i < argc; i++) {
		r = admin_as_owner((const char **)&argv[i], 128,
		    (struct work){ .run = clear_in,
			.hear = hear,
			.arg = &(struct clearing){ argv[i], &opt },
			.seconds = CLEAR_SECONDS + opt.wait_s,
			.free_seconds = WORKER_FREE_S + opt.wait_s });
		worst = r > worst ? r : worst;
	}
	return worst;
}
