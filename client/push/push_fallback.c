#include "client/push/push_fallback.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/child.h"
#include "client/request/unserved.h"
#include "proto/refname.h"

/* Room for 700,000 refs. A larger packed-refs is not read, and git is asked
 * about the refs. */
#define PACKED_MAX (64 << 20)

static bool deletes(const struct push_command *c)
{
	return refd_oid_is_null(&c->new_oid);
}

/* ---- deletions of missing or broken refs ---- */

static bool has_loose_value(const struct push_command *c,
    const struct gitdir *gd)
{
	const char *dir =
	    refd_refname_is_per_worktree(c->ref) ? gd->path : gd->common;
	char *path = xasprintf("%s/%s", dir, c->ref);
	struct text t = { 0 };
	struct refd_oid oid;
	bool has;

	has = text_read_regular(&t, path, SMALL_FILE_BYTES) == 0 && t.len &&
	    refd_oid_parse(t.data, c->object_format, &oid) == 0 &&
	    refd_oid_eq(&oid, &c->old_oid);
	text_done(&t);
	free(path);
	return has;
}

static bool has_packed_value(const struct push_command *c,
    const struct text *packed)
{
	char hex[REFD_OID_MAX_HEX + 1];
	char *line = xasprintf("\n%s %s\n",
	    refd_oid_hex(&c->old_oid, c->object_format, hex), c->ref);
	bool has = packed->len &&
	    memmem(packed->data, packed->len, line, strlen(line)) != NULL;

	free(line);
	return has;
}

static bool is_readable(const struct push_command *c, struct coprocess *git)
{
	static const char *const argv[] = { "git", "cat-file",
		"--batch-check=%(objecttype)", NULL };
	char hex[REFD_OID_MAX_HEX + 1];
	struct text answer = { 0 };
	bool is;

	if (!git->to)
		coprocess_start(git, argv);
	is = coprocess_ask(git,
		 refd_oid_hex(&c->old_oid, c->object_format, hex), &answer) &&
	    answer.len && !strchr(answer.data, ' ');
	text_done(&answer);
	return is;
}

/* What is read once for all commands. */
struct fallback_refs {
	struct text packed; /* packed-refs, with a newline before */
	struct coprocess git;
};

/*
 * If git cannot read the old value, git deletes the ref with any value. git
 * also accepts the deletion of a missing ref. Usually the ref has the given
 * value, so git need not be asked. With reftables, git is always asked, by one
 * process for all deletions.
 */
static bool is_odd_deletion(const struct push_command *c,
    const struct gitdir *gd, struct fallback_refs *known)
{
	if (refd_oid_is_null(&c->old_oid))
		return true;
	if (gd->is_reftable)
		return !is_readable(c, &known->git);
	if (has_loose_value(c, gd))
		return false;
	if (!known->packed.data) {
		char *path = xasprintf("%s/packed-refs", gd->common);

		text_addc(&known->packed, '\n');
		text_read_regular(&known->packed, path, PACKED_MAX);
		free(path);
	}
	return !has_packed_value(c, &known->packed) &&
	    !is_readable(c, &known->git);
}

static bool has_odd_deletion(const struct push *push, const struct gitdir *gd)
{
	struct fallback_refs known = { 0 };
	bool has = false;
	size_t i;

	for (i = 0; i < push->nr && !has; i++)
		has = !push->commands[i].is_chained &&
		    deletes(&push->commands[i]) &&
		    rules_name_is_fine(&push->commands[i]) &&
		    is_odd_deletion(&push->commands[i], gd, &known);
	text_done(&known.packed);
	coprocess_stop(&known.git);
	return has;
}

/* ---- checks of a command ---- */

static const char *reason_of(const struct push_command *c,
    const struct rules *rules)
{
	const struct refd_update u = { .name = c->ref };

	if (rules_update_work_tree(rules, c))
		return "a work tree is to be updated with its branch";
	return unserved_update(&u);
}

const char *push_fallback_reason(const struct push *push,
    const struct gitconfig *config, const struct gitdir *gd,
    const struct rules *rules)
{
	const char *why = NULL;
	size_t i;

	if (getenv("GIT_SHALLOW_FILE"))
		return "the push is shallow";
	if (rules->heads.own_is_symlink)
		return "HEAD is a symbolic link";
	for (i = 0; i < push->nr && !why; i++)
		if (!push->commands[i].is_chained)
			why = reason_of(&push->commands[i], rules);
	if (!why)
		why = unserved_reason(gd, config);
	if (!why && has_odd_deletion(push, gd))
		why = "a ref is to be deleted that is not there";
	return why;
}
