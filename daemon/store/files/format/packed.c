/*
 * The cache of packed-refs: the current file, and how to read the file. Opening
 * a file and reading its header cost more than a stat, so the last snapshot
 * serves until the file is replaced.
 *
 * Happy path:
 *	snapshot	stat the path: still the open file; else open the file
 *			and read its header
 *
 * Failure modes:
 *	the file was replaced: opened again; holders of the old snapshot keep
 *	their snapshot
 *	a malformed line: -EBADMSG, and the cache is unchanged
 *	an unsorted file: sorted in memory, up to PACKED_UNSORTED_MAX
 */
#include "daemon/store/files/format/packed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "daemon/base/time.h"
#include "daemon/store/files/format/packed_internal.h"
#include "proto/lib/array.h"

#define HEADER "# pack-refs with:"

#define UNKNOWN_NS (3600 * INT64_C(1000000000))

static struct packed_snapshot *snapshot_new(const struct packed *packed)
{
	struct packed_snapshot *snap = calloc(1, sizeof(*snap));

	if (snap == NULL)
		return NULL;
	atomic_init(&snap->holders, 1);
	snap->sys = packed->sys;
	snap->format = *packed->format;
	snap->fd = -1;
	return snap;
}

void packed_snapshot_put(struct packed_snapshot *snap)
{
	if (snap == NULL || atomic_fetch_sub(&snap->holders, 1) > 1)
		return;
	if (snap->fd >= 0)
		SYS(snap->sys, close, snap->fd);
	packed_search_free(snap->search);
	free(snap->text);
	free(snap);
}

int packed_snapshot_sync(const struct packed *packed,
    const struct packed_snapshot *snap)
{
	int r = 0;

	if (snap->fd >= 0)
		r = SYS(snap->sys, fsync, snap->fd);
	return r == 0 ? SYS(snap->sys, fsync, packed->dirfd) : r;
}

/* ---- the header ---- */

/* As in git: a word between blanks. */
bool packed_header_has(const char *header, size_t size, const char *trait)
{
	const char *at = header, *end = header + size;
	const size_t len = strlen(trait);

	while ((at = memmem(at, (size_t)(end - at), trait, len)) != NULL) {
		if (at > header && at[-1] == ' ' &&
		    (at + len == end || at[len] == ' ' || at[len] == '\n'))
			return true;
		at += len;
	}
	return false;
}

static bool has_trait(const struct packed_snapshot *snap, const char *trait)
{
	return packed_header_has(snap->header, snap->header_len, trait);
}

/* Also says whether the last line ends. */
static int read_header(struct packed_snapshot *snap)
{
	const char *eol;
	char last = '\n';
	ssize_t n;

	n = packed_read(snap, snap->header, sizeof(snap->header), 0);
	if (n > 0 && snap->header[0] == '#') {
		eol = memchr(snap->header, '\n', (size_t)n);
		if (eol == NULL ||
		    strncmp(snap->header, HEADER, strlen(HEADER)) != 0)
			return -EBADMSG;
		snap->header_len = (size_t)(eol - snap->header) + 1;
		if (memchr(snap->header, '\0', snap->header_len) != NULL)
			return -EBADMSG;
	}
	snap->is_fully_peeled = has_trait(snap, "fully-peeled");
	if (n > 0)
		n = packed_read(snap, &last, 1, snap->size - 1);
	if (n < 0)
		return (int)n;
	return last == '\n' ? 0 : -EBADMSG;
}

/* ---- a small file, or an unsorted file ---- */

struct records {
	struct packed_record *items;
	size_t nr, room;
	bool sorted;
};

static int by_name(const void *va, const void *vb)
{
	const struct packed_record *a = va, *b = vb;
	size_t len = a->name_len < b->name_len ? a->name_len : b->name_len;
	int order = memcmp(a->name, b->name, len);

	if (order == 0)
		order =
		    (a->name_len > b->name_len) - (a->name_len < b->name_len);
	/* Refs with the same name keep their order. */
	return order != 0 ? order :
			    (a->start > b->start) - (a->start < b->start);
}

static int find_records(const struct packed_snapshot *snap,
    struct records *records)
{
	const char *p = snap->text + snap->header_len;
	const char *end = snap->text + snap->size;
	struct packed_record rec, *grown;
	int r;

	for (records->sorted = true; p < end; p += rec.len) {
		r = packed_record(p, (size_t)(end - p), snap->format, &rec);
		if (r < 0)
			return r;
		grown = array_room(records->items, records->nr, &records->room,
		    sizeof(*grown));
		if (grown == NULL)
			return -ENOMEM;
		records->items = grown;
		records->sorted = records->sorted &&
		    (records->nr == 0 ||
			by_name(&records->items[records->nr - 1], &rec) <= 0);
		records->items[records->nr++] = rec;
	}
	return 0;
}

static int sort(struct packed_snapshot *snap, struct records *records)
{
	char *sorted = malloc(snap->size), *p = sorted;
	size_t i;

	if (sorted == NULL)
		return -ENOMEM;
	qsort(records->items, records->nr, sizeof(*records->items), by_name);
	memcpy(p, snap->text, snap->header_len);
	p += snap->header_len;
	for (i = 0; i < records->nr; i++) {
		memcpy(p, records->items[i].start, records->items[i].len);
		p += records->items[i].len;
	}
	free(snap->text);
	snap->text = sorted;
	return 0;
}

/* Reads and checks the whole file, whatever the header says. */
static int read_whole(struct packed_snapshot *snap)
{
	struct records records = { .nr = 0 };
	char *text;
	ssize_t n;
	int r;

	if (snap->size > PACKED_UNSORTED_MAX)
		return -EFBIG;
	text = malloc(snap->size);
	if (text == NULL)
		return -ENOMEM;
	n = packed_read(snap, text, snap->size, 0);
	snap->text = text;
	r = n < 0 ? (int)n : find_records(snap, &records);
	if (r == 0 && !records.sorted)
		r = sort(snap, &records);
	free(records.items);
	return r;
}

static int prepare_reading(struct packed_snapshot *snap)
{
	int r;

	if (!S_ISREG(snap->st.mode))
		return S_ISDIR(snap->st.mode) ? -EISDIR : -EINVAL;
	snap->size = snap->st.size;
	r = read_header(snap);
	if (r < 0 || snap->header_len == snap->size)
		return r;
	if (snap->size <= PACKED_WHOLE_MAX || !has_trait(snap, "sorted"))
		r = read_whole(snap);
	if (r < 0)
		return r;
	snap->search = packed_search_new(snap);
	return snap->search != NULL ? 0 : -ENOMEM;
}

/* ---- the cache ---- */

struct packed *packed_new(const struct sys *sys, int dirfd,
    const enum refd_object_format *format)
{
	struct packed *packed = calloc(1, sizeof(*packed));

	if (packed == NULL)
		return NULL;
	packed->sys = sys;
	packed->dirfd = dirfd;
	packed->format = format;
	packed->new_fd = packed->replaced_fd = -1;
	mutex_init(&packed->lock, MUTEX_INNER);
	time_cond_init(&packed->turn_given);
	return packed;
}

void packed_free(struct packed *packed)
{
	size_t i;

	if (packed == NULL)
		return;
	packed_rewrite_abandon(packed);
	packed_snapshot_put(packed->cache);
	for (i = 0; i < packed->nr_retired; i++)
		SYS(packed->sys, close, packed->retired[i].fd);
	free(packed->retired);
	pthread_cond_destroy(&packed->turn_given);
	mutex_destroy(&packed->lock);
	free(packed);
}

/* The retired are in the order of their times, so the past ones come first. */
int packed_trim(struct packed *packed)
{
	int64_t now = SYS(packed->sys, now_mono);
	struct packed_retired *first;
	size_t past = 0;
	int held;

	if (mutex_trylock(&packed->lock) != 0)
		return 0;
	first = packed->retired;
	while (past < packed->nr_retired && first[past].until_ns <= now)
		SYS(packed->sys, close, first[past++].fd);
	packed->nr_retired -= past;
	if (past > 0)
		memmove(first, first + past,
		    packed->nr_retired * sizeof(*first));
	held = (int)packed->nr_retired;
	if (packed->cache != NULL && packed->cache->fd >= 0)
		held++;
	mutex_unlock(&packed->lock);
	return held;
}

/*
 * Sets NAME, for use below DIRFD, to the real file, and ST to its lstat:
 * packed-refs, or the target of a link named packed-refs beneath the same
 * directory. git-new-workdir and others make such links. A link that leads
 * elsewhere is left to git, which follows the link with the rights of the
 * client. The target may be exchanged meanwhile, so open the file beneath
 * DIRFD, as required by sys.h, and fstat the descriptor. -ENOENT: no such file;
 * -ELOOP: a link out of the directory, to a link, or through a link.
 */
static int find_file(const struct sys *sys, int dirfd, char name[REFD_PATH_MAX],
    struct sys_stat *st)
{
	ssize_t len;
	int r;

	strcpy(name, PACKED_FILE);
	r = SYS(sys, lstatat, dirfd, name, st);
	if (r < 0 || !S_ISLNK(st->mode))
		return r;
	len = SYS(sys, readlinkat, dirfd, PACKED_FILE, name, REFD_PATH_MAX);
	if (len < 0)
		return (int)len;
	if (len == REFD_PATH_MAX)
		return -ELOOP;
	name[len] = '\0';
	if (sys_path_check(name) < 0)
		return -ELOOP;
	r = SYS(sys, lstatat, dirfd, name, st);
	return r == 0 && S_ISLNK(st->mode) ? -ELOOP : r;
}

static int load_snapshot(struct packed *packed, struct packed_snapshot **out)
{
	const struct sys *sys = packed->sys;
	char name[REFD_PATH_MAX];
	struct packed_snapshot *snap;
	int r;

	snap = snapshot_new(packed);
	if (snap == NULL)
		return -ENOMEM;
	r = find_file(sys, packed->dirfd, name, &snap->st);
	if (r == 0)
		r = snap->fd =
		    SYS(sys, openat, packed->dirfd, name, O_RDONLY, 0);
	if (r >= 0)
		r = SYS(sys, fstat, snap->fd, &snap->st);
	if (r == 0)
		r = prepare_reading(snap);
	if (r < 0 && r != -ENOENT) {
		packed_snapshot_put(snap);
		return r;
	}
	*out = snap;
	return 0;
}

/* The descriptor pins the inode, so the same numbers are the same file. */
static int is_current(struct packed *packed, const struct packed_snapshot *snap)
{
	const struct sys_stat *a = &snap->st;
	char name[REFD_PATH_MAX];
	struct sys_stat b;
	int r;

	r = find_file(packed->sys, packed->dirfd, name, &b);
	if (r == -ENOENT)
		return snap->fd < 0;
	if (r < 0)
		return r;
	return snap->fd >= 0 && a->dev == b.dev && a->ino == b.ino &&
	    a->size == b.size && a->mtime_ns == b.mtime_ns &&
	    a->ctime_ns == b.ctime_ns;
}

int64_t packed_written_ns(const struct packed_snapshot *snap)
{
	return snap != NULL && snap->fd >= 0 ? sys_stat_written_ns(&snap->st) :
					       INT64_MAX;
}

/* Is the file of SNAP by another program? The file that refd wrote last is not
 * kept open, so its inode number can come back. But a foreign file with this
 * number would be younger, so the mtime tells. */
static bool is_foreign(const struct packed *packed,
    const struct packed_snapshot *snap)
{
	const struct sys_stat *own = &packed->own, *st = &snap->st;

	if (snap->fd < 0)
		return false;
	if (packed->cache == NULL && own->ino == 0)
		return SYS(packed->sys, now_wall) - st->mtime_ns < UNKNOWN_NS;
	return st->dev != own->dev || st->ino != own->ino ||
	    st->size != own->size || st->mtime_ns != own->mtime_ns;
}

bool packed_take_foreign(struct packed *packed)
{
	return atomic_exchange(&packed->is_foreign, false);
}

int packed_snapshot(struct packed *packed, struct packed_snapshot **out)
{
	struct packed_snapshot *snap = NULL;
	int r = 0;

	mutex_lock(&packed->lock);
	if (packed->cache != NULL)
		r = is_current(packed, packed->cache);
	if (r == 0) {
		r = load_snapshot(packed, &snap);
		if (r == 0) {
			if (is_foreign(packed, snap))
				atomic_store(&packed->is_foreign, true);
			packed_snapshot_put(packed->cache);
			packed->cache = snap;
		}
	}
	if (r >= 0) {
		atomic_fetch_add(&packed->cache->holders, 1);
		*out = packed->cache;
	}
	mutex_unlock(&packed->lock);
	return r < 0 ? r : 0;
}
