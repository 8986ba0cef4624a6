/* The list of enabled repositories, templates and roots, with their states. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/enable/enable.h"
#include "client/enable/enable_report.h"
#include "client/enable/registry.h"
#include "client/enable/scan.h"
#include "client/enable/system.h"
#include "client/git/owner.h"

enum state { ENABLED, INCOMPLETE, GONE };

static const char *const state_names[] = { "enabled", "incomplete", "gone" };

/* A repository or template, or a directory below a root of --system. */
struct looked_at {
	struct owned at;
	bool is_template;
	const struct registry *listed;
};

static bool find(const struct looked_at *l, struct gitdir *gd)
{
	struct text why = { 0 };
	bool ok = owner_gitdir(gd, &l->at, &why);

	text_done(&why);
	return ok;
}

static enum state state_of(const char *dir)
{
	struct block b = { 0 };
	struct site site;
	bool holds;

	site_init(&site, dir);
	holds = site_read(&site, &b) && site_holds(&site, &b);
	block_done(&b);
	site_done(&site);
	return holds ? ENABLED : INCOMPLETE;
}

static int look_at_listed(void *arg)
{
	const struct looked_at *l = arg;
	struct gitdir gd = { 0 };
	bool is_there = l->is_template || find(l, &gd);

	gitdir_done(&gd);
	return is_there ? state_of(l->at.path) : GONE;
}

static bool is_listed(const struct registry *listed, const char *dir)
{
	size_t i;

	for (i = 0; i < listed->nr; i++)
		if (!strcmp(listed->entries[i].path, dir))
			return true;
	return false;
}

static int look_below_root(void *arg)
{
	const struct looked_at *l = arg;
	struct gitdir gd = { 0 };

	if (find(l, &gd) && !strcmp(gd.path, gd.common) &&
	    !is_listed(l->listed, gd.common))
		enable_report_state("system", "repository", gd.common);
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
	struct block b = { 0 };
	struct site site;
	size_t i;
	bool ok;

	system_site(&site);
	ok = site_read(&site, &b);
	for (i = 0; i < b.nr; i++) {
		if (strcmp(b.lines[i].key, NOTE_ROOT))
			continue;
		enable_report_state(site_holds(&site, &b) ? "enabled" :
							    "incomplete",
		    "system", b.lines[i].value);
		scan_repositories(b.lines[i].value, put_below, listed);
	}
	block_done(&b);
	site_done(&site);
	return ok;
}

static void put_listed(const struct registered *r)
{
	struct looked_at l = { .is_template = r->is_template };
	const int otherwise = access(r->path, F_OK) < 0 ? GONE : INCOMPLETE;

	enable_report_state(
	    state_names[look(&l, r->path, look_at_listed, otherwise)],
	    r->is_template ? "template" : "repository", r->path);
}

bool enable_list(void)
{
	struct registry listed = { 0 };
	bool ok = registry_read(&listed);
	size_t i;

	for (i = 0; i < listed.nr; i++)
		put_listed(&listed.entries[i]);
	ok = put_system(&listed) && ok;
	registry_done(&listed);
	return ok;
}
