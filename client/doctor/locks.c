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
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "client/base/walk.h"
#include "client/doctor/doctor_internal.h"
#include "client/git/lockpid.h"
#include "proto/lib/lock_pid.h"
#include "proto/lib/time_text.h"

/* The writer of a younger lock is at work. */
#define OLD_S 60

struct lock {
	char *path;
	struct stat st;
	bool is_refds;
	long named; /* the process that git named; 0: none */
	bool runs;  /* NAMED */
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

struct old_lock_search {
	struct locks *found;
	int levels; /* of directories, from 1 on */
};

static enum walk_next look(void *arg, const struct walk_at *at)
{
	const struct old_lock_search *s = arg;

	if (at->dir < 0 && !lock_pid_is(at->name) &&
	    (ends_with(at->name, ".lock") ||
		!strcmp(at->name, "packed-refs.new")))
		take_lock(s->found, at->path);
	return at->level < s->levels ? WALK_ON : WALK_PAST;
}

static void take_locks_below(struct locks *l, const char *dir, int levels)
{
	struct old_lock_search s = { l, levels };

	walk_below(dir, look, &s);
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

/* The open locks of all processes that this command can see. */
struct open_lock {
	char *path;
	int pid;
};

static struct {
	struct open_lock *list;
	size_t nr, size;
	time_t when; /* 0: never */
} opened;

static int compare_paths(const void *a, const void *b)
{
	return strcmp(((const struct open_lock *)a)->path,
	    ((const struct open_lock *)b)->path);
}

static bool is_lock(const char *path)
{
	return ends_with(path, ".lock") || ends_with(path, "/packed-refs.new");
}

static void note_locks_of(const char *pid)
{
	char *fds = xasprintf("/proc/%s/fd", pid), target[4096];
	DIR *dir = opendir(fds);
	struct dirent *at;
	ssize_t len;

	while (dir && (at = readdir(dir))) {
		len = readlinkat(dirfd(dir), at->d_name, target,
		    sizeof(target) - 1);
		target[len > 0 ? len : 0] = '\0';
		if (!is_lock(target))
			continue;
		opened.list = xroom(opened.list, opened.nr, &opened.size,
		    sizeof(*opened.list));
		opened.list[opened.nr++] =
		    (struct open_lock){ xstrdup(target), atoi(pid) };
	}
	if (dir)
		closedir(dir);
	free(fds);
}

static void note_locks(void)
{
	DIR *all = opendir("/proc");
	struct dirent *at;
	uint64_t pid;

	while (opened.nr)
		free(opened.list[--opened.nr].path);
	while (all && (at = readdir(all)))
		if (parse_number(at->d_name, INT_MAX, &pid))
			note_locks_of(at->d_name);
	if (all)
		closedir(all);
	if (opened.nr)
		qsort(opened.list, opened.nr, sizeof(*opened.list),
		    compare_paths);
	opened.when = time(NULL);
}

/* A look at all processes takes long, and an owner may have made thousands of
 * locks. A lock that is asked for is so old that the last look was later. */
int doctor_lock_holder(const char *path)
{
	const struct open_lock wanted = { .path = (char *)path };
	const struct open_lock *found;

	if (time(NULL) - opened.when > OLD_S / 2)
		note_locks();
	found = opened.nr ? bsearch(&wanted, opened.list, opened.nr,
				sizeof(wanted), compare_paths) :
			    NULL;
	return found ? found->pid : 0;
}

static char *describe(long pid)
{
	char *file = xasprintf("/proc/%ld/comm", pid), *who;
	struct text name = { 0 };

	text_read_file(&name, file, SMALL_FILE_BYTES);
	who = xasprintf("%.*s (pid %ld)", (int)(name.len ? name.len - 1 : 0),
	    name.len ? name.data : "", pid);
	text_done(&name);
	free(file);
	return who;
}

/* ---- findings ---- */

static void check_lock(struct doctor_repo *p, const struct lock *lock,
    bool served)
{
	char text[TIME_TEXT_MAX];
	const char *age = time_text_age(time(NULL) - lock->st.st_mtime, text);
	const char *file = lock->path + strlen(p->name) + 1;
	int holder = doctor_tell(TOLD_LOCK, lock->path);
	char *who;

	if (lock->is_refds && !served)
		doctor_found(p->d, FOUND_LOCK_OF_REFD, p->name, file,
		    "a lock of refd, %s old, and no daemon serves the "
		    "repository",
		    age);
	else if (lock->is_refds)
		doctor_found(p->d, FOUND_LOCK_HELD, p->name, file,
		    "held by the daemon, for %s", age);
	else if (holder > 0 || lock->runs) {
		who = describe(holder > 0 ? holder : lock->named);
		doctor_found(p->d, FOUND_LOCK_HELD, p->name, file,
		    holder > 0 ? "held by %s, for %s" : "taken by %s, %s ago",
		    who, age);
		free(who);
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
	char age[TIME_TEXT_MAX];

	if (access(other, F_OK) < 0)
		doctor_found(p->d, FOUND_PACKED_NEW, p->name, "packed-refs.new",
		    "packed-refs.new is %s old; while it exists, git cannot "
		    "pack or delete refs",
		    time_text_age(time(NULL) - lock->st.st_mtime, age));
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

	take_locks_below(&l, p->name, 1);
	take_locks_below(&l, refs, WALK_LEVELS_MAX);
	take_locks_below(&l, worktrees, WALK_LEVELS_MAX);
	take_locks_below(&l, tables, 1);
	mark_refds(&l, p->name);
	served = l.nr && is_served(p->name);
	for (i = 0; i < l.nr; i++) {
		if (ends_with(l.list[i].path, ".new"))
			check_new(p, &l.list[i]);
		else
			check_lock(p, &l.list[i], served);
		free(l.list[i].path);
	}
	free(l.list);
	free(refs);
	free(worktrees);
	free(tables);
}
