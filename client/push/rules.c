#include "client/push/rules.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "client/base/child.h"
#include "proto/refname.h"

/* ---- configuration ---- */

static enum deny read_deny(const struct gitconfig *config, const char *key)
{
	const char *value = gitconfig_get(config, key);

	if (!value)
		return DENY_UNSET;
	if (!strcasecmp(value, "ignore"))
		return DENY_IGNORE;
	if (!strcasecmp(value, "warn"))
		return DENY_WARN;
	if (!strcasecmp(value, "refuse"))
		return DENY_REFUSE;
	if (!strcasecmp(value, "updateinstead"))
		return DENY_UPDATE_INSTEAD;
	return gitconfig_bool(config, key, false) ? DENY_REFUSE : DENY_IGNORE;
}

void rules_load(struct rules *rules, const struct gitdir *gd,
    const struct gitconfig *config)
{
	memset(rules, 0, sizeof(*rules));
	rules->gd = gd;
	rules->current = read_deny(config, "receive.denycurrentbranch");
	rules->delete_current = read_deny(config, "receive.denydeletecurrent");
	rules->deny_deletes =
	    gitconfig_bool(config, "receive.denydeletes", false);
	rules->deny_non_fast_forwards =
	    gitconfig_bool(config, "receive.denynonfastforwards", false);
	/* receive-pack does not look for a work tree, so unset means bare. */
	rules->is_bare = gitconfig_bool(config, "core.bare", true);
	heads_find(&rules->heads, gd, rules->is_bare);
	place_here(&rules->place);
	githook_find(&rules->update, "update", gd, config, &rules->place, true);
	if (rules->update.exists)
		place_make_environment(&rules->place);
}

void rules_done(struct rules *rules)
{
	githook_done(&rules->update);
	place_done(&rules->place);
	heads_done(&rules->heads);
	memset(rules, 0, sizeof(*rules));
}

/* ---- checks of a command ---- */

static bool deletes(const struct push_command *c)
{
	return refd_oid_is_null(&c->new_oid);
}

/* A ref directly in refs/ may be deleted, but not created. */
bool rules_name_is_fine(const struct push_command *c)
{
	if (c->unreportable)
		return false;
	if (deletes(c))
		return has_prefix(c->name, "refs/") &&
		    refd_refname_format_ok(c->name + strlen("refs/"));
	return refd_refname_may_push(c->name);
}

static const char *check_name(const struct push_command *c)
{
	if (rules_name_is_fine(c))
		return NULL;
	say_error("refusing to update funny ref '%s' remotely", c->name);
	return "funny refname";
}

static const char *check_current(const struct rules *rules,
    const struct push_command *c)
{
	static const char unset[] =
	    "By default, updating the current branch in a non-bare repository\n"
	    "is denied, because it will make the index and work tree "
	    "inconsistent\n"
	    "with what you pushed, and will require 'git reset --hard' to "
	    "match\n"
	    "the work tree to HEAD.\n"
	    "\n"
	    "You can set the 'receive.denyCurrentBranch' configuration "
	    "variable\n"
	    "to 'ignore' or 'warn' in the remote repository to allow pushing "
	    "into\n"
	    "its current branch; however, this is not recommended unless you\n"
	    "arranged to update its work tree to match what you pushed in "
	    "some\n"
	    "other way.\n"
	    "\n"
	    "To squelch this message and still keep the default behaviour, "
	    "set\n"
	    "'receive.denyCurrentBranch' configuration variable to 'refuse'.";

	/* git checks the name without the namespace. */
	if (!heads_have(&rules->heads, c->name))
		return NULL;
	switch (rules->current) {
	case DENY_IGNORE:
	case DENY_UPDATE_INSTEAD:
		return NULL;
	case DENY_WARN:
		say_warning("updating the current branch");
		return NULL;
	case DENY_UNSET:
	case DENY_REFUSE:
		break;
	}
	say_error("refusing to update checked out branch: %s", c->name);
	if (rules->current == DENY_UNSET)
		say_error("%s", unset);
	return "branch is currently checked out";
}

static const char *refuse_deletion_of_current(const struct rules *rules,
    const struct push_command *c)
{
	static const char unset[] =
	    "By default, deleting the current branch is denied, because the "
	    "next\n"
	    "'git clone' won't result in any file checked out, causing "
	    "confusion.\n"
	    "\n"
	    "You can set 'receive.denyDeleteCurrent' configuration variable "
	    "to\n"
	    "'warn' or 'ignore' in the remote repository to allow deleting "
	    "the\n"
	    "current branch, with or without a warning message.\n"
	    "\n"
	    "To squelch this message, you can set it to 'refuse'.";

	switch (rules->delete_current) {
	case DENY_IGNORE:
		return NULL;
	case DENY_WARN:
		say_warning("deleting the current branch");
		return NULL;
	case DENY_UNSET:
	case DENY_REFUSE:
	case DENY_UPDATE_INSTEAD:
		break;
	}
	if (rules->delete_current == DENY_UNSET)
		say_error("%s", unset);
	say_error("refusing to delete the current branch: %s", c->name);
	return "deletion of the current branch prohibited";
}

static const char *check_deletion(struct rules *rules,
    const struct push_command *c)
{
	const char *own;

	if (!deletes(c) || refd_oid_is_null(&c->old_oid))
		return NULL;
	if (rules->deny_deletes && has_prefix(c->name, "refs/heads/")) {
		say_error("denying ref deletion for %s", c->name);
		return "deletion prohibited";
	}
	own = heads_own(&rules->heads);
	if (heads_have(&rules->heads, c->name) || (own && !strcmp(own, c->ref)))
		return refuse_deletion_of_current(rules, c);
	return NULL;
}

static const char *check_ancestry(const struct push_command *c)
{
	char old[REFD_OID_MAX_HEX + 1], new[REFD_OID_MAX_HEX + 1];
	const char *argv[] = { "git", "merge-base", "--is-ancestor",
		refd_oid_hex(&c->old_oid, c->object_format, old),
		refd_oid_hex(&c->new_oid, c->object_format, new), NULL };

	switch (child_status(argv)) {
	case 0:
		return NULL;
	case 1:
		say_error("denying non-fast-forward %s (you should pull first)",
		    c->name);
		return "non-fast-forward";
	}
	say_error("bad sha1 objects for %s", c->name);
	return "bad ref";
}

static const char *check_fast_forward(const struct rules *rules,
    const struct push_command *c)
{
	if (!rules->deny_non_fast_forwards || deletes(c) ||
	    refd_oid_is_null(&c->old_oid) ||
	    !has_prefix(c->name, "refs/heads/") ||
	    refd_oid_eq(&c->old_oid, &c->new_oid))
		return NULL;
	return check_ancestry(c);
}

static const char *run_update_hook(struct rules *rules,
    const struct push_command *c)
{
	char old[REFD_OID_MAX_HEX + 1], new[REFD_OID_MAX_HEX + 1];
	const char *args[] = { c->name,
		refd_oid_hex(&c->old_oid, c->object_format, old),
		refd_oid_hex(&c->new_oid, c->object_format, new), NULL };
	static const struct text nothing;

	githook_warn(&rules->update, false);
	if (!rules->update.exists ||
	    githook_run(&rules->update, &rules->place, args, &nothing))
		return NULL;
	say_error("hook declined to update %s", c->name);
	return "hook declined";
}

bool rules_update_work_tree(const struct rules *rules,
    const struct push_command *c)
{
	return rules->current == DENY_UPDATE_INSTEAD && rules_name_is_fine(c) &&
	    heads_have(&rules->heads, c->name);
}

const char *rules_refuse(struct rules *rules, const struct push_command *c)
{
	const char *why = check_name(c);

	if (!why)
		why = check_current(rules, c);
	if (!why)
		why = check_deletion(rules, c);
	if (!why)
		why = check_fast_forward(rules, c);
	if (!why)
		why = run_update_hook(rules, c);
	return why;
}
