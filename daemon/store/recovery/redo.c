/*
 * What the redo of both formats shares: reports, reading from the disk, and
 * removing the lock of another program that is in the way. Nothing is decided
 * about a record here: see files/recovery/redo_file.c and
 * tables/recovery/stack_refs.c.
 *
 * The happy path: after a power loss git's lock stands, and the holder is gone
 * with the machine. So the lock is older than this boot, and is removed.
 *
 * Failures: without the proof that the lock is older, the lock stays, and the
 * records are deferred. A list of all processes without the holder would be
 * another proof (dead_lock.h), but a confined daemon does not see other
 * processes. So the report names the command that sees them.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "daemon/store/recovery/redo.h"
#include "daemon/store/refs/dead_lock.h"
#include "proto/lib/shell_word.h"

/* A search below a name looks at this many entries at most. */
#define BELOW_WORK 10000
#define SUFFIX     ".lock"

const char redo_unlocked_text[] =
    "its lock was removed before it was published, and another writer has the "
    "reference now";

static void report(const struct replay *rp, enum store_finding finding,
    const char *ref, const char *text, bool is_line)
{
	const struct store_found found = { .finding = finding,
		.repo = rp->repo->path,
		.ref = ref,
		.text = text,
		.is_line = is_line };

	rp->report->found(rp->report->arg, &found);
}

void redo_report(struct replay *rp, enum store_finding finding, const char *ref,
    const char *text)
{
	report(rp, finding, ref, text, false);
}

void redo_report_line(struct replay *rp, enum store_finding finding,
    const char *ref, const char *text)
{
	report(rp, finding, ref, text, true);
}

int redo_read_disk(struct replay *rp, int dirfd, const char *path)
{
	int fd, r;

	if (!rp->is_memory_lost)
		return 0;
	fd = SYS(rp->sys, openat, dirfd, path,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	/* A link has no pages, so there is nothing to drop. */
	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
		return 0;
	if (fd < 0)
		return fd;
	r = SYS(rp->sys, drop_cache, fd);
	SYS(rp->sys, close, fd);
	return r;
}

/* Other processes of refd that remove locks hold the same flock, so only one
 * removes a lock at a time. */
static int remove_lock(const struct replay *rp, const struct dead_lock *l)
{
	int fd, r;

	fd = SYS(rp->sys, openat, rp->repo->fd, ".", O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return fd;
	r = SYS(rp->sys, flock_try, fd);
	if (r == 0)
		r = dead_lock_remove(l, rp->sys, fd);
	SYS(rp->sys, close, fd);
	return r;
}

/* NULL, or why the lock stays. */
static const char *clear(const struct replay *rp, int dirfd, const char *lock)
{
	struct dead_lock l;
	const char *why;
	int r = dead_lock_open(&l, rp->sys, dirfd, lock);

	if (r == -EMLINK)
		return "the lock has several names, as the locks of refd";
	if (r < 0)
		return "the lock cannot be read";
	why = rp->this_boot == NULL ?
	    "only a start of the daemon looks for a proof" :
	    dead_lock_not_older(&l, rp->sys, rp->this_boot);
	if (why == NULL && remove_lock(rp, &l) < 0)
		why = "the lock cannot be removed, or has changed";
	dead_lock_close(&l, rp->sys);
	return why;
}

bool redo_clear_dead(struct replay *rp, int dirfd, const char *path)
{
	char lock[REFD_PATH_MAX];

	if (token_lock_path(lock, path) < 0)
		return false;
	rp->lock_stays = clear(rp, dirfd, lock);
	if (rp->lock_stays == NULL)
		redo_report(rp, STORE_UNLOCKED, path,
		    "removed the lock of another program: it was older than "
		    "this boot, so its holder had ended");
	return rp->lock_stays == NULL;
}

struct below {
	struct replay *rp;
	int dirfd;
	char path[REFD_PATH_MAX];
	unsigned left;     /* of BELOW_WORK */
	bool any;          /* a lock was removed */
	const char *stays; /* replay.lock_stays of a lock that was not */
};

static void clear_below(struct below *b, size_t len);

/* NAME is in the directory of the first LEN bytes of the path. */
static void clear_entry(struct below *b, size_t len,
    const struct sys_dirent *entry)
{
	size_t nr = strlen(entry->name), tail = sizeof(SUFFIX) - 1;

	if (len + 1 + nr >= sizeof(b->path))
		return;
	b->path[len] = '/';
	memcpy(b->path + len + 1, entry->name, nr + 1);
	nr += len + 1;
	if (entry->type == DT_DIR || entry->type == DT_UNKNOWN)
		clear_below(b, nr);
	if (entry->type != DT_DIR && nr > len + 1 + tail &&
	    strcmp(b->path + nr - tail, SUFFIX) == 0) {
		b->path[nr - tail] = '\0';
		if (redo_clear_dead(b->rp, b->dirfd, b->path))
			b->any = true;
		else
			b->stays = b->rp->lock_stays;
	}
}

static void clear_below(struct below *b, size_t len)
{
	const struct sys *sys = b->rp->sys;
	struct sys_dirent entry;
	struct sys_dir *dir;

	b->path[len] = '\0';
	if (SYS(sys, dir_open, b->dirfd, b->path, &dir) < 0)
		return;
	while (b->left > 0 && SYS(sys, dir_next, dir, &entry) > 0) {
		b->left--;
		clear_entry(b, len, &entry);
	}
	SYS(sys, dir_close, dir);
}

bool redo_clear_dead_below(struct replay *rp, int dirfd, const char *path)
{
	struct below b = { .rp = rp, .dirfd = dirfd, .left = BELOW_WORK };
	size_t len = strlen(path);

	if (len >= sizeof(b.path))
		return false;
	memcpy(b.path, path, len + 1);
	clear_below(&b, len);
	rp->lock_stays = b.stays;
	return b.any;
}

void redo_report_locked(struct replay *rp, const char *name, bool is_line)
{
	char word[SHELL_WORD_MAX(REFD_PATH_MAX)];
	char text[sizeof(word) + 400];

	snprintf(text, sizeof(text),
	    "another writer's lock stands, and is not proved dead, because %s; "
	    "tried again later. \"refd locks --clear-dead %s\" removes the "
	    "lock if no process holds it",
	    rp->lock_stays != NULL ? rp->lock_stays :
				     "it is below the name of the ref",
	    shell_word(word, rp->repo->path));
	report(rp, STORE_DEFERRED, name, text, is_line);
}
