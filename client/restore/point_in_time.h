/*
 * The point in time to restore: parsed from an argument, then looked up in the
 * daemon's history. Blocking; one thread. An error ends the program.
 */
#ifndef CLIENT_RESTORE_POINT_IN_TIME_H
#define CLIENT_RESTORE_POINT_IN_TIME_H

#include "client/git/gitdir.h"
#include "client/log/when.h"
#include "client/refd.h"

struct point_in_time {
	uint64_t ms; /* since 1970; 0: a position was given */
	struct when_position position;
	uint64_t begin;       /* history has the records after this LSN */
	bool is_before_first; /* the repository has no record up to it */
};

/* Accepts a position as "refd log" prints it, or a time (when_parse()) that is
 * not in the future. False, and *WHY, for anything else. */
bool point_in_time_parse(const char *s, struct point_in_time *m,
    struct text *why);

/* Fills in the other members for the repository. Dies if the history of the
 * repository begins after the point. */
void point_in_time_find(struct point_in_time *m, struct refd *r,
    const struct gitdir *gd);

/* Makes a request for the repository's whole history. */
void point_in_time_request(struct refd_request *req, const struct gitdir *gd);
/* Calls refd_log(). A failure or refusal ends the program. */
void point_in_time_ask(struct refd *r, struct refd_request *req,
    struct refd_answer *ans);

/* "4711", "4711.2" */
const char *point_in_time_number(const struct point_in_time *m, char buf[32]);

#endif
