/*
 * Proves that refd.conf(5) and the table of keys agree: the same keys, the same
 * defaults, and the same statement on reload. The fields of a section also hold
 * for sections inside. The origin of every value is known.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/config_keys.h"
#include "daemon/options.h"
#include "tests/lib/suite.h"
#include "tests/lib/tmp.h"

/* Tests are run from the root of the source tree. */
#define MANUAL "daemon/refd.conf.5"

static char *read_manual(void)
{
	FILE *f = fopen(MANUAL, "r");
	static char text[64 * 1024];
	size_t len;

	ck_assert_msg(f != NULL, "no %s here", MANUAL);
	len = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[len] = '\0';
	return text;
}

/* The key's name in the manual, without "root." for keys of a section. */
static const char *shown_name(const struct config_key *key)
{
	return key->in_root ? strchr(key->name, '.') + 1 : key->name;
}

/* The paragraph of KEY: the .It line and the text up to the next key. */
static char *paragraph(const char *manual, const struct config_key *key)
{
	const char *name = shown_name(key), *at = manual, *end, *from;
	size_t len = strlen(name);

	for (; (at = strstr(at, ".It Cm ")) != NULL; at = end) {
		end = strchr(at, '\n');
		from = memmem(at + 7, (size_t)(end - at - 7), name, len);
		if (from == NULL || strchr(" \n", from[len]) == NULL ||
		    from[-1] != ' ')
			continue;
		end = strstr(end, " applies it");
		ck_assert_msg(end != NULL, "%s: reload or restart?", name);
		return strndup(at, (size_t)(end - at) + 11);
	}
	return NULL;
}

TEST(each_key_is_in_the_manual, .times = config_nr_keys)
{
	const struct config_key *key = &config_keys[_i];
	char *text = paragraph(read_manual(), key), wanted[128];

	ck_assert_msg(text != NULL, "%s is not in " MANUAL, key->name);
	ck_assert_msg(strstr(text, "Default:") != NULL, "%s has no default",
	    key->name);
	if (key->fallback != NULL) {
		snprintf(wanted, sizeof(wanted), "Default: %s", key->fallback);
		ck_assert_msg(strstr(text, wanted) != NULL,
		    "%s: the manual lacks '%s'", key->name, wanted);
	}
	snprintf(wanted, sizeof(wanted), "A %s applies it",
	    key->reloads ? "reload" : "restart");
	ck_assert_msg(strstr(text, wanted) != NULL, "%s: the manual lacks '%s'",
	    key->name, wanted);
	free(text);
}

static bool is_key(const char *word, size_t len)
{
	size_t i;

	for (i = 0; i < config_nr_keys; i++)
		if (strlen(shown_name(&config_keys[i])) == len &&
		    strncmp(shown_name(&config_keys[i]), word, len) == 0)
			return true;
	return false;
}

/* Items of the list of modes are no keys. The list ends at the next .El. */
TEST(nothing_else_is_in_the_manual)
{
	const char *at = read_manual(), *end, *word;
	unsigned depth = 0, nr = 0;
	size_t len;

	for (; *at != '\0'; at = end + 1) {
		end = strchr(at, '\n');
		depth += strncmp(at, ".Bl ", 4) == 0;
		depth -= strncmp(at, ".El", 3) == 0;
		if (depth != 1 || strncmp(at, ".It Cm ", 7) != 0)
			continue;
		for (word = at + 7; word < end; word += len + 1) {
			len = strcspn(word, " \n");
			if (len == 1 && *word == ',')
				continue;
			ck_assert_msg(is_key(word, len), "%.*s is no key",
			    (int)len, word);
			nr++;
		}
	}
	ck_assert_uint_eq(nr, config_nr_keys);
}

/* ---- sections ---- */

static char *in_dir(const char *name)
{
	static char paths[8][600];
	static unsigned next;
	char *path = paths[next++ % 8];

	snprintf(path, sizeof(paths[0]), "%s/%s", tmp_root, name);
	return path;
}

static void setup(void)
{
	tmp_setup();
	unsetenv("REFD_SOCKET");
	unsetenv("REFD_STATE");
	tmp_mkdir("a/in");
	tmp_mkdir("b");
}

CASE(.setup = setup, .teardown = tmp_teardown);

/* FORMAT has up to four %s, all for tmp_root. */
static enum options_result load(struct config *cfg, char **why,
    const char *format, char *root)
{
	char *argv[] = { "refd-daemon", "--config", in_dir("config"),
		"--socket", "/s", "--state", "/t", "--root", root, NULL };
	FILE *f = fopen(argv[2], "w");

	ck_assert_ptr_nonnull(f);
	fprintf(f, format, tmp_root, tmp_root, tmp_root, tmp_root);
	fclose(f);
	return options_load(&options_daemon, cfg, &sys_kernel,
	    root != NULL ? 9 : 7, argv, NULL, why);
}

static void expect_refusal(const char *format, const char *part)
{
	struct config cfg;
	char *why;

	ck_assert_int_eq(load(&cfg, &why, format, NULL), OPTIONS_BAD);
	ck_assert_msg(why != NULL && strstr(why, part) != NULL,
	    "wanted '%s', got '%s'", part, why != NULL ? why : "");
	free(why);
	config_done(&cfg);
}

TEST(a_section_goes_down_to_those_inside)
{
	struct config cfg;
	char *why;

	ck_assert_int_eq(load(&cfg, &why,
			     "[daemon]\nroot=%s\nallowUser=7\n"
			     "[root \"%s/a/in\"]\nDurability=none\n"
			     "[root \"%s/a\"]\nallowUser=8\nallowGroup=9\n"
			     "[root \"%s/b\"]\ndurability=fsync\n",
			     NULL),
	    OPTIONS_RUN);
	ck_assert_uint_eq(cfg.nr_sections, 3);
	ck_assert_str_eq(cfg.sections[0].path, in_dir("a"));
	ck_assert_int_eq(cfg.sections[0].durability, REFD_DURABILITY_JOURNAL);
	ck_assert_uint_eq(cfg.sections[0].users.ids[0], 8);
	ck_assert_str_eq(cfg.sections[1].path, in_dir("b"));
	ck_assert_int_eq(cfg.sections[1].durability, REFD_DURABILITY_FSYNC);
	ck_assert_uint_eq(cfg.sections[1].users.ids[0], 7);
	ck_assert_uint_eq(cfg.sections[1].groups.nr, 0);
	ck_assert_str_eq(cfg.sections[2].path, in_dir("a/in"));
	ck_assert_int_eq(cfg.sections[2].durability, REFD_DURABILITY_NONE);
	ck_assert_uint_eq(cfg.sections[2].users.ids[0], 8);
	ck_assert_uint_eq(cfg.sections[2].groups.ids[0], 9);
	config_done(&cfg);
}

TEST(a_section_is_of_a_root)
{
	struct config cfg;
	char *why;

	expect_refusal("[daemon]\nroot=%s/a\n[root \"%s/b\"]\nallowUser=1\n",
	    "neither a root nor below one");
	expect_refusal("[daemon]\nroot=%s/a\n[root]\nallowUser=1\n",
	    "root.allowUser needs a root's name");
	expect_refusal("[daemon]\nroot=%s/a\n[root \"b\"]\nallowUser=1\n",
	    "must be an absolute path");
	expect_refusal("[daemon]\nroot=%s/a\n[root \"%s/a\"]\nalowUser=1\n",
	    "unknown key 'root.alowuser'; did you mean root.allowUser?");
	expect_refusal("[daemon]\nroot=%s\n[root \"%s/a\"]\nallowUser=1\n"
		       "[root \"%s/b/../a\"]\nallowUser=1\n",
	    "two sections name the directory");
	/* If options name the roots, the file's sections may lack a
	 * directory. */
	ck_assert_int_eq(load(&cfg, &why,
			     "[root \"%s/b\"]\nallowUser=1\n"
			     "[root \"%s/gone\"]\nallowUser=1\n"
			     "[root \"%s/a\"]\nallowUser=1\n",
			     in_dir("a")),
	    OPTIONS_RUN);
	ck_assert_uint_eq(cfg.nr_sections, 1);
	ck_assert_str_eq(cfg.sections[0].path, in_dir("a"));
	config_done(&cfg);
}

/* ---- origins and changes ---- */

static void expect_origin(const struct config *cfg, const char *words,
    const char *origin)
{
	char *key, *from;
	bool found = false;
	size_t i;

	for (i = 0; i < cfg->nr_values; i++) {
		key = config_value_words(&cfg->values[i]);
		from = config_value_origin(&cfg->values[i]);
		if (strcmp(key, words) == 0) {
			ck_assert_str_eq(from, origin);
			found = true;
		}
		free(key);
		free(from);
	}
	ck_assert_msg(found, "%s does not count", words);
}

TEST(the_origin_is_known)
{
	char origin[700], *why;
	struct config cfg;

	setenv("REFD_STATE", "/env", 1);
	ck_assert_int_eq(load(&cfg, &why,
			     "[daemon]\nroot=%s\n[batch]\nrefs=1\nrefs=7\n"
			     "[root \"/x.y\"]\nallowUser=8\n",
			     in_dir("a")),
	    OPTIONS_RUN);
	unsetenv("REFD_STATE");
	expect_origin(&cfg, "limits.connections=10000", "default");
	expect_origin(&cfg, "daemon.state=/t", "command line --state");
	snprintf(origin, sizeof(origin), "daemon.root=%s", in_dir("a"));
	expect_origin(&cfg, origin, "command line --root");
	snprintf(origin, sizeof(origin), "file %s:5", in_dir("config"));
	expect_origin(&cfg, "batch.refs=7", origin);
	snprintf(origin, sizeof(origin), "file %s:7", in_dir("config"));
	expect_origin(&cfg, "root./x.y.allowUser=8", origin);
	config_done(&cfg);
}

static void note_change(void *arg, const struct config_key *key,
    const char *root, const char *was, const char *is)
{
	char *text = arg;
	size_t len = strlen(text);

	snprintf(text + len, 1024 - len, "%s %s [%s]->[%s]\n", key->name,
	    root != NULL ? "in root" : "-", was, is);
}

TEST(what_changed_is_told_once)
{
	struct config before, now;
	char text[1024] = "", *why;

	ck_assert_int_eq(load(&before, &why,
			     "[daemon]\nroot=%s\nallowUser=7\nallowUser=8\n"
			     "[batch]\nrefs=5\n",
			     NULL),
	    OPTIONS_RUN);
	ck_assert_int_eq(load(&now, &why,
			     "[daemon]\nroot=%s\nallowUser=7\n"
			     "[root \"%s/a\"]\ndurability=none\n",
			     NULL),
	    OPTIONS_RUN);
	ck_assert(config_compare(&before, &now, note_change, text));
	ck_assert_str_eq(text,
	    "batch.refs - [5]->[1000]\ndaemon.allowUser - [7 8]->[7]\n"
	    "root.durability in root []->[none]\n");
	text[0] = '\0';
	ck_assert(config_compare(&now, &before, note_change, text));
	ck_assert_str_eq(text,
	    "daemon.allowUser - [7]->[7 8]\nbatch.refs - [1000]->[5]\n"
	    "root.durability in root [none]->[]\n");
	text[0] = '\0';
	ck_assert(config_compare(&now, &now, note_change, text));
	ck_assert_str_eq(text, "");
	config_done(&before);
	config_done(&now);
}
