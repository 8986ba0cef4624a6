#include "daemon/group/service/listing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/group/service/fetch_git.h"
#include "proto/lib/clock.h"
#include "proto/refname.h"

#define LIST_MS  (10 * 60 * 1000)
#define OWN_REFS "refs/refd/"

static int compare(const void *a, const void *b)
{
	const struct listing_ref *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static bool is_id(const char *value)
{
	const size_t len = strlen(value);

	return (len == REFD_SHA1_HEX || len == REFD_OID_MAX_HEX) &&
	    strspn(value, "0123456789abcdef") == len;
}

/* LINE: an id, a tab, and the name of a ref. */
static bool take(struct listing *l, char *line)
{
	char *name = strchr(line, '\t');

	if (!name)
		return false;
	*name++ = '\0';
	if (!is_id(line) || !has_prefix(name, "refs/") ||
	    !refd_refname_format_ok(name) ||
	    (l->nr > 0 && strlen(line) != strlen(l->refs[0].value)))
		return false;
	if (has_prefix(name, OWN_REFS))
		return true;
	l->refs = xroom(l->refs, l->nr, &l->size, sizeof(*l->refs));
	l->refs[l->nr++] = (struct listing_ref){ name, line };
	return true;
}

static bool has_twice(const struct listing *l)
{
	size_t i;

	for (i = 1; i < l->nr; i++)
		if (!strcmp(l->refs[i - 1].name, l->refs[i].name))
			return true;
	return false;
}

bool listing_parse(struct listing *l, struct text *why)
{
	char *line, *next = l->text.data;
	bool is_right = !next || strlen(next) == l->text.len;

	while (is_right && (line = strsep(&next, "\n")))
		is_right = !*line || take(l, line);
	if (is_right && l->nr > 0)
		qsort(l->refs, l->nr, sizeof(*l->refs), compare);
	is_right = is_right && !has_twice(l);
	if (!is_right)
		text_adds(why, "git has printed something that is no ref");
	return is_right;
}

bool listing_read(struct listing *l, const struct fetch_site *site,
    const struct fetch_wish *wish, struct text *why)
{
	const struct fetch_git git = { .wish = wish,
		.site = site,
		.until_ms = clock_now_ms() + LIST_MS,
		.objects = -1,
		.pack = -1,
		.refs = -1,
		.tables = -1 };
	const int status = fetch_git_list(&git, &l->text);

	if (status == 0)
		return listing_parse(l, why);
	if (status == -EFBIG)
		text_adds(why, "the names of its refs have more than 64 MiB");
	else if (status < 0)
		text_addf(why, "git ls-remote was ended: %s",
		    strerror(-status));
	else
		text_addf(why, "git ls-remote has ended with status %d",
		    status);
	return false;
}

enum refd_object_format listing_format(const struct listing *l)
{
	return l->nr > 0 && strlen(l->refs[0].value) == REFD_OID_MAX_HEX ?
	    REFD_FORMAT_SHA256 :
	    REFD_FORMAT_SHA1;
}

void listing_add_values(const struct listing *l, struct text *lines)
{
	size_t i;

	for (i = 0; i < l->nr; i++)
		text_addf(lines, "%s\n", l->refs[i].value);
}

void listing_done(struct listing *l)
{
	free(l->refs);
	text_done(&l->text);
	*l = (struct listing){ 0 };
}
