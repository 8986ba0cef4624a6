#include "client/enable/enable_plan.h"
#include "client/enable/hook_link.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/enable/shared_hooks.h"
#include "client/git/owner.h"
#include "client/git/quote.h"
#include "client/hooks/forward.h"
#include "client/hooks/gate_link.h"
#include "client/request/connect.h"
#include "client/request/unserved.h"

const char *const enable_refs[2] = { "refs", "adm!:refs" };
const char *const enable_fsync[2][2] = {
	{ "core.fsync", "committed,loose-object" },
	{ "core.fsyncMethod", "batch" },
};
const char *const enable_no_packing[2] = { "maintenance.pack-refs.enabled",
	"gc.packRefs" };

void enable_plan_done(struct enable_plan *p)
{
	site_done(&p->site);
	gitconfig_done(&p->own);
	gitconfig_done(&p->all);
	free(p->hooks);
}

/* ---- what would break ---- */

static bool check_format(const struct site *site, const struct gitconfig *own)
{
	const char *why = unserved_format(own);

	if (why)
		say_error("%s: refd does not serve it: %s; git does",
		    site->name, why);
	return !why;
}

bool enable_is_true(const struct gitconfig *config, const char *key)
{
	static const char *const no[] = { "", "false", "no", "off", "0" };
	const char *value = gitconfig_get(config, key);
	size_t i;

	for (i = 0; value && i < sizeof(no) / sizeof(no[0]); i++)
		if (!strcasecmp(value, no[i]))
			return false;
	return value != NULL;
}

bool enable_check_pushes(const struct site *site, const struct gitconfig *all)
{
	if (!enable_is_true(all, "receive.shallowupdate"))
		return true;
	say_error("%s: receive.shallowUpdate is true, and git does not check "
		  "shallow pushes that a proc-receive hook takes; unset it",
	    site->name);
	return false;
}

bool enable_is_above(const struct gitconfig *all, const char *hooks)
{
	return hooks && hook_link_is_refd(hooks) &&
	    gitconfig_has_outside(all, ENABLE_PATTERNS, enable_refs[0]) &&
	    gitconfig_has_outside(all, ENABLE_PATTERNS, enable_refs[1]);
}

/* ---- rights ---- */

static bool check_owner(const struct site *site)
{
	const struct passwd *pw;
	struct stat st;
	char *name;

	if (stat(site->name, &st) < 0) {
		say_error("can't look at '%s': %s", site->name,
		    strerror(errno));
		return false;
	}
	if (owner_is_here(&st))
		return true;
	pw = getpwuid(st.st_uid);
	name = pw ? xstrdup(pw->pw_name) :
		    xasprintf("user %u", (unsigned)st.st_uid);
	say_error("%s belongs to %s: enable it as that user or as root",
	    site->name, name);
	free(name);
	return false;
}

/* Whether this user may change the repository, in DIR, which may be missing. */
static bool check_writable(const struct site *site, const char *dir)
{
	if (!check_owner(site))
		return false;
	if (faccessat(AT_FDCWD, dir, W_OK | X_OK, AT_EACCESS) == 0 ||
	    errno == ENOENT)
		return true;
	say_error("%s: nothing can be made there: %s; make it writable for "
		  "its owner",
	    dir, strerror(errno));
	return false;
}

/* ---- what is there ---- */

static bool load_all(struct enable_plan *p)
{
	if (gitconfig_read(&p->all, p->gd->path) == 0)
		return true;
	say_error("%s: git config failed", p->site.name);
	return false;
}

static bool look(struct enable_plan *p)
{
	if (!site_lock(&p->site) || !site_config(&p->site, &p->own) ||
	    !check_format(&p->site, &p->own) || !load_all(p))
		return false;
	p->hooks = gitconfig_hooks_path(&p->all, p->gd);
	p->hooks_are_set = p->hooks != NULL;
	if (!p->hooks)
		p->hooks = xstrdup(p->site.hooks);
	return true;
}

/* ---- wishes ---- */

bool enable_wish(struct site *site, const struct gitconfig *own,
    const char *key, const char *value)
{
	const char *now = gitconfig_get(own, key);
	char *command;

	if (now && strcmp(now, value)) {
		command = quote_command("git", "config", "--file", site->config,
		    "--unset-all", key, NULL);
		say_error("%s: its own %s is %s, which would count, and not "
			  "%s; run \"%s\" first",
		    site->name, key, now, value, command);
		free(command);
		return false;
	}
	if (!now)
		settings_set(&site->wanted, key, value);
	return true;
}

void enable_wish_defaults(struct site *site, const struct gitconfig *set)
{
	size_t i;

	for (i = 0; i < 2; i++)
		if (!gitconfig_get(set, enable_fsync[i][0]))
			settings_set(&site->wanted, enable_fsync[i][0],
			    enable_fsync[i][1]);
	for (i = 0; i < 2; i++)
		if (!gitconfig_get(set, enable_no_packing[i]))
			settings_set(&site->wanted, enable_no_packing[i],
			    "false");
	if (access(site->config, F_OK) < 0)
		settings_set(&site->wanted, NOTE_CONFIG, "true");
}

/* One more value of KEY. */
static void wish_also(struct enable_plan *p, const char *key, const char *value)
{
	if (!gitconfig_has(&p->own, key, value))
		settings_add(&p->site.wanted, key, value);
}

/* ---- the hook ---- */

/* Is there a hook for the refs of --chain? A push looks in the same places. */
static bool has_chained_hook(const struct enable_plan *p)
{
	return gitconfig_get(&p->all, "refd.chainHook") ||
	    hook_link_is_other(p->site.hooks);
}

/* The other hook stays in place, because core.hooksPath leads to refd's hook,
 * which finds the other hook. */
static bool plan_past_other(struct enable_plan *p)
{
	settings_set(&p->site.wanted, HOOKS_PATH, p->w->hooks);
	return shared_hooks_are_there(p->w->hooks);
}

/* With core.hooksPath, other repositories may use the same hooks, so enable
 * makes no hook there, and accepts a present hook of refd. */
static bool plan_shared_hook(struct enable_plan *p)
{
	/* refd may be installed in a different place by now, so the path is set
	 * again. */
	if (settings_have(&p->site.before, HOOKS_PATH, p->hooks))
		return plan_past_other(p);
	if (hook_link_is_refd(p->hooks))
		return true;
	say_error("%s: core.hooksPath is %s, so hooks are not the "
		  "repository's own; link proc-receive there to %s (what was "
		  "proc-receive before can be named by refd.chainHook), or "
		  "unset it",
	    p->site.name, p->hooks, p->w->self);
	return false;
}

/* HOOK becomes a link to refd in the repository's own directory. */
static bool plan_link(struct enable_plan *p, enum hook_name hook,
    const char *note, bool *makes)
{
	if (!hook_link_may_be_in(p->site.hooks, hook))
		return false;
	settings_set(&p->site.wanted, note, p->w->self);
	*makes = !hook_link_leads_to(p->site.hooks, hook, p->w->self);
	if (*makes && access(p->site.hooks, F_OK) < 0)
		settings_set(&p->site.wanted, NOTE_HOOKS, "true");
	return !*makes || check_writable(&p->site, p->site.hooks);
}

static bool plan_own_hook(struct enable_plan *p)
{
	const char *mine = settings_get(&p->site.before, NOTE_HOOK);

	if (hook_link_is_free(p->site.hooks, p->w->self, mine))
		return plan_link(p, HOOK_PROC_RECEIVE, NOTE_HOOK,
		    &p->makes_hook);
	if (!hook_link_may_be_in(p->site.hooks, HOOK_PROC_RECEIVE))
		return false;
	if (p->w->nr_chains || settings_have(&p->site.before, HOOKS_PATH, NULL))
		return plan_past_other(p);
	say_error("%s: there is another proc-receive hook in %s; "
		  "--chain PREFIX leaves it the refs below PREFIX",
	    p->site.name, p->site.hooks);
	return false;
}

static bool plan_hook(struct enable_plan *p)
{
	size_t i;

	if (p->w->nr_chains && !has_chained_hook(p)) {
		say_error("%s: there is no other proc-receive hook to leave "
			  "refs to",
		    p->site.name);
		return false;
	}
	for (i = 0; i < p->w->nr_chains; i++)
		wish_also(p, "refd.chain", p->w->chains[i]);
	return p->hooks_are_set ? plan_shared_hook(p) : plan_own_hook(p);
}

/* ---- the gate ---- */

/* Does git find the repository's own hook, although core.hooksPath is set? */
static bool is_forwarded(const struct enable_plan *p, const char *hook)
{
	return !p->hooks_are_set || forward_is(hook) ||
	    settings_have(&p->site.before, HOOKS_PATH, p->hooks);
}

static bool plan_gate(struct enable_plan *p)
{
	char *hook = xasprintf("%s/" GATE_LINK_NAME, p->hooks);
	bool is_linked = p->hooks_are_set && gate_link_is(hook);
	bool ok = is_linked || is_forwarded(p, hook);

	if (!ok)
		say_error("%s: core.hooksPath is %s, so hooks are not the "
			  "repository's own; link " GATE_LINK_NAME " there to "
			  "%s, or unset it",
		    p->site.name, p->hooks, p->w->self);
	free(hook);
	if (!ok || is_linked)
		return ok;
	return plan_link(p, HOOK_GATE, NOTE_GATE, &p->makes_gate);
}

/* A gate stays until refd disable. On a node of several, the gate keeps git
 * from writing, so each repository there gets a gate. */
static bool wants_gate(const struct enable_plan *p)
{
	return p->w->gate || settings_have(&p->site.before, NOTE_GATE, NULL) ||
	    connect_is_in_group(p->gd);
}

/* ---- the configuration ---- */

/* Without refd's own hook, git would refuse pushes for a value of others, too,
 * so both values go with the hook. */
static bool plan_config(struct enable_plan *p)
{
	const bool has_hook = settings_have(&p->site.wanted, NOTE_HOOK, NULL);
	size_t i;

	if (p->w->socket &&
	    !enable_wish(&p->site, &p->own, "refd.socket", p->w->socket))
		return false;
	enable_wish_defaults(&p->site, &p->all);
	for (i = 0; i < 2; i++)
		if (has_hook)
			settings_add(&p->site.wanted, ENABLE_PATTERNS,
			    enable_refs[i]);
		else
			wish_also(p, ENABLE_PATTERNS, enable_refs[i]);
	return true;
}

/* Does the system's configuration enable the repository? */
static bool is_enabled_above(const struct enable_plan *p)
{
	return p->hooks_are_set && !p->site.before.nr &&
	    enable_is_above(&p->all, p->hooks) && !p->w->socket &&
	    !p->w->nr_chains && !wants_gate(p);
}

bool enable_plan_make(struct enable_plan *p)
{
	if (!check_writable(&p->site, p->site.name) || !look(p) ||
	    !enable_check_pushes(&p->site, &p->all))
		return false;
	p->by_system = is_enabled_above(p);
	if (p->by_system)
		return true;
	if (!plan_hook(p) || (wants_gate(p) && !plan_gate(p)) ||
	    !plan_config(p))
		return false;
	p->changes = p->makes_hook || p->makes_gate || !p->site.lines.nr ||
	    !settings_are_same(&p->site.before, &p->site.wanted);
	return true;
}
