/* The configuration file to the byte. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/enable/durable.h"
#include "client/enable/enabled.h"

static char *before_path(const struct site *site)
{
	return xasprintf("%s.before", site->record);
}

static char *after_path(const struct site *site)
{
	return xasprintf("%s.after", site->record);
}

static bool same_text(const char *one, const char *two)
{
	struct text a = { 0 }, b = { 0 };
	bool same = text_read_file(&a, one) == 0 &&
	    text_read_file(&b, two) == 0 && a.len == b.len &&
	    (!a.len || !memcmp(a.data, b.data, a.len));

	text_done(&a);
	text_done(&b);
	return same;
}

/* The copy is nobody's business who may not read the file itself. */
static void copy_to(const char *path, const struct site *site)
{
	struct text t = { 0 };
	struct stat st;

	if (stat(site->config, &st) == 0 &&
	    text_read_file(&t, site->config) == 0)
		durable_write(path, &t, st.st_mode & 0777);
	text_done(&t);
}

void exact_keep(const struct site *site, bool is_first)
{
	char *before = before_path(site), *after = after_path(site);

	if (is_first) {
		unlink(after);
		copy_to(before, site);
	} else if (!same_text(site->config, after)) {
		unlink(before);
	}
	free(before);
	free(after);
}

void exact_seal(const struct site *site)
{
	char *after = after_path(site);

	copy_to(after, site);
	free(after);
}

static char *stage_path(const struct site *site)
{
	return xasprintf("%s.stage", site->record);
}

/* A link is followed, as git does. */
static bool replace(const struct site *site, const struct text *t)
{
	char *file = realpath(site->config, NULL), *stage = stage_path(site);
	struct stat st;
	bool ok = file && stat(file, &st) == 0 &&
	    durable_replace(file, stage, t, st.st_mode & 07777) == 0;

	free(stage);
	free(file);
	return ok;
}

void exact_unlock(const struct site *site)
{
	char *file = realpath(site->config, NULL), *stage = stage_path(site);

	if (file)
		durable_unlock(file, stage);
	free(stage);
	free(file);
}

bool exact_restore(const struct site *site)
{
	char *before = before_path(site), *after = after_path(site);
	struct text t = { 0 };
	bool done = same_text(site->config, after) &&
	    text_read_file(&t, before) == 0 && replace(site, &t);

	text_done(&t);
	free(before);
	free(after);
	return done;
}

void exact_remove(const struct site *site)
{
	static const char *const names[] = { ".before", ".after", ".before.new",
		".after.new" };
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char *path = xasprintf("%s%s", site->record, names[i]);

		unlink(path);
		free(path);
	}
}
