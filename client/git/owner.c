/*
 * Normal path: root resolves a path once, name by name, and notes who could
 * have led the path elsewhere. The worker resolves the path again. By then only
 * the owner can have changed the way, and the worker has the owner's rights.
 */
#include "client/git/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

/* git and the daemon have shorter limits. */
#define WORK_S     120
#define WORK_BYTES (4 << 20)
/* Of one owner, until root leaves the other repositories alone. */
#define FAILURES_MAX 3
/* As in the kernel. */
#define LINKS_MAX 40

/* ---- who decides where a path leads ---- */

/* The users that could exchange a directory on the way, or made a link. */
struct way {
	uid_t other;   /* a user other than root; 0: none */
	bool is_mixed; /* several others */
	bool is_open, is_group_open;
};

/* Root's group is trusted. An access control list shows as rights of the group,
 * and may name any user. */
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

static char *path_of(int fd)
{
	return xasprintf("/proc/self/fd/%d", fd);
}

static void pass(struct way *way, int fd, const struct stat *st)
{
	bool is_sticky = st->st_mode & S_ISVTX;
	char *dir = path_of(fd);

	pass_user(way, st->st_uid);
	way->is_open |= (st->st_mode & 0002) && !is_sticky;
	way->is_group_open |= !is_sticky && is_group_open(dir, st);
	free(dir);
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
	int fd;     /* the present directory */
	char *rest; /* the names to go; owned */
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

/* The target of LINK comes before the rest. */
static int follow(struct path_walk *w, int link, const struct stat *st)
{
	char target[PATH_MAX], *rest = w->rest;
	ssize_t len = readlinkat(link, "", target, sizeof(target) - 1);

	if (len < 0)
		return -errno;
	if (w->nr_links++ == LINKS_MAX)
		return -ELOOP;
	target[len] = '\0';
	pass_user(&w->way, st->st_uid);
	w->rest = xasprintf("%s/%s", target, rest);
	free(rest);
	return target[0] == '/' ? enter_root(w) : 0;
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

/* 0 or negative errno. */
static int walk(struct path_walk *w, const char *dir)
{
	char *here = dir[0] == '/' ? NULL : getcwd(NULL, 0), *name;
	int err = enter_root(w);

	w->rest = xasprintf("%s/%s", here ? here : "", dir);
	free(here);
	while (!err && *w->rest) {
		size_t len = strcspn(w->rest, "/");
		char *rest = w->rest;

		name = xasprintf("%.*s", (int)len, rest);
		w->rest = xstrdup(rest + len + (rest[len] == '/'));
		free(rest);
		if (*name && strcmp(name, ".") != 0)
			err = step(w, name);
		free(name);
	}
	return err;
}

static void walk_done(struct path_walk *w)
{
	if (w->fd >= 0)
		close(w->fd);
	free(w->rest);
}

/* The kernel tells the path, so that no name is looked up again. */
static int take_end(struct owned *o, const struct path_walk *w)
{
	char *link = path_of(w->fd), path[PATH_MAX];
	ssize_t len = readlink(link, path, sizeof(path) - 1);

	free(link);
	if (len < 0 || fstat(w->fd, &o->st) < 0)
		return -errno;
	path[len] = '\0';
	o->path = xstrdup(path);
	return 0;
}

static int find(struct owned *o, const char *dir)
{
	o->path = realpath(dir, NULL);
	return o->path && stat(o->path, &o->st) == 0 ? 0 : -errno;
}

static void say_unsafe(const struct owned *o, const char *dir, struct text *why)
{
	const unsigned uid = (unsigned)o->st.st_uid;

	if (strcmp(dir, o->path) != 0)
		text_addf(why, "%s leads to ", dir);
	text_addf(why,
	    "%s, which belongs to user %u, and another user may write to a "
	    "directory above it, or made a link to it, and so may put another "
	    "repository in its place; root does nothing there: name %s itself, "
	    "or run this as user %u",
	    o->path, uid, o->path, uid);
}

bool owner_find(struct owned *o, const char *dir, struct text *why)
{
	struct path_walk w = { .fd = -1 };
	int err;

	*o = (struct owned){ .is_for_root = geteuid() == 0 };
	if (!o->is_for_root) {
		err = find(o, dir);
	} else {
		err = walk(&w, dir);
		if (!err)
			err = take_end(o, &w);
	}
	if (err)
		text_addf(why, "%s: %s", dir, strerror(-err));
	else if (o->is_for_root && !is_safe(&w.way, o->st.st_uid))
		say_unsafe(o, dir, why);
	walk_done(&w);
	if (!why->len)
		return true;
	owner_done(o);
	return false;
}

void owner_done(struct owned *o)
{
	free(o->path);
	memset(o, 0, sizeof(*o));
}

/* ---- the repository ---- */

static bool is_of(const struct owned *o, const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && st.st_uid == o->st.st_uid;
}

bool owner_gitdir(struct gitdir *gd, const struct owned *o, struct text *why)
{
	char *dot = xasprintf("%s/.git", o->path);
	bool ok = gitdir_locate(gd, o->path, why);

	if (ok && o->is_for_root &&
	    ((gd->is_linked && !is_of(o, dot)) || !is_of(o, gd->path) ||
		!is_of(o, gd->common))) {
		text_addf(why,
		    "%s leads to %s, and not all on the way belongs to user "
		    "%u; name %s itself",
		    o->path, gd->common, (unsigned)o->st.st_uid, gd->common);
		gitdir_done(gd);
		ok = false;
	}
	free(dot);
	return ok;
}

/* ---- links ---- */

static bool is_of_another(const struct stat *st)
{
	return st->st_uid && st->st_uid != geteuid();
}

bool owner_trusts_link(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *around = slash ? xasprintf("%.*s/", (int)(slash - path), path) :
			       xstrdup(".");
	struct stat dir, link;
	bool trusts = lstat(path, &link) == 0 && stat(around, &dir) == 0 &&
	    !is_of_another(&link) && !is_of_another(&dir) &&
	    !(dir.st_mode & 0002) && !is_group_open(around, &dir);

	free(around);
	return trusts;
}

/* ---- work ---- */

bool owner_is_here(const struct stat *st)
{
	return st->st_uid == geteuid();
}

/* Most repositories have one owner, and a look-up can ask another machine. So
 * the account of the last worker is kept. */
static const struct account *account_of(const struct stat *st)
{
	static struct account last, self;
	static gid_t dir_gid;

	self.uid = geteuid();
	if (self.uid != 0 || st->st_uid == 0)
		return &self;
	if (last.uid == st->st_uid && dir_gid == st->st_gid)
		return &last;
	account_done(&last);
	if (account_find(&last, st->st_uid, st->st_gid) < 0)
		die("out of memory");
	dir_gid = st->st_gid;
	return &last;
}

/* How often workers of UID failed. */
static unsigned *failures_of(uid_t uid)
{
	static struct failures {
		uid_t uid;
		unsigned nr;
	} *list;
	static size_t nr, size;
	size_t i;

	for (i = 0; i < nr; i++)
		if (list[i].uid == uid)
			return &list[i].nr;
	list = xroom(list, nr, &size, sizeof(*list));
	list[nr] = (struct failures){ .uid = uid };
	return &list[nr++].nr;
}

int owner_run(const struct owned *o, struct work work, struct text *why)
{
	const struct account *as = account_of(&o->st);
	const char *how = NULL;
	int result = -ECANCELED;

	if (!work.seconds)
		work.seconds = WORK_S;
	if (!work.bytes)
		work.bytes = WORK_BYTES;
	if (!account_is_other(as) || *failures_of(as->uid) < FAILURES_MAX)
		result = worker_run(as, &work, &how);
	else
		how = "was not tried, because it failed repeatedly for other "
		      "directories of this user";
	if (result >= 0)
		return result;
	++*failures_of(as->uid);
	text_addf(why,
	    "%s: the work with the rights of user %u %s; run this as user %u",
	    o->path, (unsigned)as->uid, how, (unsigned)as->uid);
	return result;
}

int owner_work(struct owned *o, const char *dir, struct work work,
    struct text *why)
{
	int result = -ENOENT;

	if (owner_find(o, dir, why))
		result = owner_run(o, work, why);
	owner_done(o);
	return result;
}
