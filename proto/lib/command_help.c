#include <stdio.h>
#include <string.h>

#include "proto/lib/command.h"

#define WIDTH       80
#define HELP_COLUMN 26

struct command_page {
	char *buf;
	size_t size, len;
	size_t column, indent; /* INDENT: of the lines of a text */
};

/* What does not fit is left out. */
static void add_bytes(struct command_page *page, const char *s, size_t len)
{
	for (; len; len--, s++) {
		page->column = *s == '\n' ? 0 : page->column + 1;
		if (page->len + 1 < page->size)
			page->buf[page->len++] = *s;
	}
	page->buf[page->len] = '\0';
}

static void add(struct command_page *page, const char *s)
{
	add_bytes(page, s, strlen(s));
}

static void indent(struct command_page *page, size_t column)
{
	if (page->column > column)
		add(page, "\n");
	while (page->column < column)
		add(page, " ");
	page->indent = column;
}

/* Adds a word, on a new line if there is no room for it. */
static void add_word(struct command_page *page, const char *word, size_t len)
{
	if (page->column + 1 + len >= WIDTH) {
		add(page, "\n");
		indent(page, page->indent);
	} else if (page->column != page->indent) {
		add(page, " ");
	}
	add_bytes(page, word, len);
}

static void add_text(struct command_page *page, size_t column, const char *text)
{
	size_t len;

	indent(page, column);
	for (; *text; text += len + (text[len] == ' ')) {
		len = strcspn(text, " ");
		add_word(page, text, len);
	}
	add(page, "\n");
}

/* "--socket PATH", "-n NUMBER"; with both names if IS_LIST. */
static void name_option(const struct command_option *o, bool is_list, char *buf,
    size_t size)
{
	char letter[8] = "";
	const char *no = o->negatable && is_list ? "[no-]" : "";

	if (o->letter && (is_list || !o->name))
		snprintf(letter, sizeof(letter), "-%c", o->letter);
	snprintf(buf, size, "%s%s%s%s%s%s%s", letter,
	    *letter && o->name ? ", " : "", o->name ? "--" : "", no,
	    o->name ? o->name : "", o->arg ? " " : "", o->arg ? o->arg : "");
}

/* Adds the option, and with it those that it excludes. */
static void add_option(struct command_page *page,
    const struct command_option *first)
{
	const struct command_option *o;
	char word[160] = "", name[80];
	size_t len = 0;

	for (o = first; o->name || o->letter; o++) {
		if (o != first &&
		    (!first->excludes || o->excludes != first->excludes))
			continue;
		name_option(o, false, name, sizeof(name));
		len += (size_t)snprintf(word + len, sizeof(word) - len,
		    "%s%s%s",
		    len                 ? " | " :
			first->required ? "" :
					  "[",
		    name, o->repeats || o->kind == COMMAND_LIST ? "]..." : "");
	}
	if (!first->required && word[len - 1] != '.')
		snprintf(word + len, sizeof(word) - len, "]");
	add_word(page, word, strlen(word));
}

static bool is_first(const struct command *c, const struct command_option *o)
{
	const struct command_option *at;

	for (at = c->options; at != o; at++)
		if (o->excludes && at->excludes == o->excludes)
			return false;
	return o->help != NULL;
}

static void add_usage(struct command_page *page, const struct command *c)
{
	const struct command_option *o;

	if (c->usage) {
		add(page, c->usage);
		return;
	}
	add(page, "usage: refd ");
	add(page, c->name);
	page->indent = page->column + 1;
	for (o = c->options; o->name || o->letter; o++)
		if (is_first(c, o))
			add_option(page, o);
	if (c->arguments)
		add_word(page, c->arguments, strlen(c->arguments));
	add(page, "\n");
}

static void add_options(struct command_page *page, const struct command *c)
{
	const struct command_option *o = c->options;
	char name[80];

	if (o->name || o->letter)
		add(page, "\n");
	for (; o->name || o->letter; o++) {
		if (!o->help)
			continue;
		name_option(o, true, name, sizeof(name));
		add(page, "    ");
		add(page, name);
		if (page->column >= HELP_COLUMN)
			add(page, "\n");
		add_text(page, HELP_COLUMN, o->help);
	}
}

void command_help(const struct command *c, const char *head, char *buf,
    size_t size)
{
	struct command_page page = { .buf = buf, .size = size };

	if (head)
		add(&page, head);
	else
		add_usage(&page, c);
	if (c->purpose) {
		add(&page, "\n");
		add_text(&page, 0, c->purpose);
	}
	add_options(&page, c);
	if (c->example) {
		add(&page, "\nExample:\n    ");
		add(&page, c->example);
		add(&page, "\n");
		if (c->outcome)
			add_text(&page, 4, c->outcome);
	}
	if (c->manual) {
		add(&page, "\nManual: ");
		add(&page, c->manual);
		add(&page, "\n");
	}
}

void command_usage(const struct command *c, char *buf, size_t size)
{
	struct command_page page = { .buf = buf, .size = size };

	add_usage(&page, c);
	add(&page, "'refd ");
	add(&page, c->name);
	add(&page, " -h' explains the options.\n");
}
