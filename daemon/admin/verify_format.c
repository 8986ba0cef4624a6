/*
 * The format of the object ids in a repository whose configuration a power loss
 * took. Without extensions.objectFormat, git takes all ids for SHA-1.
 *
 * Happy path: the configuration has an entry, and names the format.
 *
 * Otherwise the records of the journal tell the format, then the width of the
 * ids in HEAD, packed-refs and loose refs. An empty configuration of SHA-1 is
 * no finding, because git works with it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "daemon/admin/verify_internal.h"

#define ENTRIES_MAX 10000

/* ---- the width of the ids ---- */

struct widths {
	struct verify *v;
	size_t left; /* entries to look at */
	size_t nr[2];
};

static bool is_oid(struct verify *v, const char *name,
    enum refd_object_format format)
{
	struct loose_value value;
	bool is;

	if (loose_read(v->sys, v->repo.fd, name, format, &value) < 0)
		return false;
	is = value.kind == LOOSE_OID;
	loose_value_done(&value);
	return is;
}

static void count_file(struct widths *w, const char *name)
{
	w->nr[REFD_FORMAT_SHA1] += is_oid(w->v, name, REFD_FORMAT_SHA1);
	w->nr[REFD_FORMAT_SHA256] += is_oid(w->v, name, REFD_FORMAT_SHA256);
}

/* verify_line_fn; ARG is the struct widths. */
static int count_line(void *arg, char *line, size_t nr, bool ends)
{
	struct widths *w = arg;
	size_t len = strspn(line, "0123456789abcdef");

	(void)nr;
	if (!ends || line[len] != ' ')
		return 0;
	w->nr[REFD_FORMAT_SHA1] +=
	    len == refd_object_format_hex(REFD_FORMAT_SHA1);
	w->nr[REFD_FORMAT_SHA256] +=
	    len == refd_object_format_hex(REFD_FORMAT_SHA256);
	return --w->left == 0;
}

static void count_packed(struct widths *w)
{
	const struct sys *sys = w->v->sys;
	int fd = SYS(sys, openat, w->v->repo.fd, "packed-refs",
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);

	if (fd < 0)
		return;
	verify_each_line(sys, fd, count_line, w);
	SYS(sys, close, fd);
}

/* lock_file_fn; ARG is the struct widths. */
static int visit(void *arg, const struct lock_file *f)
{
	struct widths *w = arg;

	if (f->err == 0)
		count_file(w, f->path);
	return --w->left == 0;
}

/* ---- the journal, or the widths ---- */

static void find_by_width(struct verify *v)
{
	struct widths w = { .v = v, .left = ENTRIES_MAX };

	count_file(&w, "HEAD");
	count_packed(&w);
	w.left = ENTRIES_MAX;
	lock_walk_tree(v->sys, v->places.list, "refs", visit, &w);
	if (w.nr[REFD_FORMAT_SHA256] > w.nr[REFD_FORMAT_SHA1])
		v->repo.object_format = REFD_FORMAT_SHA256;
}

void verify_find_format(struct verify *v)
{
	if (v->repo_rows != NULL && v->repo_rows->newest != 0)
		v->repo.object_format = v->repo_rows->object_format;
	else
		find_by_width(v);
	v->has_lost_format = v->repo.object_format != REFD_FORMAT_SHA1;
	if (v->has_lost_format)
		verify_found(v, FOUND_CONFIG_LOST, "", "config",
		    "it is missing, empty or malformed, and the refs have ids "
		    "of %s",
		    refd_object_format_name(v->repo.object_format));
}
