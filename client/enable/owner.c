#include "client/enable/owner.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/base/cli.h"

/* What it was before. */
static struct {
	bool is_other;
	gid_t group;
	char *home, *config;
} self;

/* The real user as well: a shell, which git may be a script for, goes by
 * that. The way back is the saved one, which no child gets. */
static void become(uid_t uid, gid_t gid)
{
	if (setresuid(0, 0, 0) < 0 || setresgid(gid, gid, (gid_t)-1) < 0 ||
	    setresuid(uid, uid, 0) < 0)
		die("cannot act as user %u: %s", (unsigned)uid,
		    strerror(errno));
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
	self.group = getegid();
	self.home = take_variable("HOME");
	self.config = take_variable("XDG_CONFIG_HOME");
	pw = getpwuid(st->st_uid);
	if (pw)
		setenv("HOME", pw->pw_dir, 1);
	else
		unsetenv("HOME");
	unsetenv("XDG_CONFIG_HOME");
	become(st->st_uid, st->st_gid);
}

void owner_leave(void)
{
	if (!self.is_other)
		return;
	become(0, self.group);
	put_variable("HOME", self.home);
	put_variable("XDG_CONFIG_HOME", self.config);
	memset(&self, 0, sizeof(self));
}
