#include "client/request/patterns.h"

#include <string.h>

#include "proto/lib/cli.h"
#include "proto/pattern.h"

/* Can a name that begins with ROOT match? */
static bool may_begin_with(const char *pattern, const char *root)
{
	size_t len = strlen(root), literal = refd_pattern_literal(pattern);

	if (literal >= len)
		return has_prefix(pattern, root);
	return pattern[literal] && !strncmp(pattern, root, literal);
}

/* HEAD, FETCH_HEAD and others stand beside refs/. */
static bool may_be_root_ref(const char *pattern)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_";
	size_t literal = refd_pattern_literal(pattern);

	return literal && strspn(pattern, letters) >= literal;
}

static bool may_match(const char *pattern)
{
	return may_begin_with(pattern, "refs/") ||
	    may_begin_with(pattern, "worktrees/") ||
	    may_begin_with(pattern, "main-worktree/") ||
	    may_be_root_ref(pattern);
}

/* The beginning that git would add first. */
static const char *missing(const char *pattern)
{
	return has_prefix(pattern, "heads/") || has_prefix(pattern, "tags/") ||
		has_prefix(pattern, "remotes/") ?
	    "refs/" :
	    "refs/heads/";
}

void patterns_add(const char *list[REFD_PATTERNS_MAX], size_t *nr,
    const char *s)
{
	if (*nr == REFD_PATTERNS_MAX)
		die("more than %d patterns", REFD_PATTERNS_MAX);
	if (strlen(s) > REFD_REFNAME_MAX)
		die("a pattern is too long");
	if (!may_match(s))
		die("'%s' is not the full name of a ref: write '%s%s'", s,
		    missing(s), s);
	list[(*nr)++] = s;
}
