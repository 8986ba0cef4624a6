#include "proto/lib/json.h"

#include <inttypes.h>
#include <string.h>

#include "proto/lib/print.h"
#include "proto/utf8.h"

static void put(struct json *j, const char *s)
{
	print_bytes(j->to, s, strlen(s));
}

static void put_string(struct json *j, const char *s)
{
	put(j, "\"");
	print_text(j->to, PRINT_AS_JSON, s, strlen(s));
	put(j, "\"");
}

/* What comes before a value. */
static void put_key(struct json *j, const char *key)
{
	if (j->has_item)
		put(j, ",");
	j->has_item = true;
	if (!key)
		return;
	put_string(j, key);
	put(j, ":");
}

void json_begin(struct json *j, const char *key, char bracket)
{
	put_key(j, key);
	print_bytes(j->to, &bracket, 1);
	j->has_item = false;
}

void json_end(struct json *j, char bracket)
{
	print_bytes(j->to, &bracket, 1);
	j->has_item = true;
}

void json_finish(struct json *j, char bracket)
{
	json_end(j, bracket);
	put(j, "\n");
}

static bool is_utf8(const char *s)
{
	size_t left = strlen(s), len = 1;
	uint32_t code;

	while (left > 0 && (len = utf8_decode(s, left, &code)) > 0) {
		s += len;
		left -= len;
	}
	return len > 0;
}

/* Two names can have one text, because JSON has only UTF-8. So the bytes of
 * such a name follow, in hexadecimal digits. */
void json_text(struct json *j, const char *key, const char *s)
{
	if (!s)
		return;
	put_key(j, key);
	put_string(j, s);
	if (!key || is_utf8(s))
		return;
	put(j, ",\"");
	print_text(j->to, PRINT_AS_JSON, key, strlen(key));
	put(j, "_hex\":\"");
	for (; *s; s++)
		print_part(j->to, "%02x", (unsigned char)*s);
	put(j, "\"");
}

void json_count(struct json *j, const char *key, uint64_t n)
{
	put_key(j, key);
	print_part(j->to, "%" PRIu64, n);
}

void json_flag(struct json *j, const char *key, bool flag)
{
	json_value(j, key, flag ? "true" : "false");
}

void json_value(struct json *j, const char *key, const char *text)
{
	put_key(j, key);
	put(j, text);
}
