/*
 * Reading and staging loose refs.
 *
 * Happy path:
 *	read	open, fstat, one pread, close
 *	stage	open, write, close; the caller renames
 *
 * Failure modes:
 *	no regular file: a link is read, a directory is looked through, any
 *	other type is broken; opening never waits, so a FIFO hangs nobody
 *	a write that fails: the staged file is removed, nothing else was
 *	touched
 */
#include "daemon/store/files/format/loose.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/limits.h"
#include "proto/refname.h"

#define SYMREF_PREFIX "ref:"

/* Text after an id is ignored, as in git, so only a symref needs the room. A
 * longer symref cannot name a ref that git could open. */
#define CONTENT_MAX (REFD_PATH_MAX + 64)

void loose_value_done(struct loose_value *value)
{
	free(value->target);
	*value = (struct loose_value){ .kind = LOOSE_ABSENT };
}

/* git's own isspace(): neither vertical tab nor form feed. */
static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Git cuts trailing blanks before a NUL ends the target, so the order is the
 * same here. */
static int parse_symref(const char *buf, size_t len, struct loose_value *value)
{
	char *target;

	value->exact =
	    len > 0 && buf[len - 1] == '\n' && memchr(buf, '\0', len) == NULL;
	while (len > 0 && is_space(buf[len - 1]))
		len--;
	while (len > 0 && is_space(*buf)) {
		buf++;
		len--;
	}
	target = strndup(buf, len);
	if (target == NULL)
		return -ENOMEM;
	value->kind = LOOSE_SYMREF;
	value->target = target;
	return 0;
}

int loose_parse(const char *buf, size_t len, enum refd_object_format format,
    struct loose_value *value)
{
	const size_t hex = refd_object_format_hex(format);
	const size_t prefix = sizeof(SYMREF_PREFIX) - 1;

	*value = (struct loose_value){ .kind = LOOSE_BROKEN };
	if (len >= prefix && memcmp(buf, SYMREF_PREFIX, prefix) == 0)
		return parse_symref(buf + prefix, len - prefix, value);
	if (len < hex || refd_oid_parse(buf, format, &value->oid) < 0)
		return 0;
	if (len == hex || buf[hex] == '\0' || is_space(buf[hex]))
		value->kind = LOOSE_OID;
	value->exact = len == hex + 1 && buf[hex] == '\n';
	return 0;
}

/* Only a link to a valid refname is a symref, because git would open any other
 * link, and so read outside the repository. */
static int read_symlink(const struct sys *sys, int dirfd, const char *path,
    struct loose_value *value)
{
	char target[REFD_PATH_MAX];
	struct sys_stat st;
	ssize_t n;
	int r;

	n = SYS(sys, readlinkat, dirfd, path, target, sizeof(target));
	if (n < 0)
		return (int)n;
	r = SYS(sys, lstatat, dirfd, path, &st);
	if (r < 0)
		return r;
	*value = (struct loose_value){
		.kind = LOOSE_BROKEN,
		.mtime_ns = st.mtime_ns,
		.written_ns = sys_stat_written_ns(&st),
		.owner = st.uid,
	};
	if ((size_t)n == sizeof(target))
		return 0;
	target[n] = '\0';
	if (strncmp(target, "refs/", 5) != 0 || !refd_refname_format_ok(target))
		return 0;
	value->target = strdup(target);
	if (value->target == NULL)
		return -ENOMEM;
	value->kind = LOOSE_SYMREF;
	value->exact = true;
	return 0;
}

static int read_directory(const struct sys *sys, int dirfd, const char *path,
    struct loose_value *value)
{
	int r;

	r = loose_dir_holds_file(sys, dirfd, path);
	if (r < 0)
		return r;
	*value = (struct loose_value){
		.kind = r > 0 ? LOOSE_DIR : LOOSE_ABSENT,
	};
	return 0;
}

static int read_content(const struct sys *sys, int fd,
    const struct sys_stat *st, enum refd_object_format format,
    struct loose_value *value)
{
	char buf[CONTENT_MAX];
	size_t len = 0, want;
	ssize_t n;
	int r;

	want = st->size < sizeof(buf) ? (size_t)st->size : sizeof(buf);
	while (len < want) {
		n = SYS(sys, pread, fd, buf + len, want - len, (off_t)len);
		if (n < 0)
			return (int)n;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	r = loose_parse(buf, len, format, value);
	if (r == 0 && value->kind == LOOSE_SYMREF && len < st->size) {
		loose_value_done(value);
		value->kind = LOOSE_BROKEN;
	}
	value->mtime_ns = st->mtime_ns;
	value->written_ns = sys_stat_written_ns(st);
	value->owner = st->uid;
	return r;
}

int loose_read(const struct sys *sys, int dirfd, const char *path,
    enum refd_object_format format, struct loose_value *value)
{
	struct sys_stat st;
	int fd, r;

	fd = SYS(sys, openat, dirfd, path,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ENXIO) {
		*value = (struct loose_value){
			.kind = fd == -ENXIO ? LOOSE_BROKEN : LOOSE_ABSENT,
			.is_vacant = fd == -ENOENT,
		};
		return 0;
	}
	if (fd == -ELOOP)
		return read_symlink(sys, dirfd, path, value);
	if (fd < 0)
		return fd;
	r = SYS(sys, fstat, fd, &st);
	if (r == 0 && S_ISREG(st.mode))
		r = read_content(sys, fd, &st, format, value);
	else if (r == 0 && S_ISDIR(st.mode))
		r = read_directory(sys, dirfd, path, value);
	else if (r == 0)
		*value = (struct loose_value){ .kind = LOOSE_BROKEN };
	SYS(sys, close, fd);
	return r;
}

int loose_format(const struct refd_oid *oid, enum refd_object_format format,
    const char *target, char content[LOOSE_CONTENT_MAX])
{
	int len;

	if (target == NULL) {
		refd_oid_hex(oid, format, content);
		len = (int)refd_object_format_hex(format);
		content[len++] = '\n';
		content[len] = '\0';
		return len;
	}
	len =
	    snprintf(content, LOOSE_CONTENT_MAX, SYMREF_PREFIX " %s\n", target);
	return len >= LOOSE_CONTENT_MAX ? -ENAMETOOLONG : len;
}

int loose_stage(const struct sys *sys, int stage_fd, const char *name,
    const char *content, size_t len, mode_t mode)
{
	int fd, r;

	fd =
	    SYS(sys, openat, stage_fd, name, O_WRONLY | O_CREAT | O_EXCL, mode);
	if (fd < 0)
		return fd;
	r = SYS(sys, write_all, fd, content, len);
	if (r == 0)
		return fd;
	SYS(sys, close, fd);
	SYS(sys, unlinkat, stage_fd, name);
	return r;
}
