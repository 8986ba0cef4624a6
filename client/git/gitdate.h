/*
 * The forms of GIT_COMMITTER_DATE that scripts write: "@secs zone", "secs
 * zone", ISO 8601 and RFC 2822. git's parse_date() takes many more; those are
 * git's to read. Pure but for the time zone of the process.
 */
#ifndef CLIENT_GIT_GITDATE_H
#define CLIENT_GIT_GITDATE_H

#include <stdbool.h>
#include <stdint.h>

struct gitdate {
	int64_t secs; /* since the epoch */
	int zone;     /* minutes east of Greenwich */
};

/* False for any other form; *DATE is then untouched. */
bool gitdate_parse(const char *s, struct gitdate *date);
/* The present, and the zone it has here. */
void gitdate_now(struct gitdate *date);

#endif
