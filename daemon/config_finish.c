/* Default places, sections, and checks of all paths. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/config_keys.h"

#define SYSTEM_FILE  "/etc/refd/config"
#define SYSTEM_STATE "/var/lib/refd"

static bool is_root(void)
{
	return geteuid() == 0;
}

/* $VARIABLE/BELOW, else $HOME/ELSE/BELOW; *PATH is NULL without either. */
static int path_in_home(const char *variable, const char *otherwise,
    const char *below, char **path)
{
	const char *base = getenv(variable), *home = getenv("HOME");
	int n = 0;

	*path = NULL;
	if (base != NULL && base[0] == '/')
		n = asprintf(path, "%s/%s", base, below);
	else if (home != NULL && home[0] == '/')
		n = asprintf(path, "%s/%s/%s", home, otherwise, below);
	if (n >= 0)
		return 0;
	*path = NULL;
	return -1;
}

int config_find_file(const struct sys *sys, char **path)
{
	struct sys_stat st;

	*path = NULL;
	if (!is_root() &&
	    path_in_home("XDG_CONFIG_HOME", ".config", "refd/config", path) < 0)
		return -1;
	if (*path != NULL && sys_stat_trusted(sys, *path, &st) == 0)
		return 0;
	free(*path);
	*path = NULL;
	if (sys_stat_trusted(sys, SYSTEM_FILE, &st) < 0)
		return 0;
	*path = strdup(SYSTEM_FILE);
	return *path != NULL ? 0 : -1;
}

/* ---- socket and state ---- */

static int set_default(struct config *cfg, const char *key, const char *path,
    char **why)
{
	return config_set(cfg, CONFIG_DEFAULT, NULL, key, path, why);
}

static int default_socket(struct config *cfg, char **why)
{
	const char *run = getenv("XDG_RUNTIME_DIR");
	char *path;
	int r;

	if (is_root() || run == NULL || run[0] != '/')
		return set_default(cfg, "daemon.socket", REFD_SYSTEM_SOCKET,
		    why);
	if (asprintf(&path, "%s/refd.sock", run) < 0)
		return -1;
	r = set_default(cfg, "daemon.socket", path, why);
	free(path);
	return r;
}

static int default_state(struct config *cfg, const struct sys *sys, char **why)
{
	const char *unit = getenv("STATE_DIRECTORY");
	struct sys_stat st;
	char *path;
	int r;

	/* systemd.exec(5), StateDirectory=: a list, here with one path. */
	if (unit != NULL && unit[0] == '/' && strchr(unit, ':') == NULL)
		return set_default(cfg, "daemon.state", unit, why);
	if (is_root() ||
	    (sys_stat_trusted(sys, SYSTEM_STATE, &st) == 0 &&
		st.uid == geteuid()))
		return set_default(cfg, "daemon.state", SYSTEM_STATE, why);
	if (path_in_home("XDG_STATE_HOME", ".local/state", "refd", &path) < 0)
		return -1;
	if (path == NULL)
		return config_bad(why,
		    "no state directory: name one with --state");
	r = set_default(cfg, "daemon.state", path, why);
	free(path);
	return r;
}

/* ---- paths ---- */

/* Replaces PATH by the path of the directory with all links resolved. */
static int resolve(char **path, const struct sys *sys, char **why)
{
	char buf[REFD_PATH_MAX], *copy;
	int fd, r;

	fd = SYS(sys, openat, SYS_TRUSTED, *path, O_PATH | O_DIRECTORY, 0);
	r = fd < 0 ? fd : SYS(sys, fd_path, fd, buf, sizeof(buf));
	if (fd >= 0)
		SYS(sys, close, fd);
	if (r < 0)
		return config_bad(why,
		    "can't open the root '%s': %s: make the directory, or name "
		    "another one by daemon.root or --root",
		    *path, strerror(-r));
	copy = strdup(buf);
	if (copy == NULL)
		return -1;
	free(*path);
	*path = copy;
	return 0;
}

static int make_absolute(char **path, const struct sys *sys, char **why)
{
	char *here, *joined;
	int r;

	if ((*path)[0] == '/')
		return 0;
	here = strdup(".");
	if (here == NULL || resolve(&here, sys, why) < 0) {
		free(here);
		return -1;
	}
	r = asprintf(&joined, "%s/%s", here, *path);
	free(here);
	if (r < 0)
		return -1;
	free(*path);
	*path = joined;
	return 0;
}

/* ---- checks ---- */

static int check_socket(const char *key, const char *path,
    const struct sys *sys, char **why)
{
	struct sys_stat st;

	if (path == NULL || SYS(sys, lstatat, SYS_TRUSTED, path, &st) < 0 ||
	    S_ISSOCK(st.mode))
		return 0;
	return config_bad(why,
	    "%s is '%s': a %s of this name exists already: name a path that "
	    "is free",
	    key, path, S_ISDIR(st.mode) ? "directory" : "file");
}

/* The daemon makes missing directories below an existing directory. */
static int check_state(const struct config *cfg, const struct sys *sys,
    char **why)
{
	char *path = strdup(cfg->state_dir), *slash;
	struct sys_stat st;
	int r = 0;

	if (path == NULL)
		return -1;
	while (sys_stat_trusted(sys, path, &st) < 0 &&
	    (slash = strrchr(path, '/')) != NULL && slash != path)
		*slash = '\0';
	if (sys_stat_trusted(sys, path, &st) == 0 && !S_ISDIR(st.mode))
		r = config_bad(why,
		    "daemon.state is '%s': '%s' is not a directory",
		    cfg->state_dir, path);
	free(path);
	return r;
}

static int check_places(const struct config *cfg, const struct sys *sys,
    char **why)
{
	int r = check_socket("daemon.socket", cfg->socket_path, sys, why);

	if (check_socket("metrics.socket", cfg->metrics_path, sys, why) < 0)
		r = -1;
	return check_state(cfg, sys, why) < 0 ? -1 : r;
}

/* ---- sections ---- */

static bool lies_in(const char *path, const char *dir)
{
	size_t len = strlen(dir);

	if (strcmp(dir, "/") == 0)
		return true;
	return strncmp(path, dir, len) == 0 &&
	    (path[len] == '/' || path[len] == '\0');
}

static int add_ids(struct config_ids *to, const struct config_ids *from)
{
	uint32_t *ids =
	    realloc(to->ids, (to->nr + from->nr + 1) * sizeof(*ids));

	if (ids == NULL)
		return -1;
	to->ids = ids;
	if (from->nr > 0)
		memcpy(ids + to->nr, from->ids, from->nr * sizeof(*ids));
	to->nr += from->nr;
	return 0;
}

/* Sections are sorted by length, so the last match is the nearest. */
static int inherit(struct config *cfg, size_t at)
{
	struct config_root *own = &cfg->sections[at], *outer = NULL;
	size_t i;

	for (i = 0; i < at; i++)
		if (lies_in(own->path, cfg->sections[i].path))
			outer = &cfg->sections[i];
	if (own->durability == REFD_DURABILITY_DEFAULT)
		own->durability =
		    outer != NULL ? outer->durability : cfg->durability;
	if (own->has_list)
		return 0;
	if (add_ids(&own->users, outer != NULL ? &outer->users : &cfg->users) <
	    0)
		return -1;
	return add_ids(&own->groups,
	    outer != NULL ? &outer->groups : &cfg->groups);
}

static int by_length(const void *va, const void *vb)
{
	const struct config_root *a = va, *b = vb;
	size_t la = strlen(a->path), lb = strlen(b->path);

	return la != lb ? (la < lb ? -1 : 1) : strcmp(a->path, b->path);
}

static bool is_served(const struct config *cfg, const char *path)
{
	size_t i;

	for (i = 0; i < cfg->nr_roots; i++)
		if (lies_in(path, cfg->roots[i]))
			return true;
	return false;
}

static bool roots_are_options(const struct config *cfg)
{
	size_t i;

	for (i = 0; i < cfg->nr_values; i++)
		if (cfg->values[i].key->kind == CONFIG_PATHS)
			return cfg->values[i].source == CONFIG_OPTION;
	return false;
}

/* A section outside of the roots is probably misspelt, so it is an error.
 * Exception: options have replaced the roots of the file. */
static int place_section(struct config *cfg, const struct sys *sys, size_t at,
    bool *is_placed, char **why)
{
	struct config_root *own = &cfg->sections[at];
	bool may_miss = roots_are_options(cfg);
	char *missed = NULL;

	*is_placed = false;
	if (resolve(&own->path, sys, may_miss ? &missed : why) < 0) {
		may_miss = missed != NULL;
		free(missed);
		return may_miss ? 0 : -1;
	}
	*is_placed = is_served(cfg, own->path);
	if (*is_placed || may_miss)
		return 0;
	return config_bad(why,
	    "[root \"%s\"]: it is neither a root nor below one: name it with "
	    "daemon.root as well",
	    own->path);
}

static int place_sections(struct config *cfg, const struct sys *sys, char **why)
{
	bool is_placed;
	size_t i = 0;
	int r = 0;

	while (i < cfg->nr_sections) {
		if (place_section(cfg, sys, i, &is_placed, why) < 0)
			r = -1;
		if (is_placed) {
			i++;
			continue;
		}
		config_root_done(&cfg->sections[i]);
		cfg->sections[i] = cfg->sections[--cfg->nr_sections];
	}
	return r;
}

static int finish_sections(struct config *cfg, const struct sys *sys,
    char **why)
{
	int r = place_sections(cfg, sys, why);
	size_t i;

	if (cfg->nr_sections > 1)
		qsort(cfg->sections, cfg->nr_sections, sizeof(*cfg->sections),
		    by_length);
	for (i = 0; i < cfg->nr_sections; i++) {
		if (i > 0 &&
		    strcmp(cfg->sections[i - 1].path, cfg->sections[i].path) ==
			0)
			return config_bad(why,
			    "two sections name the directory %s",
			    cfg->sections[i].path);
		if (inherit(cfg, i) < 0)
			return -1;
	}
	return r;
}

static int collect_peers(struct config *cfg)
{
	size_t i;

	if (add_ids(&cfg->any_users, &cfg->users) < 0 ||
	    add_ids(&cfg->any_groups, &cfg->groups) < 0)
		return -1;
	for (i = 0; i < cfg->nr_sections; i++)
		if (cfg->sections[i].has_list &&
		    (add_ids(&cfg->any_users, &cfg->sections[i].users) < 0 ||
			add_ids(&cfg->any_groups, &cfg->sections[i].groups) <
			    0))
			return -1;
	return 0;
}

static int check_group(const struct config *cfg, char **why)
{
	if ((cfg->group_name == NULL) != (cfg->node == NULL))
		return config_bad(why,
		    "group.name and group.node belong together: one of them "
		    "is missing");
	if (cfg->group_name != NULL && cfg->nr_roots > 1)
		return config_bad(why,
		    "more than one root: a node of a group has one, and '%s' "
		    "is another: put all repositories below one root",
		    cfg->roots[1]);
	return 0;
}

static int finish_roots(struct config *cfg, const struct sys *sys, char **why)
{
	size_t i;
	int r = 0;

	for (i = 0; i < cfg->nr_roots; i++)
		if (resolve(&cfg->roots[i], sys, why) < 0)
			r = -1;
	return r;
}

/* If *WHY has an error already, a value may be missing because it was wrong.
 * Then the missing value is not reported once more. */
int config_finish(struct config *cfg, const struct sys *sys, char **why)
{
	const bool is_complete = *why == NULL;
	int r;

	if (cfg->socket_path == NULL && default_socket(cfg, why) < 0)
		return -1;
	if (cfg->state_dir == NULL && default_state(cfg, sys, why) < 0)
		return -1;
	if (make_absolute(&cfg->socket_path, sys, why) < 0 ||
	    make_absolute(&cfg->state_dir, sys, why) < 0 ||
	    (cfg->metrics_path != NULL &&
		make_absolute(&cfg->metrics_path, sys, why) < 0))
		return -1;
	r = check_places(cfg, sys, why);
	if (cfg->nr_roots == 0)
		return is_complete ?
		    config_bad(why,
			"no root: name the directories of the repositories by "
			"--root or daemon.root") :
		    -1;
	if (finish_roots(cfg, sys, why) < 0)
		r = -1;
	if (is_complete && check_group(cfg, why) < 0)
		r = -1;
	if (finish_sections(cfg, sys, why) < 0)
		r = -1;
	return collect_peers(cfg) < 0 ? -1 : r;
}
