#include "daemon/group/service/group_config.h"

#include <errno.h>
#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>

#include "proto/group_frame.h"
#include "proto/lib/config_units.h"

#define SECTION       "group."
#define ROOT          "daemon.root"
#define SOCKET        "daemon.socket"
#define COPIES_MOST   100
#define LEASE_MS      6000
#define LEASE_LEAST   1000
#define LEASE_MOST_MS (3600 * 1000)

struct group_config_reading {
	struct group_config *config;
	const char *path;
	struct text *why;
};

static void set(char **to, const char *value)
{
	free(*to);
	*to = xstrdup(value);
}

static const char *set_name(char **to, const char *value)
{
	if (!group_frame_is_name(value))
		return "must have 1 to 64 letters, digits and ._-";
	set(to, value);
	return NULL;
}

static const char *set_copies(uint64_t *to, const char *value)
{
	return cli_number(value, COPIES_MOST, to) && *to > 0 ?
	    NULL :
	    "must be a number from 1 to 100";
}

static const char *set_held(uint64_t *to, const char *value)
{
	return cli_number(value, COPIES_MOST, to) ?
	    NULL :
	    "must be a number from 0 to 100";
}

static const char *set_lease(uint64_t *to, const char *value)
{
	return config_units_parse(CONFIG_UNITS_TIME, value, to) &&
		*to >= LEASE_LEAST && *to <= LEASE_MOST_MS ?
	    NULL :
	    "must be a time from 1s to 1h, such as 6s";
}

/* libpq repeats a part of a wrong value, which can be a password, so its
 * message is dropped. A value without '=' is the name of a database. */
static const char *set_database(char **to, const char *value)
{
	PQconninfoOption *options = NULL;
	char *why = NULL;

	if (strchr(value, '=') || strstr(value, "://")) {
		options = PQconninfoParse(value, &why);
		PQfreemem(why);
		if (!options)
			return "is not a connection string of libpq; a value "
			       "with spaces needs quotes ('...') in it";
		PQconninfoFree(options);
	}
	set(to, value);
	return NULL;
}

static const char *add_source(struct group_config *config, const char *value)
{
	const char *url = strchr(value, ' ');
	char *node = xstrdup(value);
	struct group_source *source;

	node[url ? url - value : 0] = '\0';
	while (url && *url == ' ')
		url++;
	if (!group_frame_is_name(node) ||
	    (*url != '/' && !strstr(url, "://"))) {
		free(node);
		return "must be a node and a URL with '://' or an absolute "
		       "path, such as 'b ssh://b/srv/git'";
	}
	if (group_config_source(config, node)) {
		free(node);
		return "names a node that already has a source";
	}
	config->sources = xroom(config->sources, config->nr_sources,
	    &config->sources_size, sizeof(*config->sources));
	source = &config->sources[config->nr_sources++];
	source->node = node;
	source->url = xstrdup(url);
	return NULL;
}

/* NULL, or the error. */
static const char *set_key(struct group_config *config, const char *key,
    const char *value)
{
	if (!strcmp(key, "name"))
		return set_name(&config->name, value);
	if (!strcmp(key, "node"))
		return set_name(&config->node, value);
	if (!strcmp(key, "copies"))
		return set_copies(&config->copies, value);
	if (!strcmp(key, "lease"))
		return set_lease(&config->lease_ms, value);
	if (!strcmp(key, "held"))
		return set_held(&config->held, value);
	if (!strcmp(key, "source"))
		return add_source(config, value);
	if (!strcmp(key, "database"))
		return set_database(&config->database, value);
	if (!strcmp(key, "patience") || !strcmp(key, "max-lag"))
		return NULL;
	return "is not a key of [group]";
}

/* The daemon checks the value. */
static void add_root(struct group_config *config, const char *value)
{
	config->roots = xroom(config->roots, config->nr_roots,
	    &config->roots_size, sizeof(*config->roots));
	config->roots[config->nr_roots++] = xstrdup(value);
}

static int take(void *arg, const char *key, const char *value, unsigned line)
{
	struct group_config_reading *r = arg;
	const char *wrong;

	if (!strcmp(key, ROOT) && value)
		add_root(r->config, value);
	if (!strcmp(key, SOCKET) && value) {
		free(r->config->socket);
		r->config->socket = xstrdup(value);
	}
	if (!has_prefix(key, SECTION))
		return 0;
	wrong = value ? set_key(r->config, key + strlen(SECTION), value) :
			"has no value";
	if (!wrong)
		return 0;
	text_addf(r->why, "%s:%u: %s: %s", r->path, line, key, wrong);
	return -EINVAL;
}

static bool check_missing(const struct group_config *config, const char *path,
    struct text *why)
{
	const char *missing = !config->name ? "name" :
	    !config->node                   ? "node" :
	    !config->database               ? "database" :
					      NULL;

	if (missing)
		text_addf(why,
		    "'%s' has no group."
		    "%s: refd-group(8), Configuration, "
		    "has an example",
		    path, missing);
	return !missing;
}

/* A row has the path of its repository below the root, so one root must have
 * all repositories. */
static bool check_roots(const struct group_config *config, const char *path,
    struct text *why)
{
	if (config->nr_roots > 1)
		text_addf(why,
		    "'%s' has more than one daemon.root: a node of a group has "
		    "one, so put all repositories below one root",
		    path);
	return config->nr_roots <= 1;
}

bool group_config_read(struct group_config *config, const char *path,
    struct text *why)
{
	struct group_config_reading r = { config, path, why };

	*config = (struct group_config){ .copies = 1,
		.lease_ms = LEASE_MS,
		.held = 1 };
	return text_read_config(path, take, &r, why) == 0 &&
	    check_missing(config, path, why) && check_roots(config, path, why);
}

const char *group_config_source(const struct group_config *config,
    const char *node)
{
	size_t i;

	for (i = 0; i < config->nr_sources; i++)
		if (!strcmp(config->sources[i].node, node))
			return config->sources[i].url;
	return NULL;
}

void group_config_done(struct group_config *config)
{
	size_t i;

	for (i = 0; i < config->nr_sources; i++) {
		free(config->sources[i].node);
		free(config->sources[i].url);
	}
	for (i = 0; i < config->nr_roots; i++)
		free(config->roots[i]);
	free(config->sources);
	free(config->roots);
	free(config->socket);
	free(config->name);
	free(config->node);
	free(config->database);
	memset(config, 0, sizeof(*config));
}
