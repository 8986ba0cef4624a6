#include "client/enable/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#define NOBODY 65534

/* Root's own rights, meanwhile. */
static struct {
	bool is_other;
	gid_t group, *groups;
	int nr_groups;
	char *home, *config;
} self;

/* ---- the change of users ---- */

static void remember_groups(void)
{
	int size = getgroups(0, NULL);

	self.group = getegid();
	self.groups =
	    xcalloc((size_t)(size > 0 ? size : 0) + 1, sizeof(*self.groups));
	self.nr_groups = getgroups(size, self.groups);
	if (self.nr_groups < 0)
		die("cannot read the groups of this process: %s",
		    strerror(errno));
}

/* The owner's git runs commands from the owner's configuration. With root's
 * groups, these commands could read files that are open to the groups. */
static int take_groups_of(const struct passwd *pw)
{
	return pw ? initgroups(pw->pw_name, pw->pw_gid) : setgroups(0, NULL);
}

/* GID is the group of a directory. If the owner is not a member, the owner's
 * own group (PW) counts, or a group without rights. */
static gid_t group_for(gid_t gid, const struct passwd *pw)
{
	gid_t own = pw ? pw->pw_gid : NOBODY, *list;
	int nr = getgroups(0, NULL), i;
	bool is_in = false;

	list = xcalloc((size_t)(nr > 0 ? nr : 0) + 1, sizeof(*list));
	nr = getgroups(nr, list);
	for (i = 0; i < nr; i++)
		is_in = is_in || list[i] == gid;
	free(list);
	return is_in ? gid : own;
}

/* The real user, too: git may be a shell script, and a shell uses the real
 * user. The saved user allows the way back; no child gets the saved user. */
static bool become(uid_t uid, gid_t gid)
{
	return setresgid(gid, gid, (gid_t)-1) == 0 &&
	    setresuid(uid, uid, 0) == 0;
}

static char *take_variable(const char *name)
{
	const char *value = getenv(name);

	return value ? xstrdup(value) : NULL;
}

static void put_variable(const char *name, char *value)
{
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
	free(value);
}

/* ---- the owner ---- */

/* The users that could exchange a directory on the way. */
struct way {
	uid_t other;   /* an owner other than root; 0: none */
	bool is_mixed; /* several other owners */
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

static void pass(struct way *way, int fd, const struct stat *st)
{
	bool is_sticky = st->st_mode & S_ISVTX;
	char dir[32];

	way->is_mixed |= way->other && st->st_uid && way->other != st->st_uid;
	if (st->st_uid)
		way->other = st->st_uid;
	way->is_open |= (st->st_mode & 0002) && !is_sticky;
	snprintf(dir, sizeof(dir), "/proc/self/fd/%d", fd);
	way->is_group_open |= !is_sticky && is_group_open(dir, st);
}

static bool is_safe(const struct way *way, uid_t owner)
{
	if (way->is_mixed || (way->other && way->other != owner))
		return false;
	return !way->is_open && (owner != 0 || !way->is_group_open);
}

/* Follows no link. A descriptor of DIR, and *ST; or negative errno. */
static int walk(const char *dir, struct way *way, struct stat *st)
{
	const int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	char *copy = xstrdup(dir), *rest = copy, *name;
	int fd = open("/", flags), next;

	while (fd >= 0 && (name = strsep(&rest, "/"))) {
		if (!*name)
			continue;
		next = fstat(fd, st) == 0 ? openat(fd, name, flags) : -1;
		pass(way, fd, st);
		close(fd);
		fd = next;
	}
	if (fd >= 0 && fstat(fd, st) < 0) {
		close(fd);
		fd = -1;
	}
	free(copy);
	return fd < 0 ? -errno : fd;
}

bool owner_stat(const char *dir, struct stat *st, struct text *why)
{
	struct way way = { 0 };
	int fd;

	if (geteuid() != 0) {
		if (stat(dir, st) == 0)
			return true;
		text_addf(why, "%s: %s", dir, strerror(errno));
		return false;
	}
	fd = walk(dir, &way, st);
	if (fd < 0) {
		text_addf(why, "%s: %s", dir, strerror(-fd));
		return false;
	}
	close(fd);
	if (is_safe(&way, st->st_uid))
		return true;
	text_addf(why,
	    "%s belongs to user %u, and another user may write to a directory "
	    "above it and so put another repository in its place; root does "
	    "nothing there: run this as user %u",
	    dir, (unsigned)st->st_uid, (unsigned)st->st_uid);
	return false;
}

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

bool owner_may_be(const struct stat *st)
{
	return geteuid() == 0 || geteuid() == st->st_uid;
}

void owner_enter(const struct stat *st)
{
	const struct passwd *pw;

	if (geteuid() != 0 || st->st_uid == 0)
		return;
	self.is_other = true;
	remember_groups();
	self.home = take_variable("HOME");
	self.config = take_variable("XDG_CONFIG_HOME");
	pw = getpwuid(st->st_uid);
	if (pw)
		setenv("HOME", pw->pw_dir, 1);
	else
		unsetenv("HOME");
	unsetenv("XDG_CONFIG_HOME");
	if (take_groups_of(pw) < 0 ||
	    !become(st->st_uid, group_for(st->st_gid, pw)))
		die("cannot act as user %u: %s", (unsigned)st->st_uid,
		    strerror(errno));
}

void owner_leave(void)
{
	if (!self.is_other)
		return;
	if (setresuid(0, 0, 0) < 0 || !become(0, self.group) ||
	    setgroups((size_t)self.nr_groups, self.groups) < 0)
		die("cannot act as root again: %s", strerror(errno));
	free(self.groups);
	put_variable("HOME", self.home);
	put_variable("XDG_CONFIG_HOME", self.config);
	memset(&self, 0, sizeof(self));
}
