/*
 * The rules that receive-pack holds a command against before it writes the
 * ref, and no more once it has handed it to a hook: update() of git's
 * builtin/receive-pack.c, in its order and its words.
 *
 *	the name; the branch that is checked out; deletions; fast-forwards;
 *	the update hook
 *
 * One thread. Blocks while git or the update hook runs; git runs only for
 * receive.denyNonFastForwards, once for a branch that is updated.
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

/* Owns what it points to; gd is borrowed. */
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
/* Moving this one would move a work tree's files along (updateInstead). */
bool rules_update_work_tree(const struct rules *rules,
    const struct push_command *c);

/* NULL, or receive-pack's reason to refuse C, after it was said at length on
 * standard error. Static. */
const char *rules_refuse(struct rules *rules, const struct push_command *c);

#endif
