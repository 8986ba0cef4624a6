#include "daemon/group/service/join_copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/group/service/fetch_git.h"
#include "daemon/group/service/fetch_repo.h"
#include "proto/lib/clock.h"
#include "proto/refname.h"

/* A source that is lost ends sooner. */
#define COPY_MS (7 * 24 * 3600 * 1000ULL)

struct symref {
	char *target, *name; /* borrowed from the answer */
};

struct repo_copying {
	struct fetch_git git;
	struct fetch_repo repo;
	struct text url, answer;
	struct symref *symrefs;
	size_t nr_symrefs, size;
	struct text *refs, *why;
};

static bool run(struct repo_copying *c, const char *const argv[],
    struct text *out, const char *doing)
{
	int status = fetch_git_here(&c->git, c->repo.fd, argv, out);

	if (status == 0)
		return true;
	text_addf(c->why, "git could not %s '%s'", doing, c->git.wish->path);
	if (status < 0)
		text_addf(c->why, ": %s", strerror(-status));
	return false;
}

/* Lines "ref: <target> TAB <name>" among those of values. */
static bool list_symrefs(struct repo_copying *c)
{
	const char *const argv[] = { "git", "ls-remote", "--symref",
		c->url.data, NULL };
	char *line, *next, *name;

	if (!run(c, argv, &c->answer, "list the refs of"))
		return false;
	for (next = c->answer.data; (line = strsep(&next, "\n"));) {
		name = strchr(line, '\t');
		if (!has_prefix(line, "ref: ") || !name)
			continue;
		*name++ = '\0';
		c->symrefs = xroom(c->symrefs, c->nr_symrefs, &c->size,
		    sizeof(*c->symrefs));
		c->symrefs[c->nr_symrefs++] =
		    (struct symref){ line + strlen("ref: "), name };
	}
	return true;
}

/* A fetch would make symbolic refs values, so it leaves them out. */
static bool fetch(struct repo_copying *c)
{
	static const char *const first[] = { "git", "-c", "fetch.unpackLimit=1",
		"fetch", "--quiet", "--prune", "--no-write-fetch-head",
		"--no-tags", "--no-auto-maintenance",
		"--no-recurse-submodules" };
	const size_t nr_first = sizeof(first) / sizeof(*first);
	const char **argv =
	    xcalloc(nr_first + c->nr_symrefs + 5, sizeof(*argv));
	size_t i, nr = nr_first, nr_plain;
	bool ok;

	memcpy(argv, first, sizeof(first));
	if (isatty(STDERR_FILENO))
		argv[nr++] = "--progress";
	argv[nr++] = c->url.data;
	argv[nr++] = "+refs/*:refs/*";
	argv[nr++] = "^" REFD_DIVERGED "*";
	nr_plain = nr;
	for (i = 0; i < c->nr_symrefs; i++)
		if (has_prefix(c->symrefs[i].name, "refs/"))
			argv[nr++] = xasprintf("^%s", c->symrefs[i].name);
	ok = run(c, argv, NULL, "fetch");
	while (nr > nr_plain)
		free((char *)argv[--nr]);
	free(argv);
	return ok;
}

static bool set_symrefs(struct repo_copying *c)
{
	size_t i;

	for (i = 0; i < c->nr_symrefs; i++)
		if (!run(c,
			(const char *const[]){ "git", "symbolic-ref",
			    c->symrefs[i].name, c->symrefs[i].target, NULL },
			NULL, "set a symbolic ref of"))
			return false;
	return true;
}

static bool copy(struct repo_copying *c)
{
	static const char *const pack[] = { "git", "pack-refs", "--all", NULL };
	static const char *const list[] = { "git", "for-each-ref",
		"--format=%(objectname) %(refname) %(symref)%00", NULL };

	if (!list_symrefs(c) || !fetch(c) || !set_symrefs(c) ||
	    !run(c, pack, NULL, "pack the refs of") ||
	    !run(c, list, c->refs, "list the copied refs of"))
		return false;
	if (syncfs(c->repo.fd) == 0)
		return true;
	text_addf(c->why, "cannot sync the file system of '%s': %s",
	    c->git.wish->path, strerror(errno));
	return false;
}

bool join_copy(const struct fetch_site *site, const struct fetch_wish *wish,
    struct text *refs, struct text *why)
{
	struct repo_copying c = { .refs = refs,
		.why = why,
		.git = { .wish = wish,
		    .site = site,
		    .until_ms = clock_now_ms() + COPY_MS } };
	bool ok = fetch_repo_open(&c.repo, site, wish, why);

	fetch_git_url(&c.url, wish);
	ok = ok && copy(&c) && fetch_repo_place(site, wish, why);
	fetch_repo_close(&c.repo);
	text_done(&c.url);
	text_done(&c.answer);
	free(c.symrefs);
	return ok;
}
