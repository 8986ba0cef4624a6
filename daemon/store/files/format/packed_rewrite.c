/*
 * Rewrites packed-refs: removes names, adds names.
 *
 * Happy path:
 *	begin	take a snapshot, open the file once more (to keep the file open
 *		afterwards), write packed-refs.new block by block; fsync, or
 *		leave the fsync to the caller
 *	finish	rename; the replaced file stays open for two seconds
 *
 * Failure modes:
 *	any failure before the rename: .new is removed, the file is unchanged
 *	a .new of a crashed writer: removed, since we hold the lock
 *	the rename fails: the caller abandons
 *	somebody removed the lock during a rewrite: the next rewrite gets
 *	"lock held"
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "daemon/base/time.h"
#include "daemon/store/files/format/packed_internal.h"
#include "proto/lib/array.h"

/* git compares packed-refs by whole seconds and inode, so the replaced file's
 * inode must not come back before this time. */
#define RETIRED_NS 2000000000LL

/* The time counts from the start of the holder's turn, so that later callers do
 * not wait the full time again behind a holder that hangs. */
bool packed_turn_take(struct packed *packed, unsigned wait_ms)
{
	struct timespec until;
	int64_t until_ns;
	bool taken;

	mutex_lock(&packed->lock);
	while (packed->turn_taken) {
		until_ns = packed->turn_since_ns + wait_ms * NS_PER_MS;
		if (time_now_ns(CLOCK_MONOTONIC) >= until_ns)
			break;
		until = time_spec(until_ns);
		mutex_wait_until(&packed->turn_given, &packed->lock, &until);
	}
	taken = !packed->turn_taken;
	if (taken)
		packed->turn_since_ns = time_now_ns(CLOCK_MONOTONIC);
	packed->turn_taken = true;
	mutex_unlock(&packed->lock);
	return taken;
}

void packed_turn_give(struct packed *packed)
{
	mutex_lock(&packed->lock);
	packed->turn_taken = false;
	pthread_cond_signal(&packed->turn_given);
	mutex_unlock(&packed->lock);
}

/*
 * A loose ref costs its lock, and some 30 us more than a packed ref. A rewrite
 * of packed-refs costs a flush, and some 3 ns for each present byte. So a ref
 * pays for 10,000 bytes.
 */
#define BYTES_FOR_A_REF 10000

bool packed_pays(struct packed *packed, size_t nr, size_t least)
{
	struct sys_stat st;
	int r;

	if (nr < least)
		return false;
	r = SYS(packed->sys, lstatat, packed->dirfd, PACKED_FILE, &st);
	return r == -ENOENT || (r == 0 && st.size / BYTES_FOR_A_REF < nr);
}

bool packed_is_large(struct packed *packed)
{
	struct sys_stat st;

	return SYS(packed->sys, lstatat, packed->dirfd, PACKED_FILE, &st) ==
	    0 &&
	    st.size > PACKED_LARGE;
}

/* 1: the file changes by them. */
static int makes_difference(const struct packed_snapshot *snap,
    const struct packed_edit *edits, size_t nr)
{
	size_t i;
	int r = 0;

	for (i = 0; i < nr && r == 0; i++)
		r = edits[i].oid != NULL ?
		    1 :
		    packed_lookup(snap, edits[i].name, NULL);
	return r;
}

static bool are_sorted(const struct packed_edit *edits, size_t nr)
{
	size_t i;

	for (i = 1; i < nr; i++)
		if (strcmp(edits[i - 1].name, edits[i].name) > 0)
			return false;
	return true;
}

/* ---- packed-refs.new ---- */

/* The header that git writes now. The header is true for files written here,
 * unless the old file left out peeled lines, which nobody adds here. */
static const char git_header[] =
    "# pack-refs with: peeled fully-peeled sorted \n";

#define WRITE_BYTES ((size_t)64 << 10)

struct writer {
	struct packed *packed;
	int64_t until_ns;
	char *buf;
	size_t len;
};

static int flush_out(struct writer *out)
{
	const struct sys *sys = out->packed->sys;
	int r;

	if (SYS(sys, now_mono) > out->until_ns)
		return -ETIMEDOUT;
	r = SYS(sys, write_all, out->packed->new_fd, out->buf, out->len);
	out->len = 0;
	return r;
}

/* LEN is less than WRITE_BYTES. */
static int write_out(struct writer *out, const char *bytes, size_t len)
{
	int r = 0;

	if (len > WRITE_BYTES - out->len)
		r = flush_out(out);
	if (r < 0)
		return r;
	memcpy(out->buf + out->len, bytes, len);
	out->len += len;
	return 0;
}

/* Keeps only the parts of a foreign header that git would keep. */
static int write_header(const struct packed_snapshot *old, struct writer *out)
{
	if (old->size == 0 || old->is_fully_peeled)
		return write_out(out, git_header, sizeof(git_header) - 1);
	return write_out(out, old->header, old->header_len);
}

static int write_edit(struct writer *out, const struct packed_edit *edit)
{
	const enum refd_object_format format = *out->packed->format;
	const size_t hex = refd_object_format_hex(format);
	size_t len = strlen(edit->name);
	char line[PACKED_RECORD_MAX], *p;

	/* Two ids, a name, and four bytes around them. */
	if (len > sizeof(line) - 2 * hex - 4)
		return -ENAMETOOLONG;
	refd_oid_hex(edit->oid, format, line);
	line[hex] = ' ';
	p = mempcpy(line + hex + 1, edit->name, len);
	*p++ = '\n';
	if (edit->peeled != NULL) {
		*p++ = '^';
		refd_oid_hex(edit->peeled, format, p);
		p += hex;
		*p++ = '\n';
	}
	return write_out(out, line, (size_t)(p - line));
}

/* Writes the edits with names before REC's; without REC all. */
static int write_edits_before(struct writer *out,
    const struct packed_edit *edits, size_t nr, size_t *at,
    const struct packed_record *rec)
{
	int r = 0;

	while (r == 0 && *at < nr &&
	    (rec == NULL || packed_record_order(rec, edits[*at].name) > 0)) {
		if (edits[*at].oid != NULL)
			r = write_edit(out, &edits[*at]);
		(*at)++;
	}
	return r;
}

/* A file in an order other than the header's would lose a deletion, so the
 * order is checked. */
static bool is_after(const char *last, const struct packed_record *rec)
{
	return packed_record_order(rec, last) >= 0;
}

/* Writes the old file with EDITS, in the order of the names. All old lines of
 * an edited name go. */
static int merge(struct packed_stream *old, const struct packed_edit *edits,
    size_t nr, struct writer *out)
{
	char last[PACKED_RECORD_MAX] = "";
	struct packed_record rec;
	size_t at = 0;
	int r;

	while ((r = packed_stream_next(old, &rec)) > 0) {
		if (!is_after(last, &rec))
			return -EILSEQ;
		memcpy(last, rec.name, rec.name_len);
		last[rec.name_len] = '\0';
		r = write_edits_before(out, edits, nr, &at, &rec);
		if (r == 0 &&
		    (at == nr ||
			packed_record_order(&rec, edits[at].name) != 0))
			r = write_out(out, rec.start, rec.len);
		if (r < 0)
			return r;
	}
	return r < 0 ? r : write_edits_before(out, edits, nr, &at, NULL);
}

static int compose(struct packed *packed, const struct packed_snapshot *old,
    const struct packed_edit *edits, size_t nr, int64_t until_ns)
{
	struct writer out = { .packed = packed,
		.until_ns = until_ns,
		.buf = malloc(WRITE_BYTES) };
	struct packed_stream stream;
	int r;

	r = packed_stream_init(&stream, old);
	if (r == 0 && out.buf == NULL)
		r = -ENOMEM;
	if (r == 0)
		r = write_header(old, &out);
	if (r == 0)
		r = merge(&stream, edits, nr, &out);
	if (r == 0)
		r = flush_out(&out);
	packed_stream_done(&stream);
	free(out.buf);
	return r;
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

static int write_new(struct packed *packed, const struct packed_snapshot *old,
    const struct packed_edit *edits, size_t nr, mode_t mode, bool sync,
    int64_t until_ns)
{
	const struct sys *sys = packed->sys;
	int r;

	packed->new_fd = create_new(packed, mode);
	if (packed->new_fd < 0)
		return packed->new_fd;
	r = SYS(sys, fchmod, packed->new_fd, mode);
	if (r == 0)
		r = compose(packed, old, edits, nr, until_ns);
	if (r == 0 && sync)
		r = SYS(sys, fsync, packed->new_fd);
	if (r < 0)
		SYS(sys, unlinkat, packed->dirfd, PACKED_NEW);
	return r;
}

/* Room for one more retired file, so that finish cannot fail for lack of
 * room. */
static int reserve_retired(struct packed *packed)
{
	struct packed_retired *grown;

	mutex_lock(&packed->lock);
	grown = array_room(packed->retired, packed->nr_retired,
	    &packed->room_retired, sizeof(*grown));
	if (grown != NULL)
		packed->retired = grown;
	mutex_unlock(&packed->lock);
	return grown == NULL ? -ENOMEM : 0;
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

static int begin_rewrite(struct packed *packed,
    const struct packed_snapshot *old, const struct packed_edit *edits,
    size_t nr, mode_t mode, bool sync, int64_t until_ns)
{
	int r;

	if (old->size > PACKED_STREAM_MAX)
		return -EFBIG;
	if (old->fd >= 0) {
		packed->replaced_fd = SYS(packed->sys, openat, packed->dirfd,
		    PACKED_FILE, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
		if (packed->replaced_fd < 0)
			return packed->replaced_fd;
	}
	r = reserve_retired(packed);
	if (r == 0)
		r = write_new(packed, old, edits, nr, mode, sync, until_ns);
	return r;
}

/* The lock file decides the turn, unless somebody removes the lock. So a
 * rewrite in work is looked for here, too. */
static bool claim(struct packed *packed)
{
	bool is_free;

	mutex_lock(&packed->lock);
	is_free = !packed->rewriting;
	packed->rewriting = true;
	mutex_unlock(&packed->lock);
	return is_free;
}

/* Releases everything of a rewrite except its file. */
static void release(struct packed *packed)
{
	if (packed->new_fd >= 0)
		SYS(packed->sys, close, packed->new_fd);
	if (packed->replaced_fd >= 0)
		SYS(packed->sys, close, packed->replaced_fd);
	packed->new_fd = packed->replaced_fd = -1;
	mutex_lock(&packed->lock);
	packed->rewriting = false;
	mutex_unlock(&packed->lock);
}

static int by_name(const void *va, const void *vb)
{
	const struct packed_edit *a = va, *b = vb;

	return strcmp(a->name, b->name);
}

int packed_rewrite_begin(struct packed *packed, struct packed_edit *edits,
    size_t nr, mode_t mode, bool sync, int64_t until_ns, bool *changed)
{
	struct packed_snapshot *old = NULL;
	int r;

	if (!are_sorted(edits, nr))
		qsort(edits, nr, sizeof(*edits), by_name);
	*changed = false;
	if (!claim(packed))
		return -EEXIST;
	r = refuse_link(packed);
	if (r == 0)
		r = packed_snapshot(packed, &old);
	if (r == 0)
		r = makes_difference(old, edits, nr);
	if (r > 0) {
		r = begin_rewrite(packed, old, edits, nr, mode, sync, until_ns);
		*changed = r == 0;
	}
	if (!*changed)
		release(packed);
	packed_snapshot_put(old);
	return r;
}

int packed_rewrite_fd(const struct packed *packed)
{
	assert(packed->rewriting && packed->new_fd >= 0);
	return packed->new_fd;
}

/* The rename changes the inode's ctime, so the next snapshot opens the file. */
int packed_rewrite_finish(struct packed *packed)
{
	struct packed_retired *last;
	struct sys_stat own = { .ino = 0 };
	int r;

	assert(packed->rewriting);
	r = SYS(packed->sys, renameat, packed->dirfd, PACKED_NEW, packed->dirfd,
	    PACKED_FILE);
	if (r < 0)
		return r;
	/* If this fails, the file counts as foreign. */
	if (SYS(packed->sys, fstat, packed->new_fd, &own) < 0)
		own.ino = 0;
	mutex_lock(&packed->lock);
	packed->own = own;
	packed_snapshot_put(packed->cache);
	packed->cache = NULL;
	if (packed->replaced_fd >= 0) {
		last = &packed->retired[packed->nr_retired++];
		last->fd = packed->replaced_fd;
		last->until_ns = SYS(packed->sys, now_mono) + RETIRED_NS;
		packed->replaced_fd = -1;
	}
	mutex_unlock(&packed->lock);
	release(packed);
	packed_trim(packed);
	return 0;
}

int packed_rewrite(struct packed *packed, struct packed_edit *edits, size_t nr,
    mode_t mode)
{
	bool changed;
	int r;

	r = packed_rewrite_begin(packed, edits, nr, mode, true, INT64_MAX,
	    &changed);
	if (r < 0 || !changed)
		return r;
	r = packed_rewrite_finish(packed);
	if (r < 0)
		packed_rewrite_abandon(packed);
	return r;
}

void packed_rewrite_abandon(struct packed *packed)
{
	if (packed->rewriting)
		SYS(packed->sys, unlinkat, packed->dirfd, PACKED_NEW);
	release(packed);
}
