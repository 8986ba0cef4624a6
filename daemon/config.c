/* Where values come from, and which of them count. */
#include "daemon/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/config_keys.h"
#include "proto/lib/config_file.h"

#define FILE_MAX_BYTES (1024 * 1024)
#define ROOT_SECTION   "root."

void config_init(struct config *cfg)
{
	*cfg = (struct config){
		.ready_fd = -1,
		.prepare_max_ms = 40,
		.lock_wait_ms = 1000,
		.deadline_ms = REFD_UPDATE_DEADLINE_MS,
		.waiting_bytes_max = 4ULL * REFD_TXN_BYTES_MAX,
	};
}

static void drop_roots(struct config *cfg)
{
	size_t i;

	for (i = 0; i < cfg->nr_roots; i++)
		free(cfg->roots[i]);
	free(cfg->roots);
	cfg->roots = NULL;
	cfg->nr_roots = 0;
}

static void value_done(struct config_value *value)
{
	free(value->root);
	free(value->text);
	free(value->file);
}

void config_root_done(struct config_root *root)
{
	free(root->path);
	free(root->users.ids);
	free(root->groups.ids);
}

void config_done(struct config *cfg)
{
	size_t i;

	free(cfg->file);
	free(cfg->socket_path);
	free(cfg->state_dir);
	free(cfg->metrics_path);
	free(cfg->group_name);
	free(cfg->node);
	free(cfg->users.ids);
	free(cfg->groups.ids);
	free(cfg->any_users.ids);
	free(cfg->any_groups.ids);
	drop_roots(cfg);
	for (i = 0; i < cfg->nr_reserved; i++)
		free(cfg->reserved[i]);
	free(cfg->reserved);
	for (i = 0; i < cfg->nr_sections; i++)
		config_root_done(&cfg->sections[i]);
	free(cfg->sections);
	for (i = 0; i < cfg->nr_values; i++)
		value_done(&cfg->values[i]);
	free(cfg->values);
	memset(cfg, 0, sizeof(*cfg));
}

/* ---- a value ---- */

static bool is_same_place(const struct config_value *a,
    const struct config_value *b)
{
	return a->key == b->key && (a->root == NULL) == (b->root == NULL) &&
	    (a->root == NULL || strcmp(a->root, b->root) == 0);
}

/* Removes the values that NEW replaces. In a list, NEW replaces only values of
 * a weaker source. */
static void drop_weaker(struct config *cfg, const struct config_value *new)
{
	bool is_list = config_key_is_list(new->key);
	size_t i, kept = 0, before = cfg->nr_values;

	for (i = 0; i < cfg->nr_values; i++) {
		if (is_same_place(&cfg->values[i], new) &&
		    (!is_list || cfg->values[i].source < new->source))
			value_done(&cfg->values[i]);
		else
			cfg->values[kept++] = cfg->values[i];
	}
	cfg->nr_values = kept;
	/* Only the list of roots can have values of several sources. */
	if (kept < before && new->key->kind == CONFIG_PATHS)
		drop_roots(cfg);
}

static struct config_root *section_of(struct config *cfg, const char *path)
{
	struct config_root *sections;
	char *copy;
	size_t i;

	for (i = 0; i < cfg->nr_sections; i++)
		if (strcmp(cfg->sections[i].path, path) == 0)
			return &cfg->sections[i];
	sections =
	    realloc(cfg->sections, (cfg->nr_sections + 1) * sizeof(*sections));
	if (sections == NULL)
		return NULL;
	cfg->sections = sections;
	copy = strdup(path);
	if (copy == NULL)
		return NULL;
	sections[cfg->nr_sections] = (struct config_root){ .path = copy };
	return &sections[cfg->nr_sections++];
}

/* Takes over the content of VALUE, also after a failure. */
static int take(struct config *cfg, struct config_value *value, char **why)
{
	struct config_value *values;
	void *thing = cfg;
	int r = -1;

	values = realloc(cfg->values, (cfg->nr_values + 1) * sizeof(*values));
	if (values != NULL)
		cfg->values = values;
	if (value->root != NULL)
		thing = section_of(cfg, value->root);
	if (values != NULL && thing != NULL && value->text != NULL) {
		drop_weaker(cfg, value);
		r = config_key_parse(value->key, thing, &value->text, why);
	}
	if (r < 0)
		value_done(value);
	else
		cfg->values[cfg->nr_values++] = *value;
	return r;
}

int config_set(struct config *cfg, enum config_source source, const char *name,
    const char *key, const char *text, char **why)
{
	struct config_value value = { .key = config_key_find(key, false),
		.text = strdup(text),
		.source = source,
		.name = name };

	return take(cfg, &value, why);
}

int config_defaults(struct config *cfg, char **why)
{
	const struct config_key *key;
	size_t i;

	for (i = 0; i < config_nr_keys; i++) {
		key = &config_keys[i];
		if (key->fallback != NULL &&
		    config_set(cfg, CONFIG_DEFAULT, NULL, key->name,
			key->fallback, why) < 0)
			return -1;
	}
	return 0;
}

/* ---- the file ---- */

struct config_reader {
	struct config *cfg;
	const char *path;
	char **why;
	bool has_errors;
};

/* Splits "root.DIR.key" into DIR, and NAME as in the table. False: out of
 * memory. */
static bool split_root(const char *full, char **root, char **name)
{
	const char *dir = full + strlen(ROOT_SECTION);
	const char *key = strrchr(full, '.');

	*root = key > dir ? strndup(dir, (size_t)(key - dir)) : NULL;
	if (asprintf(name, "root%s", key) < 0)
		*name = NULL;
	return *name != NULL && (*root != NULL || key <= dir);
}

static bool is_of_root(const char *name)
{
	return strncmp(name, ROOT_SECTION, strlen(ROOT_SECTION)) == 0;
}

static int check(const struct config_value *value, const char *name, char **why)
{
	const struct config_key *key = value->key;
	char hint[256];

	if (key == NULL) {
		config_key_hint(name, is_of_root(name), hint, sizeof(hint));
		return config_bad(why, "unknown key '%s'%s", name,
		    hint[0] != '\0' ? hint : ": refd.conf(5) lists the keys");
	}
	if (key->in_root && value->root == NULL)
		return config_bad(why,
		    "%s needs a root's name: [root \"/srv/git\"]", key->name);
	if (value->root != NULL && value->root[0] != '/')
		return config_bad(why,
		    "[root \"%s\"]: it must be an absolute path", value->root);
	if (value->text == NULL || value->text[0] == '\0')
		return config_bad(why, "%s has no value", key->name);
	if ((key->kind == CONFIG_PATH || key->kind == CONFIG_PATHS) &&
	    value->text[0] != '/')
		return config_bad(why,
		    "%s is '%s': it must be an absolute path", key->name,
		    value->text);
	return 0;
}

static int take_entry(void *arg, const char *name, const char *text,
    unsigned line)
{
	struct config_reader *reading = arg;
	struct config_value value = { .source = CONFIG_FILE,
		.text = text != NULL ? strdup(text) : NULL,
		.file = strdup(reading->path),
		.line = line };
	char *short_name = NULL, *why = NULL;
	bool of_root = is_of_root(name);
	int r = -1;

	if (value.file != NULL && (text == NULL) == (value.text == NULL) &&
	    (!of_root || split_root(name, &value.root, &short_name))) {
		value.key =
		    config_key_find(of_root ? short_name : name, of_root);
		r = check(&value, of_root ? short_name : name, &why);
	}
	free(short_name);
	if (r == 0)
		r = take(reading->cfg, &value, &why);
	else
		value_done(&value);
	if (r == 0 || why == NULL)
		return r;
	config_bad(reading->why, "%s:%u: %s", reading->path, line, why);
	reading->has_errors = true;
	free(why);
	return 0;
}

int config_read_file(struct config *cfg, const struct sys *sys,
    const char *path, char **why)
{
	struct config_reader reading = { cfg, path, why, false };
	const char *malformed = NULL;
	unsigned line = 0;
	char *text;
	size_t len;
	int r;

	r = sys_read_file(sys, SYS_TRUSTED, path, FILE_MAX_BYTES, &text, &len);
	if (r < 0)
		return config_bad(why,
		    "can't read the configuration '%s': %s: correct the name "
		    "or the rights; refd.conf(5) describes the file",
		    path, strerror(-r));
	r = config_file_parse(text, len, take_entry, &reading, &line,
	    &malformed);
	free(text);
	if (malformed != NULL)
		return config_bad(why, "%s:%u: %s", path, line, malformed);
	if (r < 0)
		return -1;
	free(cfg->file);
	cfg->file = strdup(path);
	return cfg->file != NULL && !reading.has_errors ? 0 : -1;
}

static int look_for_key(void *arg, const char *name, const char *text,
    unsigned line)
{
	(void)text;
	(void)line;
	return strcmp(name, arg) == 0;
}

int config_file_has(const struct sys *sys, const char *path, const char *key)
{
	char *text, *wanted = strdup(key);
	const char *malformed;
	unsigned line;
	size_t len;
	int r = -ENOMEM;

	if (wanted != NULL)
		r = sys_read_file(sys, SYS_TRUSTED, path, FILE_MAX_BYTES, &text,
		    &len);
	if (r >= 0) {
		r = config_file_parse(text, len, look_for_key, wanted, &line,
		    &malformed);
		free(text);
	}
	free(wanted);
	return r;
}

/* ---- for people ---- */

const char *config_value_key(const struct config_value *value)
{
	return value->key->name;
}

char *config_value_words(const struct config_value *value)
{
	const char *name = value->key->name;
	char *words;
	int n;

	if (value->root == NULL)
		n = asprintf(&words, "%s=%s", name, value->text);
	else
		n = asprintf(&words, "root.%s%s=%s", value->root,
		    strchr(name, '.'), value->text);
	return n < 0 ? NULL : words;
}

char *config_value_origin(const struct config_value *value)
{
	char *words = NULL;
	int n = -1;

	switch (value->source) {
	case CONFIG_DEFAULT:
		return strdup("default");
	case CONFIG_FILE:
		n = asprintf(&words, "file %s:%u", value->file, value->line);
		break;
	case CONFIG_ENVIRONMENT:
		n = asprintf(&words, "environment %s", value->name);
		break;
	case CONFIG_OPTION:
		n = asprintf(&words, "command line %s", value->name);
		break;
	}
	return n < 0 ? NULL : words;
}

/* All values of the key and section of LIKE, as one text. */
static char *values_at(const struct config *cfg,
    const struct config_value *like)
{
	char *all = strdup(""), *more;
	size_t i;
	int n;

	for (i = 0; all != NULL && i < cfg->nr_values; i++) {
		if (!is_same_place(&cfg->values[i], like))
			continue;
		n = asprintf(&more, "%s%s%s", all, all[0] != '\0' ? " " : "",
		    cfg->values[i].text);
		free(all);
		all = n < 0 ? NULL : more;
	}
	return all;
}

static bool has_before(const struct config *cfg, size_t nr,
    const struct config_value *like)
{
	size_t i;

	for (i = 0; i < nr; i++)
		if (is_same_place(&cfg->values[i], like))
			return true;
	return false;
}

static bool compare_at(const struct config *before, const struct config *now,
    const struct config_value *at, config_changed_fn *changed, void *arg)
{
	char *was = values_at(before, at), *is = values_at(now, at);
	bool ok = was != NULL && is != NULL;

	if (ok && strcmp(was, is) != 0)
		changed(arg, at->key, at->root, was, is);
	free(was);
	free(is);
	return ok;
}

bool config_compare(const struct config *before, const struct config *now,
    config_changed_fn *changed, void *arg)
{
	bool ok = true;
	size_t i;

	for (i = 0; ok && i < now->nr_values; i++)
		if (!has_before(now, i, &now->values[i]))
			ok = compare_at(before, now, &now->values[i], changed,
			    arg);
	/* Values that are gone. */
	for (i = 0; ok && i < before->nr_values; i++)
		if (!has_before(before, i, &before->values[i]) &&
		    !has_before(now, now->nr_values, &before->values[i]))
			ok = compare_at(before, now, &before->values[i],
			    changed, arg);
	return ok;
}
