#include "daemon/admin/as_owner.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/admin/admin.h"
#include "proto/lib/interrupt.h"
#include "proto/lib/owned.h"

/* The replay of a large journal takes hours, and no other owner waits. A
 * stopped worker is noticed at once. */
#define WORK_SECONDS (7 * 24 * 3600)
#define WORK_BYTES   ((size_t)1 << 30)

/* Nobody but root needs the account, and the command itself then tells why PATH
 * cannot be opened. */
static int find_owner(struct account *owner, const char *path)
{
	char *why = NULL;
	struct owned at;
	int r = 0;

	*owner = (struct account){ .uid = geteuid() };
	if (owner->uid != 0)
		return 0;
	if (owned_find(&at, path, &why))
		r = account_find(owner, at.st.st_uid, at.st.st_gid);
	else
		r = -ENOENT;
	if (r < 0)
		admin_say("%s", why != NULL ? why : "out of memory");
	free(why);
	owned_done(&at);
	return r;
}

int as_owner(const char *path, int failed, struct work work)
{
	const char *why;
	struct account owner;
	int r = find_owner(&owner, path);

	if (r < 0)
		return failed;
	work.bytes = WORK_BYTES;
	if (work.seconds == 0)
		work.seconds = WORK_SECONDS;
	r = worker_run(&owner, &work, &why);
	if (r < 0 && !interrupt_came())
		admin_say("'%s': the work with the rights of its owner, uid "
			  "%u, %s; run this as user %u, then no limit applies",
		    path, (unsigned)owner.uid, why, (unsigned)owner.uid);
	account_done(&owner);
	return r < 0 ? failed : r;
}
