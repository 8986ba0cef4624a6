/* "refd enable" and "refd disable": the command lines. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/enable/enable.h"
#include "client/enable/proc_receive.h"
#include "client/enable/registry.h"
#include "client/enable/service.h"
#include "client/enable/system.h"

static const char enable_usage[] =
    "usage: refd enable [--socket PATH] [--no-fsync] [--chain PREFIX]...\n"
    "                   [--hooks DIR] (<repository>... | --all)\n"
    "   or: refd enable [<options>] --template <directory>\n"
    "   or: refd enable [<options>] --system [--root DIR]...\n"
    "   or: refd enable --service ACCOUNT [--root DIR]...\n"
    "   or: refd enable --list [--json]\n";
static const char disable_usage[] =
    "usage: refd disable (<repository>... | --all)\n"
    "   or: refd disable --template <directory>\n"
    "   or: refd disable --system [--root DIR]...\n"
    "   or: refd disable --service ACCOUNT\n";

enum what { REPOSITORIES, ALL, TEMPLATE, SYSTEM, SERVICE, LIST };

struct request {
	enum what what;
	unsigned nr_whats; /* how many of them were asked for */
	const char *template, *account;
	const char **roots; /* resolved, a slash at the end of each */
	size_t nr_roots;
	bool as_json, helps;
	struct wishes w;
};

/* ---- options ---- */

static const struct option options[] = {
	{ "socket", required_argument, NULL, 's' },
	{ "no-fsync", no_argument, NULL, 'n' },
	{ "chain", required_argument, NULL, 'c' },
	{ "hooks", required_argument, NULL, 'H' },
	{ "all", no_argument, NULL, 'a' },
	{ "template", required_argument, NULL, 't' },
	{ "system", no_argument, NULL, 'y' },
	{ "service", required_argument, NULL, 'S' },
	{ "root", required_argument, NULL, 'r' },
	{ "list", no_argument, NULL, 'l' },
	{ "json", no_argument, NULL, 'j' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static void append(const char ***list, size_t *nr, const char *value)
{
	*list = xrealloc(*list, (*nr + 1) * sizeof(**list));
	(*list)[(*nr)++] = value;
}

/* One that is gone can still be disabled. */
static const char *resolve_root(const char *root, bool enables)
{
	char *path = realpath(root, NULL), *slashed;

	if (!path && enables)
		die("%s: %s", root, strerror(errno));
	if (!path)
		path = xstrdup(root);
	slashed = path[strlen(path) - 1] == '/' ? xstrdup(path) :
						  xasprintf("%s/", path);
	free(path);
	return slashed;
}

static bool choose(struct request *rq, enum what what)
{
	rq->what = what;
	rq->nr_whats++;
	return true;
}

static bool take_enable_option(struct request *rq, int c)
{
	switch (c) {
	case 's':
		rq->w.socket = optarg;
		return true;
	case 'n':
		rq->w.fsync = false;
		return true;
	case 'c':
		append(&rq->w.chains, &rq->w.nr_chains, optarg);
		return true;
	case 'H':
		free(rq->w.hooks);
		rq->w.hooks = xstrdup(optarg);
		return true;
	case 'l':
		return choose(rq, LIST);
	case 'j':
		rq->as_json = true;
		return true;
	}
	return false;
}

static bool take_option(struct request *rq, int c, bool enables)
{
	switch (c) {
	case 'a':
		return choose(rq, ALL);
	case 't':
		rq->template = optarg;
		return choose(rq, TEMPLATE);
	case 'y':
		return choose(rq, SYSTEM);
	case 'S':
		rq->account = optarg;
		return choose(rq, SERVICE);
	case 'r':
		append(&rq->roots, &rq->nr_roots,
		    resolve_root(optarg, enables));
		return true;
	case 'h':
		rq->helps = true;
		return true;
	}
	return enables && take_enable_option(rq, c);
}

/* False: it was said what is wrong, or nothing makes sense of it. */
static bool take_options(struct request *rq, int argc, char **argv,
    bool enables)
{
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) >= 0)
		if (!take_option(rq, c, enables))
			return false;
	if (rq->helps)
		return true;
	return rq->nr_whats <= 1 &&
	    (rq->what == REPOSITORIES) == (optind < argc) &&
	    (rq->what == SYSTEM || (rq->what == SERVICE && enables) ||
		!rq->nr_roots) &&
	    (rq->what == LIST || !rq->as_json);
}

static void check_path(const char *path, const char *what)
{
	if (path[0] != '/' || strchr(path, '\n'))
		die("'%s': hooks run elsewhere, so the path of the %s has to "
		    "be absolute",
		    path, what);
}

static void find_self(struct wishes *w)
{
	ssize_t len = readlink("/proc/self/exe", w->self, sizeof(w->self) - 1);

	if (len < 0)
		die("cannot find out where refd is: %s", strerror(errno));
	w->self[len] = '\0';
	if (access(w->self, X_OK) < 0)
		die("%s: %s", w->self, strerror(errno));
}

static char *default_hooks(void)
{
	const char *base = getenv("XDG_DATA_HOME"), *home = getenv("HOME");

	if (geteuid() == 0)
		return xstrdup(DATADIR "/refd/hooks");
	if (base && base[0] == '/')
		return xasprintf("%s/refd/hooks", base);
	return xasprintf("%s/.local/share/refd/hooks", home ? home : "");
}

/* There is one such directory: where it is now, it stays. */
static void settle_hooks(struct wishes *w)
{
	char *now = hooks_place();
	size_t i;

	if (!w->hooks)
		w->hooks = now ? xstrdup(now) : default_hooks();
	check_path(w->hooks, "hooks");
	for (i = strlen(w->hooks); i > 1 && w->hooks[i - 1] == '/'; i--)
		w->hooks[i - 1] = '\0';
	if (now && strcmp(now, w->hooks))
		die("refd's hooks are in %s already, not in %s", now, w->hooks);
	free(now);
}

static void settle_wishes(struct request *rq)
{
	struct wishes *w = &rq->w;
	size_t i;

	w->repair = rq->what == ALL;
	if (!w->socket && !w->repair)
		w->socket = getenv("REFD_SOCKET");
	if (w->socket && !*w->socket)
		w->socket = NULL;
	if (w->socket)
		check_path(w->socket, "socket");
	settle_hooks(w);
	for (i = 0; i < w->nr_chains; i++)
		if (!has_prefix(w->chains[i], "refs/") ||
		    strchr(w->chains[i], '\n'))
			die("'%s': a prefix begins with refs/", w->chains[i]);
	find_self(w);
}

/* ---- repositories; W is NULL to disable ---- */

/* How far the command is. The lines on standard output say so on a terminal. A
 * message overwrites the line. */
static void show_progress(size_t done, size_t all)
{
	if (all < 2 || !isatty(STDERR_FILENO) || isatty(STDOUT_FILENO))
		return;
	if (done < all)
		fprintf(stderr, "refd: %zu of %zu repositories\r", done, all);
	else
		fprintf(stderr, "\033[K");
}

static bool do_repository(const char *dir, const struct wishes *w)
{
	return w ? enable_repository(dir, w) : disable_repository(dir);
}

static bool do_template(const char *dir, const struct wishes *w)
{
	return w ? enable_template(dir, w) : disable_template(dir);
}

static bool do_system(const char **roots, size_t nr, const struct wishes *w)
{
	return w ? enable_system(roots, nr, w) : disable_system(roots, nr);
}

static bool is_gone(const char *dir)
{
	return access(dir, F_OK) < 0 && (errno == ENOENT || errno == ENOTDIR);
}

static bool do_listed(const struct registered *r, const struct wishes *w)
{
	if (!is_gone(r->path))
		return r->is_template ? do_template(r->path, w) :
					do_repository(r->path, w);
	printf("%s: gone%s\n", r->path, w ? "" : ": not listed any more");
	if (!w)
		registry_remove(r->path);
	return true;
}

static bool is_system_enabled(void)
{
	struct block b = { 0 };
	struct site site;
	bool is;

	system_site(&site);
	is = site_read(&site, &b) && b.nr;
	block_done(&b);
	site_done(&site);
	return is;
}

static bool do_all(const struct wishes *w)
{
	struct registry r = { 0 };
	bool ok = registry_read(&r);
	size_t i;

	for (i = 0; i < r.nr; i++) {
		ok &= do_listed(&r.entries[i], w);
		show_progress(i + 1, r.nr);
	}
	registry_done(&r);
	return is_system_enabled() ? do_system(NULL, 0, w) && ok : ok;
}

static bool do_repositories(char **dirs, size_t nr, const struct wishes *w)
{
	bool ok = true;
	size_t i;

	for (i = 0; i < nr; i++) {
		ok &= do_repository(dirs[i], w);
		show_progress(i + 1, nr);
	}
	return ok;
}

/* ---- the commands ---- */

static void request_done(struct request *rq)
{
	free(rq->w.hooks);
	free(rq->w.chains);
	for (; rq->nr_roots; rq->nr_roots--)
		free((char *)rq->roots[rq->nr_roots - 1]);
	free(rq->roots);
}

static bool do_what(const struct request *rq, char **dirs, size_t nr,
    const struct wishes *w)
{
	switch (rq->what) {
	case REPOSITORIES:
		return do_repositories(dirs, nr, w);
	case ALL:
		return do_all(w);
	case TEMPLATE:
		return do_template(rq->template, w);
	case SYSTEM:
		return do_system(rq->roots, rq->nr_roots, w);
	case SERVICE:
	case LIST:
		break; /* carry_out() does them */
	}
	return false;
}

static bool carry_out(struct request *rq, char **dirs, size_t nr, bool enables)
{
	bool ok;

	if (rq->what == LIST)
		return list_enabled(rq->as_json);
	if (rq->what == SERVICE)
		return enables ?
		    service_enable(rq->account, rq->roots, rq->nr_roots) :
		    service_disable(rq->account);
	if (enables)
		settle_wishes(rq);
	registry_open();
	ok = do_what(rq, dirs, nr, enables ? &rq->w : NULL);
	registry_close();
	return ok;
}

static int run(int argc, char **argv, bool enables)
{
	const char *usage = enables ? enable_usage : disable_usage;
	struct request rq = { .w = { .fsync = true } };
	int rc = EXIT_DONE;

	if (!take_options(&rq, argc, argv, enables)) {
		fputs(usage, stderr);
		rc = EXIT_USAGE;
	} else if (rq.helps) {
		fputs(usage, stdout);
	} else if (!carry_out(&rq, argv + optind, (size_t)(argc - optind),
		       enables)) {
		rc = EXIT_FAILED;
	}
	request_done(&rq);
	return rc;
}

int command_enable(int argc, char **argv)
{
	return run(argc, argv, true);
}

int command_disable(int argc, char **argv)
{
	return run(argc, argv, false);
}
