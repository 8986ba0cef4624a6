#include "daemon/group/service/guard.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/base/child.h"
#include "client/base/scan.h"
#include "client/hooks/gate_link.h"
#include "client/program.h"
#include "proto/lib/shell_word.h"

#define ENABLE_S 60

static bool has_file(const char *dir, const char *name)
{
	char *path = xasprintf("%s/%s", dir, name);
	bool has = access(path, F_OK) == 0;

	free(path);
	return has;
}

/* Is the hook there? Only git's configuration tells whether git finds the hook,
 * and refd doctor looks at that. */
static bool is_guarded(const char *dir)
{
	char *hook = xasprintf("%s/hooks/" GATE_LINK_NAME, dir);
	bool is = gate_link_is(hook) && access(hook, X_OK) == 0;

	free(hook);
	return is;
}

bool guard_make(const struct guard *guard, const char *dir, int cancel)
{
	const char *socket = guard->socket;
	const char *argv[] = { guard->refd, "enable", socket ? "--socket" : ".",
		socket, socket ? "." : NULL, NULL };
	struct launch l = { .argv = argv,
		.in = LAUNCH_NULL,
		.err = STDERR_FILENO,
		.dir = dir,
		.no_git = true,
		.seconds = ENABLE_S };

	return is_guarded(dir) ||
	    child_read(&l, &(struct child_output){ .cancel = cancel }) == 0;
}

/* ---- all ---- */

struct guard_search {
	const struct guard *guard; /* NULL: none is made */
	bool is_whole;
};

static void look(const char *dir, void *data)
{
	struct guard_search *s = data;
	char *word;

	if (!has_file(dir, "refd/group") || is_guarded(dir) ||
	    (s->guard && guard_make(s->guard, dir, -1)))
		return;
	s->is_whole = false;
	word = xcalloc(SHELL_WORD_MAX(strlen(dir)), 1);
	say_error("%s: git may write there, and no other node gets what git "
		  "writes: run \"refd enable %s\"",
	    dir, shell_word(word, dir));
	free(word);
}

static bool look_at_all(const struct group_config *config,
    const struct guard *guard)
{
	struct guard_search s = { guard, true };

	return (!config->nr_roots ||
		   scan_repositories(config->roots[0], look, &s)) &&
	    s.is_whole;
}

void guard_make_all(const struct group_config *config)
{
	const struct guard guard = { program_refd(), config->socket };

	look_at_all(config, &guard);
	free(guard.refd);
}

bool guard_check_all(const struct group_config *config)
{
	return look_at_all(config, NULL);
}
