#include "proto/refname.h"

#include <string.h>

#include "proto/limits.h"

static bool starts_with(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

static size_t component_len(const char *at)
{
	return (size_t)(strchrnul(at, '/') - at);
}

static bool ends_with_lock(const char *at, size_t len)
{
	return len >= 5 && memcmp(at + len - 5, ".lock", 5) == 0;
}

/* Most bytes need no look, so this table marks only the bytes that need a
 * look. */
enum byte_class { NO_LOOK, FORBIDDEN, AFTER_DOT, AFTER_AT };

static const unsigned char looks[256] = {
	[0x01 ... ' '] = FORBIDDEN,
	[0x7f] = FORBIDDEN,
	['~'] = FORBIDDEN,
	['^'] = FORBIDDEN,
	[':'] = FORBIDDEN,
	['?'] = FORBIDDEN,
	['*'] = FORBIDDEN,
	['['] = FORBIDDEN,
	['\\'] = FORBIDDEN,
	['.'] = AFTER_DOT,
	['{'] = AFTER_AT,
};

static bool byte_ok(const char *at, size_t i)
{
	switch ((enum byte_class)looks[(unsigned char)at[i]]) {
	case NO_LOOK:
		break;
	case FORBIDDEN:
		return false;
	case AFTER_DOT:
		return i == 0 || at[i - 1] != '.';
	case AFTER_AT:
		return i == 0 || at[i - 1] != '@';
	}
	return true;
}

static bool component_ok(const char *at, size_t len)
{
	size_t i;

	if (len == 0 || at[0] == '.' || ends_with_lock(at, len))
		return false;
	for (i = 0; i < len; i++)
		if (looks[(unsigned char)at[i]] != NO_LOOK && !byte_ok(at, i))
			return false;
	return true;
}

bool refd_refname_format_ok(const char *name)
{
	const char *at = name;
	size_t len;

	if (strcmp(name, "@") == 0)
		return false;
	for (;;) {
		len = component_len(at);
		if (!component_ok(at, len))
			return false;
		if (at[len] == '\0')
			return at[len - 1] != '.';
		at += len + 1;
	}
}

static bool has_root_syntax(const char *name)
{
	const char *at = name;

	while ((*at >= 'A' && *at <= 'Z') || *at == '-' || *at == '_')
		at++;
	return at > name && *at == '\0';
}

/* git writes several lines into these files, so git refuses them as refs since
 * 2.46. */
static bool is_pseudoref(const char *name)
{
	return strcmp(name, "FETCH_HEAD") == 0 ||
	    strcmp(name, "MERGE_HEAD") == 0;
}

bool refd_refname_is_root(const char *name)
{
	static const char *const irregular[] = { "HEAD", "AUTO_MERGE",
		"BISECT_EXPECTED_REV", "NOTES_MERGE_PARTIAL", "NOTES_MERGE_REF",
		"MERGE_AUTOSTASH" };
	size_t len = strlen(name), i;

	for (i = 0; i < sizeof(irregular) / sizeof(irregular[0]); i++)
		if (strcmp(name, irregular[i]) == 0)
			return true;
	return has_root_syntax(name) && !is_pseudoref(name) && len >= 5 &&
	    strcmp(name + len - 5, "_HEAD") == 0;
}

bool refd_refname_is_too_long(const char *name)
{
	const char *at = name;
	size_t len;

	if (strlen(name) > REFD_REFNAME_MAX)
		return true;
	for (;;) {
		len = component_len(at);
		if (len > REFD_COMPONENT_MAX)
			return true;
		if (at[len] == '\0')
			return false;
		at += len + 1;
	}
}

/* The name behind the prefix of another worktree. "" if the worktree's id is
 * not a plain name. */
static const char *bare_name(const char *name)
{
	const char *id, *bare;
	size_t id_len;

	if (refd_refname_place(name, &id, &id_len, &bare) ==
		REFD_PLACE_LINKED &&
	    !component_ok(id, id_len))
		return "";
	return bare;
}

/* Names with one component that git, or a tool for git, uses in a git
 * directory. A suffix behind "." does not count (config.worktree, gc.pid,
 * packed-refs.new). */
bool refd_refname_is_reserved(const char *name)
{
	static const char *const reserved[] = { "annex", "branches", "cloneurl",
		"commondir", "common", "config", "description", "fsmonitor",
		"fsmonitor--daemon", "gc", "git-daemon-export-ok", "gitdir",
		"hooks", "index", "info", "lfs", "locked", "logs", "lost-found",
		"modules", "objects", "packed-refs", "rebase-apply",
		"rebase-merge", "refd", "refs", "reftable", "remotes",
		"rr-cache", "sequencer", "shallow", "sharedindex", "svn",
		"worktrees" };
	size_t i, len = strcspn(name, ".");

	for (i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++)
		if (strlen(reserved[i]) == len &&
		    strncmp(name, reserved[i], len) == 0)
			return true;
	return false;
}

bool refd_refname_may_write(const char *name)
{
	if (refd_refname_is_too_long(name))
		return false;
	name = bare_name(name);
	if (starts_with(name, "refs/"))
		return refd_refname_format_ok(name);
	if (has_root_syntax(name))
		return !is_pseudoref(name);
	return strchr(name, '/') == NULL && refd_refname_format_ok(name) &&
	    !refd_refname_is_reserved(name);
}

/* Every component names an entry below its parent, so the path can't leave the
 * directory, and has only one spelling. */
static bool path_is_safe(const char *path)
{
	const char *at = path;
	size_t len;

	for (;;) {
		len = component_len(at);
		if (len == 0 || (len == 1 && at[0] == '.') ||
		    (len == 2 && at[0] == '.' && at[1] == '.'))
			return false;
		/* git accepts this name, but the file would be a lock. */
		if (ends_with_lock(at, len))
			return false;
		if (at[len] == '\0')
			return true;
		at += len + 1;
	}
}

bool refd_refname_may_delete(const char *name)
{
	if (refd_refname_is_too_long(name))
		return false;
	name = bare_name(name);
	if (starts_with(name, "refs/"))
		return path_is_safe(name + strlen("refs/"));
	/* git creates A-B, and then can't delete it, so refd does not delete it
	 * either. */
	return has_root_syntax(name) && strchr(name, '-') == NULL &&
	    !is_pseudoref(name);
}

bool refd_refname_may_push_deletion(const char *name)
{
	return starts_with(name, "refs/") &&
	    refd_refname_format_ok(name + strlen("refs/"));
}

bool refd_refname_may_push(const char *name)
{
	return refd_refname_may_push_deletion(name) &&
	    strchr(name + strlen("refs/"), '/') != NULL;
}

bool refd_refname_is_per_worktree(const char *name)
{
	return has_root_syntax(name) || starts_with(name, "refs/bisect/") ||
	    starts_with(name, "refs/worktree/") ||
	    starts_with(name, "refs/rewritten/");
}

bool refd_refname_is_kept(const char *name)
{
	return starts_with(name, REFD_DIVERGED);
}

enum refd_place refd_refname_place(const char *name, const char **id,
    size_t *id_len, const char **bare)
{
	static const char main_prefix[] = "main-worktree/";
	static const char linked_prefix[] = "worktrees/";
	const char *rest;

	*bare = name;
	if (refd_refname_is_per_worktree(name))
		return REFD_PLACE_OWN;
	if (starts_with(name, main_prefix)) {
		rest = name + strlen(main_prefix);
		if (refd_refname_is_per_worktree(rest)) {
			*bare = rest;
			return REFD_PLACE_MAIN;
		}
	} else if (starts_with(name, linked_prefix)) {
		*id = name + strlen(linked_prefix);
		*id_len = component_len(*id);
		rest = *id + *id_len;
		if (*id_len > 0 && *rest == '/' &&
		    refd_refname_is_per_worktree(rest + 1)) {
			*bare = rest + 1;
			return REFD_PLACE_LINKED;
		}
	}
	return REFD_PLACE_COMMON;
}
