/*
 * Any bytes as a configuration file. The file is either read, or refused with
 * the number of an existing line. The content, written in the format of git
 * config, must give the same result when read again.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/lib/config_file.h"

struct config_entry {
	char *key, *value;
};

struct config_list {
	struct config_entry *all;
	size_t nr;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool ok)
{
	if (!ok)
		abort();
}

static int keep(void *arg, const char *key, const char *value, unsigned line)
{
	struct config_list *list = arg;
	struct config_entry *e;

	expect(line > 0);
	list->all = realloc(list->all, (list->nr + 1) * sizeof(*list->all));
	expect(list->all != NULL);
	e = &list->all[list->nr++];
	e->key = strdup(key);
	e->value = value != NULL ? strdup(value) : NULL;
	return 0;
}

static void free_list(struct config_list *list)
{
	size_t i;

	for (i = 0; i < list->nr; i++) {
		free(list->all[i].key);
		free(list->all[i].value);
	}
	free(list->all);
}

static void put_quoted(FILE *to, const char *s, bool is_value)
{
	fputc('"', to);
	for (; *s != '\0'; s++) {
		if (*s == '"' || *s == '\\')
			fprintf(to, "\\%c", *s);
		else if (is_value && *s == '\n')
			fputs("\\n", to);
		else
			fputc(*s, to);
	}
	fputc('"', to);
}

static void put_name(FILE *to, const char *name, const char *value)
{
	fputs(name, to);
	if (value != NULL) {
		fputs(" = ", to);
		put_quoted(to, value, true);
	}
	fputc('\n', to);
}

static void put(FILE *to, const struct config_entry *e)
{
	const char *first = strchr(e->key, '.'), *last = strrchr(e->key, '.');
	char *sub = NULL;

	if (first == NULL) { /* before the first section */
		put_name(to, e->key, e->value);
		return;
	}
	fprintf(to, "[%.*s", (int)(first - e->key), e->key);
	if (last != first) {
		sub = strndup(first + 1, (size_t)(last - first - 1));
		expect(sub != NULL);
		fputc(' ', to);
		put_quoted(to, sub, false);
		free(sub);
	}
	fputs("]\n", to);
	put_name(to, last + 1, e->value);
}

static void check_again(const struct config_list *list)
{
	struct config_list again = { 0 };
	const char *why;
	char *text = NULL;
	unsigned line;
	size_t len, i;
	FILE *to = open_memstream(&text, &len);

	expect(to != NULL);
	for (i = 0; i < list->nr; i++)
		put(to, &list->all[i]);
	fclose(to);
	expect(config_file_parse(text, len, keep, &again, &line, &why) == 0);
	expect(again.nr == list->nr);
	for (i = 0; i < list->nr; i++) {
		expect(strcmp(again.all[i].key, list->all[i].key) == 0);
		expect((again.all[i].value == NULL) ==
		    (list->all[i].value == NULL));
		if (list->all[i].value != NULL)
			expect(strcmp(again.all[i].value, list->all[i].value) ==
			    0);
	}
	free(text);
	free_list(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config_list list = { 0 };
	const char *why = NULL;
	unsigned line = 0;
	char *exact = malloc(size > 0 ? size : 1);

	if (exact == NULL)
		return 0;
	if (size > 0)
		memcpy(exact, data, size);
	if (config_file_parse(exact, size, keep, &list, &line, &why) == 0)
		check_again(&list);
	else
		expect(line > 0 && why != NULL);
	free_list(&list);
	free(exact);
	return 0;
}
