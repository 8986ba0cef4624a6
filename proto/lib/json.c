#include "proto/lib/json.h"

#include <inttypes.h>

#include "proto/lib/print.h"

/* What comes before a value. */
static void put_key(struct json *j, const char *key)
{
	if (j->has_item)
		putc(',', j->to);
	j->has_item = true;
	if (!key)
		return;
	print_json_string(j->to, key);
	putc(':', j->to);
}

void json_begin(struct json *j, const char *key, char bracket)
{
	put_key(j, key);
	putc(bracket, j->to);
	j->has_item = false;
}

void json_end(struct json *j, char bracket)
{
	putc(bracket, j->to);
	j->has_item = true;
}

void json_text(struct json *j, const char *key, const char *s)
{
	if (!s)
		return;
	put_key(j, key);
	print_json_string(j->to, s);
}

void json_count(struct json *j, const char *key, uint64_t n)
{
	put_key(j, key);
	fprintf(j->to, "%" PRIu64, n);
}

void json_flag(struct json *j, const char *key, bool flag)
{
	json_value(j, key, flag ? "true" : "false");
}

void json_value(struct json *j, const char *key, const char *text)
{
	put_key(j, key);
	fputs(text, j->to);
}
