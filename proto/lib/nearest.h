/*
 * The names that a mistyped word may stand for, as in git's help.autocorrect.
 * Any thread; nothing blocks.
 */
#ifndef PROTO_LIB_NEAREST_H
#define PROTO_LIB_NEAREST_H

#include <stddef.h>

/*
 * Writes "; did you mean --json or --since?" to BUF, with DASHES in front of
 * each name. The names begin with WORD, or differ from WORD in one or two
 * letters. Writes "" if no name is near, or more than three are. WORD ends at
 * LEN.
 */
void nearest_hint(const char *word, size_t len, const char *dashes,
    const char *const *names, size_t nr, char *buf, size_t size);

#endif
