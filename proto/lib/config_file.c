/* Follows the rules of git's config.c (git_parse_source()). */
#include "proto/lib/config_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define END_OF_FILE (-1)

struct parser {
	const char *at, *end;
	unsigned line, begin; /* first line of the entry being read */
	const char *why;
	/* KEY and VALUE are in one block, because both together never need more
	 * room than the text. */
	char *key, *value;
	size_t key_len, section_len;
};

static int next(struct parser *p)
{
	if (p->at == p->end)
		return END_OF_FILE;
	if (*p->at == '\r' && p->end - p->at > 1 && p->at[1] == '\n')
		p->at++;
	if (*p->at == '\n')
		p->line++;
	return (unsigned char)*p->at++;
}

static int bad(struct parser *p, const char *why)
{
	p->why = why;
	return -EINVAL;
}

static bool is_space(int c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_alpha(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_key_char(int c)
{
	return is_alpha(c) || (c >= '0' && c <= '9') || c == '-';
}

static void add_to_key(struct parser *p, int c)
{
	p->key[p->key_len++] = (char)c;
}

static void add_lower(struct parser *p, int c)
{
	add_to_key(p, c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

/* [section "sub"], from the space behind the section's name. */
static int read_subsection(struct parser *p)
{
	int c;

	do
		c = next(p);
	while (c == ' ' || c == '\t');
	if (c != '"')
		return bad(p, "a subsection is not in quotes");
	add_to_key(p, '.');
	while ((c = next(p)) != '"') {
		if (c == '\\')
			c = next(p);
		if (c == '\n' || c == END_OF_FILE)
			return bad(p, "a subsection's quotes are not closed");
		add_to_key(p, c);
	}
	return next(p) == ']' ? 0 : bad(p, "a section does not end with ]");
}

static int read_section(struct parser *p)
{
	int c, r = 0;

	p->key_len = 0;
	while ((c = next(p)) != ']') {
		if (c == ' ' || c == '\t') {
			r = read_subsection(p);
			break;
		}
		if (!is_key_char(c) && c != '.')
			return bad(p, "a section's name is malformed");
		add_lower(p, c);
	}
	if (r == 0 && p->key_len == 0)
		return bad(p, "a section has no name");
	add_to_key(p, '.');
	p->section_len = p->key_len;
	return r;
}

static int unescape(int c)
{
	switch (c) {
	case 'n':
		return '\n';
	case 't':
		return '\t';
	case 'b':
		return '\b';
	case '\\':
	case '"':
		return c;
	default:
		return END_OF_FILE;
	}
}

/* Reads to the end of the line. Drops blanks at the end, keeps blanks
 * inside. */
static int read_value(struct parser *p)
{
	bool quoted = false, comment = false;
	size_t len = 0, kept = 0;
	int c;

	while ((c = next(p)) != '\n' && c != END_OF_FILE) {
		if (comment || (len == 0 && !quoted && is_space(c)))
			continue;
		if (!quoted && (c == '#' || c == ';')) {
			comment = true;
			continue;
		}
		if (c == '"') {
			quoted = !quoted;
			kept = len;
			continue;
		}
		if (c == '\\') {
			c = next(p);
			if (c == '\n' || c == END_OF_FILE) {
				kept = len;
				continue;
			}
			c = unescape(c);
			if (c == END_OF_FILE)
				return bad(p, "an unknown escape");
			p->value[len++] = (char)c;
			kept = len;
			continue;
		}
		p->value[len++] = (char)c;
		if (quoted || !is_space(c))
			kept = len;
	}
	p->value[kept] = '\0';
	return quoted ? bad(p, "quotes are not closed") : 0;
}

static int read_entry(struct parser *p, int c, config_entry_fn *fn, void *arg)
{
	bool has_value = false;
	int r = 0;

	p->key_len = p->section_len;
	while (is_key_char(c)) {
		add_lower(p, c);
		c = next(p);
	}
	while (c == ' ' || c == '\t')
		c = next(p);
	if (c == '=') {
		has_value = true;
		r = read_value(p);
	} else if (c != '\n' && c != END_OF_FILE) {
		r = bad(p, "a key is not followed by =: write KEY = VALUE");
	}
	p->key[p->key_len] = '\0';
	return r < 0 ? r :
		       fn(arg, p->key, has_value ? p->value : NULL, p->begin);
}

static int read_all(struct parser *p, config_entry_fn *fn, void *arg)
{
	bool comment = false;
	int c, r = 0;

	while (r == 0) {
		p->begin = p->line;
		c = next(p);
		if (c == END_OF_FILE)
			break;
		if (c == '\n')
			comment = false;
		else if (comment || is_space(c))
			continue;
		else if (c == '#' || c == ';')
			comment = true;
		else if (c == '[')
			r = read_section(p);
		else if (is_alpha(c))
			r = read_entry(p, c, fn, arg);
		else
			r = bad(p, "neither a section nor a key");
	}
	return r;
}

int config_file_parse(const char *text, size_t len, config_entry_fn *fn,
    void *arg, unsigned *line, const char **why)
{
	struct parser p = { .at = text, .end = text + len, .line = 1 };
	const char *nul;
	int r;

	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		p.at += 3;
	/* "[a]b" gives "a.b", so a key is never longer than its text. */
	p.key = malloc(2 * (len + 2));
	if (p.key == NULL)
		return -ENOMEM;
	p.value = p.key + len + 2;
	nul = memchr(text, '\0', len);
	if (nul != NULL) {
		for (p.begin = 1; text < nul; text++)
			p.begin += *text == '\n';
		r = bad(&p, "the file holds a NUL byte");
	} else {
		r = read_all(&p, fn, arg);
	}
	free(p.key);
	if (p.why != NULL) {
		*line = p.begin;
		*why = p.why;
	}
	return r;
}
