/* The list of enabled repositories, templates and roots, with their states. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/enable/enable.h"
#include "client/enable/enable_report.h"
#include "client/enable/owner.h"
#include "client/enable/registry.h"
#include "client/enable/scan.h"
#include "client/enable/system.h"

static const char *state_of(const char *dir)
{
	const char *state;
	struct block b = { 0 };
	struct site site;
	struct text why = { 0 };
	struct stat st;
	bool ok = owner_stat(dir, &st, &why);

	text_done(&why);
	if (!ok)
		return access(dir, F_OK) < 0 ? "gone" : "incomplete";
	site_init(&site, dir);
	owner_enter(&st);
	state = site_read(&site, &b) && site_holds(&site, &b) ? "enabled" :
								"incomplete";
	owner_leave();
	block_done(&b);
	site_done(&site);
	return state;
}

static bool is_repository(const char *dir)
{
	struct text why = { 0 };
	struct gitdir gd = { 0 };
	bool is = gitdir_locate(&gd, dir, &why);

	gitdir_done(&gd);
	text_done(&why);
	return is;
}

static void put_below(const struct gitdir *gd, void *data)
{
	const struct registry *listed = data;
	size_t i;

	for (i = 0; i < listed->nr; i++)
		if (!strcmp(listed->entries[i].path, gd->common))
			return;
	if (!strcmp(gd->path, gd->common))
		enable_report_state("system", "repository", gd->common);
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

bool enable_list(void)
{
	struct registry listed = { 0 };
	bool ok = registry_read(&listed);
	size_t i;

	for (i = 0; i < listed.nr; i++) {
		const struct registered *r = &listed.entries[i];
		bool gone = !r->is_template && !is_repository(r->path);

		enable_report_state(gone ? "gone" : state_of(r->path),
		    r->is_template ? "template" : "repository", r->path);
	}
	ok = put_system(&listed) && ok;
	registry_done(&listed);
	return ok;
}
