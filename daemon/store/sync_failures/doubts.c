/*
 * The happy path: a line for each life that was synced, with a mark while it
 * is, written over in its place.
 *
 * What fails: writing a mark; then the sync may not begin. Writing that one
 * has ended well, or failed: then the mark still stands, and says more than it
 * need. Memory, for what was proven: then it is proven again. Reading the file,
 * or what is in it, where a process before this one wrote it in this boot: then
 * every life is in doubt until the next one, also those that nobody has
 * asked of yet. The disk of the file itself, where that brings back what was
 * there before, within one boot: that is believed.
 */
#include "daemon/store/sync_failures/doubts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME     "syncs"
#define NAME_NEW "syncs.new"
/* Which boot's. */
#define HEAD "refd syncs 1 %s"
/* Syncing, records to redo, objects in doubt; life; since when. */
#define LINE "%c%c%c %020" PRIu64 " %020" PRId64
/* Of either: none lies in two pages, so that a kill leaves it old or new. */
#define LINE_LEN 64
#define FILE_MAX (16 * 1024 * 1024)
/* No life: each that has no line of its own. */
#define EVERY 0

/* A directory with objects. */
struct proven {
	uint64_t dev, ino;
	struct proven *next;
};

/*
 * What may be in memory alone after a failed sync.
 *
 *	event					NOTHING	OBJECTS	RECORDS
 *	a sync failed, or its process ended	RECORDS	RECORDS	-
 *	an earlier process noted objects	OBJECTS	-	-
 *	the records were deferred or redone	-	-	OBJECTS
 *
 * doubt() raises the state, and doubts_parked() lowers it. Struct proven says
 * which object stores were read from the disk since.
 */
enum unsure {
	UNSURE_NOTHING,
	UNSURE_OBJECTS,
	UNSURE_RECORDS /* and objects */
};

struct life {
	uint64_t id;
	unsigned nr_syncing;
	enum unsure unsure;
	/* Of the syncs under way; where objects are in doubt, of the first
	 * that failed. */
	int64_t since_ns;
	unsigned nth; /* failure */
	struct proven *proven;
};

/* ---- the file ---- */

static void pad(char line[LINE_LEN])
{
	size_t len = strlen(line);

	memset(line + len, ' ', LINE_LEN - len - 1);
	line[LINE_LEN - 1] = '\n';
}

static int write_life(struct doubts *d, const struct life *l)
{
	off_t at = (l - d->lives + 1) * LINE_LEN;
	char line[LINE_LEN];
	ssize_t n;

	snprintf(line, sizeof(line), LINE, l->nr_syncing > 0 ? 's' : '-',
	    l->unsure == UNSURE_RECORDS ? 'r' : '-',
	    l->unsure == UNSURE_NOTHING ? '-' : 'o', l->id, l->since_ns);
	pad(line);
	n = SYS(d->sys, pwrite, d->fd, line, LINE_LEN, at);
	if (n < 0)
		return (int)n;
	return n == LINE_LEN ? 0 : -ENOSPC;
}

static struct life *find(struct doubts *d, uint64_t id)
{
	size_t i;

	for (i = 0; i < d->nr; i++)
		if (d->lives[i].id == id)
			return &d->lives[i];
	return NULL;
}

static void doubt(struct doubts *d, struct life *l, enum unsure unsure,
    int64_t since_ns)
{
	if (l->unsure == UNSURE_NOTHING || since_ns < l->since_ns)
		l->since_ns = since_ns;
	if (l->unsure < unsure)
		l->unsure = unsure;
	atomic_store(&d->any, true);
}

static struct life *add(struct doubts *d, uint64_t id)
{
	struct life *grown, *every, *l = find(d, id);

	if (l != NULL)
		return l;
	grown = realloc(d->lives, (d->nr + 1) * sizeof(*grown));
	if (grown == NULL)
		return NULL;
	d->lives = grown;
	every = find(d, EVERY);
	l = &grown[d->nr++];
	memset(l, 0, sizeof(*l));
	l->id = id;
	if (every != NULL)
		doubt(d, l, every->unsure, every->since_ns);
	return l;
}

/* Whoever asks must not be told that nothing is known. NULL: nothing is. */
static struct life *find_doubted(struct doubts *d, uint64_t id)
{
	struct life *l = find(d, id), *every;

	if (l != NULL || (every = find(d, EVERY)) == NULL)
		return l;
	l = add(d, id);
	if (l == NULL)
		return every;
	write_life(d, l);
	return l;
}

/* 1: nothing is known against it. -EBADMSG: none that was written. */
static int read_line(struct doubts *d, const char *buf)
{
	char line[LINE_LEN + 1], flags[3];
	struct life *l;
	int64_t since;
	uint64_t id;

	memcpy(line, buf, LINE_LEN);
	line[LINE_LEN] = '\0';
	if (strlen(line) < LINE_LEN || line[LINE_LEN - 1] != '\n' ||
	    sscanf(line, "%c%c%c %" SCNu64 " %" SCNd64, &flags[0], &flags[1],
		&flags[2], &id, &since) != 5 ||
	    strchr("s-", flags[0]) == NULL || strchr("r-", flags[1]) == NULL ||
	    strchr("o-", flags[2]) == NULL)
		return -EBADMSG;
	if (memcmp(flags, "---", 3) == 0)
		return 1;
	l = add(d, id);
	if (l == NULL)
		return -ENOMEM;
	doubt(d, l,
	    flags[0] == 's' || flags[1] == 'r' ? UNSURE_RECORDS :
						 UNSURE_OBJECTS,
	    since);
	return 0;
}

/* Only whole lines count: who wrote another was told that he may not sync. */
static int read_lives(struct doubts *d, const char *buf, size_t len)
{
	int r;

	for (; len >= LINE_LEN; buf += LINE_LEN, len -= LINE_LEN) {
		r = read_line(d, buf);
		if (r == -EBADMSG)
			d->unread = r;
		else if (r < 0)
			return r;
	}
	return 0;
}

static int parse(struct doubts *d, const char *buf, size_t len,
    const char *head)
{
	if (len < LINE_LEN || buf[LINE_LEN - 1] != '\n' ||
	    memcmp(buf, HEAD, sizeof(HEAD) - sizeof("%s")) != 0)
		d->unread = -EBADMSG;
	/* Another boot's? */
	else if (memcmp(buf, head, LINE_LEN) == 0)
		return read_lives(d, buf + LINE_LEN, len - LINE_LEN);
	return 0;
}

/* A cut of the state directory's own file system may have left anything, and
 * is no reason not to start; nor need anything be known by then. */
static int read_file(struct doubts *d, int state_fd, const char *head,
    bool is_first)
{
	struct life *every;
	char *buf;
	size_t len;
	int r;

	r = sys_read_file(d->sys, state_fd, NAME, FILE_MAX, &buf, &len);
	if (r == -ENOENT || r == -ENOMEM)
		return r == -ENOENT ? 0 : r;
	if (r < 0) {
		d->unread = r;
	} else {
		r = parse(d, buf, len, head);
		free(buf);
		if (r < 0)
			return r;
	}
	if (is_first)
		d->unread = 0;
	if (d->unread == 0)
		return 0;
	every = add(d, EVERY);
	if (every == NULL)
		return -ENOMEM;
	doubt(d, every, UNSURE_RECORDS, 0);
	return 0;
}

/* Without those that nothing is known against. */
static int make_file(struct doubts *d, int state_fd, const char *head)
{
	size_t i;
	int r;

	r = SYS(d->sys, unlinkat, state_fd, NAME_NEW);
	if (r < 0 && r != -ENOENT)
		return r;
	d->fd = SYS(d->sys, openat, state_fd, NAME_NEW,
	    O_RDWR | O_CREAT | O_EXCL, 0600);
	if (d->fd < 0)
		return d->fd;
	r = SYS(d->sys, write_all, d->fd, head, LINE_LEN);
	for (i = 0; i < d->nr && r == 0; i++)
		r = write_life(d, &d->lives[i]);
	if (r == 0)
		r = SYS(d->sys, renameat, state_fd, NAME_NEW, state_fd, NAME);
	return r;
}

int doubts_open(const struct sys *sys, int state_fd, const char *boot_id,
    bool is_first, struct doubts **out)
{
	struct doubts *d = calloc(1, sizeof(*d));
	char head[LINE_LEN];
	int r;

	if (d == NULL)
		return -ENOMEM;
	d->sys = sys;
	d->fd = -1;
	pthread_mutex_init(&d->mutex, NULL);
	pthread_mutex_init(&d->lacking_lock, NULL);
	snprintf(head, sizeof(head), HEAD, boot_id);
	pad(head);
	r = read_file(d, state_fd, head, is_first);
	if (r == 0)
		r = make_file(d, state_fd, head);
	if (r < 0)
		doubts_free(d);
	else
		*out = d;
	return r;
}

int doubts_unread(const struct doubts *d)
{
	return d->unread;
}

static void forget_proven(struct life *l)
{
	struct proven *p;

	while ((p = l->proven) != NULL) {
		l->proven = p->next;
		free(p);
	}
}

void doubts_free(struct doubts *d)
{
	size_t i;

	if (d == NULL)
		return;
	for (i = 0; i < d->nr; i++)
		forget_proven(&d->lives[i]);
	free(d->lives);
	if (d->fd >= 0)
		SYS(d->sys, close, d->fd);
	pthread_mutex_destroy(&d->lacking_lock);
	pthread_mutex_destroy(&d->mutex);
	free(d);
}

/* ---- a sync ---- */

/* All that is known of it holds: the latest says most. But of what failed
 * before, no later sync says anything. True: the line is another one. */
static bool note_begin(struct life *l, int64_t since_ns)
{
	bool is_first = l->nr_syncing++ == 0;

	if (l->unsure != UNSURE_NOTHING ||
	    (!is_first && since_ns <= l->since_ns))
		return is_first;
	l->since_ns = since_ns;
	return true;
}

int doubts_begin(struct doubts *d, uint64_t life, int64_t since_ns)
{
	struct life *l;
	size_t nr;
	int r = 0;

	if (d == NULL)
		return 0;
	pthread_mutex_lock(&d->mutex);
	nr = d->nr;
	l = add(d, life);
	if (l != NULL && note_begin(l, since_ns)) {
		r = write_life(d, l);
		if (r < 0)
			l->nr_syncing--;
		/* A line that was never written is none of the file's. */
		if (r < 0)
			d->nr = nr;
	}
	r = l == NULL ? -ENOMEM : r;
	atomic_store(&d->unmarked, r);
	pthread_mutex_unlock(&d->mutex);
	return r;
}

int doubts_unmarked(const struct doubts *d)
{
	return d == NULL ? 0 : atomic_load(&d->unmarked);
}

bool doubts_unmarked_changed(struct doubts *d, int *err)
{
	*err = doubts_unmarked(d);
	return atomic_exchange(&d->told_unmarked, *err) != *err;
}

void doubts_failed(struct doubts *d, uint64_t life)
{
	struct life *l;

	if (d == NULL)
		return;
	pthread_mutex_lock(&d->mutex);
	l = find(d, life);
	if (l != NULL) {
		doubt(d, l, UNSURE_RECORDS, l->since_ns);
		l->nth++;
		forget_proven(l);
		write_life(d, l);
	}
	pthread_mutex_unlock(&d->mutex);
}

void doubts_end(struct doubts *d, uint64_t life)
{
	struct life *l;

	if (d == NULL)
		return;
	pthread_mutex_lock(&d->mutex);
	l = find(d, life);
	if (l != NULL && --l->nr_syncing == 0)
		write_life(d, l);
	pthread_mutex_unlock(&d->mutex);
}

/* ---- records ---- */

bool doubts_has_rows(struct doubts *d, uint64_t life)
{
	const struct life *l;
	bool has;

	if (!doubts_any(d))
		return false;
	pthread_mutex_lock(&d->mutex);
	l = find_doubted(d, life);
	has = l != NULL && l->unsure == UNSURE_RECORDS;
	pthread_mutex_unlock(&d->mutex);
	return has;
}

void doubts_parked(struct doubts *d, uint64_t life)
{
	struct life *l;

	if (!doubts_any(d))
		return;
	pthread_mutex_lock(&d->mutex);
	l = find(d, life);
	if (l != NULL && l->unsure == UNSURE_RECORDS) {
		l->unsure = UNSURE_OBJECTS;
		write_life(d, l);
	}
	pthread_mutex_unlock(&d->mutex);
}

void doubts_recovered(struct doubts *d)
{
	size_t i;

	if (d == NULL)
		return;
	for (i = 0; i < d->nr; i++)
		doubts_parked(d, d->lives[i].id);
}

/* ---- objects ---- */

bool doubts_any(const struct doubts *d)
{
	return d != NULL && atomic_load(&d->any);
}

size_t doubts_count(struct doubts *d)
{
	size_t i, nr = 0;

	if (!doubts_any(d))
		return 0;
	pthread_mutex_lock(&d->mutex);
	for (i = 0; i < d->nr; i++)
		nr += d->lives[i].unsure != UNSURE_NOTHING;
	pthread_mutex_unlock(&d->mutex);
	return nr;
}

static bool is_proven(const struct life *l, uint64_t dev, uint64_t ino)
{
	const struct proven *p;

	for (p = l->proven; p != NULL; p = p->next)
		if (p->dev == dev && p->ino == ino)
			return true;
	return false;
}

int64_t doubts_since(struct doubts *d, uint64_t life, uint64_t dev,
    uint64_t ino, unsigned *nth)
{
	int64_t since_ns = DOUBTS_NONE;
	const struct life *l;

	if (!doubts_any(d))
		return DOUBTS_NONE;
	pthread_mutex_lock(&d->mutex);
	l = find_doubted(d, life);
	if (l != NULL && l->unsure != UNSURE_NOTHING &&
	    !is_proven(l, dev, ino)) {
		since_ns = l->since_ns;
		*nth = l->nth;
	}
	pthread_mutex_unlock(&d->mutex);
	return since_ns;
}

void doubts_prove(struct doubts *d, uint64_t life, uint64_t dev, uint64_t ino,
    unsigned nth)
{
	struct proven *p = malloc(sizeof(*p));
	struct life *l;

	pthread_mutex_lock(&d->mutex);
	l = find(d, life);
	if (p != NULL && l != NULL && l->nth == nth &&
	    !is_proven(l, dev, ino)) {
		*p = (struct proven){ dev, ino, l->proven };
		l->proven = p;
		p = NULL;
	}
	pthread_mutex_unlock(&d->mutex);
	free(p);
}
