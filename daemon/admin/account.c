#include "daemon/admin/account.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/admin/admin.h"
#include "daemon/base/sys.h"

#define NOBODY 65534

/* An account without a name gets the group of nobody, because the account may
 * not be a member of the group of the directory. */
static bool become(uid_t uid)
{
	const struct passwd *pw = getpwuid(uid);
	gid_t gid = pw != NULL ? pw->pw_gid : NOBODY;
	int r = pw != NULL ? initgroups(pw->pw_name, gid) : setgroups(0, NULL);

	return r == 0 && setresgid(gid, gid, gid) == 0 &&
	    setresuid(uid, uid, uid) == 0;
}

bool account_become_owner_of(const char *path)
{
	const struct sys *sys = &sys_kernel;
	struct sys_stat st = { 0 };
	int fd, r;

	if (geteuid() != 0)
		return true;
	fd = SYS(sys, openat, SYS_TRUSTED, path, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return true;
	r = SYS(sys, fstat, fd, &st);
	SYS(sys, close, fd);
	if (r == 0 && (st.uid == 0 || become((uid_t)st.uid)))
		return true;
	admin_say("cannot become uid %u, to whom '%s' belongs: %s; run this "
		  "command as that user",
	    (unsigned)st.uid, path, strerror(r < 0 ? -r : errno));
	return false;
}
