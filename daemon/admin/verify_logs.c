/*
 * Reflogs.
 *
 * The happy path: whole lines, the last of which ends at the ref's value.
 *
 * Otherwise a finding each. A log without its ref, which git leaves nowhere,
 * is what is left of a ref that was lost, or of a creation that never was.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/admin/verify_internal.h"

struct log_look {
	unsigned long line, bad; /* the first bad one; 0: none */
	bool is_torn;
	struct refd_oid last; /* of the last sound line */
	bool has_last;
};

static bool is_sound(const char *line, size_t len, struct refd_oid *to)
{
	const size_t field = REFD_OID_HEX + 1;
	struct refd_oid from;

	return len > 2 * field && refd_oid_parse(line, &from) == 0 &&
	    line[field - 1] == ' ' && refd_oid_parse(line + field, to) == 0 &&
	    line[2 * field - 1] == ' ' && strchr(line, '>') != NULL;
}

static int log_line(void *arg, char *line, size_t len, bool ends)
{
	struct log_look *look = arg;

	look->line++;
	if (!ends || memchr(line, '\0', len) != NULL) {
		look->is_torn = true;
	} else if (is_sound(line, len, &look->last)) {
		look->has_last = true;
	} else if (look->bad == 0) {
		look->bad = look->line;
	}
	return 0;
}

/* ---- its ref ---- */

/* Of refs/heads/a/b: a log of refs/heads/a has no room then. */
static const char *ref_above(struct verify *v, const struct verify_place *place,
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

/* Who makes or deletes the ref has its lock while only one of the two is
 * there. In this order: what begins after a look is not seen by the next. */
static bool is_orphan(struct verify *v, const struct verify_place *place,
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

static void tell_orphan(struct verify *v, const struct verify_place *place,
    const char *ref, const char *name, const char *path, bool is_empty)
{
	char above[REFD_PATH_MAX];
	const char *blocked = ref_above(v, place, name, above);

	if (is_empty)
		verify_found(v, FOUND_LOG_EMPTY, ref, path,
		    "there is no such ref: its empty log keeps others of its "
		    "name, as a directory or below it, from being made");
	else
		verify_found(v, FOUND_LOG_ORPHAN, ref, path,
		    "there is no such ref any more, but its log is there");
	if (blocked != NULL)
		verify_found(v, FOUND_LOG_BLOCKED, blocked, path,
		    "its log can't be written, since a log stands below it");
}

static void tell_last(struct verify *v, const char *ref, const char *path,
    const struct log_look *look, const struct refd_oid *oid)
{
	char is[REFD_OID_HEX + 1], said[REFD_OID_HEX + 1];

	if (look->has_last && !refd_oid_eq(&look->last, oid))
		verify_found(v, FOUND_LOG_DISAGREES, ref, path,
		    "the ref is at %s, its log ends with %s",
		    refd_oid_hex(oid, is), refd_oid_hex(&look->last, said));
}

/* ---- one log ---- */

static void look_at_lines(struct verify *v, const struct verify_place *place,
    const char *name, const char *path, int fd, bool is_empty)
{
	char buf[REFD_PATH_MAX];
	const char *ref = verify_ref_name(place, name, buf);
	struct log_look look = { .line = 0 };
	struct refd_oid oid;
	int r, value;

	r = verify_each_line(v->sys, fd, log_line, &look);
	value = verify_ref_value(v, place, name, &oid);
	if (r < 0)
		verify_found(v, FOUND_LOG_UNREADABLE, ref, path, "%s",
		    strerror(-r));
	if (look.is_torn)
		verify_found(v, FOUND_LOG_TORN, ref, path,
		    "a line of it is cut off, or holds NUL bytes");
	else if (look.bad > 0)
		verify_found(v, FOUND_LOG_MALFORMED, ref, path,
		    "line %lu is none that git writes", look.bad);
	else if (value == 1 && r == 0)
		tell_last(v, ref, path, &look, &oid);
	if (value == 0 && strcmp(name, "HEAD") != 0 &&
	    is_orphan(v, place, name, path))
		tell_orphan(v, place, ref, name, path, is_empty);
}

void verify_log(struct verify *v, const struct verify_place *place,
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
		look_at_lines(v, place, name, path, fd, st.size == 0);
	else
		verify_found(v, FOUND_LOG_UNREADABLE,
		    verify_ref_name(place, name, buf), path, "%s",
		    r < 0 ? strerror(-r) : "it is no file");
	if (fd >= 0)
		SYS(v->sys, close, fd);
}

/* ---- all of them ---- */

/* DIR: "logs" and what is below it. */
static void walk(struct verify *v, const struct verify_place *place,
    const char *dir)
{
	const size_t logs = strlen("logs/");
	char path[REFD_PATH_MAX];
	struct sys_dirent entry;
	struct sys_dir *d;

	if (SYS(v->sys, dir_open, place->dirfd, dir, &d) < 0)
		return;
	while (SYS(v->sys, dir_next, d, &entry) > 0) {
		if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir,
			entry.name) >= sizeof(path))
			continue;
		if (verify_is_dir(v, place, path, entry.type))
			walk(v, place, path);
		else
			verify_look(v, VERIFY_A_LOG, place, path + logs);
	}
	SYS(v->sys, dir_close, d);
}

void verify_walk_logs(struct verify *v, const struct verify_place *place)
{
	walk(v, place, "logs");
}
