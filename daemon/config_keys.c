#include "daemon/config_keys.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "proto/group_frame.h"
#include "proto/lib/array.h"
#include "proto/lib/config_units.h"
#include "proto/lib/nearest.h"

#define HOUR_MS      (3600ULL * 1000)
#define TEN_YEARS_MS (10ULL * 365 * 24 * HOUR_MS)

#define AT(field)    offsetof(struct config, field)
#define IN(field)    offsetof(struct config_root, field)
#define ON_RELOAD    .reloads = true
#define FROM(a, b)   .min = (a), .max = (b)
#define SHARE_NUMBER CONFIG_NUMBER, .reloads = true, FROM(0, 1ULL << 40)
#define OF_ROOT      .in_root = true, .reloads = true
#define ITS_OWN      .own_list = IN(has_list)

/* Limits of a user, and of a repository. */
#define USER(name, fallback, field)                                            \
	{ "limits.user-" name, fallback, SHARE_NUMBER,                         \
		.offset = AT(of_user.field) }
#define REPOSITORY(name, fallback, field)                                      \
	{ "limits.repository-" name, fallback, SHARE_NUMBER,                   \
		.offset = AT(of_repository.field) }

const struct config_key config_keys[] = {
	{ "daemon.socket", NULL, CONFIG_PATH, .offset = AT(socket_path) },
	{ "daemon.state", NULL, CONFIG_PATH, .offset = AT(state_dir) },
	{ "daemon.root", NULL, CONFIG_PATHS, .offset = AT(roots) },
	{ "daemon.allowUser", NULL, CONFIG_USER, .offset = AT(users),
	    ON_RELOAD },
	{ "daemon.allowGroup", NULL, CONFIG_GROUP, .offset = AT(groups),
	    ON_RELOAD },
	{ "durability.mode", "journal", CONFIG_MODE, .offset = AT(durability),
	    ON_RELOAD },
	{ "durability.interval", "1s", CONFIG_DURATION,
	    .offset = AT(durability_interval_ms), ON_RELOAD, FROM(1, HOUR_MS) },
	{ "checkpoint.interval", "1s", CONFIG_DURATION,
	    .offset = AT(checkpoint_interval_ms), ON_RELOAD, FROM(1, HOUR_MS) },
	{ "pack.loose-refs", "1000", CONFIG_NUMBER, .offset = AT(pack_refs),
	    ON_RELOAD, FROM(0, 1ULL << 40) },
	{ "journal.retention", "1 week", CONFIG_DURATION,
	    .offset = AT(retention_ms), FROM(1000, TEN_YEARS_MS) },
	{ "journal.retention-size", "1GiB", CONFIG_SIZE,
	    .offset = AT(retention_bytes), FROM(1 << 20, 1ULL << 50) },
	{ "session.timeout", "30s", CONFIG_DURATION,
	    .offset = AT(session_timeout_ms), ON_RELOAD, FROM(1, HOUR_MS) },
	{ "batch.refs", "1000", CONFIG_NUMBER, .offset = AT(batch_refs),
	    ON_RELOAD, FROM(1, REFD_UPDATES_MAX) },
	{ "limits.connections", "10000", CONFIG_NUMBER,
	    .offset = AT(connections_max), ON_RELOAD, FROM(1, 1000000) },
	{ "daemon.slowLog", "1s", CONFIG_DURATION, .offset = AT(slow_ms),
	    ON_RELOAD, FROM(0, HOUR_MS) },
	{ "metrics.socket", NULL, CONFIG_PATH, .offset = AT(metrics_path) },
	USER("requests", "2000", requests),
	USER("refs", "200000", refs),
	USER("bytes", "0", bytes),
	USER("sessions", "100", sessions),
	USER("locks", "100000", locks),
	USER("clients", "1000", clients),
	REPOSITORY("requests", "20000", requests),
	REPOSITORY("refs", "1000000", refs),
	REPOSITORY("bytes", "0", bytes),
	REPOSITORY("sessions", "1000", sessions),
	REPOSITORY("locks", "200000", locks),
	REPOSITORY("clients", "0", clients),
	{ "limits.reserved", NULL, CONFIG_PREFIX, .offset = AT(reserved),
	    ON_RELOAD },
	{ "group.name", NULL, CONFIG_NAME, .offset = AT(group_name) },
	{ "group.node", NULL, CONFIG_NAME, .offset = AT(node) },
	{ "group.patience", "10s", CONFIG_DURATION, .offset = AT(patience_ms),
	    FROM(1000, HOUR_MS) },
	{ "group.max-lag", "10s", CONFIG_DURATION, .offset = AT(max_lag_ms),
	    ON_RELOAD, FROM(1000, HOUR_MS) },
	{ "group.copies", NULL, CONFIG_OTHER, .offset = 0 },
	{ "group.database", NULL, CONFIG_OTHER, .offset = 0 },
	{ "group.held", NULL, CONFIG_OTHER, .offset = 0 },
	{ "group.lease", NULL, CONFIG_OTHER, .offset = 0 },
	{ "group.source", NULL, CONFIG_OTHER, .offset = 0 },
	{ "root.durability", NULL, CONFIG_MODE, .offset = IN(durability),
	    OF_ROOT },
	{ "root.allowUser", NULL, CONFIG_USER, .offset = IN(users), OF_ROOT,
	    ITS_OWN },
	{ "root.allowGroup", NULL, CONFIG_GROUP, .offset = IN(groups), OF_ROOT,
	    ITS_OWN },
};

const size_t config_nr_keys = sizeof(config_keys) / sizeof(config_keys[0]);

int config_bad(char **why, const char *fmt, ...)
{
	char *before = *why, *text, *at;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		return -1;
	for (at = text; (at = strchr(at, '\n')) != NULL;)
		*at = ' ';
	*why = text;
	if (before == NULL)
		return -1;
	if (asprintf(why, "%s\n%s", before, text) < 0)
		*why = text;
	else
		free(text);
	free(before);
	return -1;
}

/* ---- names ---- */

const struct config_key *config_key_find(const char *name, bool in_root)
{
	size_t i;

	for (i = 0; i < config_nr_keys; i++)
		if (config_keys[i].in_root == in_root &&
		    strcasecmp(config_keys[i].name, name) == 0)
			return &config_keys[i];
	return NULL;
}

void config_key_hint(const char *name, bool in_root, char *buf, size_t size)
{
	const char *names[sizeof(config_keys) / sizeof(config_keys[0])];
	size_t i, nr = 0;

	for (i = 0; i < config_nr_keys; i++)
		if (config_keys[i].in_root == in_root)
			names[nr++] = config_keys[i].name;
	nearest_hint(name, strlen(name), "", names, nr, buf, size);
}

bool config_key_is_list(const struct config_key *key)
{
	switch (key->kind) {
	case CONFIG_PATHS:
	case CONFIG_USER:
	case CONFIG_GROUP:
	case CONFIG_PREFIX:
	case CONFIG_OTHER:
		return true;
	case CONFIG_PATH:
	case CONFIG_MODE:
	case CONFIG_NUMBER:
	case CONFIG_DURATION:
	case CONFIG_SIZE:
	case CONFIG_NAME:
		break;
	}
	return false;
}

/* ---- values ---- */

static int set_path(char **field, const char *text)
{
	char *copy = strdup(text);

	if (copy == NULL)
		return -1;
	free(*field);
	*field = copy;
	return 0;
}

static int set_name(const struct config_key *key, char **field,
    const char *text, char **why)
{
	if (!group_frame_is_name(text))
		return config_bad(why,
		    "%s is '%s': it has 1 to 64 letters, digits and ._-",
		    key->name, text);
	return set_path(field, text);
}

static int add_root(struct config *cfg, const char *text)
{
	char **roots =
	    realloc(cfg->roots, (cfg->nr_roots + 1) * sizeof(*roots));

	if (roots == NULL)
		return -1;
	cfg->roots = roots;
	roots[cfg->nr_roots] = NULL;
	if (set_path(&roots[cfg->nr_roots], text) < 0)
		return -1;
	cfg->nr_roots++;
	return 0;
}

static int add_prefix(struct config *cfg, const struct config_key *key,
    const char *text, char **why)
{
	char **more;

	if (strncmp(text, "refs/", 5) != 0)
		return config_bad(why, "%s is '%s': it begins with refs/",
		    key->name, text);
	more = realloc(cfg->reserved, (cfg->nr_reserved + 1) * sizeof(*more));
	if (more == NULL)
		return -1;
	cfg->reserved = more;
	more[cfg->nr_reserved] = NULL;
	if (set_path(&more[cfg->nr_reserved], text) < 0)
		return -1;
	cfg->nr_reserved++;
	return 0;
}

static int set_mode(enum refd_durability *field, const char *text, char **why)
{
	enum refd_durability mode;

	if (refd_durability_from_name(text, &mode) < 0 ||
	    mode == REFD_DURABILITY_DEFAULT)
		return config_bad(why,
		    "'%s' is not a durability mode: it can be none, "
		    "periodic, journal, batch or fsync",
		    text);
	*field = mode;
	return 0;
}

static int set_number(const struct config_key *key, uint64_t *field,
    const char *text, char **why)
{
	unsigned long long number;
	char *end;

	errno = 0;
	number = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 ||
	    number < key->min || number > key->max)
		return config_bad(why,
		    "%s is '%s': it must be a number from %llu to %llu",
		    key->name, text, (unsigned long long)key->min,
		    (unsigned long long)key->max);
	*field = number;
	return 0;
}

/* *TEXT, which is owned, becomes the usual form of the same value. */
static int set_with_unit(const struct config_key *key, enum config_units units,
    uint64_t *field, char **text, char **why)
{
	char *from = config_units_text(units, key->min);
	char *to = config_units_text(units, key->max), *usual = NULL;
	uint64_t value;

	if (config_units_parse(units, *text, &value) && value >= key->min &&
	    value <= key->max)
		usual = config_units_text(units, value);
	else if (from != NULL && to != NULL)
		config_bad(why,
		    "%s is '%s': it must be a number with a unit, as in %s, "
		    "from %s to %s",
		    key->name, *text, config_units_forms(units), from, to);
	free(from);
	free(to);
	if (usual == NULL)
		return -1;
	free(*text);
	*text = usual;
	*field = value;
	return 0;
}

static bool is_number(const char *text, uint32_t *id)
{
	unsigned long number;
	char *end;

	errno = 0;
	number = strtoul(text, &end, 10);
	/* (uid_t)-1 is not a valid number. */
	if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 ||
	    number >= UINT32_MAX)
		return false;
	*id = (uint32_t)number;
	return true;
}

/*
 * The users and groups that were found by name. A confined daemon reaches no
 * directory service, and a daemon of root reads no new /etc/passwd. So a reload
 * takes the number that the start found. Otherwise a single such name would
 * refuse every reload, also a reload that takes rights away.
 */
static struct {
	struct found_name {
		char *name;
		bool is_user;
		uint32_t id;
	} *items;
	size_t nr, size;
} found;

static struct found_name *find_name(const char *name, bool is_user)
{
	size_t i;

	for (i = 0; i < found.nr; i++)
		if (found.items[i].is_user == is_user &&
		    strcmp(found.items[i].name, name) == 0)
			return &found.items[i];
	return NULL;
}

/* Without memory the name is only not remembered. */
static void remember_name(const char *name, bool is_user, uint32_t id)
{
	struct found_name *item = find_name(name, is_user);
	void *more;

	if (item != NULL) {
		item->id = id;
		return;
	}
	more = array_room(found.items, found.nr, &found.size, sizeof(*item));
	if (more == NULL)
		return;
	found.items = more;
	item = &found.items[found.nr];
	*item = (struct found_name){ strdup(name), is_user, id };
	found.nr += item->name != NULL;
}

static bool look_up_name(const char *name, bool is_user, uint32_t *id)
{
	const struct passwd *user = is_user ? getpwnam(name) : NULL;
	const struct group *group = is_user ? NULL : getgrnam(name);
	const struct found_name *item;

	if (user != NULL || group != NULL) {
		*id = user != NULL ? user->pw_uid : group->gr_gid;
		remember_name(name, is_user, *id);
		return true;
	}
	item = find_name(name, is_user);
	if (item != NULL)
		*id = item->id;
	return item != NULL;
}

static int add_id(const struct config_key *key, struct config_ids *ids,
    const char *text, char **why)
{
	bool is_user = key->kind == CONFIG_USER;
	uint32_t id, *more;

	if (!is_number(text, &id) && !look_up_name(text, is_user, &id))
		return config_bad(why, "%s is '%s': there is no such %s",
		    key->name, text, is_user ? "user" : "group");
	more = realloc(ids->ids, (ids->nr + 1) * sizeof(*more));
	if (more == NULL)
		return -1;
	more[ids->nr++] = id;
	ids->ids = more;
	return 0;
}

int config_key_parse(const struct config_key *key, void *thing, char **value,
    char **why)
{
	void *field = (char *)thing + key->offset;
	const char *text = *value;

	if (key->own_list != 0)
		*(bool *)((char *)thing + key->own_list) = true;
	switch (key->kind) {
	case CONFIG_PATH:
		return set_path(field, text);
	case CONFIG_PATHS:
		return add_root(thing, text);
	case CONFIG_USER:
	case CONFIG_GROUP:
		return add_id(key, field, text, why);
	case CONFIG_MODE:
		return set_mode(field, text, why);
	case CONFIG_NUMBER:
		return set_number(key, field, text, why);
	case CONFIG_DURATION:
		return set_with_unit(key, CONFIG_UNITS_TIME, field, value, why);
	case CONFIG_SIZE:
		return set_with_unit(key, CONFIG_UNITS_SIZE, field, value, why);
	case CONFIG_PREFIX:
		return add_prefix(thing, key, text, why);
	case CONFIG_NAME:
		return set_name(key, field, text, why);
	case CONFIG_OTHER:
		return 0;
	}
	return -1;
}
