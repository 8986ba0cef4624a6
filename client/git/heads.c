#include "client/git/heads.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/base/child.h"
#include "proto/oid.h"
#include "proto/refname.h"

/* Readers of symbolic refs stop at this depth (SYMREF_MAXDEPTH). */
#define LINKS_MAX 5

static void add(struct heads *h, char *name)
{
	h->names = xroom(h->names, h->nr, &h->size, sizeof(*h->names));
	h->names[h->nr++] = name;
}

/* ---- HEAD ---- */

enum link {
	LINK_NONE, /* a value, or absent */
	LINK_REF,  /* *NAME is the target */
	LINK_BROKEN
};

/* Parses "ref: <name>", as the files backend does. A value of either object
 * format begins as an id of SHA-1, so one check serves both. */
static enum link parse_link(const struct text *t, struct text *name)
{
	struct refd_oid oid;
	const char *target;

	if (!has_prefix(t->data, "ref:"))
		return refd_oid_parse(t->data, REFD_FORMAT_SHA1, &oid) == 0 ?
		    LINK_NONE :
		    LINK_BROKEN;
	target = t->data + 4 + strspn(t->data + 4, " \t\r\n");
	text_clear(name);
	text_add(name, target, strcspn(target, "\r\n"));
	while (name->len && strchr(" \t", name->data[name->len - 1]))
		name->data[--name->len] = '\0';
	return LINK_REF;
}

static enum link read_link(const char *path, struct text *name)
{
	char target[1024];
	ssize_t n = readlink(path, target, sizeof(target) - 1);
	struct text t = { 0 };
	enum link link = LINK_NONE;
	int err;

	if (n > 0) {
		target[n] = '\0';
		if (has_prefix(target, "refs/") &&
		    refd_refname_format_ok(target)) {
			text_clear(name);
			text_adds(name, target);
			return LINK_REF;
		}
	}
	err = text_read_regular(&t, path, SMALL_FILE_BYTES);
	if (err == 0 && t.len)
		link = parse_link(&t, name);
	else if (err == 0 || err == -EFBIG)
		link = LINK_BROKEN;
	text_done(&t);
	return link;
}

/* The same as below, if the refs are in reftables. The file HEAD names no ref
 * there, so git is asked. */
static char *ask_for_head(const char *dir, bool *is_symref)
{
	char *git_dir = xasprintf("--git-dir=%s", dir), *name = NULL;
	const char *argv[] = { "git", git_dir, "symbolic-ref", "-q", "HEAD",
		NULL };
	struct text t = { 0 };
	int status = child_capture_quiet(argv, &t);

	*is_symref = status == 0;
	if (status == 0 && t.len)
		name = xasprintf("%.*s", (int)strcspn(t.data, "\n"), t.data);
	else if (status == 1)
		name = xstrdup("HEAD");
	text_done(&t);
	free(git_dir);
	return name;
}

/* The final ref of HEAD in the work tree with directory DIR; NULL if git could
 * not resolve HEAD either. */
static char *read_head(const char *dir, const char *common, bool *is_symref)
{
	struct text name = { 0 };
	enum link link = LINK_REF;
	unsigned links;

	*is_symref = false;
	text_adds(&name, "HEAD");
	for (links = 0; link == LINK_REF && links < LINKS_MAX; links++) {
		char *path = xasprintf("%s/%s",
		    refd_refname_is_per_worktree(name.data) ? dir : common,
		    name.data);

		link = read_link(path, &name);
		free(path);
		if (link == LINK_REF)
			*is_symref = true;
		if (link == LINK_REF && !refd_refname_format_ok(name.data))
			link = LINK_BROKEN;
	}
	if (link != LINK_NONE)
		text_done(&name);
	return link == LINK_NONE ? name.data : NULL;
}

static char *resolve_head(const struct heads *h, const char *dir,
    bool *is_symref)
{
	return h->gd->is_reftable ? ask_for_head(dir, is_symref) :
				    read_head(dir, h->gd->common, is_symref);
}

/* ---- a detached HEAD during a rebase or bisect ---- */

static bool exists(const char *dir, const char *name)
{
	char *path = xasprintf("%s/%s", dir, name);
	bool does = access(path, F_OK) == 0;

	free(path);
	return does;
}

/* Adds the branch in the file DIR/NAME, with or without refs/heads/. */
static void add_branch_in(struct heads *h, const char *dir, const char *name)
{
	static const char heads[] = "refs/heads/";
	char *path = xasprintf("%s/%s", dir, name);
	struct text t = { 0 };
	const char *branch;

	if (text_read_regular(&t, path, SMALL_FILE_BYTES) == 0 && t.len) {
		branch = t.data;
		if (has_prefix(branch, heads))
			branch += sizeof(heads) - 1;
		add(h,
		    xasprintf("%s%.*s", heads, (int)strcspn(branch, "\n"),
			branch));
	}
	text_done(&t);
	free(path);
}

static void add_detached(struct heads *h, const char *dir)
{
	if (exists(dir, "rebase-apply")) {
		if (!exists(dir, "rebase-apply/applying"))
			add_branch_in(h, dir, "rebase-apply/head-name");
	} else if (exists(dir, "rebase-merge")) {
		add_branch_in(h, dir, "rebase-merge/head-name");
	}
	if (exists(dir, "BISECT_LOG"))
		add_branch_in(h, dir, "BISECT_START");
}

/* ---- work trees ---- */

static void add_worktree(struct heads *h, const char *dir)
{
	bool is_symref;
	char *head = resolve_head(h, dir, &is_symref);

	if (head && is_symref) {
		add(h, head);
		return;
	}
	if (head)
		add_detached(h, dir);
	free(head);
}

/* git recognises a linked work tree by a non-empty file "gitdir". */
static bool is_linked(const char *dir)
{
	char *path = xasprintf("%s/gitdir", dir);
	struct stat st;
	bool is = stat(path, &st) == 0 && st.st_size > 0;

	free(path);
	return is;
}

static void add_linked(struct heads *h)
{
	char *path = xasprintf("%s/worktrees", h->gd->common), *one;
	DIR *dir = opendir(path);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		one = xasprintf("%s/%s", path, entry->d_name);
		if (is_linked(one))
			add_worktree(h, one);
		free(one);
	}
	if (dir)
		closedir(dir);
	free(path);
}

void heads_find(struct heads *h, const struct gitdir *gd, bool is_bare)
{
	char *path = xasprintf("%s/HEAD", gd->path);
	struct stat st;

	memset(h, 0, sizeof(*h));
	h->gd = gd;
	if (!is_bare)
		add_worktree(h, gd->common);
	add_linked(h);
	h->own_is_symlink = lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
	free(path);
}

const char *heads_own(struct heads *h)
{
	bool is_symref;

	if (!h->is_own_known)
		h->own = resolve_head(h, h->gd->path, &is_symref);
	h->is_own_known = true;
	return h->own;
}

void heads_done(struct heads *h)
{
	size_t i;

	for (i = 0; i < h->nr; i++)
		free(h->names[i]);
	free(h->names);
	free(h->own);
	memset(h, 0, sizeof(*h));
}

bool heads_have(const struct heads *h, const char *name)
{
	size_t i;

	for (i = 0; i < h->nr; i++)
		if (!strcmp(h->names[i], name))
			return true;
	return false;
}
