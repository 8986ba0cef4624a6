/*
 * For tests of refd verify: checks a repository, and keeps the findings as
 * lines "<word> <ref or file>", with " repaired" if repaired. One at a time.
 * Every call fails the test instead of returning an error.
 */
#ifndef TESTS_LIB_VERIFY_HELP_H
#define TESTS_LIB_VERIFY_HELP_H

#include "daemon/admin/verify.h"

/* For the next look. Without rows, each look reads the journal. */
extern struct verify_options vh_opt;
/* Called in place of waiting between the two looks; may be NULL. */
extern void (*vh_meanwhile)(void);
/* The clock is ahead by this time. */
extern int64_t vh_ahead_ns;

/* Resets all variables above: the kernel's calls, and a state directory without
 * a journal. */
void vh_reset(void);
/* PATH is below tmp_root. Returns the number of findings. */
size_t vh_look(const char *path);
size_t vh_repair(const char *path);
/* Has the last look the finding LINE, with WORDS in its text? */
bool vh_has(const char *line, const char *words);
/* The same for the text about its repair. */
bool vh_did(const char *line, const char *words);
/* Why the last look failed, or NULL. */
const char *vh_why(void);
/* All lines, for a failed assertion. */
const char *vh_lines(void);

#endif
