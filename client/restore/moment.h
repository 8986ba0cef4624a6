/*
 * The moment that is gone back to: read from an argument, and found in the
 * daemon's history. Blocking; one thread; what is wrong ends the program.
 */
#ifndef CLIENT_RESTORE_MOMENT_H
#define CLIENT_RESTORE_MOMENT_H

#include "client/git/gitdir.h"
#include "client/log/when.h"
#include "client/refd.h"

struct moment {
	uint64_t ms; /* since 1970; 0: a position was given */
	struct when_position position;
	uint64_t begin;       /* what history has is behind this LSN */
	bool is_before_first; /* no record of the repository up to then */
};

/*
 * A position as "refd log" prints it; "@<seconds>"; ISO 8601, with a zone or
 * of the local one, if that had this time once; "... ago", in git's words.
 * Seconds may have a fraction. False, and *WHY, for anything else.
 */
bool moment_parse(const char *s, struct moment *m, struct text *why);

/* Fills in the other members for the repository. Dies if the history of the
 * repository does not reach back to the moment. */
void moment_find(struct moment *m, struct refd *r, const struct gitdir *gd);

/* A question about the repository's history, from its beginning. */
void moment_request(struct refd_request *req, const struct gitdir *gd);
/* refd_log(), and no refusal; or the end. */
void moment_ask(struct refd *r, struct refd_request *req,
    struct refd_answer *ans);

/* "4711", "4711.2" */
const char *moment_number(const struct moment *m, char buf[32]);

#endif
