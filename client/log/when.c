#include "client/log/when.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/base/child.h"
#include "client/base/cli.h"

static bool parse_journal(const char *s, size_t len, uint8_t *journal)
{
	struct refd_txid id; /* has the same form */
	char hex[REFD_TXID_HEX + 1];

	if (len != REFD_TXID_HEX)
		return false;
	memcpy(hex, s, len);
	hex[len] = '\0';
	if (refd_txid_parse(hex, &id) < 0)
		return false;
	memcpy(journal, id.bytes, REFD_JOURNAL_ID_BYTES);
	return true;
}

bool when_position(const char *s, struct when_position *p)
{
	const char *colon = strchr(s, ':'), *at = colon ? colon + 1 : s;
	char *copy = xstrdup(at), *dot = strchr(copy, '.');
	uint64_t lsn, nr = 0;
	bool ok;

	if (dot)
		*dot++ = '\0';
	ok = (!colon || parse_journal(s, (size_t)(colon - s), p->journal)) &&
	    parse_number(copy, UINT64_MAX, &lsn) &&
	    (!dot || parse_number(dot, UINT32_MAX, &nr));
	free(copy);
	if (!ok)
		return false;
	p->has_journal = colon != NULL;
	p->at = (struct refd_position){ lsn, (uint32_t)nr };
	return true;
}

static void __attribute__((noreturn)) die_not_time(const char *s)
{
	die("'%s' is not a time that git understands, such as '2 hours ago' "
	    "or 2026-08-01T12:00:00+0200",
	    s);
}

/* git reads this setting without a repository. */
uint64_t when_time(const char *s)
{
	char *option = xasprintf("refd.time=%s", s);
	const char *argv[] = { "git", "-c", option, "config",
		"--type=expiry-date", "refd.time", NULL };
	struct text t = { 0 };
	uint64_t secs;

	if (child_capture_quiet(argv, &t) || !t.len)
		die_not_time(s);
	t.data[strcspn(t.data, "\n")] = '\0';
	if (!parse_number(t.data, UINT64_MAX / 1000 - 1, &secs))
		die_not_time(s);
	text_done(&t);
	free(option);
	return secs ? secs * 1000 : 1;
}

/* Times have milliseconds. */
const char *when_text(uint64_t ms, char buf[64])
{
	time_t secs = (time_t)(ms / 1000);
	char zone[8] = "";
	struct tm tm;
	size_t len;

	if (!localtime_r(&secs, &tm))
		return "?";
	len = strftime(buf, 40, "%Y-%m-%dT%H:%M:%S", &tm);
	strftime(zone, sizeof(zone), "%z", &tm);
	snprintf(buf + len, 64 - len, ".%03u%s", (unsigned)(ms % 1000), zone);
	return buf;
}
