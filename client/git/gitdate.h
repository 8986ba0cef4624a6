/*
 * The usual formats of GIT_COMMITTER_DATE: "@secs zone", "secs zone", ISO 8601
 * and RFC 2822. git's parse_date() accepts many more formats, so any other date
 * is left to git. Pure, except for the time zone of the process.
 */
#ifndef CLIENT_GIT_GITDATE_H
#define CLIENT_GIT_GITDATE_H

#include <stdbool.h>
#include <stdint.h>

struct gitdate {
	int64_t secs; /* since the epoch */
	int zone;     /* minutes east of Greenwich */
};

/* Returns false for any other format, with *DATE unchanged. */
bool gitdate_parse(const char *s, struct gitdate *date);
/* The present time, and the local zone. */
void gitdate_now(struct gitdate *date);

#endif
