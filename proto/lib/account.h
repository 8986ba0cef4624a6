/*
 * An account: the ids and the home of a user. Ids are looked up before a child
 * is forked, because a look-up may ask a service and allocate memory. One
 * thread; may block.
 */
#ifndef PROTO_LIB_ACCOUNT_H
#define PROTO_LIB_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Owns its strings and groups. */
struct account {
	uid_t uid;
	gid_t gid;
	gid_t *groups; /* all, with GID */
	size_t nr_groups;
	char *name, *home; /* NULL: the account has no name */
};

/*
 * The account UID, for work in a directory with the group DIR_GID. New files
 * get this group if the account is a member, as from git, and else the
 * account's own group. An account without a name has the group nobody only,
 * because no entry says that the account is a member of another group. 0 or
 * -ENOMEM.
 */
int account_find(struct account *a, uid_t uid, gid_t dir_gid);
void account_done(struct account *a);

/* Does a child with the rights of A need other ids? This process is root then,
 * because nobody else can become another user. */
bool account_is_other(const struct account *a);

#endif
