/*
 * Rewriting packed-refs: without some names, with others.
 *
 * Happy path:
 *	begin	take a snapshot, open the file once more (to keep it open
 *		after), write packed-refs.new, fsync it, or leave that to the
 *		caller
 *	finish	rename; the new snapshot is the cache; the replaced file stays
 *		open for two seconds
 *
 * Failure modes:
 *	anything before the rename: .new is removed, the file is what it was
 *	a .new that a killed writer left: removed, since its lock is ours
 *	the rename fails: the caller abandons
 *	somebody removed the lock of a rewrite that is under way: the next one
 *	is told that it is held
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "daemon/store/refs/packed_internal.h"

/* git compares packed-refs by whole seconds and inode: for so long the
 * replaced file's inode must not come back. */
#define RETIRED_NS 2000000000LL

#define NS_PER_S  1000000000LL
#define NS_PER_MS 1000000LL

static int64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* By the clock of who has it: behind one that hangs, who comes later does not
 * wait all over again. */
bool packed_turn_take(struct packed *packed, unsigned wait_ms)
{
	struct timespec until;
	int64_t until_ns;
	bool taken;

	pthread_mutex_lock(&packed->lock);
	while (packed->turn_taken) {
		until_ns = packed->turn_since_ns + wait_ms * NS_PER_MS;
		if (clock_ns() >= until_ns)
			break;
		until.tv_sec = until_ns / NS_PER_S;
		until.tv_nsec = until_ns % NS_PER_S;
		pthread_cond_timedwait(&packed->turn_given, &packed->lock,
		    &until);
	}
	taken = !packed->turn_taken;
	if (taken)
		packed->turn_since_ns = clock_ns();
	packed->turn_taken = true;
	pthread_mutex_unlock(&packed->lock);
	return taken;
}

void packed_turn_give(struct packed *packed)
{
	pthread_mutex_lock(&packed->lock);
	packed->turn_taken = false;
	pthread_cond_signal(&packed->turn_given);
	pthread_mutex_unlock(&packed->lock);
}

/*
 * An estimate, not tuned: beyond its lock a loose ref costs some 30 us more
 * than a packed one; the file costs a flush, and some 10 ns for each byte it
 * has already.
 */
#define BYTES_FOR_A_REF 3000

bool packed_pays(struct packed *packed, size_t nr, size_t least)
{
	struct sys_stat st;
	int r;

	if (nr < least)
		return false;
	r = SYS(packed->sys, statat, packed->dirfd, PACKED_FILE, &st);
	return r == -ENOENT || (r == 0 && st.size / BYTES_FOR_A_REF < nr);
}

/* Does the file change by them? */
static bool makes_difference(const struct packed_snapshot *snap,
    const struct packed_edit *edits, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		if (edits[i].oid != NULL ||
		    packed_lookup(snap, edits[i].name, NULL))
			return true;
	return false;
}

static bool are_sorted(const struct packed_edit *edits, size_t nr)
{
	size_t i;

	for (i = 1; i < nr; i++)
		if (strcmp(edits[i - 1].name, edits[i].name) > 0)
			return false;
	return true;
}

/* What git writes now. It holds for what is written here too, unless the old
 * file left peeled lines out. */
static const char git_header[] =
    "# pack-refs with: peeled fully-peeled sorted \n";

static bool is_fully_peeled(const struct packed_snapshot *snap)
{
	static const char trait[] = " fully-peeled";
	const size_t len = sizeof(trait) - 1;
	const char *at = memmem(snap->buf, snap->header_len, trait, len);

	return at != NULL && (at[len] == ' ' || at[len] == '\n');
}

/* Nothing of a foreign header is carried on that git would not carry on. */
static void write_header(const struct packed_snapshot *old,
    struct packed_snapshot *next)
{
	const char *header = old->buf;

	next->len = old->header_len;
	if (old->len == 0 || is_fully_peeled(old)) {
		header = git_header;
		next->len = sizeof(git_header) - 1;
	}
	memcpy(next->buf, header, next->len);
}

static void copy_record(const struct packed_snapshot *old, const char *name,
    struct packed_snapshot *next)
{
	size_t name_len = strlen(name);
	const char *start = name - PACKED_NAME_AT;
	size_t len = (size_t)(packed_record_end(old, name) - start);

	memcpy(next->buf + next->len, start, len);
	next->buf[next->len + PACKED_NAME_AT + name_len] = '\n';
	next->len += len;
}

static void write_record(const struct packed_edit *edit,
    struct packed_snapshot *next)
{
	size_t name_len = strlen(edit->name);
	char *p = next->buf + next->len;

	refd_oid_hex(edit->oid, p);
	p[REFD_OID_HEX] = ' ';
	memcpy(p + PACKED_NAME_AT, edit->name, name_len);
	p += PACKED_NAME_AT + name_len;
	*p++ = '\n';
	if (edit->peeled != NULL) {
		*p = '^';
		refd_oid_hex(edit->peeled, p + 1);
		p += PACKED_PEELED_LEN;
		p[-1] = '\n';
	}
	next->len = (size_t)(p - next->buf);
}

static size_t room_for(const struct packed_snapshot *old,
    const struct packed_edit *edits, size_t nr)
{
	size_t i, room = old->len + sizeof(git_header);

	for (i = 0; i < nr; i++)
		if (edits[i].oid != NULL)
			room += PACKED_NAME_AT + strlen(edits[i].name) + 1 +
			    PACKED_PEELED_LEN;
	return room;
}

/* The file as EDITS have it, in the order of the names. */
static int compose(const struct packed_snapshot *old,
    const struct packed_edit *edits, size_t nr, struct packed_snapshot *next)
{
	size_t i = 0, k = 0;
	int order;

	next->buf = malloc(room_for(old, edits, nr));
	if (next->buf == NULL)
		return -ENOMEM;
	write_header(old, next);
	while (i < old->nr || k < nr) {
		order = k == nr ? -1 : 1;
		if (i < old->nr && k < nr)
			order = strcmp(old->names[i], edits[k].name);
		if (order < 0)
			copy_record(old, old->names[i], next);
		else if (order > 0 && edits[k].oid != NULL)
			write_record(&edits[k], next);
		/* What an edit is about goes, every line of it. */
		if (order <= 0)
			i++;
		else
			k++;
	}
	next->buf[next->len] = '\0';
	return 0;
}

static int create_new(struct packed *packed, mode_t mode)
{
	const int flags = O_RDWR | O_CREAT | O_EXCL;
	int fd, r;

	fd = SYS(packed->sys, openat, packed->dirfd, PACKED_NEW, flags, mode);
	if (fd != -EEXIST)
		return fd;
	r = SYS(packed->sys, unlinkat, packed->dirfd, PACKED_NEW);
	if (r < 0 && r != -ENOENT)
		return r;
	return SYS(packed->sys, openat, packed->dirfd, PACKED_NEW, flags, mode);
}

/* Parsing what was written builds the index, and is the proof that it can be
 * read before it replaces anything. */
static int write_new(struct packed *packed, struct packed_snapshot *next,
    mode_t mode, bool sync)
{
	const struct sys *sys = packed->sys;
	int r;

	next->fd = create_new(packed, mode);
	if (next->fd < 0)
		return next->fd;
	r = SYS(sys, fchmod, next->fd, mode);
	if (r == 0)
		r = SYS(sys, write_all, next->fd, next->buf, next->len);
	if (r == 0 && sync)
		r = SYS(sys, fsync, next->fd);
	if (r == 0)
		r = packed_parse(next);
	if (r < 0)
		SYS(sys, unlinkat, packed->dirfd, PACKED_NEW);
	return r;
}

/* Room for one more retired file, so that finish can't fail for want of it. */
static int reserve_retired(struct packed *packed)
{
	struct packed_retired *grown;
	size_t room = packed->room_retired;
	int r = 0;

	pthread_mutex_lock(&packed->lock);
	if (packed->nr_retired == room) {
		room = room == 0 ? 4 : 2 * room;
		grown = realloc(packed->retired, room * sizeof(*grown));
		if (grown == NULL) {
			r = -ENOMEM;
		} else {
			packed->retired = grown;
			packed->room_retired = room;
		}
	}
	pthread_mutex_unlock(&packed->lock);
	return r;
}

static int refuse_link(struct packed *packed)
{
	struct sys_stat st;
	int r;

	r = SYS(packed->sys, lstatat, packed->dirfd, PACKED_FILE, &st);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	return S_ISLNK(st.mode) ? -ELOOP : 0;
}

static int begin(struct packed *packed, const struct packed_snapshot *old,
    const struct packed_edit *edits, size_t nr, mode_t mode, bool sync)
{
	int r;

	/* Or a deletion would not be one. */
	assert(are_sorted(edits, nr));
	packed->next = packed_snapshot_new(packed->sys);
	if (packed->next == NULL)
		return -ENOMEM;
	if (old->fd >= 0) {
		packed->replaced_fd = SYS(packed->sys, openat, packed->dirfd,
		    PACKED_FILE, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
		if (packed->replaced_fd < 0)
			return packed->replaced_fd;
	}
	r = reserve_retired(packed);
	if (r == 0)
		r = compose(old, edits, nr, packed->next);
	if (r == 0)
		r = write_new(packed, packed->next, mode, sync);
	return r;
}

/* The lock file says whose turn it is, as long as nobody removes it. */
static bool claim(struct packed *packed)
{
	bool is_free;

	pthread_mutex_lock(&packed->lock);
	is_free = !packed->rewriting;
	packed->rewriting = true;
	pthread_mutex_unlock(&packed->lock);
	return is_free;
}

/* Lets go of all that a rewrite holds but its file. */
static void release(struct packed *packed)
{
	packed_snapshot_put(packed->next);
	packed->next = NULL;
	if (packed->replaced_fd >= 0)
		SYS(packed->sys, close, packed->replaced_fd);
	packed->replaced_fd = -1;
	pthread_mutex_lock(&packed->lock);
	packed->rewriting = false;
	pthread_mutex_unlock(&packed->lock);
}

int packed_rewrite_begin(struct packed *packed, const struct packed_edit *edits,
    size_t nr, mode_t mode, bool sync, bool *changed)
{
	struct packed_snapshot *old = NULL;
	int r;

	*changed = false;
	if (!claim(packed))
		return -EEXIST;
	r = refuse_link(packed);
	if (r == 0)
		r = packed_snapshot(packed, &old);
	if (r == 0 && makes_difference(old, edits, nr)) {
		r = begin(packed, old, edits, nr, mode, sync);
		*changed = r == 0;
	}
	if (!*changed)
		release(packed);
	packed_snapshot_put(old);
	return r;
}

int packed_rewrite_fd(const struct packed *packed)
{
	assert(packed->rewriting && packed->next != NULL);
	return packed->next->fd;
}

/* The rename changes the inode's ctime: what is cached is what fstat says
 * after it. Where even that fails the next snapshot reads the file. */
int packed_rewrite_finish(struct packed *packed)
{
	struct packed_snapshot *next = packed->next;
	struct packed_retired *last;
	int r;

	assert(packed->rewriting);
	r = SYS(packed->sys, renameat, packed->dirfd, PACKED_NEW, packed->dirfd,
	    PACKED_FILE);
	if (r < 0)
		return r;
	r = SYS(packed->sys, fstat, next->fd, &next->st);
	pthread_mutex_lock(&packed->lock);
	packed_snapshot_put(packed->cache);
	packed->cache = r == 0 ? next : NULL;
	if (r == 0)
		packed->next = NULL;
	if (packed->replaced_fd >= 0) {
		last = &packed->retired[packed->nr_retired++];
		last->fd = packed->replaced_fd;
		last->until_ns = SYS(packed->sys, now_mono) + RETIRED_NS;
		packed->replaced_fd = -1;
	}
	pthread_mutex_unlock(&packed->lock);
	release(packed);
	packed_trim(packed);
	return 0;
}

void packed_rewrite_abandon(struct packed *packed)
{
	if (packed->rewriting)
		SYS(packed->sys, unlinkat, packed->dirfd, PACKED_NEW);
	release(packed);
}
