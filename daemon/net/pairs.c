#include "daemon/net/pairs.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/busy_cause.h"

#define ROOM_AT_FIRST 64
/* "pair ", the key, a space. */
#define VALUE_MAX(key) (REFD_PAYLOAD_MAX - sizeof("pair ") - strlen(key))

static bool make_room(struct pairs *p)
{
	size_t room = p->room > 0 ? 2 * p->room : ROOM_AT_FIRST;
	struct refd_pair *more;

	if (p->failed || p->nr < p->room)
		return !p->failed;
	more = realloc(p->list, room * sizeof(*more));
	if (more == NULL)
		return false;
	p->list = more;
	p->room = room;
	return true;
}

/* VALUE is owned. */
static void take(struct pairs *p, const char *key, char *value)
{
	char *copy = strdup(key);

	if (copy == NULL || value == NULL || !make_room(p)) {
		free(copy);
		free(value);
		p->failed = true;
		return;
	}
	if (strlen(value) > VALUE_MAX(key))
		value[VALUE_MAX(key)] = '\0';
	p->list[p->nr].key = copy;
	p->list[p->nr].value = value;
	p->nr++;
}

void pairs_add(struct pairs *p, const char *key, const char *value)
{
	take(p, key, strdup(value));
}

void pairs_addf(struct pairs *p, const char *key, const char *fmt, ...)
{
	char *value;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&value, fmt, ap) < 0)
		value = NULL;
	va_end(ap);
	take(p, key, value);
}

void pairs_add_number(struct pairs *p, const char *key, uint64_t value)
{
	pairs_addf(p, key, "%" PRIu64, value);
}

void pairs_answer(struct pairs *p, struct conn *conn, uint32_t request_id)
{
	struct refd_answer ans = { .kind = REFD_ANSWER_PAIRS,
		.request_id = request_id,
		.pairs = p->list,
		.nr_pairs = p->nr };

	if (p->failed)
		ans = (struct refd_answer){ .kind = REFD_ANSWER_REFUSED,
			.request_id = request_id,
			.status = busy_cause_count(BUSY_MEMORY),
			.text = busy_cause_text(BUSY_MEMORY) };
	conn_answer(conn, &ans);
	pairs_done(p);
}

void pairs_done(struct pairs *p)
{
	size_t i;

	for (i = 0; i < p->nr; i++) {
		free((void *)(uintptr_t)p->list[i].key);
		free((void *)(uintptr_t)p->list[i].value);
	}
	free(p->list);
	*p = (struct pairs){ 0 };
}
