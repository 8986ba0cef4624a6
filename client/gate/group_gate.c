#include "client/gate/group_gate.h"

#include <stdlib.h>
#include <string.h>

#include "proto/refname.h"

#define LOOSE_MAX  8192
#define PACKED_MAX ((size_t)1 << 30)

/* "<old> SP <new> SP <ref>" */
struct gate_line {
	const char *old, *new, *name;
	bool is_allowed;
	const char *packed; /* the value in packed-refs that allows the line */
};

struct gate_lines {
	struct gate_line *list; /* owned */
	size_t nr;
};

static bool is_null(const char *hex)
{
	return hex[strspn(hex, "0")] == '\0';
}

/* ---- the lines ---- */

static bool split(char *text, struct gate_line *line)
{
	char *new = strchr(text, ' ');
	char *name = new ? strchr(++new, ' ') : NULL;

	if (!name)
		return false;
	new[-1] = '\0';
	*name++ = '\0';
	*line = (struct gate_line){ .old = text, .new = new, .name = name };
	return true;
}

/* Takes COPY apart. */
static bool read_lines(struct text *copy, struct gate_lines *lines)
{
	char *line, *rest = NULL;
	size_t nr = 0;

	for (line = copy->data; (line = strchr(line, '\n')); line++)
		nr++;
	lines->list = xcalloc(nr + 1, sizeof(*lines->list));
	for (line = strtok_r(copy->data, "\n", &rest); line;
	    line = strtok_r(NULL, "\n", &rest))
		if (!split(line, &lines->list[lines->nr++]))
			return false;
	return true;
}

/* ---- the values ---- */

/* Has the file of the loose ref the value HEX? */
static bool is_loose(const struct gitdir *gd, const char *name, const char *hex,
    bool *is_there)
{
	char *path = xasprintf("%s/%s", gd->common, name);
	size_t len = strlen(hex);
	struct text t = { 0 };
	bool is;

	*is_there = text_read_regular(&t, path, LOOSE_MAX) == 0;
	is = *is_there && t.len > len && !strncmp(t.data, hex, len) &&
	    t.data[len] == '\n';
	text_done(&t);
	free(path);
	return is;
}

/* git pack-refs deletes the file of a ref that is in packed-refs. A deletion of
 * the ref has a line without an old value first, for packed-refs. */
static void look(const struct gitdir *gd, struct gate_line *line)
{
	const char *bare, *id;
	bool is_there;
	size_t id_len;

	if (refd_refname_place(line->name, &id, &id_len, &bare) !=
		REFD_PLACE_COMMON ||
	    (is_null(line->new) && has_prefix(line->name, REFD_DIVERGED)))
		line->is_allowed = true;
	else if (is_null(line->new) && is_null(line->old))
		return;
	else if (is_null(line->new))
		line->packed = is_loose(gd, line->name, line->old, &is_there) ?
		    line->old :
		    NULL;
	else if (is_loose(gd, line->name, line->new, &is_there))
		line->is_allowed = true;
	else if (!is_there)
		line->packed = line->new;
}

static int by_name(const void *va, const void *vb)
{
	const struct gate_line *a = va, *b = vb;

	return strcmp(a->name, b->name);
}

/* ENTRY: "<hex> SP <ref>" of packed-refs. */
static void look_at_packed(struct gate_lines *lines, char *entry)
{
	char *name = strchr(entry, ' ');
	struct gate_line *line, key;

	if (entry[0] == '#' || entry[0] == '^' || !name)
		return;
	*name++ = '\0';
	key.name = name;
	line = bsearch(&key, lines->list, lines->nr, sizeof(key), by_name);
	if (line && line->packed && !strcmp(line->packed, entry))
		line->is_allowed = true;
}

static void look_in_packed(const struct gitdir *gd, struct gate_lines *lines)
{
	char *path = xasprintf("%s/packed-refs", gd->common);
	struct text t = { 0 };
	char *entry, *rest = NULL;

	if (text_read_regular(&t, path, PACKED_MAX) == 0)
		for (entry = strtok_r(t.data, "\n", &rest); entry;
		    entry = strtok_r(NULL, "\n", &rest))
			look_at_packed(lines, entry);
	text_done(&t);
	free(path);
}

/* ---- the decision ---- */

static const struct gate_line *find_refused(const struct gate_lines *lines)
{
	size_t i;

	for (i = 0; i < lines->nr; i++)
		if (!lines->list[i].is_allowed)
			return &lines->list[i];
	return NULL;
}

static const struct gate_line *decide(const struct gitdir *gd,
    struct gate_lines *lines)
{
	size_t i;

	for (i = 0; i < lines->nr; i++)
		look(gd, &lines->list[i]);
	if (!find_refused(lines))
		return NULL;
	qsort(lines->list, lines->nr, sizeof(*lines->list), by_name);
	look_in_packed(gd, lines);
	return find_refused(lines);
}

bool group_gate_allows(const struct gitdir *gd, const struct text *input)
{
	const struct gate_line *refused = NULL;
	struct gate_lines lines = { 0 };
	struct text copy = { 0 };
	bool ok;

	text_add(&copy, input->data, input->len);
	ok = read_lines(&copy, &lines);
	if (!ok)
		say_error("%s: a line of git has no known form", gd->common);
	else
		refused = decide(gd, &lines);
	if (refused)
		say_error("'%s' of %s is not %s: the repository is in a group "
			  "of nodes, and the other nodes would not get what "
			  "git writes; push to the leader, or use 'refd "
			  "update' there ('refd group status' names it)",
		    refused->name, gd->common,
		    is_null(refused->new) ? "deleted" : "updated");
	free(lines.list);
	text_done(&copy);
	return ok && !refused;
}
