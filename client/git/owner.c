#include "client/git/owner.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* git and the daemon have shorter limits. */
#define WORK_S     120
#define WORK_BYTES (4 << 20)

bool owner_find(struct owned *o, const char *dir, struct text *why)
{
	char *reason = NULL;
	bool found = owned_find(o, dir, &reason);

	if (!found)
		text_adds(why, reason ? reason : "out of memory");
	free(reason);
	return found;
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

/* ---- work ---- */

bool owner_is_here(const struct stat *st)
{
	return st->st_uid == geteuid();
}

/* Most repositories have one owner, and a look-up can ask another machine, so
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

int owner_run(const struct owned *o, struct work work, struct text *why)
{
	const struct account *as = account_of(&o->st);
	const char *how = NULL;
	int result;

	if (!work.seconds)
		work.seconds = WORK_S;
	if (!work.bytes)
		work.bytes = WORK_BYTES;
	result = worker_run(as, &work, &how);
	if (result >= 0)
		return result;
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
	owned_done(o);
	return result;
}
