#include "daemon/store/tables/stack/stack_log.h"

#include <stdlib.h>
#include <string.h>

/* Git keeps at least so much of a message, as does stack_table_make(). */
#define MESSAGE_LEAST 2000

static struct reftable_text text_of(const char *begin, const char *end)
{
	return (struct reftable_text){ begin, (size_t)(end - begin) };
}

static void set_name(struct reftable_log *log, const char *begin,
    const char *end)
{
	while (begin < end && *begin == ' ')
		begin++;
	while (end > begin && end[-1] == ' ')
		end--;
	log->name = text_of(begin, end);
}

/* "seconds zone", where a zone is a sign and digits. */
static void set_date(struct reftable_log *log, const char *date)
{
	const char *zone;
	unsigned long digits;

	date += strspn(date, " ");
	if (*date < '0' || *date > '9')
		return;
	log->time_s = strtoull(date, NULL, 10);
	zone = date + strspn(date, "0123456789");
	zone += strspn(zone, " ");
	if (*zone != '+' && *zone != '-')
		return;
	if (zone[1] < '0' || zone[1] > '9')
		return;
	digits = strtoul(zone + 1, NULL, 10);
	if (digits <= INT16_MAX)
		log->zone =
		    (int16_t)(*zone == '-' ? -(long)digits : (long)digits);
}

void stack_log_set(struct reftable_log *log, const struct refd_oid *from,
    const struct refd_oid *to, const char *committer, const char *message)
{
	const char *mail = strchr(committer, '<'), *end;

	memset(log, 0, sizeof(*log));
	log->from = *from;
	log->to = *to;
	log->message = text_of(message, message + strlen(message));
	set_name(log, committer,
	    mail != NULL ? mail : committer + strlen(committer));
	log->email = text_of(committer, committer);
	end = mail != NULL ? strchr(mail, '>') : NULL;
	if (end == NULL)
		return;
	log->email = text_of(mail + 1, end);
	set_date(log, strrchr(end, '>') + 1);
}

static bool is_same_text(const struct reftable_text *a,
    const struct reftable_text *b)
{
	return a->len == b->len &&
	    (a->len == 0 || memcmp(a->at, b->at, a->len) == 0);
}

static size_t length_of(const struct reftable_text *message)
{
	size_t len = message->len;

	while (len > 0 && message->at[len - 1] == '\n')
		len--;
	return len;
}

static bool is_same_message(const struct reftable_text *a,
    const struct reftable_text *b)
{
	size_t len = length_of(a);

	if (len != length_of(b) && (len > length_of(b) || len < MESSAGE_LEAST))
		return false;
	return len == 0 || memcmp(a->at, b->at, len) == 0;
}

bool stack_log_eq(const struct reftable_log *a, const struct reftable_log *b)
{
	return refd_oid_eq(&a->from, &b->from) && refd_oid_eq(&a->to, &b->to) &&
	    a->time_s == b->time_s && a->zone == b->zone &&
	    is_same_text(&a->name, &b->name) &&
	    is_same_text(&a->email, &b->email) &&
	    is_same_message(&a->message, &b->message);
}
