#include "proto/lib/account.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOBODY 65534

/* getgrouplist(3) tells the wanted number if there is too little room, so the
 * next call has enough. */
static int find_groups(struct account *a, gid_t gid)
{
	int nr = 16, room;
	gid_t *grown;

	do {
		room = nr;
		grown = realloc(a->groups, (size_t)room * sizeof(*grown));
		if (grown == NULL)
			return -ENOMEM;
		a->groups = grown;
	} while (getgrouplist(a->name, gid, a->groups, &nr) < 0 && nr > room);
	a->nr_groups = (size_t)(nr < room ? nr : room);
	return 0;
}

static int take_entry(struct account *a, const struct passwd *pw, gid_t dir_gid)
{
	size_t i;
	int r;

	a->name = strdup(pw->pw_name);
	a->home = strdup(pw->pw_dir);
	if (a->name == NULL || a->home == NULL)
		return -ENOMEM;
	a->gid = pw->pw_gid;
	r = find_groups(a, pw->pw_gid);
	for (i = 0; r == 0 && i < a->nr_groups; i++)
		if (a->groups[i] == dir_gid)
			a->gid = dir_gid;
	return r;
}

int account_find(struct account *a, uid_t uid, gid_t dir_gid)
{
	const struct passwd *pw = getpwuid(uid);
	int r;

	*a = (struct account){ .uid = uid, .gid = NOBODY };
	r = pw != NULL ? take_entry(a, pw, dir_gid) : 0;
	if (r < 0)
		account_done(a);
	return r;
}

void account_done(struct account *a)
{
	free(a->groups);
	free(a->name);
	free(a->home);
	memset(a, 0, sizeof(*a));
}

bool account_is_other(const struct account *a)
{
	return geteuid() == 0 && a->uid != 0;
}
