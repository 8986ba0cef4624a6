#include "client/enable/enable_plan.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/base/child.h"

const char *const enable_refs[2] = { "refs", "adm!:refs" };

void plan_done(struct plan *p)
{
	site_done(&p->site);
	gitconfig_done(&p->own);
	gitconfig_done(&p->all);
	enabled_done(&p->before);
	enabled_done(&p->todo);
	free(p->hooks);
}

/* ---- what is there ---- */

/* A template's is what the system and the user have set. */
static bool load_all(struct plan *p)
{
	char *dir =
	    xasprintf("--git-dir=%s", p->gd ? p->gd->path : "/dev/null/none");
	const char *list[] = { "git", dir, "config", "-z", "--list", NULL };
	bool ok = child_capture(list, &p->all.list) == 0;

	if (!ok)
		say_error("%s: git config failed", p->site.name);
	free(dir);
	return ok;
}

/* git expands "~", and takes a relative one from where it runs hooks. */
static char *expand_hooks(const struct gitdir *gd, const char *set)
{
	char *dir = xasprintf("--git-dir=%s", gd->path);
	const char *get[] = { "git", dir, "config", "--type=path", "-z",
		"--get", "core.hooksPath", NULL };
	struct text t = { 0 };
	char *path;

	if (set[0] == '~' && child_capture(get, &t) == 0 && t.len)
		set = t.data;
	path = set[0] == '/' ? xstrdup(set) : xasprintf("%s/%s", gd->path, set);
	text_done(&t);
	free(dir);
	return path;
}

static bool look(struct plan *p)
{
	const char *set;

	exact_unlock(&p->site);
	if (!site_config(&p->site, &p->own) ||
	    !check_format(&p->site, &p->own) || !load_all(p) ||
	    !enabled_read(&p->before, &p->site))
		return false;
	set = p->gd ? config_get(&p->all, "core.hooksPath") : NULL;
	p->hooks_are_set = set && *set;
	p->hooks = p->hooks_are_set ? expand_hooks(p->gd, set) :
				      xstrdup(p->site.hooks);
	return true;
}

/* ---- the hook ---- */

/* The hook that is to have the refs of --chain, as the push looks for it. */
static bool has_chained_hook(const struct plan *p)
{
	char *hook = xasprintf("%s/proc-receive", p->site.hooks);
	bool has = config_get(&p->all, "refd.chainHook") ||
	    (access(hook, X_OK) == 0 && !is_this_program(hook));

	free(hook);
	return has;
}

static void plan_chain(struct plan *p, const char *prefix)
{
	if (!config_has(&p->own, "refd.chain", prefix) &&
	    !enabled_find(&p->todo, STEP_ADD, "refd.chain", prefix))
		enabled_add(&p->todo, STEP_ADD, "refd.chain", prefix, NULL);
}

/* Those that were cut short too. */
static void plan_chains(struct plan *p)
{
	const struct step *s = p->before.steps;
	size_t i;

	for (i = 0; i < p->before.nr; i++)
		if (s[i].kind == STEP_ADD && !strcmp(s[i].key, "refd.chain"))
			plan_chain(p, s[i].value);
	for (i = 0; i < p->w->nr_chains; i++)
		plan_chain(p, p->w->chains[i]);
}

/* core.hooksPath: hooks are shared with others, so they are not ours to
 * place; one that is there already will do. */
static bool plan_shared_hook(struct plan *p)
{
	char *hook = xasprintf("%s/proc-receive", p->hooks);
	const struct step *uses =
	    enabled_find(&p->before, STEP_USES, NULL, NULL);
	bool ours = is_this_program(hook);

	/* They are refd's, and have to be made again. */
	if (!ours && uses && !strcmp(uses->value, p->hooks))
		ours = true;
	if (!ours)
		say_error("%s: core.hooksPath is %s, so hooks are not the "
			  "repository's own; link proc-receive there to %s "
			  "(what was proc-receive before can be named by "
			  "refd.chainHook), or unset it",
		    p->site.name, p->hooks, p->w->self);
	free(hook);
	return ours;
}

/* Nothing is moved: core.hooksPath leads past the other hook to refd's, which
 * finds it where it is. */
static void plan_past_other(struct plan *p)
{
	const char *now = config_get(&p->own, "core.hooksPath");

	enabled_add(&p->todo, STEP_USES, NULL, p->w->hooks, NULL);
	plan_chains(p);
	enabled_add(&p->todo, STEP_SET, "core.hooksPath", p->w->hooks, now);
}

static bool plan_own_hook(struct plan *p)
{
	const struct step *mine =
	    enabled_find(&p->before, STEP_HOOK, NULL, NULL);
	const struct step wanted = { .kind = STEP_HOOK,
		.value = (char *)p->w->self };
	char *hook = xasprintf("%s/proc-receive", p->site.hooks);
	char target[PATH_MAX];
	struct stat st;
	ssize_t len = readlink(hook, target, sizeof(target) - 1);
	bool ok = true;

	target[len > 0 ? len : 0] = '\0';
	if (step_holds(&wanted, &p->site, NULL) ||
	    (!mine && is_this_program(hook)))
		goto out;
	if (lstat(hook, &st) < 0) {
		if (access(p->site.hooks, F_OK) < 0)
			enabled_add(&p->todo, STEP_HOOKS_DIR, NULL, NULL, NULL);
		enabled_add(&p->todo, STEP_HOOK, NULL, p->w->self, NULL);
	} else if (mine && !strcmp(target, mine->value)) {
		enabled_add(&p->todo, STEP_HOOK, NULL, p->w->self, NULL);
	} else if (p->gd &&
	    (p->w->nr_chains ||
		enabled_find(&p->before, STEP_USES, NULL, NULL))) {
		plan_past_other(p);
	} else {
		say_error("%s: there is another proc-receive hook in %s; "
			  "--chain PREFIX leaves it the refs below PREFIX",
		    p->site.name, p->site.hooks);
		ok = false;
	}
out:
	free(hook);
	return ok;
}

static bool plan_hook(struct plan *p)
{
	bool ok;

	if (p->w->nr_chains && !has_chained_hook(p)) {
		say_error("%s: there is no other proc-receive hook to leave "
			  "refs to",
		    p->site.name);
		return false;
	}
	ok = p->hooks_are_set ? plan_shared_hook(p) : plan_own_hook(p);
	if (ok && !enabled_find(&p->todo, STEP_USES, NULL, NULL))
		plan_chains(p);
	return ok;
}

/* ---- the configuration ---- */

static void plan_socket(const struct gitconfig *own, const struct wishes *w,
    const struct enabled *before, struct enabled *plan)
{
	const struct step *was =
	    enabled_find(before, STEP_SET, "refd.socket", NULL);
	const char *now = config_get(own, "refd.socket");
	const char *wanted = w->socket;

	/* One that was cut short. */
	if (!wanted && was && !now)
		wanted = was->value;
	if (wanted && (!now || strcmp(now, wanted)))
		enabled_add(plan, STEP_SET, "refd.socket", wanted, now);
}

void plan_durability(const struct gitconfig *all, const struct wishes *w,
    struct enabled *plan)
{
	if (!w->fsync)
		return;
	if (!config_get(all, "core.fsync"))
		enabled_add(plan, STEP_SET, "core.fsync",
		    "committed,loose-object", NULL);
	if (!config_get(all, "core.fsyncMethod"))
		enabled_add(plan, STEP_SET, "core.fsyncMethod", "batch", NULL);
}

static void plan_config(struct plan *p)
{
	struct wishes w = *p->w;
	size_t i;

	if (access(p->site.config, F_OK) < 0)
		enabled_add(&p->todo, STEP_CONFIG_FILE, NULL, NULL, NULL);
	plan_socket(&p->own, &w, &p->before, &p->todo);
	if (w.repair && p->before.nr)
		w.fsync =
		    enabled_find(&p->before, STEP_SET, "core.fsync", NULL);
	plan_durability(&p->all, &w, &p->todo);
	for (i = 0; i < 2; i++)
		if (!config_has(&p->own, "receive.procReceiveRefs",
			enable_refs[i]))
			enabled_add(&p->todo, STEP_ADD,
			    "receive.procReceiveRefs", enable_refs[i], NULL);
}

/* The system's configuration says it all. */
static bool is_enabled_above(const struct plan *p)
{
	char *hook = xasprintf("%s/proc-receive", p->hooks);
	bool is =
	    p->gd && p->hooks_are_set && !p->before.nr && is_this_program(hook);
	size_t i;

	for (i = 0; i < 2; i++)
		is = is &&
		    config_has(&p->all, "receive.procReceiveRefs",
			enable_refs[i]) &&
		    !config_has(&p->own, "receive.procReceiveRefs",
			enable_refs[i]);
	free(hook);
	return is && !p->w->socket && !p->w->nr_chains;
}

bool plan_make(struct plan *p)
{
	if (!look(p) || (p->gd && !check_pushes(&p->site, &p->all)))
		return false;
	p->by_system = is_enabled_above(p);
	if (p->by_system)
		return true;
	if (!check_writable(&p->site, false) || !plan_hook(p))
		return false;
	if (enabled_find(&p->todo, STEP_HOOK, NULL, NULL) &&
	    !check_writable(&p->site, true))
		return false;
	plan_config(p);
	return true;
}
