/*
 * Old locks: the age, the process that has the file open, and the owner. A lock
 * of refd is a link of a file in refd/stage/.
 *
 * Git keeps a lock open only while it writes. A lock that no process has open
 * can still be in use, so no lock is removed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "client/doctor/doctor_internal.h"
#include "client/enable/owner.h"
#include "client/git/lockpid.h"
#include "proto/lib/age.h"
#include "proto/lib/lock_pid.h"

/* The writer of a younger lock is at work. */
#define OLD_S 60

struct lock {
	char *path;
	struct stat st;
	bool is_refds;
	char *holder; /* "git (pid 12)"; NULL: no visible process has it open */
	long named;   /* the process that git named; 0: none */
	bool runs;    /* NAMED */
};

struct locks {
	struct lock *list;
	size_t nr;
};

/* ---- finding locks ---- */

static bool ends_with(const char *s, const char *end)
{
	size_t len = strlen(s), tail = strlen(end);

	return len > tail && !strcmp(s + len - tail, end);
}

static void take_lock(struct locks *l, const char *path)
{
	struct lock lock = { 0 };

	if (lstat(path, &lock.st) < 0 || !S_ISREG(lock.st.st_mode) ||
	    time(NULL) - lock.st.st_mtime < OLD_S)
		return;
	lock.path = xstrdup(path);
	lock.named = lockpid_read(path, &lock.runs);
	l->list = xrealloc(l->list, (l->nr + 1) * sizeof(*l->list));
	l->list[l->nr++] = lock;
}

static void take_locks_below(struct locks *l, const char *dir, int depth)
{
	char *const paths[] = { (char *)dir, NULL };
	FTS *fts =
	    fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR | FTS_NOSTAT, NULL);
	FTSENT *at;

	while (fts && (at = fts_read(fts))) {
		if (at->fts_info == FTS_D && at->fts_level >= depth)
			fts_set(fts, at, FTS_SKIP);
		if (at->fts_info != FTS_D && at->fts_info != FTS_DP &&
		    !lock_pid_is(at->fts_name) &&
		    (ends_with(at->fts_name, ".lock") ||
			!strcmp(at->fts_name, "packed-refs.new")))
			take_lock(l, at->fts_path);
	}
	if (fts)
		fts_close(fts);
}

static void mark_refds(struct locks *l, const char *repo)
{
	char *dir = xasprintf("%s/refd/stage", repo);
	DIR *stage = opendir(dir);
	struct dirent *at;
	size_t i;

	while (stage && (at = readdir(stage)))
		for (i = 0; i < l->nr; i++)
			l->list[i].is_refds |=
			    at->d_ino == l->list[i].st.st_ino;
	if (stage)
		closedir(stage);
	free(dir);
}

/* Does a daemon serve the repository? */
static bool is_served(const char *repo)
{
	char *path = xasprintf("%s/refd/lock", repo);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	bool is = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0;

	if (fd >= 0)
		close(fd);
	free(path);
	return is;
}

/* ---- the processes ---- */

static int compare_paths(const void *a, const void *b)
{
	return strcmp(((const struct lock *)a)->path,
	    ((const struct lock *)b)->path);
}

static char *describe(long pid)
{
	char *file = xasprintf("/proc/%ld/comm", pid), *who;
	struct text name = { 0 };

	text_read_file(&name, file);
	who = xasprintf("%.*s (pid %ld)", (int)(name.len ? name.len - 1 : 0),
	    name.len ? name.data : "", pid);
	text_done(&name);
	free(file);
	return who;
}

static void note_files_of(struct locks *l, const char *pid)
{
	char *fds = xasprintf("/proc/%s/fd", pid), target[4096];
	DIR *dir = opendir(fds);
	struct dirent *at;
	struct lock *lock;
	ssize_t len;

	while (dir && (at = readdir(dir))) {
		len = readlinkat(dirfd(dir), at->d_name, target,
		    sizeof(target) - 1);
		if (len <= 0)
			continue;
		target[len] = '\0';
		lock = bsearch(&(struct lock){ .path = target }, l->list, l->nr,
		    sizeof(*lock), compare_paths);
		if (lock && !lock->holder)
			lock->holder = describe(strtol(pid, NULL, 10));
	}
	if (dir)
		closedir(dir);
	free(fds);
}

/* One look at all processes: an owner may have made thousands of locks. */
static void find_holders(struct locks *l)
{
	DIR *all = l->nr ? opendir("/proc") : NULL;
	struct dirent *at;
	uint64_t pid;

	if (l->nr)
		qsort(l->list, l->nr, sizeof(*l->list), compare_paths);
	while (all && (at = readdir(all)))
		if (parse_number(at->d_name, UINT32_MAX, &pid))
			note_files_of(l, at->d_name);
	if (all)
		closedir(all);
}

/* ---- findings ---- */

static void check_lock(struct doctor_repo *p, const struct lock *lock,
    bool served)
{
	char text[AGE_MAX];
	const char *age = age_text(time(NULL) - lock->st.st_mtime, text);
	const char *file = lock->path + strlen(p->name) + 1;
	char *taker;

	if (lock->is_refds && !served)
		doctor_found(p->d, FOUND_LOCK_OF_REFD, p->name, file,
		    "a lock of refd, %s old, and no daemon serves the "
		    "repository",
		    age);
	else if (lock->is_refds)
		doctor_found(p->d, FOUND_LOCK_HELD, p->name, file,
		    "held by the daemon, for %s", age);
	else if (lock->holder)
		doctor_found(p->d, FOUND_LOCK_HELD, p->name, file,
		    "held by %s, for %s", lock->holder, age);
	else if (lock->runs) {
		taker = describe(lock->named);
		doctor_found(p->d, FOUND_LOCK_HELD, p->name, file,
		    "taken by %s, %s ago", taker, age);
		free(taker);
	} else if (lock->named)
		doctor_found(p->d, FOUND_LOCK_STALE, p->name, file,
		    "%s old, and its writer, process %ld, has ended", age,
		    lock->named);
	else
		doctor_found(p->d, FOUND_LOCK_STALE, p->name, file,
		    "%s old, and no process has it open: its writer "
		    "may have died",
		    age);
}

/* Without packed-refs.lock, no process writes packed-refs.new. */
static void check_new(struct doctor_repo *p, const struct lock *lock)
{
	char *other = xasprintf("%s/packed-refs.lock", p->name);
	char age[AGE_MAX];

	if (access(other, F_OK) < 0)
		doctor_found(p->d, FOUND_PACKED_NEW, p->name, "packed-refs.new",
		    "packed-refs.new is %s old; while it exists, git cannot "
		    "pack or delete refs",
		    age_text(time(NULL) - lock->st.st_mtime, age));
	free(other);
}

void doctor_check_locks(struct doctor_repo *p)
{
	char *refs = xasprintf("%s/refs", p->name);
	char *worktrees = xasprintf("%s/worktrees", p->name);
	char *tables = xasprintf("%s/reftable", p->name);
	struct locks l = { 0 };
	bool served;
	size_t i;

	owner_enter(&p->owner);
	take_locks_below(&l, p->name, 1);
	take_locks_below(&l, refs, 1000);
	take_locks_below(&l, worktrees, 1000);
	take_locks_below(&l, tables, 1);
	mark_refds(&l, p->name);
	owner_leave();
	find_holders(&l);
	served = l.nr && is_served(p->name);
	for (i = 0; i < l.nr; i++) {
		if (ends_with(l.list[i].path, ".new"))
			check_new(p, &l.list[i]);
		else
			check_lock(p, &l.list[i], served);
		free(l.list[i].path);
		free(l.list[i].holder);
	}
	free(l.list);
	free(refs);
	free(worktrees);
	free(tables);
}
