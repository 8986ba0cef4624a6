/*
 * Normal path: root resolves a path once, name by name, and notes who could
 * have led the path elsewhere. The worker resolves the path again. By then only
 * the owner can have changed the way, and the worker has the owner's rights, so
 * a change gives the owner no new rights.
 */
#include "proto/lib/owned.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "proto/lib/print.h"

/* As in the kernel. */
#define LINKS_MAX 40

/* ---- who decides where a path leads ---- */

/* The users that could exchange a directory on the way, or made a link. */
struct way {
	uid_t other;   /* a user other than root; 0: none */
	bool is_mixed; /* several others */
	bool is_open, is_group_open;
	char open_dir[PATH_MAX]; /* the first of both; for the message */
};

/* Root's group is trusted. An access control list shows as rights of the group,
 * and may name any user, so a directory with such a list is open. */
static bool is_group_open(const char *dir, const struct stat *st)
{
	if (!(st->st_mode & 0020))
		return false;
	return st->st_gid ||
	    getxattr(dir, "system.posix_acl_access", NULL, 0) >= 0 ||
	    (errno != ENODATA && errno != ENOTSUP);
}

static void pass_user(struct way *way, uid_t uid)
{
	way->is_mixed |= way->other && uid && way->other != uid;
	if (uid)
		way->other = uid;
}

struct link_to {
	char path[32];
};

static struct link_to link_to(int fd)
{
	struct link_to link;

	snprintf(link.path, sizeof(link.path), "/proc/self/fd/%d", fd);
	return link;
}

static void pass(struct way *way, int fd, const struct stat *st)
{
	const struct link_to link = link_to(fd);
	const bool was_open = way->is_open || way->is_group_open;

	pass_user(way, st->st_uid);
	if (st->st_mode & S_ISVTX)
		return;
	way->is_open |= (st->st_mode & 0002) != 0;
	way->is_group_open |= is_group_open(link.path, st);
	if (!was_open && (way->is_open || way->is_group_open) &&
	    readlink(link.path, way->open_dir, PATH_MAX - 1) < 0)
		way->open_dir[0] = '\0';
}

static bool is_safe(const struct way *way, uid_t owner)
{
	if (way->is_mixed || (way->other && way->other != owner))
		return false;
	return !way->is_open && (owner != 0 || !way->is_group_open);
}

/* ---- the walk ---- */

struct path_walk {
	struct way way;
	int fd;              /* the present directory */
	char rest[PATH_MAX]; /* the names to go */
	int nr_links;
};

static int enter(struct path_walk *w, int fd)
{
	if (w->fd >= 0)
		close(w->fd);
	w->fd = fd;
	return fd < 0 ? -errno : 0;
}

static int enter_root(struct path_walk *w)
{
	return enter(w, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
}

/* FIRST comes before REST, which may be in W. */
static int set_rest(struct path_walk *w, const char *first, const char *rest)
{
	char joined[PATH_MAX];
	int len = snprintf(joined, sizeof(joined), "%s/%s", first, rest);

	if (len < 0 || (size_t)len >= sizeof(joined))
		return -ENAMETOOLONG;
	memcpy(w->rest, joined, (size_t)len + 1);
	return 0;
}

/* The target of LINK comes before the rest. */
static int follow(struct path_walk *w, int link, const struct stat *st)
{
	char target[PATH_MAX];
	ssize_t len = readlinkat(link, "", target, sizeof(target) - 1);
	int err;

	if (len < 0)
		return -errno;
	if (w->nr_links++ == LINKS_MAX)
		return -ELOOP;
	target[len] = '\0';
	pass_user(&w->way, st->st_uid);
	err = set_rest(w, target, w->rest);
	return err == 0 && target[0] == '/' ? enter_root(w) : err;
}

static int step(struct path_walk *w, const char *name)
{
	int next = openat(w->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), err;
	struct stat around, st;

	if (next < 0)
		return -errno;
	if (fstat(w->fd, &around) < 0 || fstat(next, &st) < 0) {
		err = -errno;
		close(next);
		return err;
	}
	pass(&w->way, w->fd, &around);
	if (S_ISDIR(st.st_mode))
		return enter(w, next);
	err = S_ISLNK(st.st_mode) ? follow(w, next, &st) : -ENOTDIR;
	close(next);
	return err;
}

/* Takes the first name from the rest. False if there is none. */
static bool take_name(struct path_walk *w, char name[PATH_MAX])
{
	size_t len = strcspn(w->rest, "/");

	if (w->rest[0] == '\0')
		return false;
	memcpy(name, w->rest, len);
	name[len] = '\0';
	len += w->rest[len] == '/';
	memmove(w->rest, w->rest + len, strlen(w->rest + len) + 1);
	return true;
}

/* 0 or negative errno. */
static int walk(struct path_walk *w, const char *dir)
{
	char here[PATH_MAX] = "", name[PATH_MAX];
	int err;

	if (dir[0] != '/' && getcwd(here, sizeof(here)) == NULL)
		return -errno;
	err = set_rest(w, here, dir);
	if (err == 0)
		err = enter_root(w);
	while (err == 0 && take_name(w, name))
		if (name[0] != '\0' && strcmp(name, ".") != 0)
			err = step(w, name);
	return err;
}

/* The kernel tells the path, so that no name is looked up again. */
static int take_end(struct owned *o, const struct path_walk *w)
{
	char path[PATH_MAX];
	ssize_t len = readlink(link_to(w->fd).path, path, sizeof(path) - 1);

	if (len < 0 || fstat(w->fd, &o->st) < 0)
		return -errno;
	path[len] = '\0';
	o->path = strdup(path);
	return o->path != NULL ? 0 : -ENOMEM;
}

static int find(struct owned *o, const char *dir)
{
	o->path = realpath(dir, NULL);
	return o->path != NULL && stat(o->path, &o->st) == 0 ? 0 : -errno;
}

static void PRINTF_LIKE(2, 3) say(char **why, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(why, fmt, ap) < 0)
		*why = NULL;
	va_end(ap);
}

/* A path that leads elsewhere is named twice. */
static void say_unsafe(const struct owned *o, const char *dir,
    const struct way *way, char **why)
{
	const bool leads = strcmp(dir, o->path) != 0;
	const unsigned uid = (unsigned)o->st.st_uid;
	const bool is_open = way->is_open || (uid == 0 && way->is_group_open);
	char remedy[64] = "let only root write there, or chmod +t";

	if (uid != 0)
		snprintf(remedy, sizeof(remedy), "run this as user %u", uid);
	say(why,
	    "%s%s%s, which belongs to user %u, and another user may write to a "
	    "directory above it%s%s, or made a link to it, and so may put "
	    "another directory in its place; root does nothing there: %s%s%s%s",
	    leads ? dir : "", leads ? " leads to " : "", o->path, uid,
	    is_open ? ", " : "", is_open ? way->open_dir : "",
	    leads ? "name " : "", leads ? o->path : "",
	    leads ? " itself, or " : "", remedy);
}

bool owned_find(struct owned *o, const char *dir, char **why)
{
	struct path_walk w = { .fd = -1 };
	bool found = false;
	int err;

	*o = (struct owned){ .is_for_root = geteuid() == 0 };
	if (!o->is_for_root) {
		err = find(o, dir);
	} else {
		err = walk(&w, dir);
		if (err == 0)
			err = take_end(o, &w);
	}
	if (err < 0)
		say(why,
		    "can't open '%s': %s; name the directory of a "
		    "repository",
		    dir, strerror(-err));
	else if (o->is_for_root && !is_safe(&w.way, o->st.st_uid))
		say_unsafe(o, dir, &w.way, why);
	else
		found = true;
	if (w.fd >= 0)
		close(w.fd);
	if (!found)
		owned_done(o);
	return found;
}

void owned_done(struct owned *o)
{
	free(o->path);
	memset(o, 0, sizeof(*o));
}

/* ---- links ---- */

static bool is_of_another(const struct stat *st)
{
	return st->st_uid && st->st_uid != geteuid();
}

bool owned_trusts_link(const char *path)
{
	const char *slash = strrchr(path, '/');
	char around[PATH_MAX];
	struct stat dir, link;
	int len = slash == NULL ? snprintf(around, sizeof(around), ".") :
				  snprintf(around, sizeof(around), "%.*s/",
				      (int)(slash - path), path);

	return len > 0 && (size_t)len < sizeof(around) &&
	    lstat(path, &link) == 0 && stat(around, &dir) == 0 &&
	    !is_of_another(&link) && !is_of_another(&dir) &&
	    !(dir.st_mode & 0002) && !is_group_open(around, &dir);
}
