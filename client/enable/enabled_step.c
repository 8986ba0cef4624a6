/* The steps of enable, one way and back: files, and any of them. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/enable/durable.h"
#include "client/enable/enabled.h"
#include "client/hooks/forward.h"

/* ---- files ---- */

static char *hook_of(const struct site *site)
{
	return xasprintf("%s/proc-receive", site->hooks);
}

static bool links_to(const char *path, const char *target)
{
	char found[PATH_MAX];
	ssize_t len = readlink(path, found, sizeof(found) - 1);

	found[len > 0 ? len : 0] = '\0';
	return len > 0 && !strcmp(found, target);
}

static bool make_dir(const char *dir)
{
	if (mkdir(dir, 0777) == 0)
		printf("%s: made\n", dir);
	else if (errno != EEXIST) {
		say_error("cannot make %s: %s", dir, strerror(errno));
		return false;
	}
	return true;
}

/* Others may have put theirs there since. */
static bool remove_dir(const char *dir)
{
	if (rmdir(dir) == 0)
		printf("%s: removed\n", dir);
	return true;
}

/* By rename, so that there is a whole hook at every moment; and it is to be
 * there after a power cut that the configuration survives. */
static bool link_hook(const struct site *site, const char *target)
{
	char *path = hook_of(site);
	char *new = xasprintf("%s.new", path);
	bool done = links_to(path, target), ok = done;

	if (!done) {
		unlink(new);
		ok = symlink(target, new) == 0 && rename(new, path) == 0;
	}
	if (!ok)
		say_error("cannot make %s: %s", path, strerror(errno));
	else if (!done)
		printf("%s -> %s\n", path, target);
	if (ok)
		durable_sync_parent(path);
	free(new);
	free(path);
	return ok;
}

static bool unlink_hook(const struct site *site, const char *target)
{
	char *path = hook_of(site);
	char *new = xasprintf("%s.new", path);
	struct stat st;
	bool ok = true;

	if (links_to(new, target))
		unlink(new);
	if (lstat(path, &st) < 0) {
		ok = errno == ENOENT || errno == ENOTDIR;
	} else if (!links_to(path, target)) {
		printf("%s is not refd's any more: left\n", path);
	} else {
		ok = unlink(path) == 0;
		if (ok)
			printf("%s: removed\n", path);
	}
	if (!ok)
		say_error("cannot remove %s: %s", path, strerror(errno));
	free(new);
	free(path);
	return ok;
}

/* One that is not refd's is left: whoever put it there wants it. */
static bool make_forwarders(const struct site *site)
{
	size_t i, made = 0;
	int err = 0;

	for (i = 0; forward_names[i] && !err; i++) {
		char *path = xasprintf("%s/%s", site->hooks, forward_names[i]);
		struct text t = { 0 };

		if (access(path, F_OK) < 0) {
			forward_text(forward_names[i], &t);
			err = durable_write(path, &t, 0777);
			made++;
		}
		if (err)
			say_error("cannot make %s: %s", path, strerror(-err));
		text_done(&t);
		free(path);
	}
	if (made && !err)
		printf("%s: %zu forwarder%s to a repository's own hooks\n",
		    site->hooks, made, made == 1 ? "" : "s");
	return !err;
}

static bool remove_forwarders(const struct site *site)
{
	size_t i, removed = 0;

	for (i = 0; forward_names[i]; i++) {
		char *path = xasprintf("%s/%s", site->hooks, forward_names[i]);
		char *new = xasprintf("%s.new", path);

		unlink(new);
		if (forward_is(path) && unlink(path) == 0)
			removed++;
		free(new);
		free(path);
	}
	if (removed)
		printf("%s: %zu forwarder%s removed\n", site->hooks, removed,
		    removed == 1 ? "" : "s");
	return true;
}

static bool holds_forwarders(const struct site *site)
{
	bool all = true;
	size_t i;

	for (i = 0; forward_names[i] && all; i++) {
		char *path = xasprintf("%s/%s", site->hooks, forward_names[i]);

		all = access(path, F_OK) == 0;
		free(path);
	}
	return all;
}

/* What refd wrote there is told by its first line. */
static bool is_own_file(const char *path, struct text *t)
{
	return text_read_file(t, path) == 0 && has_prefix(t->data, OWN_FILE);
}

static bool write_own_file(const struct site *site, const char *path)
{
	struct text now = { 0 };
	bool ours = is_own_file(path, &now), ok = true;
	int err;

	if (!ours && access(path, F_OK) == 0) {
		say_error("%s is there already and not refd's", path);
		ok = false;
	} else if (!ours || strcmp(now.data, site->file->data)) {
		err = durable_write(path, site->file, 0666);
		ok = !err;
		if (ok)
			printf("%s: written\n", path);
		else
			say_error("cannot write %s: %s", path, strerror(-err));
	}
	text_done(&now);
	return ok;
}

static bool remove_own_file(const char *path)
{
	char *new = xasprintf("%s.new", path);
	struct text now = { 0 };
	bool ok = true;

	unlink(new);
	free(new);
	if (is_own_file(path, &now)) {
		ok = unlink(path) == 0;
		if (ok)
			printf("%s: removed\n", path);
		else
			say_error("cannot remove %s: %s", path,
			    strerror(errno));
	}
	text_done(&now);
	return ok;
}

/* git makes it with the first value. */
static bool remove_empty_config(const struct site *site)
{
	struct stat st;

	if (stat(site->config, &st) == 0 && st.st_size == 0 &&
	    unlink(site->config) == 0)
		printf("%s: removed\n", site->config);
	return true;
}

/* ---- any of them ---- */

bool step_do(const struct step *step, const struct site *site)
{
	switch (step->kind) {
	case STEP_AT:
	case STEP_USES:
	case STEP_CONFIG_FILE:
		return true;
	case STEP_DIR:
		return make_dir(step->value);
	case STEP_HOOKS_DIR:
		return make_dir(site->hooks);
	case STEP_HOOK:
		return link_hook(site, step->value);
	case STEP_FORWARDERS:
		return make_forwarders(site);
	case STEP_FILE:
		return write_own_file(site, step->value);
	case STEP_ADD:
	case STEP_SET:
		return step_do_config(step, site);
	}
	return false;
}

bool step_undo(const struct step *step, const struct site *site)
{
	switch (step->kind) {
	case STEP_AT:
	case STEP_USES:
		return true;
	case STEP_DIR:
		return remove_dir(step->value);
	case STEP_HOOKS_DIR:
		return remove_dir(site->hooks);
	case STEP_HOOK:
		return unlink_hook(site, step->value);
	case STEP_FORWARDERS:
		return remove_forwarders(site);
	case STEP_FILE:
		return remove_own_file(step->value);
	case STEP_CONFIG_FILE:
		return remove_empty_config(site);
	case STEP_ADD:
	case STEP_SET:
		return step_undo_config(step, site);
	}
	return false;
}

bool step_holds(const struct step *step, const struct site *site,
    const struct gitconfig *own)
{
	const char *now;
	char *path;
	bool holds = true;

	switch (step->kind) {
	case STEP_AT:
	case STEP_USES:
	case STEP_CONFIG_FILE:
		return true;
	case STEP_DIR:
	case STEP_FILE:
		return access(step->value, F_OK) == 0;
	case STEP_HOOKS_DIR:
		return access(site->hooks, F_OK) == 0;
	case STEP_HOOK:
		path = hook_of(site);
		holds = links_to(path, step->value) && access(path, X_OK) == 0;
		free(path);
		return holds;
	case STEP_FORWARDERS:
		return holds_forwarders(site);
	case STEP_ADD:
		return config_has(own, step->key, step->value);
	case STEP_SET:
		now = config_get(own, step->key);
		return now && !strcmp(now, step->value);
	}
	return false;
}
