/*
 * The environment of a child. Variables pass by name only, because any other
 * may be a secret of the user, or tell the child where to find code.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/lib/launch_internal.h"

extern char **environ;

/* For every child. A name with '=' is whole, others are beginnings. */
static const char *const for_all[] = { "PATH=", "LANG=", "LANGUAGE=", "LC_",
	"TZ=", "GIT_CONFIG_SYSTEM=", "GIT_CONFIG_NOSYSTEM=", "GIT_EXEC_PATH=",
	"REFD_SOCKET=", "REFD_STATE=", NULL };

/* For a child of this process's own account. Git needs its variables, and the
 * programs with which git reaches other machines need theirs. */
static const char *const for_own[] = { "HOME=", "USER=", "LOGNAME=", "SHELL=",
	"TMPDIR=", "XDG_", "GIT_", "REFD_", "EMAIL=", "SSH_",
	"LD_LIBRARY_PATH=", "http_proxy=", "https_proxy=", "HTTPS_PROXY=",
	"no_proxy=", "NO_PROXY=", "ALL_PROXY=", "all_proxy=", NULL };

static bool is_in(const char *const *list, const char *variable)
{
	for (; *list != NULL; list++)
		if (strncmp(variable, *list, strlen(*list)) == 0)
			return true;
	return false;
}

/* Does MORE have another value of VARIABLE? */
static bool is_replaced(char *const *more, const char *variable)
{
	size_t len = strcspn(variable, "=") + 1;

	for (; more != NULL && *more != NULL; more++)
		if (strncmp(*more, variable, len) == 0)
			return true;
	return false;
}

static bool is_allowed(const struct launch *l, bool is_other,
    const char *variable)
{
	if (is_replaced(l->env, variable) ||
	    (l->no_git && strncmp(variable, "GIT_", 4) == 0))
		return false;
	return is_in(for_all, variable) ||
	    (!is_other && is_in(for_own, variable));
}

static size_t count(char *const *list)
{
	size_t nr = 0;

	while (list != NULL && list[nr] != NULL)
		nr++;
	return nr;
}

/* An account without a name has no home. */
static bool name_account(struct launch_environment *env,
    const struct account *as, size_t *nr)
{
	if (as->name == NULL)
		return true;
	if (asprintf(&env->home, "HOME=%s", as->home) < 0 ||
	    asprintf(&env->user, "USER=%s", as->name) < 0 ||
	    asprintf(&env->logname, "LOGNAME=%s", as->name) < 0)
		return false;
	env->list[(*nr)++] = env->home;
	env->list[(*nr)++] = env->user;
	env->list[(*nr)++] = env->logname;
	return true;
}

void launch_environment_done(struct launch_environment *env)
{
	free(env->list);
	free(env->home);
	free(env->user);
	free(env->logname);
}

bool launch_environment_make(struct launch_environment *env,
    const struct launch *l)
{
	const bool is_other = l->as != NULL && account_is_other(l->as);
	char *const *more = l->env;
	size_t nr = 0;
	char **at;

	memset(env, 0, sizeof(*env));
	if (l->kind == LAUNCH_TERMINAL)
		return true;
	env->list =
	    calloc(count(environ) + count(more) + 4, sizeof(*env->list));
	if (env->list == NULL || (is_other && !name_account(env, l->as, &nr)))
		return false;
	for (; more != NULL && *more != NULL; more++)
		env->list[nr++] = *more;
	for (at = environ; at != NULL && *at != NULL; at++)
		if (is_allowed(l, is_other, *at))
			env->list[nr++] = *at;
	return true;
}
