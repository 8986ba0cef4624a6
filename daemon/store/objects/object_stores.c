/*
 * Happy path: nothing changed, as three stats show. An alternate is opened by
 * path again, since somebody may have moved the directory.
 *
 * Failures: see object_stores_why().
 */
#include "daemon/store/objects/object_stores.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/fs_type.h"
#include "proto/limits.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW)

void object_stores_init(struct object_stores *s, const struct sys *sys,
    int common_fd, const struct object_rule *rule)
{
	*s = (struct object_stores){ .sys = sys,
		.common_fd = common_fd,
		.rule = *rule };
}

void object_stores_done(struct object_stores *s)
{
	struct object_store *store;

	while (s->nr > 0) {
		store = &s->at[--s->nr];
		if (store->info_fd >= 0)
			SYS(s->sys, close, store->info_fd);
		SYS(s->sys, close, store->fd);
		free(store->path);
	}
	free(s->at);
	s->at = NULL;
}

const char *object_stores_why(int err)
{
	switch (err) {
	case -ELOOP:
		return "has a link in the place of objects/, objects/info/, "
		       "objects/pack/ or a pack";
	case -EINVAL:
		return "has an objects/info/alternates that is not a regular "
		       "file of at most 64 KiB";
	case -EXDEV:
		return "has an objects/info/alternates that leads to a store "
		       "refd does not read: each must be a directory below a "
		       "root of the daemon (daemon.root), belong to the owner "
		       "or the group of the repository, and be open to the "
		       "client; at most 32 stores, 5 deep, unquoted";
	}
	return "has objects that can't be read";
}

/* ---- adding a store ---- */

static bool is_known(const struct object_stores *s, const struct sys_stat *st)
{
	size_t i;

	for (i = 0; i < s->nr; i++)
		if (s->at[i].dev == st->dev && s->at[i].ino == st->ino)
			return true;
	return false;
}

/* Opens info/ of STORE and reads the status of the alternates file. */
static int look_inside(const struct object_stores *s,
    struct object_store *store)
{
	struct sys_stat info;
	int r;

	store->info_fd = SYS(s->sys, openat, store->fd, "info", DIR_FLAGS, 0);
	if (store->info_fd == -ENOENT)
		return 0;
	if (store->info_fd < 0)
		return store->info_fd == -ENOTDIR ? -ELOOP : store->info_fd;
	r = SYS(s->sys, fstat, store->info_fd, &info);
	if (r < 0)
		return r;
	store->info_ino = info.ino;
	r = SYS(s->sys, lstatat, store->info_fd, "alternates",
	    &store->alternates);
	if (r < 0)
		memset(&store->alternates, 0, sizeof(store->alternates));
	return r == -ENOENT ? 0 : r;
}

/* Takes over FD, also on failure. PATH is copied, and NULL for the repository's
 * own store. */
static int add_store(struct object_stores *s, int fd, const struct sys_stat *st,
    const char *path)
{
	struct object_store store = { .fd = fd,
		.info_fd = -1,
		.dev = st->dev,
		.ino = st->ino };
	struct object_store *grown;
	int r;

	r = look_inside(s, &store);
	if (r == 0 && path != NULL && (store.path = strdup(path)) == NULL)
		r = -ENOMEM;
	grown = r < 0 ? NULL : realloc(s->at, (s->nr + 1) * sizeof(*s->at));
	if (grown == NULL) {
		free(store.path);
		if (store.info_fd >= 0)
			SYS(s->sys, close, store.info_fd);
		SYS(s->sys, close, fd);
		return r < 0 ? r : -ENOMEM;
	}
	s->at = grown;
	s->at[s->nr++] = store;
	if (fs_time_may_repeat(store.alternates.ctime_ns,
		SYS(s->sys, now_wall)))
		s->is_recent = true;
	return 0;
}

static int add_own(struct object_stores *s)
{
	struct sys_stat st;
	int fd, r;

	fd = SYS(s->sys, openat, s->common_fd, "objects", DIR_FLAGS, 0);
	if (fd < 0)
		return fd == -ENOTDIR ? -ELOOP : fd;
	r = SYS(s->sys, fstat, fd, &st);
	if (r == 0)
		return add_store(s, fd, &st, NULL);
	SYS(s->sys, close, fd);
	return r;
}

/* ---- alternates ---- */

/* Nobody may learn whether a closed path exists, so all failures to reach a
 * store return the same error. */
static int open_alternate(const struct object_stores *s, const char *path,
    struct sys_stat *st)
{
	int fd = s->rule.open_root(s->rule.arg, path);

	if (fd < 0)
		return fd == -ENOMEM || fd == -ENFILE || fd == -EMFILE ? fd :
									 -EXDEV;
	if (SYS(s->sys, fstat, fd, st) == 0 &&
	    (st->uid == *s->rule.owner || st->gid == *s->rule.group))
		return fd;
	SYS(s->sys, close, fd);
	return -EXDEV;
}

/* git resolves "." and ".." in the text (strbuf_normalize_path()), so refd
 * does, too. Changes PATH, which is absolute, in place. */
static void normalise(char *path)
{
	char *to = path, *from = path, *end;
	size_t len;

	while (*from != '\0') {
		from += strspn(from, "/");
		end = from + strcspn(from, "/");
		len = (size_t)(end - from);
		if (len == 2 && memcmp(from, "..", 2) == 0) {
			while (to > path && *--to != '/')
				continue;
		} else if (len > 0 && !(len == 1 && *from == '.')) {
			*to++ = '/';
			memmove(to, from, len);
			to += len;
		}
		from = end;
	}
	if (to == path)
		*to++ = '/';
	*to = '\0';
}

/* The path that LINE of the alternates of the store FD means. */
static int full_path(const struct object_stores *s, int fd, const char *line,
    char *path, size_t size)
{
	size_t len = 0;
	int r;

	if (line[0] != '/') {
		r = SYS(s->sys, fd_path, fd, path, size);
		if (r < 0)
			return -EXDEV;
		len = strlen(path);
	}
	if ((size_t)snprintf(path + len, size - len, "/%s", line) >= size - len)
		return -EXDEV;
	normalise(path);
	return 0;
}

static int add_alternate(struct object_stores *s, int fd, const char *line)
{
	char path[2 * REFD_PATH_MAX];
	struct sys_stat st;
	int r;

	r = line[0] == '"' ? -EXDEV :
			     full_path(s, fd, line, path, sizeof(path));
	if (r < 0)
		return r;
	fd = open_alternate(s, path, &st);
	if (fd < 0)
		return fd;
	if (!is_known(s, &st) && s->nr < STORES_MAX)
		return add_store(s, fd, &st, path);
	r = is_known(s, &st) ? 0 : -EXDEV;
	SYS(s->sys, close, fd);
	return r;
}

static int read_alternates(const struct object_stores *s,
    const struct object_store *store, char **text)
{
	size_t len;
	int fd, r;

	fd = SYS(s->sys, openat, store->info_fd, "alternates",
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0)
		return fd == -ELOOP ? -EINVAL : fd;
	r = sys_read_fd(s->sys, fd, ALTERNATES_BYTES, text, &len);
	SYS(s->sys, close, fd);
	return r == -EISDIR || r == -EFBIG ? -EINVAL : r;
}

/* Adds the alternates of store number NTH, a path per line. */
static int add_alternates(struct object_stores *s, size_t nth, unsigned *lines)
{
	const struct object_store store = s->at[nth];
	char *text, *rest, *line;
	int r;

	if (store.alternates.ino == 0)
		return 0;
	r = read_alternates(s, &store, &text);
	if (r < 0)
		return r == -ENOENT ? 0 : store.path == NULL ? r : -EXDEV;
	rest = text;
	while (r == 0 && (line = strsep(&rest, "\n")) != NULL) {
		if (line[0] == '\0' || line[0] == '#')
			continue;
		r = ++*lines > ALTERNATES_LINES ?
		    -EXDEV :
		    add_alternate(s, store.fd, line);
	}
	free(text);
	return r;
}

/* Reads level after level of alternates. */
static int read_all(struct object_stores *s)
{
	size_t nth = 0, end, depth;
	unsigned lines = 0;
	int r;

	r = add_own(s);
	for (depth = 0; r == 0 && nth < s->nr; depth++) {
		if (depth > ALTERNATES_DEPTH)
			r = -EXDEV;
		for (end = s->nr; r == 0 && nth < end; nth++)
			r = add_alternates(s, nth, &lines);
	}
	return r;
}

/* ---- again ---- */

static bool is_same_file(const struct sys_stat *a, const struct sys_stat *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
	    a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns;
}

static bool is_own_there(const struct object_stores *s,
    const struct object_store *store)
{
	struct sys_stat st;

	return SYS(s->sys, lstatat, s->common_fd, "objects", &st) == 0 &&
	    st.dev == store->dev && st.ino == store->ino;
}

static bool is_alternate_there(const struct object_stores *s,
    const struct object_store *store)
{
	struct sys_stat st;
	int fd = open_alternate(s, store->path, &st);

	if (fd < 0)
		return false;
	SYS(s->sys, close, fd);
	return st.dev == store->dev && st.ino == store->ino;
}

static bool is_inside_same(const struct object_stores *s,
    const struct object_store *store)
{
	static const struct sys_stat none;
	struct sys_stat now;

	if (SYS(s->sys, lstatat, store->fd, "info", &now) < 0)
		return store->info_fd < 0;
	if (store->info_fd < 0 || now.ino != store->info_ino)
		return false;
	if (SYS(s->sys, lstatat, store->info_fd, "alternates", &now) < 0)
		now = none;
	return is_same_file(&now, &store->alternates);
}

static bool is_unchanged(const struct object_stores *s)
{
	const struct object_store *store;
	size_t i;

	for (i = 0; i < s->nr; i++) {
		store = &s->at[i];
		if (!(store->path == NULL ? is_own_there(s, store) :
					    is_alternate_there(s, store)) ||
		    !is_inside_same(s, store))
			return false;
	}
	return s->nr > 0 && !s->is_recent;
}

int object_stores_refresh(struct object_stores *s)
{
	int r;

	if (is_unchanged(s))
		return 0;
	object_stores_done(s);
	s->is_recent = false;
	r = read_all(s);
	if (r == 0)
		return 1;
	object_stores_done(s);
	return r;
}
