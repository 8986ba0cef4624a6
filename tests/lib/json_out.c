#include "tests/lib/json_out.h"

#include <string.h>

static void put_string(FILE *f, const void *data, size_t len)
{
	const uint8_t *p = data;
	size_t i;

	fputc('"', f);
	for (i = 0; i < len; i++) {
		if (p[i] < ' ' || p[i] > '~')
			fprintf(f, "\\u%04x", p[i]);
		else if (p[i] == '"' || p[i] == '\\')
			fprintf(f, "\\%c", p[i]);
		else
			fputc(p[i], f);
	}
	fputc('"', f);
}

static void new_line(struct json_out *j)
{
	unsigned i;

	fputc('\n', j->f);
	for (i = 0; i < j->depth; i++)
		fputc('\t', j->f);
}

static void begin(struct json_out *j, const char *key)
{
	if (j->has_before)
		fputs(j->inline_from != 0 ? ", " : ",", j->f);
	if (j->inline_from == 0 && j->depth > 0)
		new_line(j);
	j->has_before = true;
	if (key == NULL)
		return;
	put_string(j->f, key, strlen(key));
	fputs(": ", j->f);
}

void json_bytes(struct json_out *j, const char *key, const void *data,
    size_t len)
{
	begin(j, key);
	put_string(j->f, data, len);
}

void json_string(struct json_out *j, const char *key, const char *s)
{
	json_bytes(j, key, s, strlen(s));
}

void json_number(struct json_out *j, const char *key, uint64_t number)
{
	begin(j, key);
	fprintf(j->f, "%llu", (unsigned long long)number);
}

void json_true(struct json_out *j, const char *key)
{
	begin(j, key);
	fputs("true", j->f);
}

void json_open(struct json_out *j, const char *key, char bracket)
{
	begin(j, key);
	fputc(bracket, j->f);
	j->depth++;
	j->has_before = false;
}

void json_open_inline(struct json_out *j, const char *key, char bracket)
{
	json_open(j, key, bracket);
	if (j->inline_from == 0)
		j->inline_from = j->depth;
}

void json_close(struct json_out *j, char bracket)
{
	bool is_inline = j->inline_from != 0;

	if (j->inline_from == j->depth)
		j->inline_from = 0;
	j->depth--;
	if (!is_inline && j->has_before)
		new_line(j);
	fputc(bracket, j->f);
	j->has_before = true;
}
