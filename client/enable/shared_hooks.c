/*
 * The file enabled.hooks has the notes of the shared directory: the path, the
 * directories that refd made, the link.
 */
#include "client/enable/shared_hooks.h"
#include "client/enable/enable_report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/enable/durable.h"
#include "client/enable/hook_link.h"
#include "client/enable/registry.h"
#include "client/enable/site.h"
#include "client/enable/system.h"
#include "client/git/owner.h"
#include "client/hooks/forward.h"

#define NOTE_AT  "refd.enable.at"  /* where the shared directory is */
#define NOTE_DIR "refd.enable.dir" /* a directory that refd made */

/* ---- the forwarders ---- */

/* Existing hooks stay: an administrator put them there. */
static bool make_forwarders(const char *dir)
{
	size_t i, made = 0;
	int err = 0;

	for (i = 0; forward_names[i] && !err; i++) {
		char *path = xasprintf("%s/%s", dir, forward_names[i]);
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
		enable_report("made", dir,
		    "%zu forwarder%s to a repository's own hooks", made,
		    made == 1 ? "" : "s");
	return !err;
}

static bool has_forwarders(const char *dir)
{
	bool all = true;
	size_t i;

	for (i = 0; forward_names[i] && all; i++) {
		char *path = xasprintf("%s/%s", dir, forward_names[i]);

		all = access(path, F_OK) == 0;
		free(path);
	}
	return all;
}

static void remove_forwarders(const char *dir)
{
	size_t i, removed = 0;
	char *in_dir = xasprintf("%s/", dir);

	for (i = 0; forward_names[i]; i++) {
		char *path = xasprintf("%s/%s", dir, forward_names[i]);
		char *new = xasprintf("%s.new", path);

		unlink(new);
		if (forward_is(path) && unlink(path) == 0)
			removed++;
		free(new);
		free(path);
	}
	durable_sync_parent(in_dir);
	free(in_dir);
	if (removed)
		enable_report("removed", dir, "%zu forwarder%s removed",
		    removed, removed == 1 ? "" : "s");
}

/* ---- the shared directory ---- */

/* Root believes no record that another could have written. */
static bool site_of_hooks(struct site *site)
{
	memset(site, 0, sizeof(*site));
	site->record = geteuid() == 0 ? system_file("enabled.hooks") :
					registry_file("hooks");
	if (site->record)
		site->name = xstrdup(site->record);
	return site->record != NULL;
}

char *shared_hooks_place(void)
{
	struct settings b = { 0 };
	const char *at = NULL;
	char *place;
	struct site site;

	if (site_of_hooks(&site) && site_read(&site, &b))
		at = settings_get(&b, NOTE_AT);
	place = at ? xstrdup(at) : NULL;
	settings_done(&b);
	site_done(&site);
	return place;
}

/* DIR and the directories above it that are missing. */
static void note_directories(const char *dir, struct settings *b)
{
	char *path = xstrdup(dir), *at = path;

	do {
		at = strchr(at + 1, '/');
		if (at)
			*at = '\0';
		if (access(path, F_OK) < 0)
			settings_add(b, NOTE_DIR, path);
		if (at)
			*at = '/';
	} while (at);
	free(path);
}

static bool make_directories(const struct settings *b)
{
	bool ok = true;
	size_t i;

	for (i = 0; i < b->nr && ok; i++)
		ok = !gitconfig_is_key(b->items[i].key, NOTE_DIR) ||
		    hook_link_make_directory(b->items[i].value);
	return ok;
}

static bool acquire(const struct site *site, const char *dir, const char *self)
{
	struct settings before, b;
	bool ok = site_read(site, &before);
	enum hook_state is =
	    hook_link_look(dir, self, settings_get(&before, NOTE_HOOK));

	settings_copy(&before, &b);
	settings_set(&b, NOTE_AT, dir);
	note_directories(dir, &b);
	if (is == HOOK_MISSING)
		settings_set(&b, NOTE_HOOK, self);
	if (ok && is == HOOK_OTHER)
		say_error("proc-receive in %s is not refd; name another "
			  "directory with --hooks",
		    dir);
	ok = ok && is != HOOK_OTHER;
	if (is != HOOK_REFD || !has_forwarders(dir))
		ok = ok && site_write(site, &before, &b) &&
		    make_directories(&b) && make_forwarders(dir) &&
		    (is == HOOK_REFD ||
			hook_link_make(dir, HOOK_PROC_RECEIVE, self));
	settings_done(&before);
	settings_done(&b);
	return ok;
}

bool shared_hooks_acquire(const char *dir, const char *self)
{
	char *place = system_file("");
	struct site site = { 0 };
	bool ok;

	if (geteuid() == 0)
		mkdir(place, 0755);
	ok = registry_needed("hooks for several repositories") &&
	    site_of_hooks(&site);
	ok = ok && acquire(&site, dir, self);
	site_done(&site);
	free(place);
	return ok;
}

/* ---- and back ---- */

static bool uses(const struct site *site, const char *dir)
{
	struct settings b = { 0 };
	bool does = !site_read(site, &b) || settings_have(&b, HOOKS_PATH, dir);

	settings_done(&b);
	return does;
}

struct use {
	struct owned repo;
	const char *dir;
};

static int look_for_use(void *arg)
{
	const struct use *use = arg;
	struct site site;
	bool does;

	site_init(&site, use->repo.path);
	does = uses(&site, use->dir);
	site_done(&site);
	return does;
}

/* If the owner cannot read the configuration, the hooks may be in use. */
static bool is_used_by(const char *repo, const char *dir)
{
	struct use use = { .dir = dir };
	const struct work work = { .run = look_for_use, .arg = &use };
	struct text why = { 0 };
	int r = owner_work(&use.repo, repo, work, &why);

	text_done(&why);
	return r > 0 || (r < 0 && access(repo, F_OK) == 0);
}

static bool is_used(const char *dir, const char *user)
{
	struct registry r = { 0 };
	struct site site;
	bool used;
	size_t i;

	system_site(&site);
	used = strcmp(user, "system") && uses(&site, dir);
	site_done(&site);
	if (!registry_read(&r))
		used = true;
	for (i = 0; i < r.nr && !used; i++)
		used = strcmp(r.paths[i], user) && is_used_by(r.paths[i], dir);
	registry_done(&r);
	return used;
}

/* A power loss must not bring back files of which the record is gone. B has
 * the notes of DIR. */
static bool release(const struct site *site, const struct settings *b,
    const char *dir)
{
	const char *hook = settings_get(b, NOTE_HOOK);
	const struct settings none = { 0 };
	size_t i;

	if (hook && !hook_link_remove(dir, HOOK_PROC_RECEIVE, hook))
		return false;
	remove_forwarders(dir);
	for (i = b->nr; i-- > 0;) {
		const char *made = b->items[i].value;

		if (!gitconfig_is_key(b->items[i].key, NOTE_DIR) ||
		    rmdir(made) < 0)
			continue;
		durable_sync_parent(made);
		enable_report("removed", made, "removed");
	}
	return site_write(site, b, &none);
}

bool shared_hooks_release(const char *user)
{
	struct settings b = { 0 };
	struct site site;
	const char *at;
	char *place;
	bool ok;

	if (!registry_needed("this"))
		return false;
	if (!site_of_hooks(&site))
		return true;
	ok = site_read(&site, &b);
	at = settings_get(&b, NOTE_AT);
	/* Without a record, a killed command may have left a part of it. */
	if (ok && !at)
		ok = site_write(&site, &b, &b);
	else if (ok && !is_used(at, user))
		ok = release(&site, &b, at);
	place = system_file("");
	if (geteuid() == 0)
		rmdir(place);
	free(place);
	settings_done(&b);
	site_done(&site);
	return ok;
}
