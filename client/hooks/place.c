#include "client/hooks/place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

/* The part of PATH below TOP, with a final slash; NULL if PATH is not below
 * TOP. */
static char *below(const char *path, const char *top)
{
	size_t len = strlen(top);

	if (!strcmp(path, top))
		return xstrdup("");
	if (!strcmp(top, "/"))
		return xasprintf("%s/", path + 1);
	if (strncmp(path, top, len) || path[len] != '/')
		return NULL;
	return xasprintf("%s/", path + len + 1);
}

static char *current_directory(void)
{
	char *cwd = getcwd(NULL, 0);

	if (!cwd)
		die("Unable to read current working directory: %s",
		    strerror(errno));
	return cwd;
}

/* TOP is the top of the work tree. Outside it, git does not change the
 * directory. */
static void in_work_tree(struct place *p, char *cwd, const char *top)
{
	p->prefix = below(cwd, top);
	if (!p->prefix)
		return;
	free(cwd);
	p->dir = xstrdup(top);
}

void place_find(struct place *p, const struct gitdir *gd, const char *named)
{
	const char *env = getenv("GIT_WORK_TREE");
	char *top = env && *env ? realpath(env, NULL) : NULL;
	char *cwd = current_directory();

	memset(p, 0, sizeof(*p));
	p->dir = cwd;
	if (top) {
		in_work_tree(p, cwd, top);
		p->git_dir = xstrdup(p->prefix || !named ? gd->path : named);
	} else if (named) {
		p->git_dir = xstrdup(gd->is_linked ? gd->path : named);
	} else if (!strcmp(gd->top, gd->path)) {
		p->is_bare = true;
		p->git_dir = xstrdup(strcmp(cwd, gd->top) ? gd->path : ".");
	} else {
		in_work_tree(p, cwd, gd->top);
		if (gd->is_linked)
			p->git_dir = xstrdup(gd->path);
	}
	if (!p->prefix)
		p->prefix = xstrdup("");
	free(top);
}

void place_here(struct place *p)
{
	const char *dir = getenv("GIT_DIR");

	memset(p, 0, sizeof(*p));
	p->dir = current_directory();
	p->git_dir = dir ? xstrdup(dir) : NULL;
}

/* Replaces or adds KEY=VALUE, as there is room for an additional variable. */
static void set(struct place *p, const char *key, const char *value)
{
	size_t len = strlen(key), i = 0;
	char *entry = xasprintf("%s=%s", key, value);

	while (p->env[i] &&
	    (strncmp(p->env[i], key, len) || p->env[i][len] != '='))
		i++;
	p->env[i] = p->set[p->nr_set++] = entry;
}

void place_make_environment(struct place *p)
{
	size_t nr = 0;

	while (environ[nr])
		nr++;
	p->env = xcalloc(nr + 4, sizeof(*p->env));
	memcpy(p->env, environ, nr * sizeof(*p->env));
	if (p->prefix)
		set(p, "GIT_PREFIX", p->prefix);
	if (p->git_dir)
		set(p, "GIT_DIR", p->git_dir);
	if (p->is_bare)
		set(p, "GIT_IMPLICIT_WORK_TREE", "0");
}

bool place_spells(const struct place *p, const struct gitdir *gd,
    const char **spelled)
{
	*spelled = p->git_dir ? p->git_dir : ".git";
	return !strcmp(gd->path, gd->common);
}

void place_done(struct place *p)
{
	size_t i;

	for (i = 0; i < p->nr_set; i++)
		free(p->set[i]);
	free(p->env);
	free(p->dir);
	free(p->git_dir);
	free(p->prefix);
	memset(p, 0, sizeof(*p));
}
