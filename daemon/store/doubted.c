/*
 * The happy path: nothing ever failed, and nobody looks here.
 *
 * Otherwise, of each store once, and again when its file system fails again:
 * what is newer than the last sync that went well is read from the disk
 * (proof.c), after a sync, so that what others have written since is there.
 *
 * What refd knows a repository by is not read: it is written anew, once, where it
 * is as new.
 *
 * What fails: a file is not on the disk as it was written, or can't be read
 * from there. Then what names objects in that store is refused, and the file
 * named, until it is removed, or the file system was mounted anew. All that
 * wait in one round are told the same, and as long as the first file that is
 * lost was not touched nothing is read again: reading may take minutes, and
 * keeps all others waiting.
 */
#include "daemon/store/doubted.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/proof.h"
#include "daemon/store/repos/repo_id.h"
#include "daemon/store/store_internal.h"

struct doubted {
	int fd;
	char name[16]; /* as objects_new's */
	uint64_t life, dev, ino;
};

/* A store that is not as it should be, and what was said of it. */
struct lacking {
	uint64_t life, dev, ino, round;
	int err;
	struct sys_stat st; /* of the first file */
	char *path, *why;
	struct lacking *next;
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
	    (odb_stores(repo->odb)->nr == 0 ||
		objects_walk(&walk, odb_stores(repo->odb)) != 0);
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

static char *text_of(int err, const char *path, size_t nr_lost)
{
	switch (err) {
	case -EBADMSG:
		if (nr_lost > 1)
			return repo_why("'%s' and %zu more were lost when "
					"their file system failed to sync (the "
					"daemon's log names all): remove them, "
					"and send them again",
			    path, nr_lost - 1);
		return repo_why("'%s' was lost when its file system failed to "
				"sync: remove it, and send it again",
		    path);
	case -EBUSY:
		return repo_why("'%s' may have been lost when its file system "
				"failed to sync, and a process has it mapped, "
				"so that the disk can't be read: end that "
				"process",
		    path);
	}
	return repo_why("'%s' may have been lost when its file system failed "
			"to sync, and can't be read (%s): mend that, or remove "
			"it and send it again",
	    path, strerror(-err));
}

static void free_lacking(struct lacking *l)
{
	if (l != NULL) {
		free(l->path);
		free(l->why);
	}
	free(l);
}

static struct lacking *take_lacking(struct store *s, const struct doubted *d)
{
	struct lacking **at = &s->lacking, *l;

	while ((l = *at) != NULL &&
	    (l->life != d->life || l->dev != d->dev || l->ino != d->ino))
		at = &l->next;
	if (l != NULL)
		*at = l->next;
	return l;
}

static bool is_still_lost(struct store *s, const struct lacking *l)
{
	struct sys_stat st;

	if (l->round == atomic_load(&s->barrier_round))
		return true;
	return l->err == -EBADMSG &&
	    SYS(s->sys, lstatat, SYS_TRUSTED, l->path, &st) == 0 &&
	    st.dev == l->st.dev && st.ino == l->st.ino &&
	    st.size == l->st.size && st.ctime_ns == l->st.ctime_ns;
}

struct reading {
	struct store *store;
	size_t nr_lost;
	struct sys_stat first;
};

static void found_lost(void *arg, const char *path, const struct sys_stat *st)
{
	struct reading *reading = arg;

	if (reading->nr_lost++ == 0)
		reading->first = *st;
	store_tell(reading->store, STORE_OBJECT_LOST, path,
	    "it is not on the disk as it was written");
}

/* Nothing: there is no memory, so it is read again. */
static struct lacking *note_lacking(struct store *s, const struct doubted *d,
    int err, const char *path, const struct reading *reading)
{
	struct lacking *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return NULL;
	*l = (struct lacking){ .life = d->life,
		.dev = d->dev,
		.ino = d->ino,
		.round = atomic_load(&s->barrier_round),
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

static int read_all(struct store *s, const struct doubted *d, int64_t since_ns,
    struct lacking **lost)
{
	struct reading reading = { .store = s };
	const struct proof proof = { s->sys, found_lost, &reading };
	char path[REFD_PATH_MAX];
	int r;

	r = proof_of_objects(&proof, d->fd, d->name,
	    since_ns == 0 ? INT64_MIN : since_ns - FS_SLACK_NS, path,
	    sizeof(path));
	if (r == 0)
		return 0;
	if (r != -EBADMSG)
		store_tell(s, STORE_OBJECT_LOST, path, strerror(-r));
	*lost = note_lacking(s, d, r, path, &reading);
	return r;
}

static char *prove(struct store *s, const struct doubted *d)
{
	struct doubts *doubts = s->repos.doubts;
	struct lacking *l = take_lacking(s, d);
	int64_t since_ns;
	unsigned nth;
	int r = 0;

	since_ns = doubts_since(doubts, d->life, d->dev, d->ino, &nth);
	if (since_ns == DOUBTS_NONE || l == NULL || !is_still_lost(s, l)) {
		free_lacking(l);
		l = NULL;
	}
	if (since_ns == DOUBTS_NONE)
		return NULL;
	if (l == NULL)
		r = read_all(s, d, since_ns, &l);
	if (l != NULL) {
		l->next = s->lacking;
		s->lacking = l;
		return repo_why("%s", l->why);
	}
	if (r < 0)
		return repo_why("out of memory");
	doubts_prove(doubts, d->life, d->dev, d->ino, nth);
	return NULL;
}

char *doubted_prove(struct store *s, const struct doubted *d)
{
	char *why;

	pthread_mutex_lock(&s->lacking_lock);
	why = prove(s, d);
	pthread_mutex_unlock(&s->lacking_lock);
	return why;
}

/* ---- what refd knows a repository by ---- */

/* Since when what is in its refd/ is in doubt. */
static int64_t id_since(struct store *s, struct repo *repo, struct sys_stat *st,
    unsigned *nth)
{
	if (!doubts_any(s->repos.doubts))
		return DOUBTS_NONE;
	if (SYS(s->sys, fstat, repo->refd_fd, st) < 0)
		return 0;
	return doubts_since(s->repos.doubts, repo->fs->mount, st->dev, st->ino,
	    nth);
}

bool doubted_has_id(struct store *s, struct repo *repo)
{
	struct sys_stat st;
	unsigned nth;

	return id_since(s, repo, &st, &nth) != DOUBTS_NONE;
}

static int write_id(struct store *s, const struct repo *repo)
{
	struct repo_id id;
	int r;

	r = repo_id_read(s->sys, repo->refd_fd, &id);
	if (r == 0)
		r = repo_id_write(s->sys, repo->refd_fd, &id, true);
	return r;
}

int doubted_write_id(struct store *s, struct repo *repo, unsigned *nth)
{
	struct sys_stat st;
	int64_t since_ns = id_since(s, repo, &st, nth);
	int r;

	if (since_ns == DOUBTS_NONE)
		return 0;
	r = SYS(s->sys, lstatat, repo->refd_fd, "id", &st);
	if (r < 0 || st.ctime_ns < since_ns - FS_SLACK_NS)
		return r;
	return write_id(s, repo);
}

void doubted_id_lasts(struct store *s, struct repo *repo, unsigned nth)
{
	struct sys_stat st;

	if (doubts_any(s->repos.doubts) &&
	    SYS(s->sys, fstat, repo->refd_fd, &st) == 0)
		doubts_prove(s->repos.doubts, repo->fs->mount, st.dev, st.ino,
		    nth);
}

void doubted_done(struct store *s)
{
	struct lacking *l;

	while ((l = s->lacking) != NULL) {
		s->lacking = l->next;
		free_lacking(l);
	}
}

void doubted_free(struct store *s, struct doubted *d)
{
	if (d != NULL && d->fd >= 0)
		SYS(s->sys, close, d->fd);
	free(d);
}
