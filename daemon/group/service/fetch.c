#include "daemon/group/service/fetch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/group/service/fetch_git.h"
#include "daemon/group/service/fetch_repo.h"
#include "proto/lib/clock.h"

/* A longer fetch is a first copy, which is made with other programs. */
#define FETCH_MS (10 * 60 * 1000)

struct fetching {
	const struct fetch_wish *wish;
	struct fetch_repo repo;
	struct fetch_git git;
	struct text *why;
};

static bool fail(struct fetching *f, const char *doing, int status)
{
	text_addf(f->why, "%s '%s': ", doing, f->wish->path);
	if (status < 0)
		text_adds(f->why, "git was ended, or took too long");
	else
		text_addf(f->why,
		    "git ended with status %d, and the log of refd-group has "
		    "its messages",
		    status);
	return false;
}

static void add_oids(const struct fetch_wish *wish, const struct refd_oid *oids,
    size_t nr, struct text *lines)
{
	char hex[REFD_OID_MAX_HEX + 1];
	size_t i;

	for (i = 0; i < nr; i++)
		text_addf(lines, "%s\n",
		    refd_oid_hex(&oids[i], wish->format, hex));
}

/* ---- haves ---- */

/* Replaces LINES, ids, by the ids of objects that exist. */
static bool keep_existing(struct fetching *f, struct text *lines)
{
	static const char *const argv[] = { "git", "cat-file",
		"--batch-check=%(objectname)", "--buffer", NULL };
	const size_t len = refd_object_format_hex(f->wish->format);
	struct text answer = { 0 };
	int status = fetch_git_run(&f->git, argv, lines, &answer);
	char *line, *next;

	text_clear(lines);
	/* The line of a missing object has one more word. */
	for (next = answer.data; status == 0 && (line = strsep(&next, "\n"));)
		if (strlen(line) == len)
			text_addf(lines, "%s\n", line);
	text_done(&answer);
	return status == 0 || fail(f, "cannot look for objects in", status);
}

/* A base object can be there without the objects which it needs, and git trusts
 * a have. So the base counts only after a walk to the values of refs. */
static bool are_connected(struct fetching *f, const struct text *lines)
{
	static const char *const argv[] = { "git", "rev-list", "--objects",
		"--quiet", "--stdin", "--not", "--all", NULL };

	return fetch_git_run(&f->git, argv, lines, NULL) == 0;
}

static bool find_haves(struct fetching *f)
{
	const struct fetch_wish *wish = f->wish;
	struct text values = { 0 }, bases = { 0 };
	bool is_done;

	fetch_git_refs(&f->git, &values);
	/* Without values, more objects come than necessary, so a failure does
	 * not count. */
	fetch_repo_values(f->repo.fd, f->git.site, wish, &values);
	add_oids(wish, wish->bases, wish->nr_bases, &bases);
	is_done = (!values.len || keep_existing(f, &values)) &&
	    (!bases.len || keep_existing(f, &bases));
	if (is_done && values.len > 0)
		fetch_git_refs(&f->git, &values);
	if (is_done && bases.len > 0 && are_connected(f, &bases))
		fetch_git_refs(&f->git, &bases);
	text_done(&values);
	text_done(&bases);
	return is_done;
}

/* ---- fetching ---- */

static bool fetch(struct fetching *f)
{
	struct text oids = { 0 };
	int status;

	add_oids(f->wish, f->wish->oids, f->wish->nr_oids, &oids);
	status = fetch_git_objects(&f->git, &oids);
	text_done(&oids);
	return status == 0 || fail(f, "cannot fetch objects for", status);
}

static bool sync_objects(struct fetching *f)
{
	if (syncfs(f->repo.objects) == 0)
		return true;
	text_addf(f->why, "cannot sync the file system of '%s': %s",
	    f->wish->path, strerror(errno));
	return false;
}

bool fetch_run(const struct fetch_site *site, const struct fetch_wish *wish,
    struct text *why)
{
	struct fetching f = { .wish = wish,
		.why = why,
		.git = { .wish = wish,
		    .site = site,
		    .refs = -1,
		    .tables = -1,
		    .until_ms = clock_now_ms() + FETCH_MS } };
	bool is_done = fetch_repo_open(&f.repo, site, wish, why);

	f.git.objects = f.repo.objects;
	f.git.pack = f.repo.pack;
	is_done = is_done &&
	    (wish->nr_oids == 0 || (find_haves(&f) && fetch(&f))) &&
	    sync_objects(&f);
	fetch_git_done(&f.git);
	fetch_repo_close(&f.repo);
	return is_done;
}
