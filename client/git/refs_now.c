#include "client/git/refs_now.h"

#include <stdlib.h>
#include <string.h>

#include "client/base/child.h"

static int compare(const void *a, const void *b)
{
	const struct ref_now *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static bool take_line(struct refs_now *now, char *line)
{
	struct ref_now ref = { 0 };
	char *name = strchr(line, ' '), *target;

	if (!name)
		return false;
	*name++ = '\0';
	target = strchr(name, ' ');
	if (!target || refd_oid_parse(line, now->object_format, &ref.oid) < 0)
		return false;
	*target++ = '\0';
	ref.name = name;
	ref.is_symbolic = *target != '\0';
	now->refs = xroom(now->refs, now->nr, &now->size, sizeof(ref));
	now->refs[now->nr++] = ref;
	return true;
}

bool refs_now_parse(struct refs_now *now, struct text *list)
{
	char *line, *rest;

	now->list = *list;
	memset(list, 0, sizeof(*list));
	rest = now->list.data;
	while (rest && (line = strsep(&rest, "\n")))
		if (*line && !take_line(now, line))
			return false;
	if (now->nr)
		qsort(now->refs, now->nr, sizeof(*now->refs), compare);
	return true;
}

void refs_now_load(struct refs_now *now, const struct gitdir *gd)
{
	char *dir = xasprintf("--git-dir=%s", gd->path);
	const char *argv[] = { "git", dir, "for-each-ref",
		"--format=%(objectname) %(refname) %(symref)", NULL };
	struct text list = { 0 };

	if (child_capture(argv, &list) || !refs_now_parse(now, &list))
		die("git could not list the refs of '%s'", gd->path);
	free(dir);
}

const struct ref_now *refs_now_find(const struct refs_now *now,
    const char *name)
{
	struct ref_now key = { .name = name };

	if (!now->nr)
		return NULL;
	return bsearch(&key, now->refs, now->nr, sizeof(key), compare);
}

void refs_now_done(struct refs_now *now)
{
	free(now->refs);
	text_done(&now->list);
	memset(now, 0, sizeof(*now));
}
