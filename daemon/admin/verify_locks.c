/*
 * Locks and their owners.
 *
 * Happy path: no lock; a young lock of a writer at work; or a lock of a batch
 * of the running daemon.
 *
 * Findings: a lock of refd that no daemon will remove; an old lock of another
 * writer, with the process that has it open; packed-refs.new, because git does
 * not replace this file.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "daemon/admin/verify_internal.h"
#include "daemon/base/time.h"
#include "daemon/store/refs/token.h"
#include "proto/lib/lock_pid.h"
#include "proto/lib/time_text.h"

/* Git holds the lock of a ref much shorter. */
#define YOUNG_S    60
#define LOCKS_MAX  (16 * 1024 * 1024)
#define PACKED_NEW "packed-refs.new"

/* ---- processes ---- */

/* The pid of "<n>: FLOCK ADVISORY WRITE <pid> <maj>:<min>:<ino> ...", or 0. */
static long flock_line(const char *line, const struct sys_stat *st)
{
	unsigned long long ino;
	unsigned maj, min;
	long pid;

	if (sscanf(line, "%*d: FLOCK %*s %*s %ld %x:%x:%llu", &pid, &maj, &min,
		&ino) != 4 ||
	    ino != st->ino)
		return 0;
	/* /proc/locks has no device number of a btrfs subvolume, so only the
	 * inode counts there. */
	if (major(st->dev) != 0 && makedev(maj, min) != st->dev)
		return 0;
	return pid;
}

/* Does a daemon serve the repository? The kernel's list tells, because to try
 * the lock could keep a daemon out. */
static bool is_served(struct verify *v)
{
	struct sys_stat st;
	char *text, *line;
	long pid = 0;
	size_t len;

	if (SYS(v->sys, lstatat, v->repo.refd_fd, "lock", &st) < 0 ||
	    sys_read_file(v->sys, SYS_TRUSTED, "/proc/locks", LOCKS_MAX, &text,
		&len) < 0)
		return false;
	for (line = text; line != NULL && pid == 0;
	    line = strchr(line, '\n'), line += line != NULL)
		pid = flock_line(line, &st);
	free(text);
	return pid > 0;
}

/* ---- one lock ---- */

/* The batch whose token LOCK is, or 0 if the lock is not ours. */
static uint64_t batch_of(struct verify *v, const struct sys_stat *lock)
{
	struct sys_dirent entry;
	struct sys_dir *dir;
	uint64_t id, found = 0;
	struct sys_stat st;
	unsigned k;

	if (v->repo.stage_fd < 0 ||
	    SYS(v->sys, dir_open, v->repo.stage_fd, ".", &dir) < 0)
		return 0;
	while (found == 0 && SYS(v->sys, dir_next, dir, &entry) > 0)
		if (token_parse_name(entry.name, &id, &k) == 0 &&
		    SYS(v->sys, lstatat, v->repo.stage_fd, entry.name, &st) ==
			0 &&
		    st.dev == lock->dev && st.ino == lock->ino)
			found = id;
	SYS(v->sys, dir_close, dir);
	return found;
}

static bool is_live(struct verify *v, uint64_t batch)
{
	if (v->journal == NULL)
		return is_served(v);
	return v->is_daemon_up && batch >> JOURNAL_TOKEN_BITS == v->last_start;
}

static void check_lock(struct verify *v, const struct ref_place *place,
    const char *ref, const char *path, const struct sys_stat *st)
{
	const uint64_t age_s = lock_age_s(SYS(v->sys, now_wall) / NS_PER_S,
	    sys_stat_written_ns(st) / NS_PER_S);
	uint64_t batch = batch_of(v, st);
	char age[TIME_TEXT_MAX];
	struct lock_holder h;

	time_text_age((int64_t)age_s, age);
	if (batch != 0) {
		if (!is_live(v, batch))
			verify_found(v, FOUND_LOCK_OF_REFD, ref, path,
			    "a lock of refd's batch %016llx, %s old: the run "
			    "that took it has ended",
			    (unsigned long long)batch, age);
		return;
	}
	if (age_s < YOUNG_S)
		return;
	h = lock_pid_find(st->dev, st->ino,
	    lock_walk_open_pid(v->sys, place->dirfd, path));
	if (h.verdict == HOLDER_HAS_OPEN)
		verify_found(v, FOUND_LOCK_HELD, ref, path,
		    "a lock of another writer, %s old: process %ld has it "
		    "open",
		    age, h.pid);
	else if (h.verdict == HOLDER_RUNS)
		verify_found(v, FOUND_LOCK_HELD, ref, path,
		    "a lock of another writer, %s old: process %ld took it",
		    age, h.pid);
	else if (h.verdict == HOLDER_ENDED)
		verify_found(v, FOUND_LOCK_STALE, ref, path,
		    "a lock of another writer, %s old; process %ld, which took "
		    "it, is not visible to uid %u",
		    age, h.pid, (unsigned)geteuid());
	else
		verify_found(v, FOUND_LOCK_STALE, ref, path,
		    "a lock of another writer, %s old; no process visible to "
		    "uid %u has it open",
		    age, (unsigned)geteuid());
}

/* A process that packs refs holds packed-refs.lock, so without this lock the
 * file is a leftover. */
static void check_packed_new(struct verify *v, bool is_locked)
{
	struct sys_stat st;

	if (!is_locked &&
	    SYS(v->sys, lstatat, v->repo.fd, PACKED_NEW, &st) == 0)
		verify_found(v, FOUND_PACKED_NEW, "", PACKED_NEW,
		    "left by a process that ended while packing refs");
}

void verify_lock(struct verify *v, const struct ref_place *place,
    const char *name)
{
	char path[REFD_PATH_MAX], buf[REFD_PATH_MAX];
	const char *ref = "";
	bool is_packed = strcmp(name, "packed-refs") == 0;
	bool is_list = strcmp(name, "reftable/tables.list") == 0;
	struct sys_stat st;
	int r;

	if ((size_t)snprintf(path, sizeof(path), "%s.lock", name) >=
	    sizeof(path))
		return;
	if (!is_packed && !is_list)
		ref = verify_ref_name(place, name, buf);
	r = SYS(v->sys, lstatat, place->dirfd, path, &st);
	if (r == 0)
		check_lock(v, place, ref, path, &st);
	if (is_packed)
		check_packed_new(v, r == 0);
}
