/* "refd enable" and "refd disable": the command lines. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/base/scan.h"
#include "client/commands.h"
#include "client/enable/enable.h"
#include "client/enable/enable_report.h"
#include "client/enable/import.h"
#include "client/enable/registry.h"
#include "client/enable/shared_hooks.h"
#include "client/enable/system.h"
#include "client/git/owner.h"
#include "client/git/quote.h"
#include "proto/lib/json.h"
#include "proto/lib/progress.h"

static const char enable_usage[] =
    "usage: refd enable [--socket PATH] [--chain PREFIX]... [--gate]\n"
    "                   (<repository>... | --all)\n"
    "   or: refd enable [--chain PREFIX]... --system [--root DIR]...\n"
    "   or: refd enable --list [--json]\n";
static const char disable_usage[] =
    "usage: refd disable (<repository>... | --all)\n"
    "   or: refd disable --system [--root DIR]...\n";

enum what { REPOSITORIES, ALL, SYSTEM, LIST };

struct enable_request {
	int what; /* enum what */
	const char *socket;
	struct command_list chains, roots;
	bool gate, as_json;
	struct wishes w; /* of enable */
};

/* ---- options ---- */

#define EXCLUSIVE .excludes = 'w'

#define WHAT                                                                   \
	{ OPTION_SET("all", 0, "all repositories that --list prints",          \
	      struct enable_request, what, ALL),                               \
		EXCLUSIVE },                                                   \
	    { OPTION_SET("system", 0,                                          \
		  "all repositories below the roots, also later ones",         \
		  struct enable_request, what, SYSTEM),                        \
		    EXCLUSIVE },                                               \
	{                                                                      \
		OPTION_LIST("root", 0, "DIR", "a directory for --system",      \
		    struct enable_request, roots)                              \
	}

static const struct command_option enable_options[] = {
	{ OPTION_STRING("socket", 0, "PATH",
	    "the socket of the daemon that serves the repositories",
	    struct enable_request, socket) },
	{ OPTION_LIST("chain", 0, "PREFIX",
	    "leave the refs below PREFIX to the existing proc-receive hook",
	    struct enable_request, chains) },
	{ OPTION_FLAG("gate", 0,
	    "record updates by plain git too, by a hook reference-transaction",
	    struct enable_request, gate) },
	WHAT,
	{ OPTION_SET("list", 0, "print the enabled repositories",
	      struct enable_request, what, LIST),
	    EXCLUSIVE },
	{ OPTION_FLAG("json", 0, "with --list: print JSON, for programs",
	    struct enable_request, as_json) },
	{ 0 }
};

static const struct command_option disable_options[] = { WHAT, { 0 } };

/* Returns the real path of DIR with a slash at the end, owned. To enable, DIR
 * has to obey the rule of owned.h, because root then enables all repositories
 * below DIR. To disable, the name is enough, because the directory may be gone,
 * or other users may be able to exchange the directory. */
static char *resolve_root(const char *dir, bool enables)
{
	struct text why = { 0 };
	struct owned o;
	bool found = owner_find(&o, dir, &why);
	const char *path = found ? o.path : dir;
	size_t len = strlen(path);
	char *root;

	if (!found && enables)
		die("%s", why.data);
	root = xasprintf("%s%s", path, len && path[len - 1] == '/' ? "" : "/");
	owned_done(&o);
	text_done(&why);
	return root;
}

static void check_options(const struct command *c, struct enable_request *rq,
    int argc, char **argv)
{
	if (rq->what == REPOSITORIES && !argc)
		cli_usage(c, "missing argument: <repository>...");
	if (rq->what != REPOSITORIES && argc)
		cli_usage(c, "unexpected argument '%s'", argv[0]);
	if (rq->gate && rq->what != REPOSITORIES && rq->what != ALL)
		cli_usage(c,
		    "--gate is for single repositories, because each keeps its "
		    "own hook beside the gate: run refd enable --gate "
		    "<repository>");
	if (rq->socket && rq->what == SYSTEM)
		cli_usage(c,
		    "--socket is for single repositories: \"git config --file "
		    "/etc/refd/gitconfig refd.socket PATH\" names it for all");
	if (rq->roots.nr && rq->what != SYSTEM)
		cli_usage(c, "unexpected option --root");
	if (rq->as_json && rq->what != LIST)
		cli_usage(c, "--json is for --list");
}

static void check_socket(const char *path)
{
	if (path[0] != '/' || strchr(path, '\n'))
		die("'%s': hooks run elsewhere, so the path of the socket has "
		    "to be absolute",
		    path);
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

static void settle_wishes(struct enable_request *rq)
{
	struct wishes *w = &rq->w;
	size_t i;

	w->gate = rq->gate;
	w->chains = rq->chains.items;
	w->nr_chains = rq->chains.nr;
	w->socket = rq->socket;
	if (w->socket && !*w->socket)
		w->socket = NULL;
	if (w->socket)
		check_socket(w->socket);
	for (i = 0; i < w->nr_chains; i++)
		if (!has_prefix(w->chains[i], "refs/") ||
		    strchr(w->chains[i], '\n'))
			die("'%s': a prefix begins with refs/", w->chains[i]);
	find_self(w);
	w->hooks = shared_hooks_place(w->self);
}

/* ---- repositories; W is NULL to disable ---- */

static bool is_gone(const char *dir)
{
	return access(dir, F_OK) < 0 && (errno == ENOENT || errno == ENOTDIR);
}

/* DIR could not be enabled. A person may have meant what is below. */
static void say_below(const char *dir)
{
	char *command =
	    quote_command("refd", "enable", "--system", "--root", dir, NULL);

	if (access(dir, F_OK) == 0 && !scan_is_repository(dir))
		say_error("%s: as root, \"%s\" enables all repositories below "
			  "it, also later ones",
		    dir, command);
	free(command);
}

/* A listed repository may be gone. True: all were good. */
static bool do_each(char **paths, size_t nr, bool are_listed,
    const struct wishes *w)
{
	const bool is_brief = nr > ENABLE_REPORT_REPOSITORIES;
	size_t i, good = 0, gone = 0;

	enable_report_quietly(is_brief);
	for (i = 0; i < nr; i++) {
		/* On a terminal, the lines on standard output are the
		 * progress. */
		if (is_brief || !isatty(STDOUT_FILENO))
			progress_show(w ? "Enabling repositories" :
					  "Disabling repositories",
			    i, nr, "", "");
		if (are_listed && is_gone(paths[i])) {
			gone++;
			enable_report(paths[i], "gone%s",
			    w ? "" : ": not listed any more");
			if (!w)
				registry_remove(paths[i]);
		} else if (enable_repository(paths[i], are_listed, w)) {
			good++;
		} else if (w && !are_listed) {
			say_below(paths[i]);
		}
	}
	progress_clear();
	enable_report_quietly(false);
	if (is_brief && gone)
		enable_report(NULL, "%zu of %zu are gone", gone, nr);
	if (is_brief)
		enable_report(NULL, "%zu of %zu are %s now", good, nr,
		    w ? "enabled" : "disabled");
	return good + gone == nr;
}

static bool is_system_enabled(void)
{
	struct site site;
	bool is;

	system_site(&site);
	is = site_look(&site) && site.before.nr &&
	    (site.lines.nr || settings_have(&site.before, NOTE_ROOT, NULL));
	site_done(&site);
	return is;
}

static bool do_all(const struct wishes *w)
{
	struct registry r = { 0 };
	/* While the system's configuration enables a repository, disable fails
	 * there, so the system's configuration comes first. */
	bool ok = !is_system_enabled() || enable_system(NULL, 0, w);

	ok &= registry_read(&r);
	ok &= do_each(r.paths, r.nr, true, w);
	registry_done(&r);
	return ok;
}

/* ---- the list ---- */

static void print_listed(bool as_json, const char *state, const char *kind,
    const char *path)
{
	struct json j = { .to = stdout };

	if (!as_json) {
		print_line(stdout, "%-10s  %s%s", state, path,
		    strcmp(kind, "system") ? "" : "  system");
		return;
	}
	json_begin(&j, NULL, '{');
	json_text(&j, "state", state);
	json_text(&j, "kind", kind);
	json_text(&j, "path", path);
	json_finish(&j, '}');
}

/* Whether all parts of an enabled repository are in place is a question for the
 * doctor. */
static bool list_all(bool as_json)
{
	struct registry r = { 0 };
	struct site site;
	const char *root;
	size_t i, at = 0;
	bool ok = registry_read(&r);

	for (i = 0; i < r.nr; i++)
		print_listed(as_json, is_gone(r.paths[i]) ? "gone" : "enabled",
		    "repository", r.paths[i]);
	system_site(&site);
	ok = site_look(&site) && ok;
	while ((root = system_next_root(&site.before, &at)))
		print_listed(as_json, "enabled", "system", root);
	site_done(&site);
	registry_done(&r);
	return ok;
}

/* ---- the commands ---- */

static bool do_what(const struct enable_request *rq, const char **roots,
    char **dirs, size_t nr, const struct wishes *w)
{
	switch ((enum what)rq->what) {
	case REPOSITORIES:
		return do_each(dirs, nr, false, w);
	case ALL:
		return do_all(w);
	case SYSTEM:
		return enable_system(roots, rq->roots.nr, w);
	case LIST:
		return list_all(rq->as_json);
	}
	return false;
}

void enable_begin(struct wishes *w)
{
	struct enable_request rq = { .what = REPOSITORIES };

	enable_report_quietly(true);
	settle_wishes(&rq);
	registry_open();
	*w = rq.w;
}

/* An import can take minutes, and other commands need the list, so the list is
 * closed before. */
bool enable_end(struct wishes *w)
{
	registry_close();
	free(w->hooks);
	return import_due(w->socket);
}

static int run(const struct command *c, int argc, char **argv)
{
	const bool enables = c == &enable_command;
	struct enable_request rq = { 0 };
	bool needs_list, ok;
	const char **roots;
	size_t i;

	argc = cli_parse(c, &rq, argc, &argv);
	check_options(c, &rq, argc, argv);
	roots = xcalloc(rq.roots.nr, sizeof(*roots));
	for (i = 0; i < rq.roots.nr; i++)
		roots[i] = resolve_root(rq.roots.items[i], enables);
	/* REFD_SOCKET counts only for repositories that the user names. A
	 * repair changes no socket, and the repositories below a root may
	 * belong to other users. */
	if (!rq.socket && rq.what == REPOSITORIES)
		rq.socket = getenv("REFD_SOCKET");
	needs_list = rq.what != LIST;
	if (needs_list && enables)
		settle_wishes(&rq);
	if (needs_list)
		registry_open();
	ok = do_what(&rq, roots, argv, (size_t)argc, enables ? &rq.w : NULL);
	ok = enable_end(&rq.w) && ok;
	for (i = 0; i < rq.roots.nr; i++)
		free((char *)roots[i]);
	free(roots);
	command_list_done(&rq.roots);
	command_list_done(&rq.chains);
	return ok ? EXIT_DONE : EXIT_FAILED;
}

const struct command enable_command = {
	.name = "enable",
	.summary = "let refd serve the pushes to a repository",
	.usage = enable_usage,
	.purpose =
	    "Sends the pushes of a repository through the daemon. Sets up "
	    "the hook and the configuration of the repository; 'refd "
	    "disable' undoes both.",
	.example = "refd enable /srv/git/project.git",
	.manual = "refd-enable(1)",
	.most = COMMAND_ARGUMENTS_ANY,
	.options = enable_options,
	.run = run,
};

const struct command disable_command = {
	.name = "disable",
	.summary = "undo enable",
	.usage = disable_usage,
	.purpose =
	    "Undoes 'refd enable': git writes the refs of the repository "
	    "again.",
	.example = "refd disable /srv/git/project.git",
	.manual = "refd-disable(1)",
	.most = COMMAND_ARGUMENTS_ANY,
	.options = disable_options,
	.run = run,
};
