/*
 * The directory of hooks that core.hooksPath leads to, for all repositories
 * below a directory or where another hook is proc-receive: refd's, and
 * forwarders for the rest.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/enable/enable.h"
#include "client/enable/registry.h"
#include "client/enable/system.h"

/* Root believes no record that another could have written. */
static char *hooks_record(void)
{
	return geteuid() == 0 ? system_file("enabled.hooks") :
				registry_file("hooks");
}

static void site_of(struct site *site, const char *dir)
{
	memset(site, 0, sizeof(*site));
	site->name = xstrdup(dir);
	site->hooks = xstrdup(dir);
	site->record = hooks_record();
	site->is_alone = geteuid() == 0;
}

static void plan_directories(const char *dir, struct enabled *plan)
{
	char *path = xstrdup(dir), *at = path;

	do {
		at = strchr(at + 1, '/');
		if (at)
			*at = '\0';
		if (access(path, F_OK) < 0)
			enabled_add(plan, STEP_DIR, NULL, path, NULL);
		if (at)
			*at = '/';
	} while (at);
	free(path);
}

static bool plan_hook(const struct site *site, const struct wishes *w,
    const struct enabled *before, struct enabled *plan)
{
	const struct step *mine = enabled_find(before, STEP_HOOK, NULL, NULL);
	const struct step relinked = { .kind = STEP_HOOK,
		.value = (char *)w->self };
	char *hook = xasprintf("%s/proc-receive", site->hooks);
	struct stat st;
	bool ok = true;

	if (step_holds(&relinked, site, NULL) ||
	    (!mine && is_this_program(hook)))
		goto out;
	ok = lstat(hook, &st) < 0 || (mine && step_holds(mine, site, NULL)) ||
	    (mine && S_ISLNK(st.st_mode) && access(hook, F_OK) < 0);
	if (ok)
		enabled_add(plan, STEP_HOOK, NULL, w->self, NULL);
	else
		say_error("%s is not refd; name another directory with --hooks",
		    hook);
out:
	free(hook);
	return ok;
}

char *hooks_place(void)
{
	struct enabled record = { 0 };
	const struct step *at = NULL;
	char *place = NULL;
	struct site site;

	site_of(&site, "");
	if (site.record && enabled_read(&record, &site))
		at = enabled_find(&record, STEP_AT, NULL, NULL);
	if (at)
		place = xstrdup(at->value);
	enabled_done(&record);
	site_done(&site);
	return place;
}

static bool acquire(const struct site *site, const struct wishes *w)
{
	const struct step forwarders = { .kind = STEP_FORWARDERS };
	struct enabled before = { 0 }, plan = { 0 };
	const struct step *at;
	bool ok = enabled_read(&before, site);

	at = enabled_find(&before, STEP_AT, NULL, NULL);
	if (ok && !at)
		enabled_add(&plan, STEP_AT, NULL, site->hooks, NULL);
	if (ok)
		plan_directories(site->hooks, &plan);
	if (ok && !step_holds(&forwarders, site, NULL))
		enabled_add(&plan, STEP_FORWARDERS, NULL, NULL, NULL);
	ok = ok && plan_hook(site, w, &before, &plan);
	if (ok && plan.nr > !at) {
		enabled_remember(&before, &plan);
		ok = enabled_write(&before, site) &&
		    enabled_carry_out(&plan, site);
	}
	enabled_done(&before);
	enabled_done(&plan);
	return ok;
}

bool hooks_acquire(const struct wishes *w)
{
	struct site site;
	bool ok;

	if (!registry_needed("hooks for several repositories"))
		return false;
	site_of(&site, w->hooks);
	ok = acquire(&site, w);
	site_done(&site);
	return ok;
}

/* ---- and back ---- */

static bool uses(const struct site *site, const char *dir)
{
	struct enabled record = { 0 };
	bool does = !enabled_read(&record, site) ||
	    enabled_find(&record, STEP_USES, NULL, dir);

	enabled_done(&record);
	return does;
}

static bool is_used(const char *dir, const char *user)
{
	struct site site = { .record = system_file("enabled.system") };
	struct registry r = { 0 };
	bool used = strcmp(user, "system") && uses(&site, dir);
	size_t i;

	site_done(&site);
	if (!registry_read(&r))
		used = true;
	for (i = 0; i < r.nr && !used; i++) {
		if (!strcmp(r.entries[i].path, user))
			continue;
		site_init(&site, r.entries[i].path);
		used = uses(&site, dir);
		site_done(&site);
	}
	registry_done(&r);
	return used;
}

bool hooks_release(const char *dir, const char *user)
{
	struct enabled record = { 0 };
	struct site site;
	bool ok;

	if (!registry_needed("this") || is_used(dir, user))
		return true;
	site_of(&site, dir);
	ok = enabled_read(&record, &site);
	/* Of none, the rest of one: its directory. */
	if (ok && (!record.nr || enabled_find(&record, STEP_AT, NULL, dir)))
		ok = enabled_undo(&record, &site) && enabled_remove(&site);
	enabled_done(&record);
	site_done(&site);
	return ok;
}
