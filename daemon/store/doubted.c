/*
 * The happy path: nothing ever failed, and nobody looks here.
 *
 * Otherwise, of each store once, and again when its file system fails again:
 * what is newer than the last sync that went well is read from the disk
 * (proof.c), after a sync, so that what others have written since is there.
 *
 * What fails: a file is not on the disk as it was written, or can't be read
 * from there. Then what names objects in that store is refused, and the file
 * named, until it is removed, or the file system was mounted anew.
 */
#include "daemon/store/doubted.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/proof.h"
#include "daemon/store/store_internal.h"

struct doubted {
	int fd;
	char name[16]; /* as objects_new's */
	uint64_t life, dev, ino;
};

bool doubted_is(struct store *s, int fd, const struct sys_stat *st)
{
	uint64_t life;
	unsigned nth;

	if (!doubts_any(s->repos.doubts))
		return false;
	return SYS(s->sys, mount_id, fd, &life) < 0 ||
	    doubts_since(s->repos.doubts, life, st->dev, st->ino, &nth) !=
	    DOUBTS_NONE;
}

/* ---- of a repository ---- */

static int64_t limit(void *arg, int fd, const struct sys_stat *st)
{
	return doubted_is(arg, fd, st) ? INT64_MIN : INT64_MAX;
}

static int found_one(void *arg, const struct objects_new *found)
{
	(void)arg;
	(void)found;
	return 1;
}

bool doubted_has(struct store *s, struct repo *repo)
{
	const struct objects_walk walk = { .sys = s->sys,
		.limit = limit,
		.found = found_one,
		.arg = s };

	return doubts_any(s->repos.doubts) &&
	    objects_walk(&walk, repo->fd) != 0;
}

/* ---- read ---- */

int doubted_keep(struct store *s, const struct objects_new *found,
    struct doubted **out)
{
	const struct sys_stat st = { .dev = found->dev, .ino = found->ino };
	struct doubted *d;
	int r;

	*out = NULL;
	if (!doubted_is(s, found->fd, &st))
		return 0;
	d = calloc(1, sizeof(*d));
	if (d == NULL)
		return -ENOMEM;
	d->dev = found->dev;
	d->ino = found->ino;
	snprintf(d->name, sizeof(d->name), "%s", found->name);
	d->fd = SYS(s->sys, openat, found->fd, ".", O_RDONLY | O_DIRECTORY, 0);
	r = d->fd < 0 ? d->fd : SYS(s->sys, mount_id, d->fd, &d->life);
	if (r < 0)
		doubted_free(s, d);
	else
		*out = d;
	return r;
}

static const char *say(int err, const char *path, char *buf, size_t size)
{
	switch (err) {
	case -EBADMSG:
		snprintf(buf, size,
		    "'%s' was lost when its file system failed to sync: "
		    "remove it, and send it again",
		    path);
		break;
	case -EBUSY:
		snprintf(buf, size,
		    "'%s' may have been lost when its file system failed to "
		    "sync, and a process has it mapped, so that the disk "
		    "can't be read: end that process",
		    path);
		break;
	default:
		snprintf(buf, size,
		    "'%s' may have been lost when its file system failed to "
		    "sync, and can't be read: %s",
		    path, strerror(-err));
		break;
	}
	return buf;
}

const char *doubted_prove(struct store *s, const struct doubted *d, char *buf,
    size_t size)
{
	struct doubts *doubts = s->repos.doubts;
	char path[REFD_PATH_MAX];
	int64_t since_ns;
	unsigned nth;
	int r;

	since_ns = doubts_since(doubts, d->life, d->dev, d->ino, &nth);
	if (since_ns == DOUBTS_NONE)
		return NULL;
	r = proof_of_objects(s->sys, d->fd, d->name,
	    since_ns == 0 ? INT64_MIN : since_ns - FS_SLACK_NS, path,
	    sizeof(path));
	if (r < 0)
		return say(r, path, buf, size);
	doubts_prove(doubts, d->life, d->dev, d->ino, nth);
	return NULL;
}

void doubted_free(struct store *s, struct doubted *d)
{
	if (d != NULL && d->fd >= 0)
		SYS(s->sys, close, d->fd);
	free(d);
}
