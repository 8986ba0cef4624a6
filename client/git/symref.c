#include "client/git/symref.h"

#include <stdlib.h>
#include <string.h>

#include "client/base/child.h"
#include "proto/refname.h"

/* ---- reftables ---- */

/* The names of the symbolic refs that lead to a value:
 * "\n<name>\n<name>\n"; is_known: git was asked. */
static struct {
	struct text names;
	bool is_known;
} known;

/* A repository with reftables has git 2.45 or later, so this git knows
 * --include-root-refs. */
static void ask_for_names(const struct gitdir *gd)
{
	char *dir = xasprintf("--git-dir=%s", gd->path);
	const char *argv[] = { "git", dir, "for-each-ref",
		"--include-root-refs",
		"--format=%(if)%(symref)%(then)%(refname)%(end)", NULL };

	text_addc(&known.names, '\n');
	if (child_capture_quiet(argv, &known.names)) {
		text_clear(&known.names);
		text_addc(&known.names, '\n');
	}
	known.is_known = true;
	free(dir);
}

static bool is_symbolic(const struct gitdir *gd, const char *name)
{
	char *line = xasprintf("\n%s\n", name);
	bool is;

	if (!known.is_known)
		ask_for_names(gd);
	is = strstr(known.names.data, line) != NULL;
	free(line);
	return is;
}

/* git for-each-ref prints only the end of a chain of symbolic refs, so git is
 * asked for the next link. HEAD on an unborn branch is not listed, so the
 * question for HEAD needs no list. */
static char *target_in_reftable(const struct gitdir *gd, const char *name)
{
	char *dir, *target = NULL;
	struct text t = { 0 };

	if (strcmp(name, "HEAD") != 0 && !is_symbolic(gd, name))
		return NULL;
	dir = xasprintf("--git-dir=%s", gd->path);
	if (child_capture_quiet((const char *const[]){ "git", dir,
				    "symbolic-ref", "-q", "--no-recurse", name,
				    NULL },
		&t) == 0 &&
	    t.len)
		target = xasprintf("%.*s", (int)strcspn(t.data, "\n"), t.data);
	text_done(&t);
	free(dir);
	return target;
}

void symref_forget(void)
{
	text_done(&known.names);
	known.is_known = false;
}

/* ---- files ---- */

static char *target_in_file(const char *dir, const char *name)
{
	char *path = xasprintf("%s/%s", dir, name), *target = NULL;
	struct text t = { 0 };
	const char *at;

	if (text_read_regular(&t, path, SMALL_FILE_BYTES) == 0 &&
	    has_prefix(t.data, "ref:")) {
		/* git cuts blanks at the ends alone, and names the rest. */
		while (t.len > 4 && strchr(" \t\r\n", t.data[t.len - 1]))
			t.data[--t.len] = '\0';
		at = t.data + 4 + strspn(t.data + 4, " \t\r\n");
		target = xstrdup(at);
	}
	text_done(&t);
	free(path);
	return target;
}

char *symref_target(const struct gitdir *gd, const char *name)
{
	static const char main_worktree[] = "main-worktree/";
	const char *dir = gd->common;

	if (has_prefix(name, main_worktree)) {
		name += sizeof(main_worktree) - 1;
		if (gd->is_reftable && strcmp(gd->path, gd->common))
			return NULL;
	} else if (refd_refname_is_per_worktree(name)) {
		dir = gd->path;
	}
	return gd->is_reftable ? target_in_reftable(gd, name) :
				 target_in_file(dir, name);
}
