/*
 * The happy path: the file has one line per life with a sync. The line is
 * overwritten in place, and has a mark during a sync.
 *
 * Failures:
 *	a mark cannot be written		the sync may not begin
 *	the end of a sync cannot be written	the mark stays, and reports
 *		too much
 *	no memory to note a reading		the store is read again
 *	the file is damaged or unreadable, and an earlier process of this boot
 *		wrote it	until the next boot, every life counts as
 *		failed, also a new life
 * A disk that brings back an older content within one boot is not noticed.
 */
#include "daemon/store/sync_failures/sync_failures.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME     "syncs"
#define NAME_NEW "syncs.new"
/* With the id of the boot. */
#define HEAD "refd syncs 1 %s"
/* Syncing, records to redo, objects to read; life; SINCE_NS. */
#define LINE "%c%c%c %020" PRIu64 " %020" PRId64
/* The length of a HEAD and of a LINE. A line never crosses a page, so after a
 * crash a line is either old or new. */
#define LINE_LEN 64
#define FILE_MAX (16 * 1024 * 1024)
/* Stands for every life without a line. */
#define EVERY 0

/* An object directory that was read back. */
struct read_back {
	uint64_t dev, ino;
	struct read_back *next;
};

/*
 * The data that may be in memory alone after a failed sync.
 *
 *	event					NOTHING	OBJECTS	RECORDS
 *	a sync failed, or its process ended	RECORDS	RECORDS	-
 *	an earlier process noted objects	OBJECTS	-	-
 *	the records were deferred or redone	-	-	OBJECTS
 *
 * Struct read_back has the object stores that were read from the disk since.
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
	/* Of the latest sync under way; after a failure, of the first. */
	int64_t since_ns;
	unsigned nth; /* number of the failure */
	struct read_back *read_back;
};

/* ---- the file ---- */

static void pad(char line[LINE_LEN])
{
	size_t len = strlen(line);

	memset(line + len, ' ', LINE_LEN - len - 1);
	line[LINE_LEN - 1] = '\n';
}

static int write_life(struct sync_failures *d, const struct life *l)
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

static struct life *find(struct sync_failures *d, uint64_t id)
{
	size_t i;

	for (i = 0; i < d->nr; i++)
		if (d->lives[i].id == id)
			return &d->lives[i];
	return NULL;
}

static void raise_unsure(struct sync_failures *d, struct life *l,
    enum unsure unsure, int64_t since_ns)
{
	if (l->unsure == UNSURE_NOTHING || since_ns < l->since_ns)
		l->since_ns = since_ns;
	if (l->unsure < unsure)
		l->unsure = unsure;
	atomic_store(&d->any, true);
}

static struct life *add(struct sync_failures *d, uint64_t id)
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
		raise_unsure(d, l, every->unsure, every->since_ns);
	return l;
}

/* Finds the state of life ID, or the state of all lives if nothing is known
 * about ID alone, or NULL if there is no failure. */
static struct life *find_failed(struct sync_failures *d, uint64_t id)
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

/* Returns 1 if the line has no failure, and -EBADMSG if refd did not write the
 * line. */
static int read_line(struct sync_failures *d, const char *buf)
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
	raise_unsure(d, l,
	    flags[0] == 's' || flags[1] == 'r' ? UNSURE_RECORDS :
						 UNSURE_OBJECTS,
	    since);
	return 0;
}

/* A process syncs only after a whole line is written, so only whole lines
 * count. */
static int read_lives(struct sync_failures *d, const char *buf, size_t len)
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

static int parse(struct sync_failures *d, const char *buf, size_t len,
    const char *head)
{
	if (len < LINE_LEN || buf[LINE_LEN - 1] != '\n' ||
	    memcmp(buf, HEAD, sizeof(HEAD) - sizeof("%s")) != 0)
		d->unread = -EBADMSG;
	/* The file of a different boot is ignored. */
	else if (memcmp(buf, head, LINE_LEN) == 0)
		return read_lives(d, buf + LINE_LEN, len - LINE_LEN);
	return 0;
}

/* A power loss may leave any content, so no content keeps the daemon from
 * starting. */
static int read_file(struct sync_failures *d, int state_fd, const char *head,
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
	raise_unsure(d, every, UNSURE_RECORDS, 0);
	return 0;
}

/* Writes a new file, without lives that have no failure. */
static int make_file(struct sync_failures *d, int state_fd, const char *head)
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

int sync_failures_open(const struct sys *sys, int state_fd, const char *boot_id,
    bool is_first, struct sync_failures **out)
{
	struct sync_failures *d = calloc(1, sizeof(*d));
	char head[LINE_LEN];
	int r;

	if (d == NULL)
		return -ENOMEM;
	d->sys = sys;
	d->fd = -1;
	mutex_init(&d->mutex, MUTEX_INNER);
	mutex_init(&d->lacking_lock, MUTEX_FS);
	snprintf(head, sizeof(head), HEAD, boot_id);
	pad(head);
	r = read_file(d, state_fd, head, is_first);
	if (r == 0)
		r = make_file(d, state_fd, head);
	if (r < 0)
		sync_failures_free(d);
	else
		*out = d;
	return r;
}

int sync_failures_unread(const struct sync_failures *d)
{
	return d->unread;
}

static void forget_read_back(struct life *l)
{
	struct read_back *p;

	while ((p = l->read_back) != NULL) {
		l->read_back = p->next;
		free(p);
	}
}

void sync_failures_free(struct sync_failures *d)
{
	size_t i;

	if (d == NULL)
		return;
	for (i = 0; i < d->nr; i++)
		forget_read_back(&d->lives[i]);
	free(d->lives);
	if (d->fd >= 0)
		SYS(d->sys, close, d->fd);
	mutex_destroy(&d->lacking_lock);
	mutex_destroy(&d->mutex);
	free(d);
}

/* ---- a sync ---- */

/* Notes the begin of a sync. After a failure the time stays, because a later
 * sync proves nothing about data that were lost before. Otherwise the latest
 * SINCE_NS counts. True: the line in the file changes. */
static bool note_begin(struct life *l, int64_t since_ns)
{
	bool is_first = l->nr_syncing++ == 0;

	if (l->unsure != UNSURE_NOTHING ||
	    (!is_first && since_ns <= l->since_ns))
		return is_first;
	l->since_ns = since_ns;
	return true;
}

int sync_failures_begin(struct sync_failures *d, uint64_t life,
    int64_t since_ns)
{
	struct life *l;
	size_t nr;
	int r = 0;

	if (d == NULL)
		return 0;
	mutex_lock(&d->mutex);
	nr = d->nr;
	l = add(d, life);
	if (l != NULL && note_begin(l, since_ns)) {
		r = write_life(d, l);
		if (r < 0)
			l->nr_syncing--;
		/* A line that was never written is not in the file. */
		if (r < 0)
			d->nr = nr;
	}
	r = l == NULL ? -ENOMEM : r;
	atomic_store(&d->unmarked, r);
	mutex_unlock(&d->mutex);
	return r;
}

int sync_failures_unmarked(const struct sync_failures *d)
{
	return d == NULL ? 0 : atomic_load(&d->unmarked);
}

bool sync_failures_unmarked_changed(struct sync_failures *d, int *err)
{
	*err = sync_failures_unmarked(d);
	return atomic_exchange(&d->told_unmarked, *err) != *err;
}

void sync_failures_add(struct sync_failures *d, uint64_t life)
{
	struct life *l;

	if (d == NULL)
		return;
	mutex_lock(&d->mutex);
	/* A flush of one file can fail before the first sync of the life, so
	 * the life may be new. */
	l = add(d, life);
	if (l != NULL) {
		raise_unsure(d, l, UNSURE_RECORDS, l->since_ns);
		l->nth++;
		forget_read_back(l);
		write_life(d, l);
	}
	mutex_unlock(&d->mutex);
}

void sync_failures_end(struct sync_failures *d, uint64_t life)
{
	struct life *l;

	if (d == NULL)
		return;
	mutex_lock(&d->mutex);
	l = find(d, life);
	if (l != NULL && --l->nr_syncing == 0)
		write_life(d, l);
	mutex_unlock(&d->mutex);
}

/* ---- records ---- */

static bool is_at_least(struct sync_failures *d, uint64_t life,
    enum unsure unsure)
{
	const struct life *l;
	bool is;

	if (!sync_failures_any(d))
		return false;
	mutex_lock(&d->mutex);
	l = find_failed(d, life);
	is = l != NULL && l->unsure >= unsure;
	mutex_unlock(&d->mutex);
	return is;
}

bool sync_failures_has_rows(struct sync_failures *d, uint64_t life)
{
	return is_at_least(d, life, UNSURE_RECORDS);
}

bool sync_failures_is_unsure(struct sync_failures *d, uint64_t life)
{
	return is_at_least(d, life, UNSURE_OBJECTS);
}

void sync_failures_deferred(struct sync_failures *d, uint64_t life)
{
	struct life *l;

	if (!sync_failures_any(d))
		return;
	mutex_lock(&d->mutex);
	l = find(d, life);
	if (l != NULL && l->unsure == UNSURE_RECORDS) {
		l->unsure = UNSURE_OBJECTS;
		write_life(d, l);
	}
	mutex_unlock(&d->mutex);
}

void sync_failures_recovered(struct sync_failures *d)
{
	size_t i;

	if (d == NULL)
		return;
	for (i = 0; i < d->nr; i++)
		sync_failures_deferred(d, d->lives[i].id);
}

/* ---- objects ---- */

bool sync_failures_any(const struct sync_failures *d)
{
	return d != NULL && atomic_load(&d->any);
}

size_t sync_failures_count(struct sync_failures *d)
{
	size_t i, nr = 0;

	if (!sync_failures_any(d))
		return 0;
	mutex_lock(&d->mutex);
	for (i = 0; i < d->nr; i++)
		nr += d->lives[i].unsure != UNSURE_NOTHING;
	mutex_unlock(&d->mutex);
	return nr;
}

static bool was_read_back(const struct life *l, uint64_t dev, uint64_t ino)
{
	const struct read_back *p;

	for (p = l->read_back; p != NULL; p = p->next)
		if (p->dev == dev && p->ino == ino)
			return true;
	return false;
}

int64_t sync_failures_since(struct sync_failures *d, uint64_t life,
    uint64_t dev, uint64_t ino, unsigned *nth)
{
	int64_t since_ns = SYNC_FAILURES_NONE;
	const struct life *l;

	if (!sync_failures_any(d))
		return SYNC_FAILURES_NONE;
	mutex_lock(&d->mutex);
	l = find_failed(d, life);
	if (l != NULL && l->unsure != UNSURE_NOTHING &&
	    !was_read_back(l, dev, ino)) {
		since_ns = l->since_ns;
		*nth = l->nth;
	}
	mutex_unlock(&d->mutex);
	return since_ns;
}

void sync_failures_read_back(struct sync_failures *d, uint64_t life,
    uint64_t dev, uint64_t ino, unsigned nth)
{
	struct read_back *p = malloc(sizeof(*p));
	struct life *l;

	mutex_lock(&d->mutex);
	l = find(d, life);
	if (p != NULL && l != NULL && l->nth == nth &&
	    !was_read_back(l, dev, ino)) {
		*p = (struct read_back){ dev, ino, l->read_back };
		l->read_back = p;
		p = NULL;
	}
	mutex_unlock(&d->mutex);
	free(p);
}
