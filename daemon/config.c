/* The defaults, and the keys. */
#include "daemon/config.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/config_file.h"

#define FILE_MAX_BYTES (1024 * 1024)
#define SYSTEM_FILE    "/etc/refd/config"
#define SYSTEM_SOCKET  "/run/refd/refd.sock"
#define SYSTEM_STATE   "/var/lib/refd"

void config_init(struct config *cfg)
{
	*cfg = (struct config){
		.durability = REFD_DURABILITY_JOURNAL,
		.checkpoint_interval_ms = 1000,
		.durability_interval_ms = 1000,
		.session_timeout_ms = 30000,
		.window_refs = 1000,
		.connections_max = 10000,
		.prepare_max_ms = 10,
		.lock_wait_ms = 1000,
		.deadline_ms = REFD_UPDATE_DEADLINE_MS,
		.retention_s = 7 * 24 * 3600,
		.retention_mib = 1024,
		.waiting_bytes_max = 4ULL * REFD_TXN_BYTES_MAX,
	};
}

void config_drop_roots(struct config *cfg)
{
	size_t i;

	for (i = 0; i < cfg->nr_roots; i++)
		free(cfg->roots[i]);
	free(cfg->roots);
	cfg->roots = NULL;
	cfg->nr_roots = 0;
}

void config_done(struct config *cfg)
{
	free(cfg->file);
	free(cfg->socket_path);
	free(cfg->state_dir);
	free(cfg->users.ids);
	free(cfg->groups.ids);
	config_drop_roots(cfg);
	memset(cfg, 0, sizeof(*cfg));
}

static int __attribute__((format(printf, 2, 3)))
bad(char **why, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(why, fmt, ap) < 0)
		*why = NULL;
	va_end(ap);
	return -1;
}

int config_set_path(char **field, const char *value, char **why)
{
	char *copy = strdup(value);

	*why = NULL;
	if (copy == NULL)
		return -1;
	free(*field);
	*field = copy;
	return 0;
}

int config_add_root(struct config *cfg, const char *value, char **why)
{
	char **roots =
	    realloc(cfg->roots, (cfg->nr_roots + 1) * sizeof(*roots));

	*why = NULL;
	if (roots == NULL)
		return -1;
	cfg->roots = roots;
	roots[cfg->nr_roots] = NULL;
	if (config_set_path(&roots[cfg->nr_roots], value, why) < 0)
		return -1;
	cfg->nr_roots++;
	return 0;
}

int config_set_durability(struct config *cfg, const char *value, char **why)
{
	enum refd_durability mode;

	if (refd_durability_from_name(value, &mode) < 0 ||
	    mode == REFD_DURABILITY_DEFAULT)
		return bad(why,
		    "'%s' is not a durability mode: it can be none, "
		    "periodic, journal, batch or fsync",
		    value);
	cfg->durability = mode;
	return 0;
}

/* ---- the file's keys ---- */

enum kind { PATH, PATHS, USER, GROUP, MODE, NUMBER };

static const struct key {
	const char *name;
	enum kind kind;
	size_t offset;     /* in struct config */
	uint64_t min, max; /* NUMBER */
} keys[] = {
#define AT(field) offsetof(struct config, field)
	{ "daemon.socket", PATH, AT(socket_path), 0, 0 },
	{ "daemon.state", PATH, AT(state_dir), 0, 0 },
	{ "daemon.root", PATHS, 0, 0, 0 },
	{ "daemon.allowuser", USER, AT(users), 0, 0 },
	{ "daemon.allowgroup", GROUP, AT(groups), 0, 0 },
	{ "durability.mode", MODE, 0, 0, 0 },
	{ "durability.interval", NUMBER, AT(durability_interval_ms), 1,
	    3600 * 1000 },
	{ "checkpoint.interval", NUMBER, AT(checkpoint_interval_ms), 1,
	    3600 * 1000 },
	{ "journal.retention", NUMBER, AT(retention_s), 1,
	    10ULL * 365 * 24 * 3600 },
	{ "journal.retention-size", NUMBER, AT(retention_mib), 1, 1 << 30 },
	{ "session.timeout", NUMBER, AT(session_timeout_ms), 1, 3600 * 1000 },
	{ "window.refs", NUMBER, AT(window_refs), 1, REFD_UPDATES_MAX },
	{ "limits.connections", NUMBER, AT(connections_max), 1, 1000000 },
#undef AT
};

#define NR_KEYS (sizeof(keys) / sizeof(keys[0]))

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

#define DISTANCE_MAX 63

/* How many bytes have to be added, taken away or changed (Levenshtein). */
static size_t distance(const char *a, const char *b)
{
	size_t row[DISTANCE_MAX + 1], len = least(strlen(b), DISTANCE_MAX);
	size_t i, j, diagonal, above;

	for (j = 0; j <= len; j++)
		row[j] = j;
	for (i = 0; a[i] != '\0'; i++) {
		diagonal = row[0];
		row[0] = i + 1;
		for (j = 1; j <= len; j++) {
			above = row[j];
			row[j] = least(least(above, row[j - 1]) + 1,
			    diagonal + (a[i] != b[j - 1]));
			diagonal = above;
		}
	}
	return row[len];
}

static const struct key *nearest_key(const char *name)
{
	const struct key *best = &keys[0];
	size_t i;

	for (i = 1; i < NR_KEYS; i++) {
		if (distance(name, keys[i].name) < distance(name, best->name))
			best = &keys[i];
	}
	return best;
}

static int set_number(const struct key *key, uint64_t *field, const char *value,
    char **why)
{
	unsigned long long number;
	char *end;

	errno = 0;
	number = strtoull(value, &end, 10);
	if (value[0] < '0' || value[0] > '9' || *end != '\0' || errno != 0 ||
	    number < key->min || number > key->max)
		return bad(why,
		    "%s is '%s': it must be a number from %llu to "
		    "%llu",
		    key->name, value, (unsigned long long)key->min,
		    (unsigned long long)key->max);
	*field = number;
	return 0;
}

static bool is_number(const char *value, uint32_t *id)
{
	unsigned long number;
	char *end;

	errno = 0;
	number = strtoul(value, &end, 10);
	/* The last one is nobody's: (uid_t)-1. */
	if (value[0] < '0' || value[0] > '9' || *end != '\0' || errno != 0 ||
	    number >= UINT32_MAX)
		return false;
	*id = (uint32_t)number;
	return true;
}

static int add_id(const struct key *key, struct config_ids *ids,
    const char *value, char **why)
{
	const struct passwd *user;
	const struct group *group;
	uint32_t id, *more;

	if (is_number(value, &id)) {
		/* As it is. */
	} else if (key->kind == USER && (user = getpwnam(value)) != NULL) {
		id = user->pw_uid;
	} else if (key->kind == GROUP && (group = getgrnam(value)) != NULL) {
		id = group->gr_gid;
	} else {
		return bad(why, "%s is '%s': there is no such %s", key->name,
		    value, key->kind == USER ? "user" : "group");
	}
	*why = NULL;
	more = realloc(ids->ids, (ids->nr + 1) * sizeof(*more));
	if (more == NULL)
		return -1;
	more[ids->nr++] = id;
	ids->ids = more;
	return 0;
}

static int set_key(struct config *cfg, const struct key *key, const char *value,
    char **why)
{
	void *field = (char *)cfg + key->offset;

	if (value == NULL || value[0] == '\0')
		return bad(why, "%s has no value", key->name);
	switch (key->kind) {
	case MODE:
		return config_set_durability(cfg, value, why);
	case NUMBER:
		return set_number(key, field, value, why);
	case USER:
	case GROUP:
		return add_id(key, field, value, why);
	case PATH:
	case PATHS:
		break;
	}
	if (value[0] != '/')
		return bad(why, "%s is '%s': it must be an absolute path",
		    key->name, value);
	if (key->kind == PATHS)
		return config_add_root(cfg, value, why);
	return config_set_path(field, value, why);
}

struct reading {
	struct config *cfg;
	const char *path;
	char **why;
};

static int take_entry(void *arg, const char *name, const char *value,
    unsigned line)
{
	struct reading *reading = arg;
	char *why = NULL;
	size_t i = 0;
	int r;

	while (i < NR_KEYS && strcmp(keys[i].name, name) != 0)
		i++;
	if (i == NR_KEYS)
		return bad(reading->why,
		    "%s:%u: unknown key '%s': did you "
		    "mean '%s'?",
		    reading->path, line, name, nearest_key(name)->name);
	if (set_key(reading->cfg, &keys[i], value, &why) == 0)
		return 0;
	*reading->why = NULL;
	r = why == NULL ?
	    -1 :
	    bad(reading->why, "%s:%u: %s", reading->path, line, why);
	free(why);
	return r;
}

int config_read_file(struct config *cfg, const struct sys *sys,
    const char *path, char **why)
{
	struct reading reading = { cfg, path, why };
	const char *malformed = NULL;
	unsigned line = 0;
	char *text;
	size_t len;
	int r;

	*why = NULL;
	r = sys_read_file(sys, AT_FDCWD, path, FILE_MAX_BYTES, &text, &len);
	if (r < 0)
		return bad(why, "cannot read the configuration %s: %s", path,
		    strerror(-r));
	r = config_file_parse(text, len, take_entry, &reading, &line,
	    &malformed);
	free(text);
	if (malformed != NULL)
		return bad(why, "%s:%u: %s", path, line, malformed);
	return r < 0 ? -1 : config_set_path(&cfg->file, path, why);
}

/* ---- where things are when nobody says ---- */

static bool is_root(void)
{
	return geteuid() == 0;
}

/* $VARIABLE/BELOW, else $HOME/ELSE/BELOW; *PATH is NULL without either. */
static int path_in_home(const char *variable, const char *otherwise,
    const char *below, char **path, char **why)
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
	*path = *why = NULL;
	return -1;
}

int config_find_file(const struct sys *sys, char **path, char **why)
{
	struct sys_stat st;

	*path = NULL;
	if (!is_root() &&
	    path_in_home("XDG_CONFIG_HOME", ".config", "refd/config", path,
		why) < 0)
		return -1;
	if (*path != NULL && SYS(sys, statat, AT_FDCWD, *path, &st) == 0)
		return 0;
	free(*path);
	*path = NULL;
	if (SYS(sys, statat, AT_FDCWD, SYSTEM_FILE, &st) < 0)
		return 0;
	return config_set_path(path, SYSTEM_FILE, why);
}

static int default_socket(struct config *cfg, char **why)
{
	const char *run = getenv("XDG_RUNTIME_DIR");

	if (is_root() || run == NULL || run[0] != '/')
		return config_set_path(&cfg->socket_path, SYSTEM_SOCKET, why);
	*why = NULL;
	if (asprintf(&cfg->socket_path, "%s/refd.sock", run) >= 0)
		return 0;
	cfg->socket_path = NULL;
	return -1;
}

static int default_state(struct config *cfg, const struct sys *sys, char **why)
{
	struct sys_stat st;

	if (is_root() ||
	    (SYS(sys, statat, AT_FDCWD, SYSTEM_STATE, &st) == 0 &&
		st.uid == geteuid()))
		return config_set_path(&cfg->state_dir, SYSTEM_STATE, why);
	if (path_in_home("XDG_STATE_HOME", ".local/state", "refd",
		&cfg->state_dir, why) < 0)
		return -1;
	return cfg->state_dir != NULL ?
	    0 :
	    bad(why, "no state directory: name one with --state");
}

/* *PATH becomes what the directory PATH is, with all links resolved. */
static int resolve(char **path, const struct sys *sys, char **why)
{
	char buf[REFD_PATH_MAX];
	int fd, r;

	fd = SYS(sys, openat, AT_FDCWD, *path, O_PATH | O_DIRECTORY, 0);
	r = fd < 0 ? fd : SYS(sys, fd_path, fd, buf, sizeof(buf));
	if (fd >= 0)
		SYS(sys, close, fd);
	if (r < 0)
		return bad(why, "%s: %s", *path, strerror(-r));
	return config_set_path(path, buf, why);
}

static int make_absolute(char **path, const struct sys *sys, char **why)
{
	char *here = NULL, *joined;
	int r;

	if ((*path)[0] == '/')
		return 0;
	if (config_set_path(&here, ".", why) < 0 ||
	    resolve(&here, sys, why) < 0) {
		free(here);
		return -1;
	}
	r = asprintf(&joined, "%s/%s", here, *path);
	free(here);
	*why = NULL;
	if (r < 0)
		return -1;
	free(*path);
	*path = joined;
	return 0;
}

int config_finish(struct config *cfg, const struct sys *sys, char **why)
{
	size_t i;

	if (cfg->socket_path == NULL && default_socket(cfg, why) < 0)
		return -1;
	if (cfg->state_dir == NULL && default_state(cfg, sys, why) < 0)
		return -1;
	if (make_absolute(&cfg->socket_path, sys, why) < 0 ||
	    make_absolute(&cfg->state_dir, sys, why) < 0)
		return -1;
	if (cfg->nr_roots == 0)
		return bad(why,
		    "no root: name the directories whose "
		    "repositories are to be served with --root or daemon.root");
	for (i = 0; i < cfg->nr_roots; i++) {
		if (resolve(&cfg->roots[i], sys, why) < 0)
			return -1;
	}
	return 0;
}
