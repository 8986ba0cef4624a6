/*
 * The happy path: no sync ever failed, and no function here does anything.
 *
 * After a failed sync, memory and disk may differ. So every object store on the
 * file system is read back once, and again after every further failure. First a
 * sync writes the files of other processes to the disk. Then the files that are
 * newer than the last successful sync are read from the disk (readback.c).
 *
 * Failures: the disk has different content, or cannot be read. Updates that
 * name objects in this store are refused, with the name of the file, until the
 * file is removed or the file system is mounted again. All transactions of one
 * round of the barrier get the same answer. Reading may take minutes, and all
 * other readers wait meanwhile. So the store is not read again as long as the
 * first lost file is unchanged.
 */
#include "daemon/store/sync_failures/suspect_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/fs_type.h"
#include "daemon/store/sync_failures/readback.h"
#include "proto/limits.h"

struct suspect_store {
	int fd;
	enum refd_object_format format;
	char name[16]; /* as in struct objects_new */
	uint64_t life, dev, ino;
};

/* An object store that lacks objects, and the reason for clients. */
struct lacking {
	uint64_t life, dev, ino, round;
	int err;
	struct sys_stat st; /* of the first lost file */
	char *path, *why;
	struct lacking *next;
};

bool suspect_store_is(struct sync_failures *d, int fd,
    const struct sys_stat *st)
{
	uint64_t life;
	unsigned nth;

	if (!sync_failures_any(d))
		return false;
	return SYS(d->sys, mount_id, fd, &life) < 0 ||
	    sync_failures_since(d, life, st->dev, st->ino, &nth) !=
	    SYNC_FAILURES_NONE;
}

/* ---- selecting stores ---- */

static int64_t limit(void *arg, int fd, const struct sys_stat *st)
{
	return suspect_store_is(arg, fd, st) ? INT64_MIN : INT64_MAX;
}

bool suspect_store_any_of(struct sync_failures *d,
    const struct object_stores *stores)
{
	const struct objects_walk walk = { .sys = d->sys,
		.limit = limit,
		.arg = d };

	return sync_failures_any(d) &&
	    (stores->nr == 0 || objects_walk(&walk, stores) != 0);
}

/* ---- reading back ---- */

int suspect_store_keep(struct sync_failures *d, const struct objects_new *found,
    enum refd_object_format format, struct suspect_store **out)
{
	const struct sys_stat st = { .dev = found->dev, .ino = found->ino };
	struct suspect_store *one;
	int r;

	*out = NULL;
	if (!suspect_store_is(d, found->fd, &st))
		return 0;
	one = calloc(1, sizeof(*one));
	if (one == NULL)
		return -ENOMEM;
	one->format = format;
	one->dev = found->dev;
	one->ino = found->ino;
	snprintf(one->name, sizeof(one->name), "%s", found->name);
	one->fd =
	    SYS(d->sys, openat, found->fd, ".", O_RDONLY | O_DIRECTORY, 0);
	r = one->fd < 0 ? one->fd : SYS(d->sys, mount_id, one->fd, &one->life);
	if (r < 0)
		suspect_store_free(d, one);
	else
		*out = one;
	return r;
}

void suspect_store_next_round(struct sync_failures *d)
{
	atomic_fetch_add(&d->round, 1);
}

/* NULL: out of memory. */
static char *text_of(int err, const char *path, size_t nr_lost)
{
	char *text = NULL;
	int n;

	if (err == -EBADMSG && nr_lost > 1)
		n = asprintf(&text,
		    "'%s' and %zu more were lost when their file system failed "
		    "to sync (the daemon's log names all): remove them, and "
		    "send them again",
		    path, nr_lost - 1);
	else if (err == -EBADMSG)
		n = asprintf(&text,
		    "'%s' was lost when its file system failed to sync: remove "
		    "it, and send it again",
		    path);
	else if (err == -EBUSY)
		n = asprintf(&text,
		    "'%s' may have been lost when its file system failed to "
		    "sync, and a process has it mapped, so that the disk can't "
		    "be read: end that process",
		    path);
	else
		n = asprintf(&text,
		    "'%s' may have been lost when its file system failed to "
		    "sync, and can't be read (%s): mend that, or remove it and "
		    "send it again",
		    path, strerror(-err));
	return n < 0 ? NULL : text;
}

static void free_lacking(struct lacking *l)
{
	if (l != NULL) {
		free(l->path);
		free(l->why);
	}
	free(l);
}

static struct lacking *take_lacking(struct sync_failures *d,
    const struct suspect_store *one)
{
	struct lacking **at = &d->lacking, *l;

	while ((l = *at) != NULL &&
	    (l->life != one->life || l->dev != one->dev || l->ino != one->ino))
		at = &l->next;
	if (l != NULL)
		*at = l->next;
	return l;
}

static bool is_still_lost(const struct sync_failures *d,
    const struct lacking *l)
{
	struct sys_stat st;

	if (l->round == atomic_load(&d->round))
		return true;
	return l->err == -EBADMSG &&
	    SYS(d->sys, lstatat, SYS_TRUSTED, l->path, &st) == 0 &&
	    st.dev == l->st.dev && st.ino == l->st.ino &&
	    st.size == l->st.size && st.ctime_ns == l->st.ctime_ns;
}

struct suspect_reading {
	const struct suspect_store_report *report;
	size_t nr_lost;
	struct sys_stat first;
};

static void found_lost(void *arg, const char *path, const struct sys_stat *st)
{
	struct suspect_reading *reading = arg;

	if (reading->nr_lost++ == 0)
		reading->first = *st;
	reading->report->lost(reading->report->arg, path,
	    "it is not on the disk as it was written");
}

/* NULL: out of memory, so the store is read again. */
static struct lacking *note_lacking(const struct sync_failures *d,
    const struct suspect_store *one, int err, const char *path,
    const struct suspect_reading *reading)
{
	struct lacking *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return NULL;
	*l = (struct lacking){ .life = one->life,
		.dev = one->dev,
		.ino = one->ino,
		.round = atomic_load(&d->round),
		.err = err,
		.path = strdup(path),
		.why = text_of(err, path, reading->nr_lost),
		.st = reading->first };
	if (l->path == NULL || l->why == NULL) {
		free_lacking(l);
		return NULL;
	}
	return l;
}

static int read_all(const struct sync_failures *d,
    const struct suspect_store *one, int64_t since_ns,
    const struct suspect_store_report *report, struct lacking **lost)
{
	struct suspect_reading reading = { .report = report };
	const struct readback readback = { d->sys, one->format, found_lost,
		&reading };
	char path[REFD_PATH_MAX];
	int r;

	r = readback_objects(&readback, one->fd, one->name,
	    since_ns == 0 ? INT64_MIN : since_ns - FS_SLACK_NS, path,
	    sizeof(path));
	if (r == 0)
		return 0;
	if (r != -EBADMSG)
		report->lost(report->arg, path, strerror(-r));
	*lost = note_lacking(d, one, r, path, &reading);
	return r;
}

/* Under LACKING_LOCK. */
static int read_back(struct sync_failures *d, const struct suspect_store *one,
    const struct suspect_store_report *report, char **why)
{
	struct lacking *l = take_lacking(d, one);
	int64_t since_ns;
	unsigned nth;
	int r = 0;

	since_ns = sync_failures_since(d, one->life, one->dev, one->ino, &nth);
	if (since_ns == SYNC_FAILURES_NONE || l == NULL ||
	    !is_still_lost(d, l)) {
		free_lacking(l);
		l = NULL;
	}
	if (since_ns == SYNC_FAILURES_NONE)
		return 0;
	if (l == NULL)
		r = read_all(d, one, since_ns, report, &l);
	if (l != NULL) {
		l->next = d->lacking;
		d->lacking = l;
		*why = strdup(l->why);
		return l->err;
	}
	if (r == 0)
		sync_failures_read_back(d, one->life, one->dev, one->ino, nth);
	return r;
}

int suspect_store_read_back(struct sync_failures *d,
    const struct suspect_store *one, const struct suspect_store_report *report,
    char **why)
{
	int r;

	*why = NULL;
	mutex_lock(&d->lacking_lock);
	r = read_back(d, one, report, why);
	mutex_unlock(&d->lacking_lock);
	return r;
}

/* ---- directories whose files refd writes again ---- */

int64_t suspect_store_dir_since(struct sync_failures *d, int fd, uint64_t life,
    unsigned *nth)
{
	struct sys_stat st;

	if (!sync_failures_any(d))
		return SYNC_FAILURES_NONE;
	if (SYS(d->sys, fstat, fd, &st) < 0)
		return 0;
	return sync_failures_since(d, life, st.dev, st.ino, nth);
}

void suspect_store_dir_lasts(struct sync_failures *d, int fd, uint64_t life,
    unsigned nth)
{
	struct sys_stat st;

	if (sync_failures_any(d) && SYS(d->sys, fstat, fd, &st) == 0)
		sync_failures_read_back(d, life, st.dev, st.ino, nth);
}

void suspect_store_done(struct sync_failures *d)
{
	struct lacking *l;

	while ((l = d->lacking) != NULL) {
		d->lacking = l->next;
		free_lacking(l);
	}
}

void suspect_store_free(struct sync_failures *d, struct suspect_store *one)
{
	if (one != NULL && one->fd >= 0)
		SYS(d->sys, close, one->fd);
	free(one);
}
