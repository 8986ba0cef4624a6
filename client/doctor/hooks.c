/* Does a push reach refd? Checks the hook and receive.procReceiveRefs. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/doctor/doctor_internal.h"
#include "client/enable/hook_link.h"
#include "client/hooks/forward.h"
#include "client/hooks/gate_link.h"
#include "client/hooks/refpattern.h"
#include "client/program.h"

#define PATTERNS "receive.procreceiverefs"

/* ---- which program it is ---- */

/* More than any refd. */
#define PROGRAM_BYTES (64 << 20)

/* The version of the program PATH, owned; NULL: not a refd. The doctor must not
 * run a program from the repository, so the mark (program.h) is read. */
static char *refd_version_of(const char *path)
{
	size_t len = strlen(PROGRAM_MARK), left;
	const char *at = NULL, *end;
	char *version = NULL, *program = realpath(path, NULL);
	struct text t = { 0 };

	if (program && text_read_regular(&t, program, PROGRAM_BYTES) == 0)
		at = t.data;
	free(program);
	end = at + t.len;
	/* This function has the mark too, without a version, so the search goes
	 * on. */
	for (; at && !version; at += len) {
		left = (size_t)(end - at);
		at = memmem(at, left, PROGRAM_MARK, len);
		if (!at)
			break;
		if (at[len])
			version = xstrdup(at + len);
	}
	text_done(&t);
	return version;
}

/* True: HOOK is this refd, or a refd of another version. */
static bool check_program(struct doctor_repo *p, const char *hook)
{
	char *version;

	if (gate_link_is_this_program(hook))
		return true;
	version = refd_version_of(hook);
	if (version && strcmp(version, REFD_VERSION))
		doctor_found_in(p, FOUND_HOOK_VERSION,
		    "its proc-receive hook is refd %s, this is %s", version,
		    REFD_VERSION);
	free(version);
	return version != NULL;
}

/* ---- the hook ---- */

static bool has_patterns(const struct doctor_repo *p)
{
	return gitconfig_get(&p->all, PATTERNS) != NULL;
}

static void check_chain(struct doctor_repo *p)
{
	char *own = xasprintf("%s/proc-receive", p->site.hooks);
	const char *set = gitconfig_get(&p->all, "refd.chainhook");

	if (gitconfig_get(&p->all, "refd.chain") &&
	    (set ? access(set, X_OK) < 0 :
		   access(own, X_OK) < 0 || gate_link_is_this_program(own)))
		doctor_found_in(p, FOUND_CHAIN_MISSING,
		    "refd.chain leaves refs to another proc-receive hook, and "
		    "%s is not one",
		    set ? set : own);
	free(own);
}

/* The setting leads git past refd. */
static void found_hooks_path(struct doctor_repo *p, const char *there,
    const char *effect)
{
	char *command = gitconfig_unset_command(p->gd, HOOKS_PATH, NULL);

	doctor_found_in(p, FOUND_HOOKS_PATH,
	    "core.hooksPath is %s, and %s: %s; \"%s\" unsets it", p->hooks,
	    there, effect, command);
	free(command);
}

/* Git finds no hook that it would run. */
static void found_missing_hook(struct doctor_repo *p, const char *hook)
{
	const char *effect =
	    has_patterns(p) ? "every push fails" : "pushes do not reach refd";

	if (access(hook, F_OK) == 0)
		doctor_found_in(p, FOUND_HOOK_MODE, "%s is not executable: %s",
		    hook, effect);
	else if (p->hooks_are_set &&
	    !settings_have(&p->site.before, HOOKS_PATH, p->hooks))
		found_hooks_path(p, "there is no proc-receive", effect);
	else
		doctor_found_in(p, FOUND_HOOK_MISSING, "there is no %s: %s",
		    hook, effect);
}

/* Without the forwarder, git would skip the repository's own hooks. */
static void check_forwarder(struct doctor_repo *p)
{
	if (p->hooks_are_set &&
	    settings_have(&p->site.before, HOOKS_PATH, p->hooks) &&
	    !forward_is_in(p->hooks))
		doctor_found_in(p, FOUND_HOOK_MISSING,
		    "%s has no forwarder to the repository's own hooks: git "
		    "skips them; install refd again",
		    p->hooks);
}

static void found_other_hook(struct doctor_repo *p, const char *hook)
{
	if (p->hooks_are_set)
		found_hooks_path(p, "its proc-receive is not refd",
		    "pushes do not reach refd");
	else
		doctor_found_in(p, FOUND_HOOK_OTHER,
		    "%s is not refd: pushes do not reach refd", hook);
}

void doctor_check_hooks(struct doctor_repo *p)
{
	char *hook = xasprintf("%s/proc-receive", p->hooks);
	bool is_there = access(hook, X_OK) == 0;
	bool is_refd = is_there && check_program(p, hook);

	p->is_enabled |= is_refd || has_patterns(p);
	if (!p->is_enabled)
		doctor_found_in(p, FOUND_NOT_ENABLED, "pushes are left to git");
	else if (!is_there)
		found_missing_hook(p, hook);
	else if (!is_refd)
		found_other_hook(p, hook);
	else
		check_forwarder(p);
	if (p->site.before.nr && !site_holds(&p->site))
		doctor_found_in(p, FOUND_ENABLE_INCOMPLETE,
		    "parts of refd enable are missing");
	check_chain(p);
	free(hook);
}

/* ---- which refs ---- */

static bool is_handed(const struct doctor_repo *p, const char *name,
    bool from_nothing, bool to_nothing)
{
	const char *key, *value;
	struct refpattern rp;
	size_t at = 0;

	while (gitconfig_next(&p->all, &at, &key, &value)) {
		if (strcmp(key, PATTERNS))
			continue;
		refpattern_parse(&rp, value);
		if (refpattern_matches(&rp, name, from_nothing, to_nothing))
			return true;
	}
	return false;
}

static void check_values(struct doctor_repo *p)
{
	const char *key, *value;
	struct refpattern rp;
	size_t at = 0;

	while (gitconfig_next(&p->all, &at, &key, &value)) {
		if (strcmp(key, PATTERNS))
			continue;
		refpattern_parse(&rp, value);
		if (!(rp.adds || rp.deletes || rp.modifies) ||
		    strpbrk(rp.prefix, " \t,:") || !rp.len)
			doctor_found_in(p, FOUND_PATTERN_USELESS,
			    "receive.procReceiveRefs has '%s', which matches "
			    "nothing: a list is no pattern, and one with a "
			    "colon needs a, d or m before it",
			    value);
	}
}

/* Tries every kind of change on names inside and outside refs/. */
static void count_handed(const struct doctor_repo *p, size_t *handed,
    size_t *all)
{
	static const char *const names[] = { "refs/heads/a", "refs/tags/a",
		"refs/for/a", "refs/a/b/c", "refs/x", "HEAD" };
	size_t i, change;

	*handed = *all = 0;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		for (change = 0; change < 3; change++, ++*all)
			*handed +=
			    is_handed(p, names[i], change == 0, change == 1);
}

void doctor_check_patterns(struct doctor_repo *p)
{
	size_t handed, all;

	if (!p->is_enabled)
		return;
	check_values(p);
	count_handed(p, &handed, &all);
	if (handed == all)
		return;
	if (!p->site.before.nr && !has_patterns(p))
		doctor_found_in(p, FOUND_INCLUDE_MISSED,
		    "git does not read the include of refd enable --system "
		    "here: pushes are not served");
	else if (handed == 0)
		doctor_found_in(p, FOUND_PATTERNS_MISSING,
		    "receive.procReceiveRefs matches no ref: pushes do not "
		    "reach refd");
	else
		doctor_found_in(p, FOUND_PATTERNS_PARTIAL,
		    "receive.procReceiveRefs matches some refs: a push may be "
		    "split between refd and git, and be half done");
}
