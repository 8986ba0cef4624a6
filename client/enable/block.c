#include "client/enable/block.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define MARK " # refd disable removes this line"
/* The note with the number of settings of an active block. */
#define SETTINGS "settings"
/* A path of escaped characters fits. refd writes no longer line. The keys of a
 * section repeat the section, so the length bounds the memory. */
#define LINE_BYTES (2 * PATH_MAX + 256)

/* ---- the lines of a block ---- */

void block_done(struct block *b)
{
	size_t i;

	for (i = 0; i < b->nr; i++) {
		free(b->lines[i].key);
		free(b->lines[i].value);
	}
	free(b->lines);
	memset(b, 0, sizeof(*b));
}

bool block_has(const struct block *b, const char *key, const char *value)
{
	size_t i;

	for (i = 0; i < b->nr; i++)
		if (!strcmp(b->lines[i].key, key) &&
		    (!value || !strcmp(b->lines[i].value, value)))
			return true;
	return false;
}

static void append(struct block *b, const char *key, const char *value)
{
	b->lines = xrealloc(b->lines, (b->nr + 1) * sizeof(*b->lines));
	b->lines[b->nr].key = xstrdup(key);
	b->lines[b->nr++].value = xstrdup(value);
}

void block_add(struct block *b, const char *key, const char *value)
{
	if (!block_has(b, key, value))
		append(b, key, value);
}

void block_copy(const struct block *from, struct block *to)
{
	size_t i;

	memset(to, 0, sizeof(*to));
	for (i = 0; i < from->nr; i++)
		append(to, from->lines[i].key, from->lines[i].value);
}

const char *block_get(const struct block *b, const char *key)
{
	size_t i;

	for (i = 0; i < b->nr; i++)
		if (!strcmp(b->lines[i].key, key))
			return b->lines[i].value;
	return NULL;
}

void block_remove(struct block *b, const char *key, const char *value)
{
	size_t i, kept = 0;

	for (i = 0; i < b->nr; i++) {
		struct block_line *l = &b->lines[i];

		if (strcmp(l->key, key) || (value && strcmp(l->value, value))) {
			b->lines[kept++] = *l;
			continue;
		}
		free(l->key);
		free(l->value);
	}
	b->nr = kept;
}

void block_set(struct block *b, const char *key, const char *value)
{
	block_remove(b, key, NULL);
	block_add(b, key, value);
}

bool block_is_done(const struct block *before, const struct block *b)
{
	size_t i;

	for (i = 0; i < b->nr; i++)
		if (!block_has(before, b->lines[i].key, b->lines[i].value))
			return false;
	return before->is_whole && before->nr == b->nr;
}

/* ---- lines of the file ---- */

struct line {
	const char *at;
	size_t len;    /* without the end */
	bool is_ended; /* by a newline */
};

static bool next_line(const struct text *t, size_t *at, struct line *l)
{
	const char *end;

	if (*at >= t->len)
		return false;
	l->at = t->data + *at;
	end = memchr(l->at, '\n', t->len - *at);
	l->is_ended = end != NULL;
	l->len = end ? (size_t)(end - l->at) : t->len - *at;
	*at += l->len + l->is_ended;
	return true;
}

/* An editor may have ended the line with CR LF. */
static bool is_marked(const struct line *l)
{
	size_t len = l->len - (l->len && l->at[l->len - 1] == '\r');
	size_t mark = strlen(MARK);

	return len > mark && !memcmp(l->at + len - mark, MARK, mark);
}

static bool is_header(const struct line *l)
{
	size_t i = 0;

	while (i < l->len && isspace((unsigned char)l->at[i]))
		i++;
	return i < l->len && l->at[i] == '[';
}

/* Neither blank nor a comment. */
static bool is_entry(const struct line *l)
{
	size_t i = 0;

	while (i < l->len && isspace((unsigned char)l->at[i]))
		i++;
	return i < l->len && l->at[i] != '#' && l->at[i] != ';';
}

/* Is a setting without a mark below the header that ends at AT? */
static bool has_other_entry(const struct text *config, size_t at)
{
	struct line l;

	while (next_line(config, &at, &l) && !is_header(&l))
		if (!is_marked(&l) && is_entry(&l))
			return true;
	return false;
}

/* ---- reading ---- */

/* Between the first quote and the last, as quote() writes it. */
static bool take_value(const char *s, struct text *value)
{
	const char *end = strrchr(s, '"');

	s = strchr(s, '"');
	if (!s || s == end)
		return false;
	text_clear(value);
	text_adds(value, "");
	while (++s < end) {
		bool is_escaped = *s == '\\' && s + 1 < end;

		s += is_escaped;
		text_addc(value, is_escaped && *s == 'n' ? '\n' : *s);
	}
	return true;
}

/* "[core]" is "core", and "[includeIf "gitdir:/srv/"]" is
 * "includeIf.gitdir:/srv/". */
static void take_header(const char *s, struct text *section)
{
	size_t len = strcspn(s + 1, "] ");
	struct text sub = { 0 };

	text_clear(section);
	text_add(section, s + 1, len);
	if (s[1 + len] == ' ' && take_value(s, &sub)) {
		text_addc(section, '.');
		text_add(section, sub.data, sub.len);
	}
	text_done(&sub);
}

/* A note is a comment. The header before a setting begins the setting's key. */
static void take_line(struct block *b, const char *s,
    const struct text *section, size_t *settings)
{
	const char *at = s + strspn(s, "# \t");
	char *name = xasprintf("%.*s", (int)strcspn(at, " ="), at);
	char *key = xasprintf("%s.%s", section->len ? section->data : "", name);
	struct text value = { 0 };

	if (!take_value(at, &value)) {
		/* Somebody changed it, and kept the mark. */
	} else if (*s != '#') {
		append(b, key, value.data);
	} else if (strcmp(name, SETTINGS)) {
		append(b, name, value.data);
	} else {
		*settings = strtoul(value.data, NULL, 10);
		b->is_active = true;
	}
	free(name);
	free(key);
	text_done(&value);
}

static size_t count_settings(const struct block *b)
{
	size_t i, nr = 0;

	for (i = 0; i < b->nr; i++)
		nr += strchr(b->lines[i].key, '.') != NULL;
	return nr;
}

void block_read(struct block *b, const struct text *config)
{
	struct text section = { 0 };
	size_t at = 0, settings = 0;
	struct line l;

	memset(b, 0, sizeof(*b));
	while (b->nr <= BLOCK_LINES && next_line(config, &at, &l)) {
		char *s;

		if (!is_marked(&l) || l.len > LINE_BYTES)
			continue;
		s = xasprintf("%.*s", (int)l.len, l.at);
		if (*s == '[')
			take_header(s, &section);
		else
			take_line(b, s, &section, &settings);
		free(s);
	}
	b->is_whole = b->is_active && settings == count_settings(b);
	text_done(&section);
}

/* ---- writing ---- */

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

static void put_note(struct text *t, const char *key, const char *value)
{
	text_addf(t, "# %s = ", key);
	quote(t, value);
	text_adds(t, MARK "\n");
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
	text_adds(t, "]" MARK "\n");
}

static void put_settings(struct text *t, const struct block *b)
{
	const char *section = "", *dot;
	size_t i, len = 0;

	for (i = 0; i < b->nr; i++) {
		const char *key = b->lines[i].key;

		dot = strrchr(key, '.');
		if (!dot)
			continue;
		if ((size_t)(dot - key) != len || memcmp(section, key, len)) {
			section = key;
			len = (size_t)(dot - key);
			put_header(t, section, len);
		}
		text_addf(t, "\t%s = ", dot + 1);
		quote(t, b->lines[i].value);
		text_adds(t, MARK "\n");
	}
}

static void put_block(struct text *t, const struct block *b, bool is_active)
{
	char *settings = xasprintf("%zu", count_settings(b));
	size_t i;

	for (i = 0; i < b->nr; i++)
		if (!is_active || !strchr(b->lines[i].key, '.'))
			put_note(t, b->lines[i].key, b->lines[i].value);
	if (is_active) {
		put_note(t, SETTINGS, settings);
		put_settings(t, b);
	}
	free(settings);
}

static bool is_ended(const struct text *t)
{
	return !t->len || t->data[t->len - 1] == '\n';
}

static void drop_newline(struct text *t)
{
	if (t->len && is_ended(t))
		t->data[--t->len] = '\0';
}

static void strip(const struct text *config, struct text *to)
{
	struct line l = { .is_ended = true };
	bool is_last_marked = false;
	size_t at = 0;

	while (next_line(config, &at, &l)) {
		is_last_marked = is_marked(&l);
		if (!is_last_marked)
			text_add(to, l.at, l.len + l.is_ended);
		else if (*l.at == '[' && has_other_entry(config, at))
			text_addf(to, "%.*s\n", (int)(l.len - strlen(MARK)),
			    l.at);
	}
	if (is_last_marked && !l.is_ended)
		drop_newline(to);
}

void block_replace(const struct text *config, const struct block *b,
    bool is_active, struct text *to)
{
	bool was_ended;

	text_adds(to, "");
	strip(config, to);
	if (!b->nr)
		return;
	was_ended = is_ended(to);
	if (!was_ended)
		text_addc(to, '\n');
	put_block(to, b, is_active);
	if (!was_ended)
		drop_newline(to);
}

bool block_has_no_place(const struct text *config)
{
	size_t len = config->len;

	len -= len && config->data[len - 1] == '\n';
	len -= len && config->data[len - 1] == '\r';
	return len && config->data[len - 1] == '\\';
}
