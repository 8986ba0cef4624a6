/*
 * The rules which receive-pack checks before a ref is written. receive-pack
 * leaves out these checks for commands of a proc-receive hook, so the hook has
 * to make them. Order and messages follow update() of git's
 * builtin/receive-pack.c.
 *
 *	the name; the branch that is checked out; deletions;
 *	fast-forwards; the update hook
 *
 * One thread. Blocks while git or the update hook runs. git runs only for
 * receive.denyNonFastForwards, once for each updated branch.
 */
#ifndef CLIENT_PUSH_RULES_H
#define CLIENT_PUSH_RULES_H

#include "client/git/heads.h"
#include "client/hooks/githook.h"
#include "client/push/push.h"

enum deny {
	DENY_UNSET, /* refuse, and explain */
	DENY_IGNORE,
	DENY_WARN,
	DENY_REFUSE,
	DENY_UPDATE_INSTEAD
};

/* Owns its strings, but gd is borrowed. */
struct rules {
	enum deny current, delete_current;
	bool deny_deletes, deny_non_fast_forwards;
	bool is_bare;
	struct heads heads;
	struct place place;
	struct githook update;
	const struct gitdir *gd;
};

void rules_load(struct rules *rules, const struct gitdir *gd,
    const struct gitconfig *config);
void rules_done(struct rules *rules);

bool rules_name_is_fine(const struct push_command *c);
/* An update of this ref would change the files of a work tree (updateInstead).
 */
bool rules_update_work_tree(const struct rules *rules,
    const struct push_command *c);

/* NULL, or receive-pack's reason to refuse C, after a message on standard
 * error. Static. */
const char *rules_refuse(struct rules *rules, const struct push_command *c);

#endif
