/* The list of enabled repositories and roots, with their states. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/enable/enable.h"
#include "client/enable/enable_report.h"
#include "client/enable/hook_link.h"
#include "client/enable/registry.h"
#include "client/enable/scan.h"
#include "client/enable/system.h"
#include "client/git/owner.h"

/* DISABLED: listed, and nothing of refd is there. */
enum state { ENABLED, INCOMPLETE, DISABLED, GONE };

static const char *const state_names[] = { "enabled", "incomplete", "disabled",
	"gone" };

/* A listed repository, or a directory below a root of --system. */
struct looked_at {
	struct owned at;
	const struct registry *listed;
};

static bool find(const struct looked_at *l, struct gitdir *gd)
{
	struct text why = { 0 };
	bool ok = owner_gitdir(gd, &l->at, &why);

	text_done(&why);
	return ok;
}

/* Why a push does not come to refd, although all may be in place. Owned; NULL:
 * it does, or enable helps. */
static char *hidden(const struct site *site, const struct settings *record,
    const struct gitconfig *all, const struct gitdir *gd)
{
	char *at = site_hidden_by(site, record, all, gd);
	char *command, *why = NULL;

	if (at) {
		command = gitconfig_unset_command(gd, HOOKS_PATH, NULL);
		why = xasprintf(HOOKS_PATH " is %s, and refd is not the "
					   "proc-receive there; run \"%s\"",
		    at, command);
		free(command);
	}
	free(at);
	return why;
}

/* Does git name both values? */
static bool has_values(const struct gitconfig *all)
{
	return gitconfig_has(all, ENABLE_PATTERNS, enable_refs[0]) &&
	    gitconfig_has(all, ENABLE_PATTERNS, enable_refs[1]);
}

/* What git says about pushes: the state, and *WHY unless enable helps. */
static enum state look_at_git(const struct site *site,
    const struct settings *record, const struct gitdir *gd, char **why)
{
	struct gitconfig all = { 0 };
	bool has = gitconfig_try(&all, gd) == 0 && has_values(&all);

	*why = has ? hidden(site, record, &all, gd) : NULL;
	gitconfig_done(&all);
	return has && !*why ? ENABLED : INCOMPLETE;
}

static void put_state(const struct site *site, const struct settings *record,
    bool is_included, const struct gitdir *gd)
{
	enum state state = ENABLED;
	char *why = NULL;

	if (!record->nr && !is_included && !hook_link_is_refd(site->hooks))
		state = DISABLED;
	else if (!is_included || !site_holds(site, record))
		state = INCOMPLETE;
	else
		state = look_at_git(site, record, gd, &why);
	if (state == INCOMPLETE && !why)
		why = xasprintf("parts are missing; run \"refd enable %s\"",
		    site->name);
	enable_report_state(state_names[state], "repository", site->name, why);
	free(why);
}

/* Runs as the owner, and says the state itself. */
static int look_at_listed(void *arg)
{
	const struct looked_at *l = arg;
	struct settings record = { 0 }, lines = { 0 };
	struct gitdir gd = { 0 };
	struct site site;
	enum state r = GONE;

	if (find(l, &gd)) {
		site_init(&site, l->at.path);
		r = INCOMPLETE;
		if (site_lines(&site, &lines) && site_read(&site, &record)) {
			put_state(&site, &record, lines.nr != 0, &gd);
			r = ENABLED;
		}
		settings_done(&lines);
		settings_done(&record);
		site_done(&site);
	}
	gitdir_done(&gd);
	return r;
}

static bool is_listed(const struct registry *listed, const char *dir)
{
	size_t i;

	for (i = 0; i < listed->nr; i++)
		if (!strcmp(listed->paths[i], dir))
			return true;
	return false;
}

static int look_below_root(void *arg)
{
	const struct looked_at *l = arg;
	struct gitdir gd = { 0 };

	if (find(l, &gd) && !strcmp(gd.path, gd.common) &&
	    !is_listed(l->listed, gd.common))
		enable_report_state("system", "repository", gd.common, NULL);
	gitdir_done(&gd);
	return 0;
}

/* OTHERWISE if the owner cannot look. */
static int look(struct looked_at *l, const char *dir, int (*run)(void *),
    int otherwise)
{
	const struct work work = { .run = run, .arg = l };
	struct text why = { 0 };
	int r = owner_work(&l->at, dir, work, &why);

	text_done(&why);
	return r < 0 || r > GONE ? otherwise : r;
}

static void put_below(const char *dir, void *data)
{
	struct looked_at l = { .listed = data };

	look(&l, dir, look_below_root, 0);
}

static bool put_system(struct registry *listed)
{
	struct settings lines, record = { 0 };
	const char *root;
	struct site site;
	size_t at = 0;
	bool ok, holds;

	system_site(&site);
	ok = site_lines(&site, &lines) && site_read(&site, &record);
	holds = system_holds(&record, &lines);
	while ((root = system_next_root(&record, &at))) {
		enable_report_state(state_names[holds ? ENABLED : INCOMPLETE],
		    "system", root,
		    holds ? NULL :
			    "parts are missing; run \"refd enable --system\"");
		scan_repositories(root, put_below, listed);
	}
	settings_done(&lines);
	settings_done(&record);
	site_done(&site);
	return ok;
}

/* If the owner cannot look, there is a state, too. */
static void put_listed(const char *path)
{
	struct looked_at l = { 0 };
	const int otherwise = access(path, F_OK) < 0 ? GONE : INCOMPLETE;
	const int state = look(&l, path, look_at_listed, otherwise);

	if (state != ENABLED)
		enable_report_state(state_names[state], "repository", path,
		    NULL);
}

bool enable_list(void)
{
	struct registry listed = { 0 };
	bool ok = registry_read(&listed);
	size_t i;

	for (i = 0; i < listed.nr; i++)
		put_listed(listed.paths[i]);
	ok = put_system(&listed) && ok;
	registry_done(&listed);
	return ok;
}
