#include "daemon/base/key_values.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOM_AT_FIRST 64
/* A packet holds "pair ", the key, a space and the value. */
#define VALUE_MAX(key) (REFD_PAYLOAD_MAX - sizeof("pair ") - strlen(key))

static bool make_room(struct key_values *kv)
{
	size_t room = kv->room > 0 ? 2 * kv->room : ROOM_AT_FIRST;
	struct refd_pair *more;

	if (kv->failed || kv->nr < kv->room)
		return !kv->failed;
	more = realloc(kv->list, room * sizeof(*more));
	if (more == NULL)
		return false;
	kv->list = more;
	kv->room = room;
	return true;
}

/* Takes ownership of VALUE, which is NULL when out of memory. */
static void append_owned(struct key_values *kv, const char *key, char *value)
{
	char *copy = strdup(key);

	if (copy == NULL || value == NULL || !make_room(kv)) {
		free(copy);
		free(value);
		kv->failed = true;
		return;
	}
	if (strlen(value) > VALUE_MAX(key))
		value[VALUE_MAX(key)] = '\0';
	kv->list[kv->nr].key = copy;
	kv->list[kv->nr].value = value;
	kv->nr++;
}

void key_values_add(struct key_values *kv, const char *key, const char *value)
{
	append_owned(kv, key, strdup(value));
}

void key_values_addf(struct key_values *kv, const char *key, const char *fmt,
    ...)
{
	char *value;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&value, fmt, ap) < 0)
		value = NULL;
	va_end(ap);
	append_owned(kv, key, value);
}

void key_values_add_number(struct key_values *kv, const char *key,
    uint64_t value)
{
	key_values_addf(kv, key, "%" PRIu64, value);
}

void key_values_done(struct key_values *kv)
{
	size_t i;

	for (i = 0; i < kv->nr; i++) {
		free((void *)(uintptr_t)kv->list[i].key);
		free((void *)(uintptr_t)kv->list[i].value);
	}
	free(kv->list);
	*kv = (struct key_values){ 0 };
}
