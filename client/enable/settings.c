#include "client/enable/settings.h"

#include <stdlib.h>
#include <string.h>

#include "client/git/gitconfig.h"
#include "proto/lib/config_file.h"

/* ---- the list ---- */

void settings_done(struct settings *s)
{
	size_t i;

	for (i = 0; i < s->nr; i++) {
		free(s->items[i].key);
		free(s->items[i].value);
	}
	free(s->items);
	memset(s, 0, sizeof(*s));
}

bool settings_have(const struct settings *s, const char *key, const char *value)
{
	size_t i;

	for (i = 0; i < s->nr; i++)
		if (gitconfig_is_key(s->items[i].key, key) &&
		    (!value || !strcmp(s->items[i].value, value)))
			return true;
	return false;
}

static void append(struct settings *s, const char *key, const char *value)
{
	s->items = xrealloc(s->items, (s->nr + 1) * sizeof(*s->items));
	s->items[s->nr].key = xstrdup(key);
	s->items[s->nr++].value = xstrdup(value);
}

void settings_add(struct settings *s, const char *key, const char *value)
{
	if (!settings_have(s, key, value))
		append(s, key, value);
}

const char *settings_get(const struct settings *s, const char *key)
{
	size_t i;

	for (i = 0; i < s->nr; i++)
		if (gitconfig_is_key(s->items[i].key, key))
			return s->items[i].value;
	return NULL;
}

void settings_remove(struct settings *s, const char *key, const char *value)
{
	size_t i, kept = 0;

	for (i = 0; i < s->nr; i++) {
		struct setting *it = &s->items[i];

		if (!gitconfig_is_key(it->key, key) ||
		    (value && strcmp(it->value, value) != 0)) {
			s->items[kept++] = *it;
			continue;
		}
		free(it->key);
		free(it->value);
	}
	s->nr = kept;
}

void settings_set(struct settings *s, const char *key, const char *value)
{
	const char *now = settings_get(s, key);

	if (now && !strcmp(now, value))
		return;
	settings_remove(s, key, NULL);
	append(s, key, value);
}

bool settings_are_same(const struct settings *a, const struct settings *b)
{
	size_t i;

	for (i = 0; i < b->nr; i++)
		if (!settings_have(a, b->items[i].key, b->items[i].value))
			return false;
	return a->nr == b->nr;
}

/* ---- git's syntax ---- */

static int take(void *arg, const char *key, const char *value, unsigned line)
{
	(void)line;
	append(arg, key, value ? value : "true");
	return 0;
}

bool settings_parse(struct settings *s, const struct text *text)
{
	const char *why;
	unsigned line;

	return config_file_parse(text->data, text->len, take, s, &line, &why) ==
	    0;
}

/* As git reads it, and without a newline of its own. */
static void quote(struct text *t, const char *value)
{
	text_addc(t, '"');
	for (; *value; value++) {
		if (strchr("\"\\\n", *value))
			text_addc(t, '\\');
		text_addc(t, *value == '\n' ? 'n' : *value);
	}
	text_addc(t, '"');
}

/* The section is the first LEN bytes of KEY, with a subsection behind a dot. */
static void put_header(struct text *t, const char *key, size_t len)
{
	size_t section = strcspn(key, ".");
	char *sub;

	text_addc(t, '[');
	text_add(t, key, section);
	if (section < len) {
		sub = xasprintf("%.*s", (int)(len - section - 1),
		    key + section + 1);
		text_addc(t, ' ');
		quote(t, sub);
		free(sub);
	}
	text_adds(t, "]\n");
}

void settings_put(const struct settings *s, struct text *t)
{
	const char *section = "";
	size_t i, len = 0;

	for (i = 0; i < s->nr; i++) {
		const char *key = s->items[i].key, *dot = strrchr(key, '.');

		if ((size_t)(dot - key) != len || memcmp(section, key, len)) {
			section = key;
			len = (size_t)(dot - key);
			put_header(t, section, len);
		}
		text_addf(t, "\t%s = ", dot + 1);
		quote(t, s->items[i].value);
		text_addc(t, '\n');
	}
}
