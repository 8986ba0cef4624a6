/*
 * The cache of packed-refs and looking up in it.
 *
 * Happy path:
 *	snapshot	stat the path: still the file that is held open
 *	lookup		binary search over the names
 *
 * Failure modes:
 *	the file was replaced: read again; those who hold the old snapshot
 *	keep it
 *	it is unsorted: sorted in memory, whatever its header says
 *	a malformed line: -EBADMSG, and the cache stays what it was
 */
#include "daemon/store/refs/packed.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/store/refs/packed_internal.h"

#define HEADER "# pack-refs with:"

/* A guess that is seldom too small: most lines are longer. */
#define LINE_GUESS (PACKED_NAME_AT + 12)

struct packed_snapshot *packed_snapshot_new(const struct sys *sys)
{
	struct packed_snapshot *snap = calloc(1, sizeof(*snap));

	if (snap == NULL)
		return NULL;
	atomic_init(&snap->holders, 1);
	snap->sys = sys;
	snap->fd = -1;
	return snap;
}

void packed_snapshot_put(struct packed_snapshot *snap)
{
	if (snap == NULL || atomic_fetch_sub(&snap->holders, 1) > 1)
		return;
	if (snap->fd >= 0)
		SYS(snap->sys, close, snap->fd);
	free(snap->names);
	free(snap->buf);
	free(snap);
}

/* ---- parsing ---- */

static bool all_hex(const char *p)
{
	unsigned bad = 0, i;

	for (i = 0; i < REFD_OID_HEX; i++) {
		unsigned c = (unsigned char)p[i];

		bad |= c - '0' >= 10 && (c | 0x20) - 'a' >= 6;
	}
	return bad == 0;
}

static int parse_header(struct packed_snapshot *snap)
{
	const char *eol;

	if (snap->len == 0 || snap->buf[0] != '#')
		return 0;
	eol = memchr(snap->buf, '\n', snap->len);
	if (eol == NULL || strncmp(snap->buf, HEADER, sizeof(HEADER) - 1) != 0)
		return -EBADMSG;
	snap->header_len = (size_t)(eol - snap->buf) + 1;
	return 0;
}

/* Takes one record off *P: terminates its name and steps behind it. */
static const char *parse_record(char **p, const char *end)
{
	char *line = *p, *name = line + PACKED_NAME_AT, *eol;

	if (end - line <= PACKED_NAME_AT || !all_hex(line) || name[-1] != ' ')
		return NULL;
	eol = memchr(name, '\n', (size_t)(end - name));
	if (eol == NULL || eol == name || eol[-1] == '\r')
		return NULL;
	*eol = '\0';
	if (strlen(name) != (size_t)(eol - name))
		return NULL;
	line = eol + 1;
	if (line < end && *line == '^') {
		if (end - line < PACKED_PEELED_LEN || !all_hex(line + 1) ||
		    line[PACKED_PEELED_LEN - 1] != '\n')
			return NULL;
		line += PACKED_PEELED_LEN;
	}
	*p = line;
	return name;
}

const char *packed_record_end(const struct packed_snapshot *snap,
    const char *name)
{
	const char *end = name + strlen(name) + 1;

	if (end < snap->buf + snap->len && *end == '^')
		end += PACKED_PEELED_LEN;
	return end;
}

static int add_name(struct packed_snapshot *snap, const char *name,
    size_t *room)
{
	const char **grown;

	if (snap->nr == *room) {
		*room = *room == 0 ? snap->len / LINE_GUESS + 1 : 2 * *room;
		grown = realloc(snap->names, *room * sizeof(*grown));
		if (grown == NULL)
			return -ENOMEM;
		snap->names = grown;
	}
	snap->names[snap->nr++] = name;
	return 0;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int packed_parse(struct packed_snapshot *snap)
{
	char *p, *end = snap->buf + snap->len;
	const char *name, *last = "";
	bool sorted = true;
	size_t room = 0;
	int r;

	r = parse_header(snap);
	p = snap->buf + snap->header_len;
	while (r == 0 && p < end) {
		name = parse_record(&p, end);
		if (name == NULL)
			return -EBADMSG;
		sorted = sorted && strcmp(last, name) <= 0;
		last = name;
		r = add_name(snap, name, &room);
	}
	if (r == 0 && !sorted)
		qsort(snap->names, snap->nr, sizeof(*snap->names),
		    compare_names);
	return r;
}

/* ---- the cache ---- */

struct packed *packed_new(const struct sys *sys, int dirfd)
{
	struct packed *packed = calloc(1, sizeof(*packed));
	pthread_condattr_t monotonic;

	if (packed == NULL)
		return NULL;
	packed->sys = sys;
	packed->dirfd = dirfd;
	packed->replaced_fd = -1;
	pthread_mutex_init(&packed->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&packed->turn_given, &monotonic);
	pthread_condattr_destroy(&monotonic);
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
	pthread_mutex_destroy(&packed->lock);
	free(packed);
}

/* The retired are in the order of their times. */
int packed_trim(struct packed *packed)
{
	int64_t now = SYS(packed->sys, now_mono);
	struct packed_retired *first;
	size_t past = 0;
	int held;

	pthread_mutex_lock(&packed->lock);
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
	pthread_mutex_unlock(&packed->lock);
	return held;
}

static int load(struct packed *packed, struct packed_snapshot **out)
{
	const struct sys *sys = packed->sys;
	struct packed_snapshot *snap;
	int r;

	snap = packed_snapshot_new(sys);
	if (snap == NULL)
		return -ENOMEM;
	snap->fd = SYS(sys, openat, packed->dirfd, PACKED_FILE,
	    O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	r = snap->fd < 0 ? snap->fd : 0;
	if (r == 0)
		r = SYS(sys, fstat, snap->fd, &snap->st);
	if (r == 0)
		r = sys_read_fd(sys, snap->fd, SYS_WHOLE_MAX, &snap->buf,
		    &snap->len);
	if (r == 0)
		r = packed_parse(snap);
	if (r < 0 && r != -ENOENT) {
		packed_snapshot_put(snap);
		return r;
	}
	*out = snap;
	return 0;
}

/* The descriptor pins the inode: the same numbers are the same file. */
static int is_current(struct packed *packed, const struct packed_snapshot *snap)
{
	const struct sys_stat *a = &snap->st;
	struct sys_stat b;
	int r;

	r = SYS(packed->sys, statat, packed->dirfd, PACKED_FILE, &b);
	if (r == -ENOENT)
		return snap->fd < 0;
	if (r < 0)
		return r;
	return snap->fd >= 0 && a->dev == b.dev && a->ino == b.ino &&
	    a->size == b.size && a->mtime_ns == b.mtime_ns &&
	    a->ctime_ns == b.ctime_ns;
}

int packed_snapshot(struct packed *packed, struct packed_snapshot **out)
{
	struct packed_snapshot *snap = NULL;
	int r = 0;

	pthread_mutex_lock(&packed->lock);
	if (packed->cache != NULL)
		r = is_current(packed, packed->cache);
	if (r == 0) {
		r = load(packed, &snap);
		if (r == 0) {
			packed_snapshot_put(packed->cache);
			packed->cache = snap;
		}
	}
	if (r >= 0) {
		atomic_fetch_add(&packed->cache->holders, 1);
		*out = packed->cache;
	}
	pthread_mutex_unlock(&packed->lock);
	return r < 0 ? r : 0;
}

/* ---- looking up ---- */

/* The first name that is not before KEY. */
static size_t lower_bound(const struct packed_snapshot *snap, const char *key)
{
	size_t low = 0, high = snap->nr, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (strcmp(snap->names[mid], key) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

bool packed_lookup(const struct packed_snapshot *snap, const char *name,
    struct refd_oid *oid)
{
	size_t at = lower_bound(snap, name);
	int r;

	if (at == snap->nr || strcmp(snap->names[at], name) != 0)
		return false;
	if (oid != NULL) {
		r = refd_oid_parse(snap->names[at] - PACKED_NAME_AT, oid);
		assert(r == 0);
	}
	return true;
}

const char *packed_find_below(const struct packed_snapshot *snap,
    const char *dir)
{
	size_t at = lower_bound(snap, dir);

	if (at == snap->nr || strncmp(snap->names[at], dir, strlen(dir)) != 0)
		return NULL;
	return snap->names[at];
}

size_t packed_count(const struct packed_snapshot *snap)
{
	return snap->nr;
}
