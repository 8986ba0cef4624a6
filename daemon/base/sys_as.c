#include "daemon/base/sys_as.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NOBODY     65534
#define GROUPS_MAX 1024

const struct sys_who sys_self = { 0, 0 };

static bool possible;
static _Thread_local struct sys_who now;

/* The calls themselves: libc's setgroups() is of all threads, and theirs have
 * no way to tell that they failed but to ask again. */
static bool become(struct sys_who who)
{
	syscall(SYS_setfsgid, who.gid);
	syscall(SYS_setfsuid, who.uid);
	return (uint32_t)syscall(SYS_setfsgid, -1) == who.gid &&
	    (uint32_t)syscall(SYS_setfsuid, -1) == who.uid;
}

struct sys_who sys_who_of(uint32_t uid, uint32_t gid)
{
	struct sys_who who = { uid, NOBODY };
	struct passwd entry, *found = NULL;
	gid_t groups[GROUPS_MAX];
	int nr = GROUPS_MAX;
	char buf[16384];

	if (getpwuid_r(uid, &entry, buf, sizeof(buf), &found) != 0 ||
	    found == NULL)
		return who;
	who.gid = entry.pw_gid;
	if (getgrouplist(entry.pw_name, entry.pw_gid, groups, &nr) < 0)
		nr = GROUPS_MAX;
	while (nr-- > 0)
		if (groups[nr] == gid)
			who.gid = gid;
	return who;
}

void sys_as_init(void)
{
	const struct sys_who root = { 0, getegid() };
	const struct sys_who other = { NOBODY, NOBODY };

	if (geteuid() != 0 || syscall(SYS_setgroups, 0, NULL) < 0)
		return;
	possible = become(other);
	possible = become(root) && possible;
}

bool sys_as_possible(void)
{
	return possible;
}

struct sys_who sys_as(struct sys_who who)
{
	struct sys_who before = now, wanted = who;
	bool ok;

	if (!possible || sys_who_eq(who, now))
		return before;
	/* Root is in no need of a group. */
	if (who.uid == 0)
		wanted.gid = getegid();
	ok = become(wanted);
	assert(ok);
	now = who;
	return before;
}

/* The directory that PATH is in, opened as oneself: its owner need not get
 * there. */
static int open_parent(const struct sys *sys, int dirfd, const char *path)
{
	const char *slash = strrchr(path, '/');
	char *dir = slash == NULL ? strdup(".") :
				    strndup(path, (size_t)(slash - path) + 1);
	int fd;

	if (dir == NULL)
		return -ENOMEM;
	fd = SYS(sys, openat, dirfd, dir, O_RDONLY | O_DIRECTORY, 0);
	free(dir);
	return fd;
}

int sys_make_theirs(const struct sys *sys, int dirfd, const char *path,
    int flags)
{
	const char *slash = strrchr(path, '/');
	struct sys_who was;
	struct sys_stat st;
	int fd, parent;

	flags |= O_RDWR | O_CREAT;
	if (!possible)
		return SYS(sys, openat, dirfd, path, flags, 0600);
	parent = open_parent(sys, dirfd, path);
	if (parent < 0)
		return parent;
	fd = SYS(sys, fstat, parent, &st);
	if (fd == 0) {
		was = sys_as(sys_who_of(st.uid, st.gid));
		fd = SYS(sys, openat, parent, slash == NULL ? path : slash + 1,
		    flags, 0600);
		sys_as(was);
	}
	SYS(sys, close, parent);
	return fd;
}
