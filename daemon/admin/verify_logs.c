/*
 * Reflogs.
 *
 * Happy path: complete lines, and the last line ends with the value of the ref.
 *
 * Git leaves no log without its ref, so such a log remains of a lost ref, or of
 * a creation that failed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/admin/verify_internal.h"
#include "proto/lib/lock_pid.h"

struct log_check {
	enum refd_object_format format;
	unsigned long line, bad; /* the first bad one; 0: none */
	bool is_torn;
	struct refd_oid last; /* of the last sound line */
	bool has_last;
};

static bool is_sound(const char *line, size_t len,
    enum refd_object_format format, struct refd_oid *to)
{
	const size_t field = refd_object_format_hex(format) + 1;
	struct refd_oid from;

	return len > 2 * field && refd_oid_parse(line, format, &from) == 0 &&
	    line[field - 1] == ' ' &&
	    refd_oid_parse(line + field, format, to) == 0 &&
	    line[2 * field - 1] == ' ' && strchr(line, '>') != NULL;
}

static int log_line(void *arg, char *line, size_t len, bool ends)
{
	struct log_check *look = arg;

	look->line++;
	if (!ends || memchr(line, '\0', len) != NULL) {
		look->is_torn = true;
		return 1; /* nothing else is reported */
	}
	if (is_sound(line, len, look->format, &look->last)) {
		look->has_last = true;
	} else if (look->bad == 0) {
		look->bad = look->line;
	}
	return 0;
}

/* ---- its ref ---- */

/* Returns an existing ref above NAME, or NULL. The log of such a ref cannot be
 * written, because it would be a file in the place of the directory. */
static const char *ref_above(struct verify *v, const struct ref_place *place,
    const char *name, char above[REFD_PATH_MAX])
{
	struct refd_oid oid;
	char *slash;

	snprintf(above, REFD_PATH_MAX, "%s", name);
	while ((slash = strrchr(above, '/')) != NULL) {
		*slash = '\0';
		if (strchr(above, '/') != NULL &&
		    verify_ref_value(v, place, above, &oid) > 0)
			return above;
	}
	return NULL;
}

static bool is_there(struct verify *v, int dirfd, const char *path)
{
	struct sys_stat st;

	return SYS(v->sys, lstatat, dirfd, path, &st) == 0;
}

/* A writer that creates or deletes the ref holds its lock while the ref or the
 * log is missing. Such a writer may begin between two checks, so the log is
 * checked before and after the others. */
static bool is_orphan(struct verify *v, const struct ref_place *place,
    const char *name, const char *path)
{
	char lock[REFD_PATH_MAX];
	struct refd_oid oid;

	snprintf(lock, sizeof(lock), "%s.lock", name);
	return is_there(v, place->dirfd, path) &&
	    !is_there(v, place->dirfd, lock) &&
	    verify_ref_value(v, place, name, &oid) == 0 &&
	    is_there(v, place->dirfd, path);
}

static void found_orphan(struct verify *v, const struct ref_place *place,
    const char *ref, const char *name, const char *path, bool is_empty)
{
	char above[REFD_PATH_MAX];
	const char *blocked = ref_above(v, place, name, above);

	if (is_empty)
		verify_found(v, FOUND_LOG_EMPTY, ref, path,
		    "there is no such ref, and its empty log prevents refs "
		    "with conflicting names");
	else
		verify_found(v, FOUND_LOG_ORPHAN, ref, path,
		    "there is no such ref, but its log exists");
	if (blocked != NULL)
		verify_found(v, FOUND_LOG_BLOCKED, blocked, path,
		    "its log can't be written, because another log exists "
		    "below it");
}

static void check_last(struct verify *v, const char *ref, const char *path,
    const struct log_check *look, const struct refd_oid *oid)
{
	char is[REFD_OID_MAX_HEX + 1], said[REFD_OID_MAX_HEX + 1];

	if (look->has_last && !refd_oid_eq(&look->last, oid))
		verify_found(v, FOUND_LOG_DISAGREES, ref, path,
		    "the ref is at %s, its log ends with %s",
		    refd_oid_hex(oid, look->format, is),
		    refd_oid_hex(&look->last, look->format, said));
}

/* ---- one log ---- */

static void check_lines(struct verify *v, const struct ref_place *place,
    const char *name, const char *path, int fd, bool is_empty)
{
	char buf[REFD_PATH_MAX];
	const char *ref = verify_ref_name(place, name, buf);
	struct log_check look = { .format = v->repo.object_format };
	struct refd_oid oid;
	int r, value;

	r = verify_each_line(v->sys, fd, log_line, &look);
	value = verify_ref_value(v, place, name, &oid);
	if (r < 0)
		verify_found(v, FOUND_LOG_UNREADABLE, ref, path, "%s",
		    strerror(-r));
	if (look.is_torn)
		verify_found(v, FOUND_LOG_TORN, ref, path,
		    "a line is cut off, or has NUL bytes");
	else if (look.bad > 0)
		verify_found(v, FOUND_LOG_MALFORMED, ref, path,
		    "line %lu does not have git's format", look.bad);
	else if (value == 1 && r == 0)
		check_last(v, ref, path, &look, &oid);
	if (value == 0 && strcmp(name, "HEAD") != 0 &&
	    is_orphan(v, place, name, path))
		found_orphan(v, place, ref, name, path, is_empty);
}

void verify_log(struct verify *v, const struct ref_place *place,
    const char *name)
{
	char path[REFD_PATH_MAX], buf[REFD_PATH_MAX];
	struct sys_stat st = { .size = 0 };
	int fd, r;

	if ((size_t)snprintf(path, sizeof(path), "logs/%s", name) >=
	    sizeof(path))
		return;
	fd = SYS(v->sys, openat, place->dirfd, path,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
	if (fd == -ENOENT || fd == -ENOTDIR)
		return;
	r = fd < 0 ? fd : SYS(v->sys, fstat, fd, &st);
	if (r == 0 && S_ISREG(st.mode))
		check_lines(v, place, name, path, fd, st.size == 0);
	else
		verify_found(v, FOUND_LOG_UNREADABLE,
		    verify_ref_name(place, name, buf), path, "%s",
		    r < 0 ? strerror(-r) : "it is not a file");
	if (fd >= 0)
		SYS(v->sys, close, fd);
}

/* ---- all of them ---- */

struct log_walk {
	struct verify *v;
	size_t nr_linked; /* logs with a second name */
	char linked[REFD_PATH_MAX];
};

/* A copy of a repository by hard links has two names for each log, so they are
 * one finding. */
static void look_for_link(struct log_walk *walk, const struct ref_place *place,
    const char *path)
{
	struct sys_stat st;

	if (SYS(walk->v->sys, lstatat, place->dirfd, path, &st) == 0 &&
	    S_ISREG(st.mode) && st.nlink > 1 && walk->nr_linked++ == 0)
		snprintf(walk->linked, sizeof(walk->linked), "%s", path);
}

/* lock_file_fn; ARG is the struct log_walk. */
static int visit(void *arg, const struct lock_file *f)
{
	struct log_walk *walk = arg;
	char buf[REFD_PATH_MAX];

	/* A path that is too long is no log. */
	if (f->err == -ENAMETOOLONG || lock_pid_is(f->path))
		return 0;
	if (f->err < 0) {
		verify_found(walk->v, FOUND_LOG_UNREADABLE, "",
		    verify_ref_name(f->place, f->path, buf), VERIFY_UNREAD,
		    strerror(-f->err));
		return 0;
	}
	look_for_link(walk, f->place, f->path);
	verify_check(walk->v, verify_log, f->place, f->path + strlen("logs/"));
	return 0;
}

void verify_walk_logs(struct verify *v, const struct ref_place *place)
{
	struct log_walk walk = { .v = v };
	char buf[REFD_PATH_MAX];

	lock_walk_tree(v->sys, place, "logs", visit, &walk);
	if (walk.nr_linked > 0)
		verify_found(v, FOUND_LOG_LINKED, "",
		    verify_ref_name(place, walk.linked, buf),
		    "%zu log%s a second name (a hard link), which may be "
		    "outside of the repository: refd leaves updates of such "
		    "refs to git",
		    walk.nr_linked, walk.nr_linked == 1 ? " has" : "s have");
}
