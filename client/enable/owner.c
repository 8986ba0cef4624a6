#include "client/enable/owner.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/base/cli.h"

#define NOBODY 65534

/* What it was before. */
static struct {
	bool is_other;
	gid_t group, *groups;
	int nr_groups;
	char *home, *config;
} self;

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

/* Root's own groups would let the owner's git, which does as the owner's
 * configuration says, read what is open to them. */
static int take_groups_of(const struct passwd *pw)
{
	return pw ? initgroups(pw->pw_name, pw->pw_gid) : setgroups(0, NULL);
}

/* GID is a directory's, and that may be a group which the owner is not in:
 * then the owner's own, PW's, or none that has a right anywhere. */
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

/* The real user as well: a shell, which git may be a script for, goes by
 * that. The way back is the saved one, which no child gets. */
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
