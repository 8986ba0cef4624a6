#include "client/enable/system.h"

#include <stdlib.h>
#include <string.h>

#include "client/base/child.h"

/* Only git knows where its system configuration is, and git gives the path only
 * to an editor, so the editor is "echo". Without the -c option, git would tell
 * a terminal that git waits for the editor. */
static char *ask_git(void)
{
	static const char *const argv[] = { "env", "GIT_EDITOR=echo", "git",
		"-c", "advice.waitingForEditor=false", "config", "--system",
		"--edit", NULL };
	struct text t = { 0 };

	if (child_capture(argv, &t) || !t.len || t.data[0] != '/') {
		text_clear(&t);
		text_adds(&t, "/etc/gitconfig");
	}
	t.data[strcspn(t.data, "\n")] = '\0';
	return t.data;
}

/* Its path. */
static const char *system_config(void)
{
	static char *path;
	const char *env = getenv("GIT_CONFIG_SYSTEM");

	if (!path)
		path = env && env[0] == '/' ? xstrdup(env) : ask_git();
	return path;
}

void system_site(struct site *site)
{
	const char *config = system_config();

	memset(site, 0, sizeof(*site));
	site->name = xstrdup(config);
	site->config = xstrdup(config);
	site->record = xasprintf("%.*s/refd/gitconfig",
	    (int)(strrchr(config, '/') - config), config);
	site->included = xstrdup(site->record);
}

char *system_key(const char *root)
{
	return xasprintf("includeIf.gitdir:%s.path", root);
}

const char *system_next_root(const struct settings *record, size_t *at)
{
	while (*at < record->nr) {
		const struct setting *it = &record->items[(*at)++];

		if (gitconfig_is_key(it->key, NOTE_ROOT))
			return it->value;
	}
	return NULL;
}

char *system_root_of(const char *path)
{
	const char *root = NULL;
	char *found = NULL;
	struct site site;
	size_t at = 0;

	system_site(&site);
	if (site_look(&site))
		while ((root = system_next_root(&site.before, &at)) &&
		    !has_prefix(path, root))
			;
	if (root)
		found = xstrdup(root);
	site_done(&site);
	return found;
}

bool system_holds(const struct site *site)
{
	const char *root;
	bool holds = true;
	size_t at = 0;
	char *key;

	while (holds && (root = system_next_root(&site->before, &at))) {
		key = system_key(root);
		holds = settings_have(&site->lines, key, NULL);
		free(key);
	}
	return holds;
}
