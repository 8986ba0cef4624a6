/* The steps of enable that change a configuration file, one way and back. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/base/child.h"
#include "client/enable/enabled.h"

/* As git lists it: section and variable in lower case. */
static char *listed(const char *key)
{
	char *s = xstrdup(key), *last = strrchr(s, '.'), *at;

	for (at = s; *at && *at != '.'; at++)
		*at = (char)tolower((unsigned char)*at);
	for (at = last ? last : s; *at; at++)
		*at = (char)tolower((unsigned char)*at);
	return s;
}

bool config_has(const struct gitconfig *config, const char *key,
    const char *value)
{
	char *wanted = listed(key);
	const char *name, *found;
	size_t at = 0;
	bool has = false;

	while (!has && gitconfig_next(config, &at, &name, &found))
		has = !strcmp(name, wanted) && !strcmp(found, value);
	free(wanted);
	return has;
}

const char *config_get(const struct gitconfig *config, const char *key)
{
	char *wanted = listed(key);
	const char *value = gitconfig_get(config, wanted);

	free(wanted);
	return value;
}

bool site_config(const struct site *site, struct gitconfig *own)
{
	const char *argv[] = { "git", "config", "--file", site->config, "-z",
		"--list", NULL };

	text_clear(&own->list);
	if (access(site->config, F_OK) < 0 && errno == ENOENT)
		return true;
	if (!child_capture(argv, &own->list))
		return true;
	say_error("git config cannot read %s", site->config);
	return false;
}

/* "git config" on that file alone. */
static bool git_config(const struct site *site, const char *const args[],
    const char *key)
{
	const char *argv[12] = { "git", "config", "--file", site->config };
	int n = 4;

	while (*args)
		argv[n++] = *args++;
	if (!child_run(argv))
		return true;
	say_error("%s: git config %s failed", site->name, key);
	return false;
}

static bool add_value(const struct step *step, const struct site *site,
    const struct gitconfig *own)
{
	const char *args[] = { "--add", step->key, step->value, NULL };

	if (config_has(own, step->key, step->value))
		return true;
	if (!git_config(site, args, step->key))
		return false;
	printf("%s: %s += %s\n", site->name, step->key, step->value);
	return true;
}

static bool set_value(const struct site *site, const char *key,
    const char *value, const struct gitconfig *own)
{
	const char *args[] = { key, value, NULL };
	const char *now = config_get(own, key);

	if (now && !strcmp(now, value))
		return true;
	if (!git_config(site, args, key))
		return false;
	printf("%s: %s = %s\n", site->name, key, value);
	return true;
}

static bool remove_value(const struct step *step, const struct site *site,
    const struct gitconfig *own)
{
	const char *args[] = { "--fixed-value", "--unset-all", step->key,
		step->value, NULL };

	if (!config_has(own, step->key, step->value))
		return true;
	if (!git_config(site, args, step->key))
		return false;
	step_say_undone(step, site);
	return true;
}

static bool unset_value(const struct step *step, const struct site *site,
    const struct gitconfig *own)
{
	const char *unset[] = { "--unset", step->key, NULL };
	const char *set[] = { step->key, step->old, NULL };
	const char *now = config_get(own, step->key);

	if (!now ? !step->old : step->old && !strcmp(now, step->old))
		return true;
	if (!now || strcmp(now, step->value)) {
		printf("%s: %s was changed since: left\n", site->name,
		    step->key);
		return true;
	}
	if (!git_config(site, step->old ? set : unset, step->key))
		return false;
	step_say_undone(step, site);
	return true;
}

bool step_is_config(const struct step *step)
{
	return step->kind == STEP_ADD || step->kind == STEP_SET;
}

void step_say_undone(const struct step *step, const struct site *site)
{
	if (step->kind == STEP_ADD)
		printf("%s: %s -= %s\n", site->name, step->key, step->value);
	else if (step->kind == STEP_SET && step->old)
		printf("%s: %s = %s\n", site->name, step->key, step->old);
	else if (step->kind == STEP_SET)
		printf("%s: %s unset\n", site->name, step->key);
}

bool step_do_config(const struct step *step, const struct site *site)
{
	struct gitconfig own = { 0 };
	bool ok = site_config(site, &own);

	if (ok && step->kind == STEP_ADD)
		ok = add_value(step, site, &own);
	else if (ok)
		ok = set_value(site, step->key, step->value, &own);
	gitconfig_done(&own);
	return ok;
}

bool step_undo_config(const struct step *step, const struct site *site)
{
	struct gitconfig own = { 0 };
	bool ok = site_config(site, &own);

	if (ok && step->kind == STEP_ADD)
		ok = remove_value(step, site, &own);
	else if (ok)
		ok = unset_value(step, site, &own);
	gitconfig_done(&own);
	return ok;
}
