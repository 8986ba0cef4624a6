#include "daemon/base/sys_as.h"

#include <assert.h>
#include <grp.h>
#include <pwd.h>
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
