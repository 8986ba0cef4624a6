/*
 * For tests of refd verify: a repository looked at, and what was found as
 * lines "<word> <ref or file>", with " repaired" where it is. One at a time;
 * every call fails the test rather than returning an error.
 */
#ifndef TESTS_LIB_VERIFY_HELP_H
#define TESTS_LIB_VERIFY_HELP_H

#include "daemon/admin/verify.h"

/* Of the next look. */
extern struct verify_options vh_opt;
/* Called in place of waiting between the two looks; may be NULL. */
extern void (*vh_meanwhile)(void);
/* The clock is so far ahead. */
extern int64_t vh_ahead_ns;

/* Everything above as it was: the kernel's calls, a state directory in which
 * there is no journal. */
void vh_reset(void);
/* PATH is below tmp_root. How many were found. */
size_t vh_look(const char *path);
size_t vh_repair(const char *path);
/* Of the last look: one such line, and its text has WORDS in it. */
bool vh_has(const char *line, const char *words);
/* The same of what was said of its repair. */
bool vh_did(const char *line, const char *words);
/* Why the last look could not be; NULL: it could. */
const char *vh_why(void);
/* All lines, for a failed assertion. */
const char *vh_lines(void);

#endif
